"""The finite-domain model that both engines solve: variables, definitions, what must not hold, what should not.

Variables have small finite domains. The *base* variables are what the solver may choose; every other variable is
defined as a function of variables before it, so a base assignment fixes everything. Nothing here knows the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

Value = Any
Assignment = dict[str, Value]


class Variable(msgspec.Struct, frozen=True):
    """A named variable with its finite domain, in order of preference for ties."""

    name: str
    domain: tuple[Value, ...]


class Definition(msgspec.Struct, frozen=True):
    """`name` is what `rows` make of the inputs, or (`kind` and/or) a junction of boolean inputs, `negated` or not."""

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


class Lazy:
    """A value computed from variables on demand: formulas, and whatever would need too large a table.

    `run` takes the values of `inputs` (by name) and gives the value.
    """

    __slots__ = ("inputs", "run")

    def __init__(self, inputs: tuple[str, ...], run: Callable[[Mapping[str, Value]], Value]) -> None:
        self.inputs = inputs
        self.run = run


class Ban(msgspec.Struct, frozen=True):
    """A boolean variable, or a lazy value, that must not be true, with the rule behind it."""

    what: str | Lazy
    rule: str


class Level(msgspec.Struct, frozen=True):
    """One level of the objective: the number of true `counts`, or the sum of the lazy `amounts` (null counts 0).

    `slack` makes it a bound instead of an optimum: later levels may be worse here by that share.
    """

    title: str
    counts: tuple[str, ...] = ()
    amounts: tuple[Lazy, ...] = ()
    slack: float | None = None
    constant: float = 0.0
    claims: bool = False
    """No amount is below 0 (or false), and none above is likely: tried before the combinations are looked at."""
    figure: str | None = None
    """The name of the figure that the amount is, for words."""
    maximised: bool = False
    """The amount counts negatively, since large is good."""
    says: str | None = None
    """What an answer is told that costs anything here, a template over `cost` and the request."""
    flags: bool = False
    """It counts what is given: flags that change nothing else do not make another answer."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The variables behind the amounts."""
        return tuple(dict.fromkeys(n for amount in self.amounts for n in amount.inputs))


def allowed(level: Level, optimum: float) -> float:
    """The most that a level may cost once its optimum is known."""
    return optimum + abs(optimum) * (level.slack or 0.0)


class Model(msgspec.Struct, frozen=True):
    """A problem: base variables in order, definitions in order of computation, bans, and objective levels in order."""

    variables: dict[str, Variable]
    base: tuple[str, ...]
    definitions: dict[str, Definition]
    bans: tuple[Ban, ...]
    levels: tuple[Level, ...]
    final: dict[str, Any]
    """Flag (`flag.x`) or variable (`env.X`) -> name of its last variable, a `Lazy`, or `("const", value)`."""
    fixed_violations: tuple[str, ...] = ()
    """Rules that are violated whatever the solver chooses."""
    measured: tuple[str | Lazy, ...] = ()
    """Values that are looked at beside the levels."""


def evaluate(model: Model, base: Mapping[str, Value], only: set[str] | None = None) -> Assignment:
    """The value of every variable (or of those in `only`, closed under inputs) under a full base assignment."""
    values: Assignment = dict(base)
    for name, definition in model.definitions.items():
        if only is None or name in only:
            values[name] = definition.value(tuple(values[i] for i in definition.inputs))
    return values


def cost(level: Level, values: Mapping[str, Value]) -> float:
    """The cost of an assignment at one level."""
    counted = sum(bool(values[c]) for c in level.counts)
    return level.constant + counted + sum(amount.run(values) or 0 for amount in level.amounts)


def violated(model: Model, values: Mapping[str, Value]) -> tuple[str, ...]:
    """The rules that an assignment violates."""
    return tuple(b.rule for b in model.bans if (values[b.what] if isinstance(b.what, str) else b.what.run(values)))


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


def inputs_of(what: str | Lazy) -> tuple[str, ...]:
    """The variables that a ban looks at."""
    return (what,) if isinstance(what, str) else what.inputs


def relevant(model: Model) -> set[str]:
    """The cone of everything that constrains or is optimised."""
    wanted = [name for ban in model.bans for name in inputs_of(ban.what)]
    for level in model.levels:
        wanted += [*level.counts, *(name for amount in level.amounts for name in amount.inputs)]
    wanted += [name for what in model.measured for name in inputs_of(what)]
    return cone(model, wanted)
