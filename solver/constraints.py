"""The finite-domain model that both engines solve: variables, definitions, what must not hold, what should not.

Variables have small finite domains. The *base* variables are what the solver may choose; every other variable is
defined as a function of variables before it, so a base assignment fixes everything. Nothing here knows the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

Value = Any
Assignment = dict[str, Value]


class Variable(msgspec.Struct, frozen=True):
    """A named variable with its finite domain, in order of preference for ties."""

    name: str
    domain: tuple[Value, ...]


class Definition(msgspec.Struct, frozen=True):
    """`name` is what `function` makes of the inputs. `kind` and/or: a junction of boolean inputs (negated where set)."""

    name: str
    inputs: tuple[str, ...]
    rows: dict[tuple[Value, ...], Value] = {}
    kind: str = "table"
    negated: tuple[bool, ...] = ()

    def value(self, values: tuple[Value, ...]) -> Value:
        """The defined value for input values, in the order of `inputs`."""
        if self.kind == "table":
            return self.rows[values]
        literals = (bool(v) is not n for v, n in zip(values, self.negated, strict=True))
        return all(literals) if self.kind == "and" else any(literals)


class Ban(msgspec.Struct, frozen=True):
    """A boolean variable that must not be true, with the rule behind it."""

    name: str
    rule: str


class Level(msgspec.Struct, frozen=True):
    """One level of the objective: the number of true `counts` plus the value of the numeric variable `amount`.

    `slack` makes it a bound instead of an optimum: later levels may be worse here by that share.
    """

    title: str
    counts: tuple[str, ...] = ()
    amount: str | None = None
    slack: float | None = None
    constant: float = 0.0


class Model(msgspec.Struct, frozen=True):
    """A problem: base variables in order, definitions in order of computation, bans, and objective levels in order."""

    variables: dict[str, Variable]
    base: tuple[str, ...]
    definitions: dict[str, Definition]
    bans: tuple[Ban, ...]
    levels: tuple[Level, ...]
    final: dict[str, Any]
    """Flag (`flag.x`) or variable (`env.X`) -> name of its last variable, or `("const", value)`."""
    fixed_violations: tuple[str, ...] = ()
    """Rules that are violated whatever the solver chooses."""


def evaluate(model: Model, base: Mapping[str, Value]) -> Assignment:
    """The value of every variable under a full base assignment."""
    values: Assignment = dict(base)
    for name, definition in model.definitions.items():
        values[name] = definition.value(tuple(values[i] for i in definition.inputs))
    return values


def cost(level: Level, values: Mapping[str, Value]) -> float:
    """The cost of an assignment at one level."""
    amount = values[level.amount] if level.amount else 0
    return level.constant + sum(bool(values[c]) for c in level.counts) + (amount or 0)


def violated(model: Model, values: Mapping[str, Value]) -> tuple[str, ...]:
    """The rules that an assignment violates."""
    return tuple(b.rule for b in model.bans if values[b.name])


def cone(model: Model, names: Iterable[str]) -> set[str]:
    """The variables that the named ones are computed from, with themselves."""
    found: set[str] = set()
    stack = list(names)
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            definition = model.definitions.get(name)
            stack.extend(definition.inputs if definition else ())
    return found


def relevant(model: Model) -> set[str]:
    """The cone of everything that constrains or is optimised."""
    wanted = [b.name for b in model.bans]
    for level in model.levels:
        wanted += [*level.counts, *([level.amount] if level.amount else [])]
    return cone(model, wanted)


