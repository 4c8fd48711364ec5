"""Values that may depend on choices: plain, a model variable (`Var`) or computed on demand (`Lazy`), and joining them.

Small combinations become variables with a table; what would need a larger table stays lazy.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

import msgspec

from solver.conditions import Unknown
from solver.constraints import Definition, Lazy, Variable
from solver.facts import key_of

MAX_ROWS = 400
"""Largest table of one condition; what would need a larger one is computed on demand."""


class Var(msgspec.Struct, frozen=True):
    """A reference to a model variable."""

    name: str


class Variables:
    """The variables of a model under construction and their definitions, each made once."""

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.definitions: dict[str, Definition] = {}
        self._seen: dict[tuple[Any, ...], Any] = {}

    def add(self, name: str, domain: tuple[Any, ...]) -> Var:
        self.variables[name] = Variable(name, domain)
        return Var(name)

    def _fresh(self, stem: str) -> str:
        name = stem
        number = 1
        while name in self.variables:
            number += 1
            name = f"{stem}#{number}"
        return name

    def table(self, stem: str, inputs: tuple[str, ...], function: Any) -> Any:
        """A variable defined by a function of others; a plain value when it is the same everywhere."""
        rows = {combo: function(*combo) for combo in product(*(self.variables[i].domain for i in inputs))}
        return self.define(stem, inputs, rows)

    def define(self, stem: str, inputs: tuple[str, ...], rows: dict[tuple[Any, ...], Any]) -> Any:
        domain = tuple({key_of(v): v for v in rows.values()}.values())
        if len(domain) == 1:
            return domain[0]
        seen = ("table", inputs, tuple((k, key_of(v)) for k, v in rows.items()))
        if seen not in self._seen:
            name = self._fresh(stem)
            self.definitions[name] = Definition(name, inputs, rows)
            self._seen[seen] = self.add(name, domain)
        return self._seen[seen]

    def junction(self, kind: str, parts: list[Any], stem: str, negate: bool = False) -> Any:
        """and/or over values and boolean variables, denied where `negate`; unknown parts count as false either way."""
        deciding = kind == "or"
        parts = [self.truth(part, negate) if type(part) is Var else part for part in parts]
        inputs: dict[str, None] = {}
        lazy = [part for part in parts if type(part) is Lazy]
        for part in parts:
            if type(part) is Var:
                inputs[part.name] = None
            elif type(part) is Lazy:
                continue
            elif type(part) is Unknown or part is DOUBT:
                if not deciding:
                    return False
            elif bool(part) is not negate and deciding:
                return True
            elif bool(part) is negate and not deciding:
                return False
        names = tuple(inputs)
        if lazy:
            return _lazy_junction(deciding, negate, names, lazy)
        if not inputs:
            return not deciding
        if len(names) == 1 and not negate:
            return Var(names[0])
        seen = (kind, negate, names)
        if seen not in self._seen:
            name = self._fresh(f"{stem}:{kind}")
            self.definitions[name] = Definition(name, names, {}, kind, (negate,) * len(names))
            self._seen[seen] = self.add(name, (False, True))
        return self._seen[seen]

    def truth(self, var: Var, doubt: bool = False) -> Any:
        """A boolean variable for a variable's truth, or a plain boolean where that is always the same; `doubt`: what an
        unknown value counts as."""
        if all(isinstance(v, bool) for v in self.variables[var.name].domain):
            return var
        return self.table(f"{var.name}?", (var.name,), lambda v: doubt if v is DOUBT else bool(v))

    def compare(self, left: Any, right: Any, stem: str) -> Any:
        if type(left) is Lazy or type(right) is Lazy:
            return lazily(lambda a, b: key_of(settled(a)) != key_of(settled(b)), left, right)
        inputs = tuple(dict.fromkeys(v.name for v in (left, right) if type(v) is Var))

        def differ(*combo: Any) -> bool:
            bound = dict(zip(inputs, combo, strict=True))
            a, b = (bound[v.name] if type(v) is Var else v for v in (left, right))
            return bool(key_of(settled(a)) != key_of(settled(b)))

        return self.table(stem, inputs, differ) if inputs else differ()

    def either(self, test: Any, then: Any, otherwise: Any, stem: str) -> Any:
        """`then` where the test holds, else `otherwise`."""
        if type(test) not in (Var, Lazy):
            return then if settled(test) else otherwise
        if same(then, otherwise):
            return otherwise
        if Lazy in (type(test), type(then), type(otherwise)) or self._rows(test, then, otherwise) > MAX_ROWS:
            return lazily(lambda t, a, b: a if t else b, test, then, otherwise)
        inputs = tuple(dict.fromkeys(v.name for v in (test, then, otherwise) if type(v) is Var))

        def pick(*combo: Any) -> Any:
            bound = dict(zip(inputs, combo, strict=True))
            value = then if bound[test.name] else otherwise
            return bound[value.name] if type(value) is Var else settled(value)

        return self.table(stem, inputs, pick)

    def _rows(self, *values: Any) -> int:
        return prod(len(self.variables[v.name].domain) for v in values if type(v) is Var)


def read(value: Any, values: Mapping[str, Any]) -> Any:
    """A plain value, a variable's or a lazy one, under a binding."""
    if type(value) is Var:
        return values[value.name]
    return value.run(values) if type(value) is Lazy else settled(value)


def lazily(function: Any, *parts: Any) -> Lazy:
    """A function of values of any kind, computed on demand."""
    inputs: dict[str, None] = {}
    for part in parts:
        names = (part.name,) if type(part) is Var else part.inputs if type(part) is Lazy else ()
        inputs.update(dict.fromkeys(names))
    plain = [None if type(part) in (Var, Lazy) else settled(part) for part in parts]
    named = [(place, part.name) for place, part in enumerate(parts) if type(part) is Var]
    computed = [(place, part.run) for place, part in enumerate(parts) if type(part) is Lazy]

    def run(values: Mapping[str, Any]) -> Any:
        arguments = plain.copy()
        for place, name in named:
            arguments[place] = values[name]
        for place, compute in computed:
            arguments[place] = compute(values)
        return function(*arguments)

    return Lazy(tuple(inputs), run)


def _lazy_junction(disjunction: bool, negate: bool, names: tuple[str, ...], lazy: list[Lazy]) -> Lazy:
    """and/or of boolean variables (first, since they are cheap) and lazy values."""
    inputs = tuple(dict.fromkeys((*names, *(i for part in lazy for i in part.inputs))))

    def run(values: Mapping[str, Any]) -> bool:
        for name in names:
            if (bool(values[name]) is not negate) is disjunction:
                return disjunction
        for part in lazy:
            value = part.run(values)
            if value is not DOUBT and (bool(value) is not negate) is disjunction:
                return disjunction
            if value is DOUBT and not disjunction:
                return False
        return not disjunction

    return Lazy(inputs, run)


class _Doubt:
    """Stands for an unknown value inside tables (one object, so that it equals itself)."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "unknown"


DOUBT = _Doubt()


def settled(value: Any) -> Any:
    """A value fit for a table: lists become tuples; an unknown counts as false (`check` reports what rests on it)."""
    if type(value) is Unknown:
        return DOUBT
    return tuple(value) if isinstance(value, list) else value


def same(left: Any, right: Any) -> bool:
    if type(left) is Lazy or type(right) is Lazy:
        return left is right
    if type(left) is Var or type(right) is Var:
        return type(left) is type(right) and left == right
    return bool(key_of(left) == key_of(right))


def differs(left: Any, right: Any) -> bool:
    return not same(left, right)
