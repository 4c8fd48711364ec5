"""An answer -> the best answers in order that differ in something that matters, each proven against all it passes over.

Two launches are the same answer when they have the same layout (the values in force of the levers of the groups in
`LAYOUT`) and cost the same at every level of the goal but that which counts flags. Answers are ordered by the levels,
one after the other; within what a level's slack allows over its best, all are equal there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from solver.answer import Answered
from solver.constraints import Assignment, Lazy, Level, allowed, cone, cost, evaluate
from solver.engines.optimum import optimise
from solver.engines.sat import SatEngine
from solver.reasons import problem_value
from solver.rivals import Rival, rival_of
from solver.solve import Problem
from solver.variables import same

LAYOUT = ("layout", "replicas")
"""The groups of levers that say how the model lies on the GPUs."""


def best_answers(answered: Answered, most: int) -> tuple[Rival, ...]:
    """The first `most` answers, the answer itself first; fewer where there are no more."""
    return tuple(rival_of(answered, values) for values in best_assignments(answered, most))


def best_assignments(answered: Answered, most: int) -> list[Assignment]:
    """The same, as assignments of the model."""
    problem, engine = answered.problem, answered.engine
    levels = ordering(problem.model.levels, answered.solution.costs)
    held = [*answered.held]
    found: list[Assignment] = [answered.best]
    while len(found) < most:
        held.append(_otherwise(problem, engine, found[-1]))
        following = optimise(engine, held, levels)
        if following is None:
            break
        found.append(following[0])
    return found


def ordering(levels: tuple[Level, ...], costs: tuple[float, ...]) -> tuple[Level, ...]:
    """The levels by which answers are ordered, given the optimum: what a slack allows is all the same."""
    pairs = zip(levels, costs, strict=True)
    return tuple(_clipped(level, allowed(level, optimum)) if level.slack else level for level, optimum in pairs)


def _clipped(level: Level, limit: float) -> Level:
    amount = Lazy(_inputs(level), lambda values: max(cost(level, values), limit))
    return Level(level.title, amounts=(amount,), figure=level.figure)


def _inputs(level: Level) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*level.counts, *(name for amount in level.amounts for name in amount.inputs))))


def layout_levers(problem: Problem) -> list[str]:
    """The levers of the layout, as `flag.x` or `env.X`, that can differ here."""
    names = (lever["name"] for lever in problem.context.resolver.program.levers if lever["group"] in LAYOUT)
    keys = dict.fromkeys(name if name.startswith("env.") else f"flag.{name}" for name in names)
    return [key for key in keys if isinstance(problem.model.final.get(key), str | Lazy)]


def _otherwise(problem: Problem, engine: SatEngine, values: Assignment) -> int:
    """A literal under which a launch differs from this one in its layout or in what a level costs."""
    ways = []
    for key in layout_levers(problem):
        held, where = problem_value(problem, values, key), problem.model.final[key]
        if isinstance(where, str):
            ways.append(-engine.literal(where, held))
        else:
            ways.append(engine.deny([_is(problem, where, held)]))
    for level in problem.model.levels:
        if not level.flags:
            ways += _elsewhere(engine, level, cost(level, values))
    return engine.either(ways)


def _is(problem: Problem, where: Lazy, held: Any) -> Lazy:
    """Whether a computed value is `held`, as a function of what is chosen, which the engine always knows."""
    needed = cone(problem.model, where.inputs)
    bases = tuple(name for name in problem.model.base if name in needed)

    def run(values: Mapping[str, Any]) -> bool:
        return same(where.run(evaluate(problem.model, {n: values[n] for n in bases}, needed)), held)

    return Lazy(bases, run)


def _elsewhere(engine: SatEngine, level: Level, here: float) -> list[int]:
    """Literals of which each makes a level cost something else than `here`."""
    if level.amounts:
        near = max(1e-6, abs(here) * 1e-9)
        return [engine.deny([Lazy(_inputs(level), lambda values: abs(cost(level, values) - here) <= near)])]
    counted = [engine.literal(name, True) for name in level.counts]
    number = round(here - level.constant)
    fewer = [engine.at_most(counted, number - 1)] if number else []
    more = [engine.at_most([-lit for lit in counted], len(counted) - number - 1)] if number < len(counted) else []
    return fewer + more
