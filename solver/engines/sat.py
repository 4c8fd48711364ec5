"""`Model` -> clauses -> answers from python-sat: optimum with proof, smallest conflicts, repairs.

Encoding: one literal per value of a variable (one for booleans), exactly one of them true; a definition gives one
clause per row, a junction the usual clauses. `optimum` asks the questions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

from pysat.solvers import Solver

from solver.constraints import Assignment, Definition, Lazy, Level, Model, cone, relevant
from solver.facts import key_of

PAIRWISE = 6
"""Up to so many values, at most one is said pairwise; beyond, by a ladder of helpers."""


Guarded = tuple[Lazy, int | None]
"""A lazy ban and the literal under which it counts; None: always."""


def holds(truth: list[int], literal: int) -> bool:
    """Whether a literal is true in an assignment; one that nothing speaks of is not."""
    place = abs(literal) - 1
    return place < len(truth) and truth[place] == literal


class SatEngine:
    """One model in one incremental solver. Hard parts that can be dropped hang on selectors."""

    def __init__(
        self,
        model: Model,
        soft: Mapping[str, tuple[str, Any]] | None = None,
    ) -> None:
        """`soft`: name of a demand -> (base variable, value) that holds only when assumed; bans become demands too."""
        self.model = model
        self._count = 0
        self._literals: dict[str, dict[Any, int]] = {}
        self._readers: dict[str, list[tuple[int, int, Any]]] = {}
        self._kept: dict[int, dict[tuple[Any, ...], Any]] = {}
        self._counters: dict[tuple[int, ...], list[int]] = {}
        self._solver = Solver(name="cadical153")
        self.selectors: dict[str, int] = {}
        wanted = (
            relevant(model) | set(model.base) | cone(model, [f for f in model.final.values() if isinstance(f, str)])
        )
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
            self._literals[name] = {key_of(domain[0]): -literal, key_of(domain[1]): literal}
            self._readers[name] = [(literal - 1, -literal, domain[0]), (literal - 1, literal, domain[1])]
            return
        literals = [self._new() for _ in domain]
        self._literals[name] = {key_of(v): lit for v, lit in zip(domain, literals, strict=True)}
        self._readers[name] = [(literal - 1, literal, v) for literal, v in zip(literals, domain, strict=True)]
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
        return self._literals[name][key_of(value)]

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
        self._lazy: dict[tuple[str, ...], list[Guarded]] = {}
        for ban in self.model.bans:
            selector = None
            if soft is not None:
                key = f"rule:{ban.rule}"
                selector = self.selectors.setdefault(key, 0) or self._new()
                self.selectors[key] = selector
            if isinstance(ban.what, Lazy):
                self._lazy.setdefault(ban.what.inputs, []).append((ban.what, selector))
            else:
                self._add([-self.literal(ban.what, True), *([-selector] if selector else [])])
        for key, (name, value) in (soft or {}).items():
            self.selectors[key] = selector = self._new()
            self._add([-selector, self.literal(name, value)])

    # ------------------------------------------------------------- answers

    def solve(self, assumptions: Iterable[int] = ()) -> Assignment | None:
        """A full assignment that satisfies everything hard, or None."""
        truth = self.possible(assumptions)
        return None if truth is None else self._read(self._literals, truth)

    def possible(self, assumptions: Iterable[int]) -> list[int] | None:
        """The literals of an assignment that satisfies everything hard and no lazy ban refuses, or None.

        They stand in the order of their variables (see `holds`). What a lazy ban refuses becomes clauses.
        """
        assumed = list(assumptions)
        while self._solver.solve(assumptions=assumed):
            truth: list[int] = self._solver.get_model()
            clauses = [c for inputs, lazies in self._lazy.items() for c in self._refusals(inputs, lazies, truth)]
            if not clauses:
                return truth
            for clause in clauses:
                self._add(clause)
        return None

    def _refusals(self, inputs: tuple[str, ...], lazies: list[Guarded], truth: list[int]) -> list[list[int]]:
        """The clauses of the lazy bans over the same inputs that an assignment breaks."""
        asked = [(lazy, selector) for lazy, selector in lazies if selector is None or holds(truth, selector)]
        if not asked:
            return []
        values = self._read(inputs, truth)
        return [
            [-self.literal(n, v) for n, v in values.items()] + ([-selector] if selector else [])
            for lazy, selector in asked
            if self.lazy_value(lazy, values)
        ]

    def lazy_value(self, lazy: Lazy, values: Assignment) -> Any:
        return self._value(lazy, tuple(values.values()))

    def _value(self, lazy: Lazy, row: tuple[Any, ...]) -> Any:
        """A lazy value for the values of its inputs, in their order."""
        kept = self._kept.setdefault(id(lazy), {})
        if row not in kept:
            kept[row] = lazy.run(dict(zip(lazy.inputs, row, strict=True)))
        return kept[row]

    def _read(self, names: Iterable[str], truth: list[int]) -> Assignment:
        values = {}
        readers = self._readers
        for name in names:
            for place, literal, value in readers[name]:
                if truth[place] == literal:
                    values[name] = value
                    break
        return values

    def rows(self, level: Level, held: Iterable[int]) -> dict[tuple[Any, ...], float]:
        """Every combination of the level's inputs that is possible under the assumptions, with its cost."""
        names = level.inputs
        return self.costs(level, [tuple(values.values()) for values in self.combinations(names, held)])

    def costs(self, level: Level, rows: Iterable[tuple[Any, ...]]) -> dict[tuple[Any, ...], float]:
        """The cost of each combination of values of the level's inputs."""
        names = level.inputs
        parts = [(amount, [names.index(n) for n in amount.inputs]) for amount in level.amounts]
        return {
            row: level.constant + sum([self._value(a, tuple([row[p] for p in places])) or 0 for a, places in parts])
            for row in rows
        }

    def combinations(self, names: Iterable[str], held: Iterable[int]) -> Iterator[Assignment]:
        """Each combination of values that some variables can have under the assumptions."""
        names, guard = tuple(names), self._new()
        while (truth := self.possible([*held, guard])) is not None:
            values = self._read(names, truth)
            yield values
            self._add([-guard, *(-self.literal(n, v) for n, v in values.items())])

    def deny(self, claims: Iterable[Lazy]) -> int:
        """A literal under which none of the lazy claims is true."""
        guard = self._new()
        for claim in claims:
            self._lazy.setdefault(claim.inputs, []).append((claim, guard))
        return guard

    def exclude(self, names: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> int:
        """A literal under which none of the combinations is taken."""
        guard = self._new()
        for row in rows:
            self._add([-guard, *(-self.literal(n, v) for n, v in zip(names, row, strict=True))])
        return guard

    def either(self, literals: Iterable[int]) -> int:
        """A literal under which one of some literals at least is true."""
        guard = self._new()
        self._add([-guard, *literals])
        return guard

    def all_of(self, literals: Iterable[int]) -> int:
        """A literal under which all of some literals are true."""
        guard = self._new()
        for literal in literals:
            self._add([-guard, literal])
        return guard

    def one_of(self, name: str, values: Iterable[Any]) -> int:
        """A literal under which a variable has one of some values."""
        return self.either(self.literal(name, value) for value in values)

    def refuted(self, assumptions: Iterable[int]) -> tuple[int, ...]:
        """After a refusal: the assumptions that refute each other (not yet smallest)."""
        return () if self.possible(assumptions) is not None else self.core()

    def core(self) -> tuple[int, ...]:
        """The same of the last refusal."""
        return tuple(self._solver.get_core() or ())

    def bound(self, level: Level, limit: float) -> int:
        """A literal under which the level's counts cost at most `limit`."""
        most = math.floor(limit - level.constant + 1e-9)
        if most < 0 or most >= len(level.counts):
            guard = self._new()
            self._add([-guard] if most < 0 else [guard])
            return guard
        return self.at_most([self.literal(name, True) for name in level.counts], most)

    def at_most(self, literals: Iterable[int], most: int) -> int:
        """A literal under which at most so many of some literals (more than that) are true."""
        counted = tuple(literals)
        outputs = self._counters.get(counted, [])
        if most >= len(outputs):
            outputs = self._counters[counted] = self._counter(counted, most + 1)
        return -outputs[most]

    def _counter(self, literals: tuple[int, ...], most: int) -> list[int]:
        """Literals that are true when more than 0, 1, … of others are: a sequential counter."""
        outputs: list[int] = []
        for literal in literals:
            following = [self._new() for _ in range(min(len(outputs) + 1, most))]
            for place, out in enumerate(following):
                if place < len(outputs):
                    self._add([-outputs[place], out])
                self._add([-literal, out] if place == 0 else [-literal, -outputs[place - 1], out])
            outputs = following
        return outputs

    def close(self) -> None:
        """Free the solver."""
        self._solver.delete()

    def __enter__(self) -> SatEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
