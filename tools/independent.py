"""A solve problem -> the same answer by running every setting through the pipeline: no model, no engine, no clauses.

Levels are read off the concrete launch: expressions over its state, counts over the rules that fired.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any, NamedTuple

from packaging.version import Version

from solver.conditions import Unknown, evaluator
from solver.evidence import split
from solver.facts import Facts, env_text
from solver.goals import is_metric, reads_like
from solver.grammar import fold_release, parse
from solver.nearness import DIFFERENCES, OTHER_RELEASE, records_near
from solver.pipeline import Outcome, run
from solver.solve import Problem, completed

Costs = tuple[float, ...]


class Evaluator:
    """The levels and guards of one problem, evaluated on launches."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.context = problem.context
        self._ready: dict[str, Any] = {}
        built = problem.builder
        self.steering = {rule.id for _, rule in built.warnings} | {rule.id for rule in built.fixed_warnings}

    def outcome(self, facts: Facts) -> Outcome:
        return run(self.context.resolver, facts, self.context.estimates)

    def refused(self, outcome: Outcome) -> bool:
        """Whether a rule of severity error, a guard or a ban speaks against the launch."""
        goal, state = self.problem.goal, outcome.state
        if any(f.compiled.severity == "error" and not f.names for f in outcome.fired):
            return True
        if any(self.broken(guard, state) for guard in goal["guards"]):
            return True
        return any(text and reads_like(state.get(space, name), text) for space, name, text in goal.get("bans", ()))

    def broken(self, guard: dict[str, Any], state: Any) -> bool:
        """Whether a guard refuses a launch; a bound of the request has to be met for sure."""
        return (
            self.value(guard["unless"], state) is not True
            if "unless" in guard
            else bool(self.value(guard["refuse"], state))
        )

    def costs(self, outcome: Outcome, given: int) -> Costs:
        """What the launch costs at each level; `given`: flags and variables that were chosen."""
        return tuple(self._cost(level, outcome, given) for level in self.problem.goal["levels"])

    def _nearest(self, outcome: Outcome) -> tuple[int, bool]:
        """Choices that differ from the nearest record, and whether it is of another release; 0 where there is none."""
        context, spaces = self.context, outcome.state.spaces
        program = context.resolver.program
        part = context.index.evidence(str(context.facts.model.get("architecture")))
        set_here = [name for space, name in outcome.state.origins if space == "env" and name in program.env]
        env = {name: env_text(spaces["env"][name]) for name in set_here}
        here, _ = split(spaces["given"], env, program.flags, program.env, part)
        found = [
            (sum(here.get(n) != r.choices.get(n) for n in {*here, *r.choices}), r.release != context.release)
            for r in records_near(context)
        ]
        return min(found, default=(0, False))

    def _cost(self, level: dict[str, Any], outcome: Outcome, given: int) -> float:
        if is_metric(level):
            sign = -1.0 if "maximise" in level else 1.0
            return sign * float(self.value(level.get("amount") or level["maximise"], outcome.state) or 0)
        if "count_if" in level:
            return float(sum(bool(self.value(text, outcome.state)) for text in level["count_if"]))
        if level["count"] == "given":
            return float(given)
        if level["count"] in (DIFFERENCES, OTHER_RELEASE):
            return float(self._nearest(outcome)[level["count"] == OTHER_RELEASE])
        fired = [f.compiled for f in outcome.fired if f.compiled.severity == "warning" and not f.names]
        wanted = [c for c in fired if c.id in self.steering and (level["count"] != "quality" or c.stage == "quality")]
        return float(len(wanted))

    def is_open(self, level: dict[str, Any], outcome: Outcome) -> bool:
        """Whether the figure of a level rests on what nobody stated."""
        if not is_metric(level):
            return False
        text = level.get("amount") or level["maximise"]
        self.value(text, outcome.state)
        return type(self._ready[text](outcome.state)) is Unknown

    def value(self, text: str, state: Any) -> Any:
        if text not in self._ready:
            program = self.context.resolver.program
            self._ready[text] = evaluator(fold_release(parse(text), Version, program.release), program.tables)
        found = self._ready[text](state)
        return None if type(found) is Unknown else found


def size(problem: Problem) -> int:
    """How many settings the levers of a problem have."""
    return prod(len(c.values) for c in problem.choices)


class Setting(NamedTuple):
    """One setting that nothing refuses, the state it leads to, and what it costs at each level."""

    choices: dict[str, Any]
    state: Any
    costs: Costs


def settings(problem: Problem) -> list[Setting]:
    """Every setting that nothing refuses."""
    judge = Evaluator(problem)
    found = []
    for combo in product(*(c.values for c in problem.choices)):
        choices = {c.key: v for c, v in zip(problem.choices, combo, strict=True)}
        outcome = judge.outcome(completed(problem, choices))
        if not judge.refused(outcome):
            found.append(Setting(choices, outcome.state, judge.costs(outcome, sum(v is not None for v in combo))))
    return found


def best(problem: Problem) -> tuple[dict[str, Any], Costs] | None:
    """The lexicographic optimum over every setting, ties by order of levers and values; None when all are refused."""
    return best_among(problem, settings(problem))


def best_among(problem: Problem, found: list[Setting]) -> tuple[dict[str, Any], Costs] | None:
    """The lexicographic optimum over some settings, in their order."""
    optimum = []
    for number, level in enumerate(problem.goal["levels"]):
        if not found:
            return None
        least = min(s.costs[number] for s in found)
        optimum.append(least)
        limit = _limit(level, least)
        found = [s for s in found if s.costs[number] <= limit + _near(limit)]
    return found[0].choices, tuple(optimum)


def _limit(level: dict[str, Any], least: float) -> float:
    return least + abs(least) * (level.get("slack") or 0.0)


def _near(value: float) -> float:
    return max(1e-6, abs(value) * 1e-9)


def ranked(problem: Problem, found: list[Setting]) -> list[Costs]:
    """The costs, slack cut off, of the best answers that differ in layout or in a level that is no count of flags."""
    answer = best_among(problem, found)
    if answer is None:
        return []
    levels = problem.goal["levels"]
    limits = [_limit(level, least) for level, least in zip(levels, answer[1], strict=True)]
    spaces = [
        ("env", o["name"][4:]) if o["name"].startswith("env.") else ("flag", o["name"])
        for o in problem.context.resolver.program.levers
        if o["group"] in ("layout", "replicas")
    ]
    classes: dict[Any, Costs] = {}
    for setting in found:
        costs = tuple(round(c, 5) for c in setting.costs)
        cut = tuple(
            max(c, round(limit, 5)) if level.get("slack") else c
            for c, limit, level in zip(costs, limits, levels, strict=True)
        )
        matters = tuple(c for c, level in zip(costs, levels, strict=True) if level.get("count") != "given")
        kind = (tuple(repr(setting.state.get(*key)) for key in spaces), matters)
        classes[kind] = min(cut, classes.get(kind, cut))
    return sorted(classes.values())


def front(
    problem: Problem, found: list[Setting], metrics: tuple[dict[str, Any], dict[str, Any]]
) -> list[tuple[float, ...]]:
    """The values of two metrics that no setting beats in both."""
    judge = Evaluator(problem)
    places = set()
    for setting in found:
        values = [judge.value(m.get("amount") or m["maximise"], setting.state) for m in metrics]
        if None not in values:
            places.add(
                tuple(round(float(v), 6) * (-1 if "maximise" in m else 1) for v, m in zip(values, metrics, strict=True))
            )
    kept = [p for p in places if not any(o != p and all(a <= b for a, b in zip(o, p, strict=True)) for o in places)]
    return sorted(tuple(-v + 0.0 if "maximise" in m else v for v, m in zip(p, metrics, strict=True)) for p in kept)


def rechecked(problem: Problem, facts: Facts, given: int) -> tuple[float | None, ...]:
    """The costs of a finished launch, by running it; None where the figure rests on what nobody stated."""
    judge = Evaluator(problem)
    outcome = judge.outcome(facts)
    costs = judge.costs(outcome, given)
    return tuple(
        None if judge.is_open(level, outcome) else cost
        for level, cost in zip(problem.goal["levels"], costs, strict=True)
    )
