"""`Model` -> python-constraint: the second, independent engine for small problems.

Only the base variables are searched; each ban becomes a function constraint over the choices it depends on (function
constraints only, and a fresh `Problem` each time: string constraints and reused problems are unreliable in 2.9.0).
"""

from __future__ import annotations

from math import prod
from typing import Any

from constraint import FunctionConstraint, Problem

from solver.constraints import Assignment, Lazy, Model, allowed, cone, cost, evaluate, inputs_of

MAX_CASES = 60_000
"""Beyond so many base assignments the enumeration is refused."""


def optimise(model: Model) -> tuple[Assignment, tuple[float, ...]] | None:
    """The lexicographic optimum by enumeration, or None when nothing is possible. Errors: ValueError when too large."""
    domains = {name: list(range(len(model.variables[name].domain))) for name in model.base}
    if prod(len(d) for d in domains.values()) > MAX_CASES:
        raise ValueError("too many base assignments to enumerate")
    problem = Problem()
    for name, domain in domains.items():
        problem.addVariable(name, domain)
    for ban in model.bans:
        _forbid(problem, model, ban.what)
    solutions = [_valued(model, s) for s in problem.getSolutions()]
    return _best(model, solutions)


def _forbid(problem: Any, model: Model, what: str | Lazy) -> None:
    needed = cone(model, inputs_of(what))
    bases = [b for b in model.base if b in needed]

    def holds(*indexes: int) -> bool:
        chosen = {b: model.variables[b].domain[i] for b, i in zip(bases, indexes, strict=True)}
        values = evaluate(model, chosen, needed)
        return not (values[what] if isinstance(what, str) else what.run(values))

    problem.addConstraint(FunctionConstraint(holds), bases)


def _valued(model: Model, solution: dict[str, int]) -> Assignment:
    return evaluate(model, {n: model.variables[n].domain[solution[n]] for n in model.base})


def _best(model: Model, solutions: list[Assignment]) -> tuple[Assignment, tuple[float, ...]] | None:
    if not solutions:
        return None
    costs = []
    for level in model.levels:
        optimum = min(cost(level, s) for s in solutions)
        costs.append(optimum)
        limit = allowed(level, optimum)
        solutions = [s for s in solutions if cost(level, s) <= limit + max(1e-6, abs(limit) * 1e-9)]
    position = {n: {(type(v).__name__, v): i for i, v in enumerate(model.variables[n].domain)} for n in model.base}
    first = min(solutions, key=lambda s: [position[n][(type(s[n]).__name__, s[n])] for n in model.base])
    return first, tuple(costs)
