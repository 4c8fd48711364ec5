"""Nodes and a state -> three-valued values: true, false, or `Unknown`.

`Unknown` carries the values it can have (where they are few) and the names of the facts that nobody stated. Null is a
value, not unknown: ordering against null is false, arithmetic on null is null (the lint asks for a guard in both
cases). Where nodes come from, and what the language has, is in `grammar`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, Protocol

from solver.errors import ConditionError
from solver.nodes import Node
from solver.operators import ARITHMETIC, COMPARISONS, FUNCTIONS, index, null_safe_pair

MAX_CASES = 64


class Unknown:
    """A value that depends on facts nobody stated: the values it can have (None: any) and the facts' names."""

    __slots__ = ("names", "values")

    def __init__(self, names: tuple[str, ...], values: tuple[Any, ...] | None = None) -> None:
        self.names = names
        self.values = values

    def __repr__(self) -> str:
        return f"Unknown({self.names!r}, {self.values!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is Unknown and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash((self.names, self.values))


class State(Protocol):
    """What a condition is evaluated against: the value of a dotted name now, null where there is none."""

    def get(self, space: str, name: str) -> Any: ...


Evaluator = Callable[[Any], Any]


def lift(function: Callable[..., Any], *args: Any) -> Any:
    """Apply a function to values of which some are Unknown: each possible combination, merged."""
    names = tuple(dict.fromkeys(n for a in args if type(a) is Unknown for n in a.names))
    choices = [(a.values if type(a) is Unknown else (a,)) for a in args]
    if any(c is None for c in choices) or math.prod(len(c) for c in choices if c is not None) > MAX_CASES:
        return Unknown(names)
    return merge([function(*combination) for combination in product(*(c for c in choices if c is not None))], names)


def merge(values: list[Any], names: tuple[str, ...]) -> Any:
    """One value if all agree, else Unknown with the distinct ones (in order of appearance)."""
    found: list[Any] = []
    for value in values:
        if type(value) is Unknown:
            names = tuple(dict.fromkeys((*names, *value.names)))
            if value.values is None:
                return Unknown(names)
            found += value.values
        else:
            found.append(value)
    distinct = _distinct(found)
    return distinct[0] if len(distinct) == 1 else Unknown(names, tuple(distinct))


def _distinct(values: list[Any]) -> list[Any]:
    """The values without repeats; 1, 1.0 and true are different ones."""
    try:
        return list({(type(v), v): v for v in values}.values())
    except TypeError:  # a list or a mapping among them
        return [v for i, v in enumerate(values) if not any(type(v) is type(w) and v == w for w in values[:i])]


def evaluator(node: Node, tables: dict[str, Any]) -> Evaluator:
    """A function from a state to the node's value: a plain value, or Unknown."""
    constant = _constant(node, tables)
    if constant is not None:
        value = constant[0]
        return lambda state: value
    match node[0]:
        case "name":
            space, name = node[1], node[2]
            return lambda state: state.get(space, name)
        case "var":
            variable = node[1]
            return lambda state: state.get("var", variable)
        case "list":
            items = [evaluator(n, tables) for n in node[1]]
            return lambda state: _collect(items, state)
        case "set":
            return _unary(_is_set, node[1], tables)
        case "not" if node[1][0] == "set":
            return _unary(_is_unset, node[1][1], tables)
        case "not":
            return _unary(operator.not_, node[1], tables)
        case "and" | "or":
            return _junction(node[0] == "and", [evaluator(n, tables) for n in node[1]])
        case "cmp":
            return _binary(COMPARISONS[node[1]], node[2], node[3], tables)
        case "bin":
            return _arithmetic(ARITHMETIC[node[1]], node[2], node[3], tables)
        case "index":
            return _binary(index, node[1], node[2], tables)
        case "call":
            return _function(FUNCTIONS[node[1]], [evaluator(n, tables) for n in node[2]])
        case "if":
            return _choice(*(evaluator(n, tables) for n in node[1:]))
        case "any" | "all":
            return _loop(node[0] == "all", evaluator(node[1], tables), node[2], evaluator(node[3], tables))
    raise ConditionError(f"no such node: {node[0]!r}")


def _constant(node: Node, tables: dict[str, Any]) -> tuple[Any] | None:
    """The value of a node that depends on nothing, in a tuple."""
    if node[0] == "lit":
        return (node[1],)
    if node[0] == "table":
        return (tables.get(node[1]),)
    if node[0] == "list" and all(n[0] == "lit" for n in node[1]):
        return ([n[1] for n in node[1]],)
    return None


def _is_set(value: Any) -> bool:
    return value is not None


def _is_unset(value: Any) -> bool:
    return value is None


def _collect(items: list[Evaluator], state: Any) -> Any:
    values = [item(state) for item in items]
    if Unknown in map(type, values):
        return lift(lambda *v: list(v), *values)
    return values


# The shapes that most conditions have are functions of their own, without a call for the parts that are looked up.


def _unary(function: Callable[[Any], Any], node: Node, tables: dict[str, Any]) -> Evaluator:
    if node[0] == "name":
        _, space, name = node

        def run_name(state: Any) -> Any:
            value = state.get(space, name)
            return lift(function, value) if type(value) is Unknown else function(value)

        return run_name
    inner = evaluator(node, tables)

    def run(state: Any) -> Any:
        value = inner(state)
        return lift(function, value) if type(value) is Unknown else function(value)

    return run


def _binary(function: Callable[[Any, Any], Any], left: Node, right: Node, tables: dict[str, Any]) -> Evaluator:
    constant = _constant(right, tables)
    if constant is not None:
        return _against(function, left, constant[0], tables)
    first, second = evaluator(left, tables), evaluator(right, tables)

    def run(state: Any) -> Any:
        a, b = first(state), second(state)
        return lift(function, a, b) if type(a) is Unknown or type(b) is Unknown else function(a, b)

    return run


def _against(function: Callable[[Any, Any], Any], node: Node, constant: Any, tables: dict[str, Any]) -> Evaluator:
    """A node beside a constant."""
    if node[0] == "name":
        _, space, name = node

        def run_name(state: Any) -> Any:
            value = state.get(space, name)
            return lift(function, value, constant) if type(value) is Unknown else function(value, constant)

        return run_name
    inner = evaluator(node, tables)

    def run(state: Any) -> Any:
        value = inner(state)
        return lift(function, value, constant) if type(value) is Unknown else function(value, constant)

    return run


def _arithmetic(function: Callable[[Any, Any], Any], left: Node, right: Node, tables: dict[str, Any]) -> Evaluator:
    """Null where a part is."""
    first, second = evaluator(left, tables), evaluator(right, tables)
    safe = null_safe_pair(function)

    def run(state: Any) -> Any:
        a, b = first(state), second(state)
        if type(a) is Unknown or type(b) is Unknown:
            return lift(safe, a, b)
        return None if a is None or b is None else function(a, b)

    return run


def _function(function: Callable[..., Any], args: list[Evaluator]) -> Evaluator:
    if len(args) == 2:
        first, second = args

        def run_two(state: Any) -> Any:
            a, b = first(state), second(state)
            return lift(function, a, b) if type(a) is Unknown or type(b) is Unknown else function(a, b)

        return run_two

    def run(state: Any) -> Any:
        values = [a(state) for a in args]
        return lift(function, *values) if Unknown in map(type, values) else function(*values)

    return run


def _junction(conjunction: bool, parts: list[Evaluator]) -> Evaluator:
    """Kleene's and/or: a deciding part decides whatever else is unknown."""

    def run(state: Any) -> Any:
        unknown: list[Unknown] = []
        for part in parts:
            value = part(state)
            if type(value) is Unknown:
                unknown.append(value)
            elif bool(value) is not conjunction:
                return not conjunction
        if not unknown:
            return conjunction
        return Unknown(tuple(dict.fromkeys(n for u in unknown for n in u.names)), (True, False))

    return run


def _choice(test: Evaluator, body: Evaluator, orelse: Evaluator) -> Evaluator:
    def run(state: Any) -> Any:
        value = test(state)
        if type(value) is Unknown:
            return merge([body(state), orelse(state)], value.names)
        return body(state) if value else orelse(state)

    return run


def _loop(every: bool, inner: Evaluator, variable: str, items: Evaluator) -> Evaluator:
    def run(state: Any) -> Any:
        sequence = items(state)
        if type(sequence) is Unknown:
            return Unknown(sequence.names, (True, False))
        return _junction(every, [partial(_inside, inner, variable, item) for item in sequence or ()])(state)

    return run


def _inside(inner: Evaluator, variable: str, item: Any, state: Any) -> Any:
    return inner(Bound(state, variable, item))


class Bound:
    """A state with one loop variable bound."""

    __slots__ = ("outer", "value", "variable")

    def __init__(self, outer: Any, variable: str, value: Any) -> None:
        self.outer, self.variable, self.value = outer, variable, value

    def get(self, space: str, name: str) -> Any:
        if space == "var" and name == self.variable:
            return self.value
        return self.outer.get(space, name)
