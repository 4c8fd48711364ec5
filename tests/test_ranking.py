"""Best answers, fronts and wishes on small real problems: an enumeration through the pipeline agrees."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest

from solver.answer import Answered, answering, solve
from solver.asking import Metric
from solver.choices import Demand, opened_for
from solver.conflict import Impossible
from solver.constraints import Assignment, cost
from solver.context import Options, build
from solver.front import front_of
from solver.goals import figure_of
from solver.launch import read_argv
from solver.ranking import best_assignments, layout_levers, ordering
from solver.reasons import problem_value
from solver.solve import Problem, Solution, errors_in
from solver.store import Store
from solver.variables import same
from solver.why_not import why_not

sys.path += [str(Path(__file__).resolve().parent.parent / "tools"), str(Path(__file__).resolve().parent)]
from independent import Setting, best_among, front, ranked, settings  # a tool, not a module of the package
from test_independent import GOALS, PLACES, RELEASES, problem

CHUNKS = 6
EACH = 8
METRICS = ("latency", "round-trips", "throughput", "context", "kv-tokens", "gpus", "waiting")


def seeds(chunk: int) -> range:
    return range(chunk * EACH, (chunk + 1) * EACH)


def metric(store: Store, name: str) -> tuple[Metric, dict[str, Any]]:
    spec = next(level for level in store.index.data["sglang/levels"] if level["id"] == name)
    text = spec.get("amount") or spec["maximise"]
    return Metric(name, spec["title"], text, figure_of(spec), "maximise" in spec), spec


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_valid_launch_beats_a_point_of_the_front_and_none_is_missing(store: Store, chunk: int) -> None:
    for seed in seeds(chunk):
        made = problem(store, seed)
        pair = random.Random(seed).sample(METRICS, 2)
        (first, one), (second, other) = (metric(store, name) for name in pair)
        expected = front(made, settings(made), (one, other))
        with answering(made.context, made.goal, measured=(first.text, second.text)) as found:
            if isinstance(found, Impossible):
                assert expected == [], seed
                continue
            shown = front_of(found, (first, second))
        assert sorted(p.values for p in shown.points) == [pytest.approx(p) for p in expected], (seed, pair)
        assert all(errors_in(p.launch.result) == () for p in shown.points)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_best_answers_come_in_order_differ_and_pass_over_nothing_better(store: Store, chunk: int) -> None:
    for seed in seeds(chunk):
        made = problem(store, seed)
        most = random.Random(seed).choice((2, 4, 30))
        expected = ranked(made, settings(made))[:most]
        with answering(made.context, made.goal) as found:
            if isinstance(found, Impossible):
                assert expected == [], seed
                continue
            shown = best_assignments(found, most)
            levels = ordering(found.problem.model.levels, found.solution.costs)
            costs = [tuple(cost(level, values) for level in levels) for values in shown]
            kinds = [kind_of(found.problem, values) for values in shown]
        assert costs == [pytest.approx(c, abs=1e-4) for c in expected], seed
        assert all(kind not in kinds[:place] for place, kind in enumerate(kinds)), seed


def kind_of(made: Problem, values: Assignment) -> Any:
    """What makes an answer another one."""
    matters = [round(cost(level, values), 5) for level in made.model.levels if not level.flags]
    return repr([problem_value(made, values, key) for key in layout_levers(made)]), matters


@pytest.mark.parametrize("seed", range(12))
def test_what_a_question_opens_never_changes_the_answer(store: Store, seed: int) -> None:
    dice = random.Random(seed)
    model, hardware = dice.choice(PLACES)
    context = build(store, read_argv(dice.choice(([], ["--tp", "4"]))), Options(model, hardware, RELEASES[seed % 4]))
    program = context.resolver.program
    single = {name: form for name, form in program.flags.items() if form.nargs in (None, 0)}
    named = sorted(name for name, form in single.items() if form.choices or form.type in ("int", "flag"))
    wishes = []
    for name in dice.sample(named, 6):
        form = program.flags[name]
        value = form.const if form.type == "flag" else dice.choice(form.choices) if form.choices else dice.randint(1, 8)
        wishes.append(Demand(f"flag.{name}", (value,), name))
    goal = GOALS[seed % len(GOALS)]
    plain = solve(context, goal)
    with answering(context, goal, [opened_for(context, wish) for wish in wishes]) as found:
        assert isinstance(found, Answered) is isinstance(plain, Solution)
        if isinstance(found, Answered) and isinstance(plain, Solution):
            assert (found.solution.given, found.solution.env) == (plain.given, plain.env)
            assert found.solution.costs == pytest.approx(plain.costs)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_a_wish_costs_is_the_best_launch_that_has_it(
    store: Store, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("solver.why_not.explain", lambda *_: Impossible((), ()))  # tested on its own
    for seed in seeds(chunk):
        made = problem(store, seed)
        every = settings(made)
        with answering(made.context, made.goal) as found:
            if isinstance(found, Impossible):
                continue
            for choice in made.choices:
                for value in choice.values:
                    check_wish(found, made, every, choice.key, value)


def check_wish(found: Answered, made: Problem, every: list[Setting], key: str, value: Any) -> None:
    having = [s for s in every if same(s.choices[key], value)]
    expected = best_among(made, having)
    answer = why_not(found, Demand(key, (value,), key))
    assert (answer.status == "impossible") is (expected is None), (key, value)
    if answer.cost is None or expected is None:
        return
    costs = next(s.costs for s in having if s.choices == expected[0])
    wanted = dict(zip((level["title"] for level in made.goal["levels"]), costs, strict=True))
    shown = {c.title: c.after for c in answer.cost.levels}
    numbers = {t: abs(v or 0.0) for t, v in shown.items()}  # what is not known counts nothing
    assert numbers == pytest.approx({t: abs(wanted[t]) for t in shown}), (key, value)
