"""`Model` -> clauses -> answers from python-sat: optimum with proof, smallest conflicts, repairs.

Encoding: one literal per value of a variable (one for booleans), exactly one of them true; a definition gives one
clause per row, a junction the usual clauses. Levels are optimised one after the other by descending bounds: the last
bound that is refused is the proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

from pysat.solvers import Solver

from solver.constraints import Assignment, Definition, Level, Model, cone, cost, relevant

PAIRWISE = 6
"""Up to so many values, at most one is said pairwise; beyond, by a ladder of helpers."""


class SatEngine:
    """One model in one incremental solver. Hard parts that can be dropped hang on selectors."""

    def __init__(self, model: Model, soft: Mapping[str, tuple[str, Any]] | None = None) -> None:
        """`soft`: name of a demand -> (base variable, value) that holds only when assumed; bans become demands too."""
        self.model = model
        self._count = 0
        self._literals: dict[str, dict[Any, int]] = {}
        self._solver = Solver(name="cadical153")
        self.selectors: dict[str, int] = {}
        wanted = relevant(model) | set(model.base) | cone(model, [f for f in model.final.values() if isinstance(f, str)])
        for name in model.base:
            self._introduce(name)
        for name, definition in model.definitions.items():
            if name in wanted:
                self._introduce(name)
                self._define(definition)
        self._demand_all(soft)

    # ------------------------------------------------------------ encoding

    def _new(self) -> int:
        self._count += 1
        return self._count

    def _add(self, clause: list[int]) -> None:
        self._solver.add_clause(clause)

    def _introduce(self, name: str) -> None:
        domain = self.model.variables[name].domain
        if len(domain) == 2:
            literal = self._new()
            self._literals[name] = {_key(domain[0]): -literal, _key(domain[1]): literal}
            return
        literals = [self._new() for _ in domain]
        self._literals[name] = {_key(v): lit for v, lit in zip(domain, literals, strict=True)}
        self._add(literals)
        self._at_most_one(literals)

    def _at_most_one(self, literals: list[int]) -> None:
        if len(literals) <= PAIRWISE:
            for a, b in combinations(literals, 2):
                self._add([-a, -b])
            return
        before = None
        for literal in literals:
            here = self._new()
            self._add([-literal, here])
            if before is not None:
                self._add([-before, here])
                self._add([-before, -literal])
            before = here

    def literal(self, name: str, value: Any) -> int:
        """The literal of `name == value`."""
        return self._literals[name][_key(value)]

    def _define(self, definition: Definition) -> None:
        if definition.kind == "table":
            for combo, value in definition.rows.items():
                clause = [-self.literal(i, v) for i, v in zip(definition.inputs, combo, strict=True)]
                self._add([*clause, self.literal(definition.name, value)])
            return
        out = self.literal(definition.name, True)
        inputs = [
            self.literal(i, True) * (-1 if n else 1) for i, n in zip(definition.inputs, definition.negated, strict=True)
        ]
        sign = 1 if definition.kind == "or" else -1
        # or: each input implies out; and: out implies each input (the same clauses with signs turned)
        for literal in inputs:
            self._add([-literal * sign, out * sign])
        self._add([-out * sign, *(literal * sign for literal in inputs)])

    def _demand_all(self, soft: Mapping[str, tuple[str, Any]] | None) -> None:
        for ban in self.model.bans:
            literal = self.literal(ban.name, True)
            if soft is None:
                self._add([-literal])
            else:
                key = f"rule:{ban.rule}"
                selector = self.selectors.setdefault(key, 0) or self._new()
                self.selectors[key] = selector
                self._add([-selector, -literal])
        for key, (name, value) in (soft or {}).items():
            self.selectors[key] = selector = self._new()
            self._add([-selector, self.literal(name, value)])

    # ------------------------------------------------------------- answers

    def solve(self, assumptions: Iterable[int] = ()) -> Assignment | None:
        """A full assignment of the base variables that satisfies everything hard, or None."""
        if not self._solver.solve(assumptions=list(assumptions)):
            return None
        true = {lit for lit in self._solver.get_model() if lit > 0}
        return {
            name: next(v for v in self.model.variables[name].domain if self._is_true(name, v, true))
            for name in self._literals
        }

    def _is_true(self, name: str, value: Any, true: set[int]) -> bool:
        literal = self.literal(name, value)
        return literal in true if literal > 0 else -literal not in true

    def refuted(self, assumptions: Iterable[int]) -> tuple[int, ...]:
        """After a refusal: the assumptions that refute each other (not yet smallest)."""
        assumed = list(assumptions)
        if self._solver.solve(assumptions=assumed):
            return ()
        return tuple(self._solver.get_core() or ())

    def bound(self, level: Level, limit: float) -> int:
        """A literal under which the level costs at most `limit`."""
        guard = self._new()
        weights = self._weights(level)
        limit -= level.constant
        _at_most(self, guard, weights, limit)
        return guard

    def _weights(self, level: Level) -> list[list[tuple[int, float]]]:
        """Groups of which exactly one literal is true, with its cost."""
        groups: list[list[tuple[int, float]]] = []
        for name in level.counts:
            groups.append([(self.literal(name, True), 1.0), (self.literal(name, False), 0.0)])
        if level.amount:
            domain = self.model.variables[level.amount].domain
            groups.append([(self.literal(level.amount, v), float(v or 0)) for v in domain])
        return groups

    def close(self) -> None:
        """Free the solver."""
        self._solver.delete()

    def __enter__(self) -> SatEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _at_most(engine: SatEngine, guard: int, groups: list[list[tuple[int, float]]], limit: float) -> None:
    """Under `guard`, the costs of the groups add up to at most `limit`: a decision diagram over the partial sums."""
    layer: dict[float, int] = {0.0: guard}
    remaining = [min(c for _, c in group) for group in groups]
    for number, group in enumerate(groups):
        rest = sum(remaining[number + 1 :])
        following: dict[float, int] = {}
        for total, node in layer.items():
            for literal, weight in group:
                reached = round(total + weight, 9)
                if reached + rest > limit + 1e-9:
                    engine._add([-node, -literal])
                    continue
                if number + 1 < len(groups):
                    target = following.get(reached) or engine._new()
                    following[reached] = target
                    engine._add([-node, -literal, target])
        layer = following


def optimise(engine: SatEngine, assumptions: tuple[int, ...] = ()) -> tuple[Assignment, tuple[float, ...]] | None:
    """The lexicographic optimum with the best cost of each level, or None when nothing is possible.

    Ties are broken by the order of the base variables and of their domains, so the answer is always the same.
    """
    best = engine.solve(assumptions)
    if best is None:
        return None
    held = list(assumptions)
    costs: list[float] = []
    for level in engine.model.levels:
        optimum, best = _descend(engine, level, held, best)
        costs.append(optimum)
        allowed = optimum if level.slack is None else optimum * (1 + level.slack)
        held.append(engine.bound(level, allowed))
    return _first_in_order(engine, held, best), tuple(costs)


def _descend(engine: SatEngine, level: Level, held: list[int], best: Assignment) -> tuple[float, Assignment]:
    """The least cost of a level: lower the bound below what was found until the solver refuses."""
    while True:
        found = cost(level, best)
        better = engine.solve([*held, engine.bound(level, _below(found))])
        if better is None:
            return found, best
        best = better


def _below(value: float) -> float:
    return value - max(1e-6, abs(value) * 1e-9)


def _first_in_order(engine: SatEngine, held: list[int], best: Assignment) -> Assignment:
    for name in engine.model.base:
        for value in engine.model.variables[name].domain:
            if _key(best[name]) == _key(value):
                break
            better = engine.solve([*held, engine.literal(name, value)])
            if better is not None:
                best = better
                break
        held.append(engine.literal(name, best[name]))
    return best


def _key(value: Any) -> Any:
    return (type(value).__name__, value)
