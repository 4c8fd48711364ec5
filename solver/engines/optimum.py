"""A model in the SAT engine -> its lexicographic optimum: level after level, until anything better is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from solver.constraints import Assignment, Level, allowed, cost
from solver.engines.sat import SatEngine
from solver.facts import key_of

FEW = 16
"""So many true counts are brought down by bounds alone."""


def optimise(
    engine: SatEngine, assumptions: Iterable[int] = (), levels: tuple[Level, ...] | None = None
) -> tuple[Assignment, tuple[float, ...]] | None:
    """The lexicographic optimum with the best cost of each level, or None when nothing is possible.

    `levels`: others than the model's own, over values that the engine knows. Ties are broken by the order of the base
    variables and of their domains, so the answer is always the same.
    """
    held = list(assumptions)
    best = engine.solve(held)
    if best is None:
        return None
    levels = engine.model.levels if levels is None else levels
    costs: list[float] = []
    rows: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
    for number, level in enumerate(levels):
        if _worth_a_try(levels, number) and (clear := _without_claims(engine, level, held)):
            optimum, best = level.constant, clear
        elif level.amounts:
            optimum, best = _choose_row(engine, level, held, best, rows)
        elif level.counts:
            optimum, best = _descend(engine, level, held, best)
            held.append(engine.bound(level, allowed(level, optimum)))
        else:
            optimum = level.constant
        costs.append(optimum)
    return _first_in_order(engine, held, best), tuple(costs)


def _worth_a_try(levels: tuple[Level, ...], number: int) -> bool:
    """Whether to try a level without its claims: not where a later level looks at the same combinations anyway."""
    level, later = levels[number], levels[number + 1 :]
    return level.claims and bool(level.amounts) and all(o.claims or o.inputs != level.inputs for o in later)


def _without_claims(engine: SatEngine, level: Level, held: list[int]) -> Assignment | None:
    """An assignment in which no claim of the level is true, held from then on; None where there is none."""
    guard = engine.deny(level.amounts)
    found = engine.solve([*held, guard])
    if found is not None:
        held.append(guard)
    return found


def _choose_row(
    engine: SatEngine,
    level: Level,
    held: list[int],
    best: Assignment,
    rows: dict[tuple[str, ...], list[tuple[Any, ...]]],
) -> tuple[float, Assignment]:
    """The least cost of a level with computed amounts: every possible combination of its inputs is looked at once.

    Combinations known from an earlier level are all that can still be possible; what came between may have taken some.
    """
    names = level.inputs
    known = rows.get(names)
    if known is None:
        costs = engine.rows(level, held)
        optimum = min(costs.values())
    else:
        costs = engine.costs(level, known)
        optimum, best = _first_possible(engine, names, costs, held, best)
    limit = allowed(level, optimum) + max(1e-6, abs(optimum) * 1e-9)
    rows[names] = [row for row, value in costs.items() if value <= limit]
    held.append(engine.exclude(names, [row for row, value in costs.items() if value > limit]))
    found = engine.solve(held)
    return optimum, found if found is not None else best


def _first_possible(
    engine: SatEngine,
    names: tuple[str, ...],
    costs: dict[tuple[Any, ...], float],
    held: list[int],
    best: Assignment,
) -> tuple[float, Assignment]:
    """The cheapest combination that is still possible."""
    for row in sorted(costs, key=lambda r: costs[r]):
        found = engine.solve([*held, *(engine.literal(n, v) for n, v in zip(names, row, strict=True))])
        if found is not None:
            return costs[row], found
    return costs[tuple(best[n] for n in names)], best


def _descend(engine: SatEngine, level: Level, held: list[int], best: Assignment) -> tuple[float, Assignment]:
    """The least cost of a counting level: lower the bound below what was found until the solver refuses."""
    if cost(level, best) > level.constant + FEW:  # a bound takes as many clauses as there are counts, times itself
        best = _sparse(engine, level, held, best)
    while True:
        found = cost(level, best)
        if found <= level.constant:
            return found, best
        better = engine.solve([*held, engine.bound(level, _below(found))])
        if better is None:
            return found, best
        best = better


def _sparse(engine: SatEngine, level: Level, held: list[int], best: Assignment) -> Assignment:
    """An assignment in which few of the counts are true: those that cannot all be false together are let go."""
    off = [-engine.literal(name, True) for name in level.counts]
    while off:
        found = engine.solve([*held, *off])
        if found is not None:
            return found
        core = set(engine.core())
        kept = [literal for literal in off if literal not in core]
        if len(kept) == len(off):
            break
        off = kept
    return best


def _below(value: float) -> float:
    return value - max(1e-6, abs(value) * 1e-9)


def nearest(engine: SatEngine, held: Iterable[int], wanted: Mapping[str, tuple[Any, ...]]) -> Assignment | None:
    """The assignment in which each variable in turn has the first of its wanted values that is still possible."""
    found = engine.solve(held)
    return None if found is None else _settle(engine, [*held], found, wanted)


def _first_in_order(engine: SatEngine, held: list[int], best: Assignment) -> Assignment:
    return _settle(engine, held, best, {name: engine.model.variables[name].domain for name in engine.model.base})


def _settle(engine: SatEngine, held: list[int], best: Assignment, wanted: Mapping[str, tuple[Any, ...]]) -> Assignment:
    for name, values in wanted.items():
        for value in values:
            if key_of(best[name]) == key_of(value):
                break
            better = engine.solve([*held, engine.literal(name, value)])
            if better is not None:
                best = better
                break
        held.append(engine.literal(name, best[name]))
    return best
