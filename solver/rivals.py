"""An answer and another assignment of its model -> the other launch, checked, and how it differs from the answer."""

from __future__ import annotations

from typing import Any

import msgspec

from solver.answer import Answered, launch_of
from solver.check import Result
from solver.constraints import Assignment, Level, allowed, cost
from solver.facts import Facts
from solver.solve import Problem, Solution, metrics_of
from solver.variables import read, same

TOLERANCE = 1e-6
"""Costs that differ by less are the same."""


class Moved(msgspec.Struct, frozen=True):
    """A flag or variable with its value in the answer and in another launch; None: not given."""

    key: str
    before: Any
    after: Any


class LevelChange(msgspec.Struct, frozen=True):
    """What the answer and another launch cost at one level, None where that is not known.

    `rules`: the warnings there that only one of them has.
    """

    title: str
    figure: str | None
    before: float | None
    after: float | None
    difference: float | None
    worse: bool
    rules: tuple[str, ...] = ()


class Rival(msgspec.Struct, frozen=True):
    """Another launch beside the answer.

    `flags`: what is given differently; `effects`: levers whose value in force differs though they are given alike;
    `decided`: the level that decides between them, None where they are as good; `better`: it decides for this launch,
    which is possible where the request itself rules it out. `gained`, `lost`: rules, notes left out.
    """

    facts: Facts
    result: Result
    metrics: dict[str, Any]
    flags: tuple[Moved, ...]
    effects: tuple[Moved, ...]
    levels: tuple[LevelChange, ...]
    decided: str | None
    better: bool
    gained: tuple[str, ...]
    lost: tuple[str, ...]


def rival_of(answered: Answered, values: Assignment) -> Rival:
    """The launch of an assignment, held against the answer."""
    problem, answer = answered.problem, answered.solution
    facts, _, result = launch_of(problem, values)
    level, better = deciding(problem, answer.costs, values)
    before, after = ({f.rule for f in r.findings if f.severity != "note"} for r in (answer.result, result))
    return Rival(
        facts=facts,
        result=result,
        metrics=metrics_of(msgspec.structs.replace(problem.context, facts=facts), result),
        flags=moved_flags(answer.facts, facts),
        effects=_moved_effects(problem, answer, facts, result),
        levels=level_changes(problem, answered.best, values),
        decided=level.title if level else None,
        better=better,
        gained=tuple(sorted(after - before)),
        lost=tuple(sorted(before - after)),
    )


def moved_flags(before: Facts, after: Facts) -> tuple[Moved, ...]:
    """What is given differently, flags before variables."""
    pairs = (("flag", before.given, after.given), ("env", before.env, after.env))
    return tuple(
        Moved(f"{space}.{name}", one.get(name), other.get(name))
        for space, one, other in pairs
        for name in sorted({*one, *other})
        if not same(one.get(name), other.get(name))
    )


def _moved_effects(problem: Problem, answer: Solution, facts: Facts, result: Result) -> tuple[Moved, ...]:
    old, new = (r.outcomes[0].state for r in (answer.result, result))
    found = []
    for lever in problem.context.resolver.program.levers:
        space, name = ("env", lever["name"][4:]) if lever["name"].startswith("env.") else ("flag", lever["name"])
        given = (answer.given, facts.given) if space == "flag" else (answer.env, facts.env)
        if same(given[0].get(name), given[1].get(name)) and not same(old.get(space, name), new.get(space, name)):
            found.append(Moved(f"{space}.{name}", old.get(space, name), new.get(space, name)))
    return tuple(found)


def level_changes(problem: Problem, before: Assignment, after: Assignment) -> tuple[LevelChange, ...]:
    """Each level with what both cost there. A bound is left out where a later level looks at the same figure."""
    levels = problem.model.levels
    return tuple(
        _change(problem, level, before, after)
        for number, level in enumerate(levels)
        if level.slack is None or not any(o.figure and o.figure == level.figure for o in levels[number + 1 :])
    )


def _change(problem: Problem, level: Level, before: Assignment, after: Assignment) -> LevelChange:
    costs = cost(level, before), cost(level, after)
    here, there = (-c + 0.0 if level.maximised else c for c in costs)
    before_known, after_known = (_is_known(problem, level, values) for values in (before, after))
    rules = dict.fromkeys(
        rule.id
        for name, rule in problem.builder.warnings
        if name in level.counts and bool(before[name]) is not bool(after[name])
    )
    known = before_known and after_known
    return LevelChange(
        level.title,
        level.figure,
        here if before_known else None,
        there if after_known else None,
        there - here if known else None,
        known and costs[1] > costs[0] + _tolerance(costs[0]),
        tuple(rules),
    )


def _is_known(problem: Problem, level: Level, values: Assignment) -> bool:
    """Whether the figure of a level is known; one that is not counts nothing there."""
    value = read(problem.figures[level.figure], values) if level.figure in problem.figures else 0
    return isinstance(value, int | float)


def deciding(problem: Problem, costs: tuple[float, ...], values: Assignment) -> tuple[Level | None, bool]:
    """The first level at which an assignment is worse than the goal allows, given the optimum, or better than it.

    None where it is as good; and whether it is better.
    """
    for level, optimum in zip(problem.model.levels, costs, strict=True):
        limit, here = allowed(level, optimum), cost(level, values)
        if here > limit + _tolerance(limit):
            return level, False
        if not level.slack and here < optimum - _tolerance(optimum):
            return level, True
    return None, False


def _tolerance(value: float) -> float:
    return max(TOLERANCE, abs(value) * 1e-9)
