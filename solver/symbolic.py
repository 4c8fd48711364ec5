"""A release's rules + what may change -> a finite-domain `Model` in which effective values are functions of choices.

The same rules that `pipeline.run` executes are executed here over variables: each write makes a new variable (single
assignment form), each condition that depends on a choice becomes a boolean variable, everything else folds to a value
at once. What does not depend on a choice never reaches the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

import msgspec

from solver.compiled import CompiledRule
from solver.conditions import Node, Unknown, evaluator, names_in
from solver.constraints import Ban, Definition, Lazy, Level, Model, Variable
from solver.facts import Facts, State
from solver.grammar import fold_release, parse
from solver.pipeline import Resolver

MAX_ROWS = 400
"""Largest table of one condition; what would need a larger one is computed on demand (`Lazy`)."""


class Var(msgspec.Struct, frozen=True):
    """A reference to a model variable."""

    name: str


class Choice(msgspec.Struct, frozen=True):
    """Something the solver may choose: a flag or `env.X`, and the values it may be given (None: leave it alone)."""

    space: str
    name: str
    values: tuple[Any, ...]

    @property
    def key(self) -> str:
        return f"{self.space}.{self.name}"


class Builder:
    """Runs the rules over variables and collects the model."""

    def __init__(
        self, resolver: Resolver, facts: Facts, estimates: Mapping[str, Any], choices: tuple[Choice, ...]
    ) -> None:
        self.resolver = resolver
        self.state = State(resolver.program, facts, estimates)
        self.variables: dict[str, Variable] = {}
        self.definitions: dict[str, Definition] = {}
        self.base: list[str] = []
        self.bans: list[Ban] = []
        self.fixed: list[str] = []
        self.warnings: list[tuple[str, CompiledRule]] = []
        self.fixed_warnings: list[CompiledRule] = []
        self.binding: dict[str, Any] = {}
        self._seen: dict[tuple[Any, ...], Any] = {}
        self._first: dict[tuple[str, str], Any] = {}
        self._choices = {(c.space, c.name): c for c in choices}
        for choice in choices:
            self._choose(choice)

    # ------------------------------------------------------------ variables

    def _choose(self, choice: Choice) -> None:
        name = choice.key
        self._variable(name, choice.values)
        self.base.append(name)
        spaces = self.state.spaces
        default = spaces[choice.space].get(choice.name)
        if choice.space == "env":
            spaces["env"][choice.name] = self._table(f"{name}#0", (name,), lambda v: default if v is None else v)
        else:
            spaces["given"][choice.name] = Var(name)
            spaces["flag"][choice.name] = (
                Var(name)
                if default is None
                else self._table(f"{name}#0", (name,), lambda v: default if v is None else v)
            )
        self._first[(choice.space, choice.name)] = spaces[choice.space][choice.name]

    def _variable(self, name: str, domain: tuple[Any, ...]) -> Var:
        self.variables[name] = Variable(name, domain)
        return Var(name)

    def _fresh(self, stem: str) -> str:
        name = stem
        number = 1
        while name in self.variables:
            number += 1
            name = f"{stem}#{number}"
        return name

    def _table(self, stem: str, inputs: tuple[str, ...], function: Any) -> Any:
        """A variable defined by a function of others; a plain value when it is the same everywhere."""
        rows = {combo: function(*combo) for combo in product(*(self.variables[i].domain for i in inputs))}
        return self._define(stem, inputs, rows)

    def _define(self, stem: str, inputs: tuple[str, ...], rows: dict[tuple[Any, ...], Any]) -> Any:
        domain = tuple({_key(v): v for v in rows.values()}.values())
        if len(domain) == 1:
            return domain[0]
        seen = ("table", inputs, tuple((k, _key(v)) for k, v in rows.items()))
        if seen not in self._seen:
            name = self._fresh(stem)
            self.definitions[name] = Definition(name, inputs, rows)
            self._seen[seen] = self._variable(name, domain)
        return self._seen[seen]

    # ----------------------------------------------------------- evaluation

    def get(self, space: str, name: str) -> Any:
        """State access for evaluators: variables read their value from the current binding."""
        value = self.state.get(space, name) if space != "estimate" else self.state.estimates[name](self)
        if type(value) is Var:
            return self.binding[value.name]
        return value.run(self.binding) if type(value) is Lazy else value

    def origin(self, space: str, name: str) -> str:
        return self.state.origin(space, name)

    def _inputs(self, names: tuple[tuple[str, str], ...]) -> tuple[tuple[str, ...], bool]:
        """The variables that a list of names depends on right now, and whether one of them is computed on demand."""
        found: dict[str, None] = {}
        lazy = False
        for space, name in names:
            if space == "estimate":
                inner, _ = self._inputs(self.state.estimates[name].inputs)
                found.update(dict.fromkeys(inner))
                lazy = True
                continue
            value = self.state.get(space, name)
            if type(value) is Var:
                found[value.name] = None
            elif type(value) is Lazy:
                found.update(dict.fromkeys(value.inputs))
                lazy = True
        return tuple(found), lazy

    def value(self, node: Node, stem: str) -> Any:
        """A node's value: plain where it depends on no choice, a variable, or `Lazy`."""
        if node[0] in ("and", "or"):
            return self._junction(node[0], [self.value(n, stem) for n in node[1]], stem)
        if node[0] == "not":
            return self._junction("and", [self.value(node[1], stem)], stem, negate=True)
        if node[0] == "name":
            held = self.state.get(node[1], node[2]) if node[1] != "estimate" else None
            if type(held) in (Var, Lazy):
                return held
        inputs, lazy = self._inputs(names_in(node))
        run = evaluator(node, self.resolver.program.tables)
        if not inputs:
            return run(self)
        if lazy or prod(len(self.variables[i].domain) for i in inputs) > MAX_ROWS:
            return Lazy(inputs, self._on_demand(run))
        rows = {}
        for combo in product(*(self.variables[i].domain for i in inputs)):
            self.binding = dict(zip(inputs, combo, strict=True))
            rows[combo] = _settled(run(self))
        return self._define(stem, inputs, rows)

    def _on_demand(self, run: Any) -> Any:
        """`run` against the values as they stand now, whatever is written later."""
        spaces = {space: dict(values) for space, values in self.state.spaces.items() if space in ("flag", "env", "let")}
        frozen = _Frozen(self, {**self.state.spaces, **spaces})

        def compute(values: Mapping[str, Any]) -> Any:
            return _settled(run(frozen.bound(values)))

        return compute

    def _junction(self, kind: str, parts: list[Any], stem: str, negate: bool = False) -> Any:
        """and/or over values and boolean variables; unknown parts count as false."""
        deciding = kind == "or"
        inputs: dict[str, None] = {}
        lazy = [part for part in parts if type(part) is Lazy]
        for part in parts:
            if type(part) is Var:
                inputs[self.truth(part).name] = None
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
            self._seen[seen] = self._variable(name, (False, True))
        return self._seen[seen]

    def chosen(self, name: str) -> Var | None:
        """A boolean variable for "the solver gives this choice a value"; None when it has no alternative."""
        given = self._table(f"{name} given", (name,), lambda v: v is not None)
        return given if type(given) is Var else None

    @property
    def release(self) -> str:
        return self.resolver.program.release

    def truth(self, var: Var) -> Var:
        """A boolean variable for a variable's truth."""
        domain = self.variables[var.name].domain
        if all(isinstance(v, bool) for v in domain):
            return var
        truth = self._table(f"{var.name}?", (var.name,), bool)
        return truth if type(truth) is Var else self._constant(bool(truth))

    def _constant(self, value: bool) -> Var:
        name = f"constant:{value}"
        if name not in self.variables:
            self._variable(name, (value,))
            self.definitions[name] = Definition(name, (), {(): value})
        return Var(name)

    def expression(self, text: str) -> Any:
        """The value of an expression over the values as they stand now."""
        from packaging.version import Version

        return self.value(fold_release(parse(text), Version, self.release), text)

    # ---------------------------------------------------------------- rules

    def run(self) -> None:
        """Execute every rule of the release in order."""
        for rule in self.resolver.program.rules:
            lets: dict[str, Any] = {}
            self.state.spaces["let"] = lets
            applies = self._applies(rule, lets)
            if applies is False:
                continue
            if rule.branches:
                self._write(rule, applies)
            elif rule.severity in ("error", "warning"):
                self._demand(rule, applies)

    def _applies(self, rule: CompiledRule, lets: dict[str, Any]) -> Any:
        for name, node in rule.let:
            lets[name] = self.value(node, f"{rule.id}.{name}")
        parts = []
        for node in rule.when:
            part = self.value(node, rule.id)
            if type(part) is not Var and not _settled(part):
                return False
            parts.append(part)
        return self._junction("and", parts, rule.id)

    def _demand(self, rule: CompiledRule, applies: Any) -> None:
        broken = [self._junction("and", [self.value(n, rule.id)], rule.id, negate=True) for n in rule.require]
        broken += [self.value(n, rule.id) for n in rule.forbid]
        self._record(rule, self._junction("and", [applies, self._junction("or", broken, rule.id)], rule.id))

    def _record(self, rule: CompiledRule, fires: Any) -> None:
        if type(fires) is Lazy:
            if rule.severity == "error":
                self.bans.append(Ban(fires, rule.id))
            # a warning that needs a formula is shown in the answer, but does not steer it
        elif type(fires) is Var:
            if rule.severity == "error":
                self.bans.append(Ban(self.truth(fires).name, rule.id))
            else:
                self.warnings.append((self.truth(fires).name, rule))
        elif _settled(fires):
            if rule.severity == "error":
                self.fixed.append(rule.id)
            else:
                self.fixed_warnings.append(rule)

    def _write(self, rule: CompiledRule, applies: Any) -> None:
        targets: dict[tuple[str, str], Any] = {}
        before: dict[tuple[str, str], Any] = {}
        for branch in reversed(rule.branches):
            holds = self._junction("and", [applies, *(self.value(n, rule.id) for n in branch.when)], rule.id)
            if holds is False:
                continue
            touched = {(s.space, s.name): self.value(s.value, rule.id) for s in branch.sets}
            for key in {**targets, **touched}:
                before.setdefault(key, self.state.get(*key))
                old = targets.get(key, before[key])
                new = touched.get(key, before[key])
                targets[key] = self._either(holds, new, old, f"{key[0]}.{key[1]}")
        for key, value in targets.items():
            self.state.spaces[key[0]][key[1]] = value
            if rule.severity in ("error", "warning"):
                self._record(rule, self._reported(rule, key, before[key], value))
            if _differs(value, before[key]):
                self.state.origins[key] = rule.id

    def _reported(self, rule: CompiledRule, key: tuple[str, str], before: Any, after: Any) -> Any:
        """Whether writing this value makes a finding: it changed, and (unless `report: change`) it was given."""
        if not _differs(after, before):
            return False
        changed = self._compare(before, after, f"{rule.id}.changed")
        if rule.report == "change":
            return changed
        choice = self._choices.get(key)
        if type(changed) is Lazy:
            return False if choice else changed
        if choice and _same(before, self._first.get(key)):
            return self._junction("and", [changed, self.chosen(choice.key) or True], rule.id)
        return changed if self.state.origin(*key) == "given" else False

    def _compare(self, left: Any, right: Any, stem: str) -> Any:
        if type(left) is Lazy or type(right) is Lazy:
            return _lazily(lambda a, b: _key(_settled(a)) != _key(_settled(b)), left, right)
        inputs = tuple(dict.fromkeys(v.name for v in (left, right) if type(v) is Var))

        def differ(*combo: Any) -> bool:
            bound = dict(zip(inputs, combo, strict=True))
            a, b = (bound[v.name] if type(v) is Var else v for v in (left, right))
            return bool(_key(_settled(a)) != _key(_settled(b)))

        return self._table(stem, inputs, differ) if inputs else differ()

    def _either(self, test: Any, then: Any, otherwise: Any, stem: str) -> Any:
        """`then` where the test holds, else `otherwise`."""
        if type(test) not in (Var, Lazy):
            return then if _settled(test) else otherwise
        if _same(then, otherwise):
            return otherwise
        if Lazy in (type(test), type(then), type(otherwise)) or self._rows(test, then, otherwise) > MAX_ROWS:
            return _lazily(lambda t, a, b: a if t else b, test, then, otherwise)
        inputs = tuple(dict.fromkeys(v.name for v in (test, then, otherwise) if type(v) is Var))

        def pick(*combo: Any) -> Any:
            bound = dict(zip(inputs, combo, strict=True))
            value = then if bound[test.name] else otherwise
            return bound[value.name] if type(value) is Var else _settled(value)

        return self._table(stem, inputs, pick)

    def _rows(self, *values: Any) -> int:
        return prod(len(self.variables[v.name].domain) for v in values if type(v) is Var)

    # --------------------------------------------------------------- result

    def model(self, levels: tuple[Level, ...]) -> Model:
        """The finished model under the given objective."""
        final = {}
        for space in ("flag", "env"):
            for name, value in self.state.spaces[space].items():
                plain = ("const", value)
                final[f"{space}.{name}"] = value.name if type(value) is Var else value if type(value) is Lazy else plain
        return Model(
            variables=self.variables,
            base=tuple(self.base),
            definitions=self.definitions,
            bans=tuple(self.bans),
            levels=levels,
            final=final,
            fixed_violations=tuple(self.fixed),
        )


class _Frozen:
    """The builder's values at one point, read under a binding of variables."""

    __slots__ = ("builder", "spaces", "values")

    def __init__(self, builder: Builder, spaces: dict[str, dict[str, Any]]) -> None:
        self.builder, self.spaces = builder, spaces
        self.values: Mapping[str, Any] = {}

    def bound(self, values: Mapping[str, Any]) -> _Frozen:
        self.values = values
        return self

    def get(self, space: str, name: str) -> Any:
        if space == "estimate":
            return self.builder.state.estimates[name](self)
        values = self.spaces.get(space, {})
        value = values[name] if name in values else self.builder.state.get(space, name)
        if type(value) is Var:
            return self.values[value.name]
        return value.run(self.values) if type(value) is Lazy else value


def _read(value: Any, values: Mapping[str, Any]) -> Any:
    """A plain value, a variable's or a lazy one, under a binding."""
    if type(value) is Var:
        return values[value.name]
    return value.run(values) if type(value) is Lazy else _settled(value)


def _lazily(function: Any, *parts: Any) -> Lazy:
    """A function of values of any kind, computed on demand."""
    inputs: dict[str, None] = {}
    for part in parts:
        names = (part.name,) if type(part) is Var else part.inputs if type(part) is Lazy else ()
        inputs.update(dict.fromkeys(names))
    return Lazy(tuple(inputs), lambda values: function(*(_read(p, values) for p in parts)))


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


def _settled(value: Any) -> Any:
    """A value fit for a table: lists become tuples; an unknown counts as false (`check` reports what rests on it)."""
    if type(value) is Unknown:
        return DOUBT
    return tuple(value) if isinstance(value, list) else value


def _key(value: Any) -> Any:
    """Distinguishes 1 from true and from 1.0, and makes lists hashable."""
    if isinstance(value, list):
        return ("list", tuple(_key(v) for v in value))
    if isinstance(value, dict):
        return ("dict", tuple((k, _key(v)) for k, v in value.items()))
    return (type(value).__name__, value)


def _same(left: Any, right: Any) -> bool:
    if type(left) is Lazy or type(right) is Lazy:
        return left is right
    if type(left) is Var or type(right) is Var:
        return type(left) is type(right) and left == right
    return bool(_key(left) == _key(right))


def _differs(left: Any, right: Any) -> bool:
    return not _same(left, right)
