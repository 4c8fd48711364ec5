"""A solved problem -> why each flag is there, and the other points of the trade-off, by asking the solver again."""

from __future__ import annotations

from itertools import product
from typing import Any

import msgspec

from solver.constraints import Assignment, Lazy, Level, cost, evaluate, violated
from solver.engines.optimum import nearest
from solver.engines.sat import SatEngine
from solver.findings import spelling
from solver.solve import TRADED, Point, Problem, Reason
from solver.variables import Var, same
from solver.words import FIGURES, figure, listed, say

LAYOUT = ("flag.tp_size", "flag.pp_size", "flag.dp_size", "flag.speculative_num_steps")
"""The choices that span the trade-off."""
DECIDING_LEVELS = 3
"""Levels (memory, warnings, losses) that every point of the trade-off has to keep."""


def reasons_of(
    problem: Problem, best: Assignment, costs: tuple[float, ...], chosen: dict[str, str]
) -> tuple[Reason, ...]:
    """One reason per flag and variable: pins, choices, what a starting command lost, what was written out."""
    found = [Reason(key, value, "pin", "you", "you asked for it") for key, value in problem.pins.items()]
    base = {name: best[name] for name in problem.model.base}
    kept = problem.goal.get("keep", {})
    for choice in problem.choices:
        value = None if choice.pinned else best[choice.key]
        if value is not None and choice.key in kept and kept[choice.key] == value:
            found.append(Reason(choice.key, value, "pin", "you", "as in the starting command"))
        elif value is not None:
            found.append(_reason(problem, base, costs, choice.key))
    found += [_dropped(problem, base, costs, key) for key in kept if key in base and base[key] is None]
    for name, rule in chosen.items():
        value = problem_value(problem, best, f"flag.{name}")
        text = "the engine's own default, written out" if rule in ("default", "given") else f"what {rule} makes it"
        found.append(Reason(f"flag.{name}", value, "rule", rule, text))
    return tuple(found)


def _dropped(problem: Problem, base: Assignment, costs: tuple[float, ...], key: str) -> Reason:
    """Why a flag of the starting command is no longer there: a reason without a value."""
    levers = {lever["name"]: lever for lever in problem.context.resolver.program.levers}
    other = levers.get(key.removeprefix("flag."), {}).get("beside")
    if other and base.get(f"flag.{other}", ...) is None:
        program = problem.context.resolver.program
        return Reason(key, None, "rule", other, f"means nothing without {spelling(program, other)}")
    reason = _reason(problem, base, costs, key)
    return msgspec.structs.replace(reason, text=reason.text.replace("required by", "refused by"))


def problem_value(problem: Problem, best: Assignment, key: str) -> Any:
    """The final value of a flag or variable under an assignment."""
    where = problem.model.final.get(key)
    if isinstance(where, Lazy):
        return where.run(best)
    return best.get(where) if isinstance(where, str) else where[1] if where else None


def _reason(problem: Problem, base: Assignment, costs: tuple[float, ...], key: str) -> Reason:
    """What happens with every other value and the rest as it is: rules refuse it, or a level of the goal gets worse."""
    value = base[key]
    refused: list[str] = []
    others: list[tuple[tuple[float, ...], Any, Assignment]] = []
    for other in problem.model.variables[key].domain:
        if same(other, value) or any(k == key and same(other, v) for k, v in problem.closed):
            continue
        values = evaluate(problem.model, {**base, key: other})
        broken = violated(problem.model, values)
        if broken:
            refused += broken if other is None or not refused else ()
        else:
            others.append((tuple(cost(level, values) for level in problem.model.levels), other, values))
    if not others:
        guards = {guard["title"] for guard in problem.goal["guards"]}
        rules = list(dict.fromkeys(r for r in refused if r not in guards)) or sorted(set(refused))
        return Reason(key, value, "rule", rules[0] if rules else "", f"required by {listed(rules)}")
    figures, other, values = min(others, key=lambda o: o[0])
    instead = "left out" if other is None else say(other)
    for number, level in enumerate(problem.model.levels):
        if figures[number] > costs[number] + 1e-6 and level.slack is None:
            return Reason(
                key,
                value,
                "goal",
                problem.goal["id"],
                _worse(problem, level, instead, figures[number], costs[number], values),
            )
    return Reason(key, value, "goal", problem.goal["id"], f"as good {instead}; taken by the fixed order of preference")


def _worse(problem: Problem, level: Level, instead: str, there: float, here: float, values: Assignment) -> str:
    if level.maximised:
        there, here = -there, -here
    if level.figure in FIGURES:
        return f"{instead}: {figure(level.figure, there).split(' ')[0]} instead of {figure(level.figure, here)}"
    rules = [r.id for name, r in problem.builder.warnings if name in level.counts and values[name]]
    what = f" ({listed(list(dict.fromkeys(rules)))})" if rules else ""
    return f"{instead}: {there:,.10g} instead of {here:,.10g} {level.title}{what}"


def trade_off(problem: Problem, engine: SatEngine, best: Assignment, costs: tuple[float, ...]) -> tuple[Point, ...]:
    """Every other reachable layout: first those that none beats in both latency and round trips, then the rest.

    None for a goal that trades neither.
    """
    levels = problem.model.levels
    if not any(level.figure in TRADED for level in levels):
        return ()
    held = [engine.bound(level, c) for level, c in zip(levels[:DECIDING_LEVELS], costs, strict=False) if level.counts]
    held += problem.own(engine)
    keys = [k for k in LAYOUT if k in problem.model.base]
    here = tuple(best[k] for k in keys)
    points: list[tuple[tuple[float, ...], Assignment]] = []
    seen = {_shape(problem, best)}
    for combo in product(*(problem.model.variables[k].domain for k in keys)):
        found = None if combo == here else _layout(problem, engine, best, keys, combo, held)
        shape = _shape(problem, found) if found else ()
        if found is not None and shape not in seen and all(figures := _figures(problem, found)):
            seen.add(shape)
            points.append((figures, found))
    rivals = [*(f for f, _ in points), _figures(problem, best)]
    points.sort(key=lambda p: (any(_beats(rival, p[0]) for rival in rivals), p[0][::-1], [str(p[1][k]) for k in keys]))
    return tuple(
        Point(
            {k.split(".", 1)[1]: value for k, value in zip(LAYOUT, _shape(problem, values), strict=True)},
            dict(zip(TRADED, figures, strict=True)),
            not any(_beats(rival, figures) for rival in rivals),
        )
        for figures, values in points
    )


def _shape(problem: Problem, values: Assignment) -> tuple[Any, ...]:
    """The values of the layout in force; draft steps count only where something drafts."""
    *layout, steps = (problem_value(problem, values, k) for k in LAYOUT)
    drafts = problem_value(problem, values, "flag.speculative_algorithm") is not None
    return (*layout, steps if drafts else None)


def _figures(problem: Problem, values: Assignment) -> tuple[float, ...]:
    """The traded metrics of an assignment; 0 where one is unknown."""
    found = (problem.figures[name] for name in TRADED)
    return tuple(
        (f.run(values) if isinstance(f, Lazy) else values[f.name] if isinstance(f, Var) else f) or 0 for f in found
    )


def _layout(
    problem: Problem, engine: SatEngine, best: Assignment, keys: list[str], combo: tuple[Any, ...], held: list[int]
) -> Assignment | None:
    """A launch of this layout with as much of the answer's other choices as fits, in their order."""
    wanted = [*held, *(engine.literal(k, v) for k, v in zip(keys, combo, strict=True))]
    rest = [k for k in problem.model.base if k not in keys]
    found = engine.solve([*wanted, *(engine.literal(k, best[k]) for k in rest)])
    return found or nearest(engine, wanted, {k: (best[k], *problem.model.variables[k].domain) for k in rest})


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
