"""Facts + a release's rules in the engine's own order -> effective values with origins, and the rules that fired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from solver.compiled import CompiledRule, Program
from solver.conditions import Evaluator, Node, Unknown, evaluator, merge, names_in
from solver.facts import Facts, State
from solver.records import Fact

RULE = "rule:"
"""Prefix of the unknown that a violated rule leaves behind."""


class Fired(msgspec.Struct, frozen=True):
    """A rule that fired, with the values at that point. `names`: unknown facts it depends on (empty: unconditional)."""

    compiled: CompiledRule
    names: tuple[str, ...]
    because: tuple[Fact, ...]
    values: dict[str, Any]


class Write(msgspec.Struct, frozen=True):
    """One value that a rule wrote."""

    rule: str
    space: str
    name: str
    before: Any
    after: Any


class Outcome(msgspec.Struct, frozen=True):
    """The end of one run: final state, what was written in order, what fired in order."""

    state: Any
    writes: tuple[Write, ...]
    fired: tuple[Fired, ...]


class Resolver:
    """A program made ready to run: conditions become functions when their rule is first reached."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._ready: dict[str, _Ready] = {}

    def ready(self, step: CompiledRule) -> _Ready:
        found = self._ready.get(step.id)
        if found is None:
            found = self._ready[step.id] = _Ready(step, self.program.tables)
        return found


class _Ready:
    """The evaluators of one rule, each made when it is first needed: most rules end at their first condition."""

    def __init__(self, rule: CompiledRule, tables: dict[str, Any]) -> None:
        self._rule = rule
        self._tables = tables
        self.let = [(name, evaluator(node, tables)) for name, node in rule.let]
        self.when = [_Late(node, tables) for node in rule.when]

    def _all(self, nodes: Any) -> list[Evaluator]:
        return [evaluator(n, self._tables) for n in nodes]

    @cached_property
    def require(self) -> list[Evaluator]:
        return self._all(self._rule.require)

    @cached_property
    def forbid(self) -> list[Evaluator]:
        return self._all(self._rule.forbid)

    @cached_property
    def branches(self) -> list[tuple[list[Evaluator], list[tuple[str, str, Evaluator]]]]:
        return [
            (self._all(b.when), [(s.space, s.name, evaluator(s.value, self._tables)) for s in b.sets])
            for b in self._rule.branches
        ]

    @cached_property
    def mentioned(self) -> tuple[tuple[str, str], ...]:
        return mentioned(self._rule)


class _Late:
    """An evaluator that is made when it is first called."""

    __slots__ = ("_node", "_run", "_tables")

    def __init__(self, node: Node, tables: dict[str, Any]) -> None:
        self._node, self._tables = node, tables
        self._run: Evaluator | None = None

    def __call__(self, state: Any) -> Any:
        if self._run is None:
            self._run = evaluator(self._node, self._tables)
        return self._run(state)


def mentioned(step: CompiledRule) -> tuple[tuple[str, str], ...]:
    """The facts a rule looks at, `let` names replaced by what they stand for."""
    nodes = [*step.when, *step.require, *step.forbid, *(n for b in step.branches for n in b.when)]
    lets = {name: names_in(node) for name, node in step.let}
    found: dict[tuple[str, str], None] = {}

    def add(names: tuple[tuple[str, str], ...]) -> None:
        for space, name in names:
            if space == "let":
                add(lets.get(name, ()))
            else:
                found[(space, name)] = None

    for node in nodes:
        add(names_in(node))
    return tuple(found)


def run(resolver: Resolver, facts: Facts, estimates: Mapping[str, Any]) -> Outcome:
    """Resolve a launch as the engine would, past its first error, and collect every rule that fires."""
    state = State(resolver.program, facts, estimates)
    writes: list[Write] = []
    fired: list[Fired] = []
    for step in resolver.program.rules:
        ready = resolver.ready(step)
        state.spaces["let"] = lets = {}
        for name, value in ready.let:
            lets[name] = value(state)
        applies = conjunction(ready.when, state)
        if applies is False:
            continue
        if step.branches:
            _write(step, ready, applies, state, writes, fired)
        else:
            _require(step, ready, applies, state, fired)
    return Outcome(state, tuple(writes), tuple(fired))


def conjunction(parts: Sequence[Evaluator], state: Any) -> Any:
    """True, False, or Unknown with the names it depends on."""
    names: dict[str, None] = {}
    for part in parts:
        value = part(state)
        if type(value) is Unknown:
            names.update(dict.fromkeys(value.names))
        elif not value:
            return False
    return Unknown(tuple(names), (True, False)) if names else True


def _require(step: CompiledRule, ready: _Ready, applies: Any, state: State, fired: list[Fired]) -> None:
    holds = conjunction(ready.require, state)
    broken = [f(state) for f in ready.forbid]
    unknown = [v for v in (applies, holds, *broken) if type(v) is Unknown]
    definite_violation = holds is False or any(b is not False and type(b) is not Unknown and b for b in broken)
    if definite_violation:
        unknown = [applies] if type(applies) is Unknown else []
    elif not unknown or (type(holds) is not Unknown and not any(type(b) is Unknown for b in broken)):
        return
    _fire(step, ready, _names(unknown), state, fired)
    for name in step.leaves_open:
        if definite_violation and not unknown:
            state.spaces["flag"][name] = Unknown((RULE + step.id,))


def _write(
    step: CompiledRule, ready: _Ready, applies: Any, state: State, writes: list[Write], fired: list[Fired]
) -> None:
    doubt = [applies] if type(applies) is Unknown else []
    for when, sets in ready.branches:
        holds = conjunction(when, state)
        if holds is False:
            continue
        if type(holds) is Unknown:
            doubt.append(holds)
        reported = False
        values = [(space, name, value(state)) for space, name, value in sets]
        for space, name, value in values:
            reported |= _assign(step, space, name, value, _names(doubt), state, writes)
        if reported:
            _fire(step, ready, _names(doubt), state, fired)
        if holds is True:
            return


def _assign(
    step: CompiledRule, space: str, name: str, value: Any, names: tuple[str, ...], state: State, writes: list[Write]
) -> bool:
    """Write one value; true when the rule wants a finding for it."""
    target = state.spaces[space]
    before = target.get(name)
    after = merge([before, value], names) if names else value
    origin = state.origin(space, name)
    target[name] = after
    writes.append(Write(step.id, space, name, before, after))
    same = before == after and type(before) is type(after)
    if not same or (origin == "default" and before is None):
        state.origins[(space, name)] = step.id
    return bool(step.severity) and not same and (step.report == "change" or origin == "given")


def _fire(step: CompiledRule, ready: _Ready, names: tuple[str, ...], state: State, fired: list[Fired]) -> None:
    because = tuple(Fact(f"{s}.{n}", plain(state.get(s, n)), state.origin(s, n)) for s, n in ready.mentioned)
    values = {fact.name: fact.value for fact in because}
    values.update({f"let.{name}": plain(v) for name, v in state.spaces["let"].items()})
    for branch in step.branches:
        for item in branch.sets:
            values[f"{item.space}.{item.name}"] = plain(state.get(item.space, item.name))
            values[f"given.{item.name}"] = state.get("given", item.name)
    fired.append(Fired(step, names, because, values))


def _names(unknown: list[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(n for u in unknown for n in u.names))


def plain(value: Any) -> Any:
    """A value fit for output: Unknown becomes the list of what it can be, or the word unknown."""
    if type(value) is Unknown:
        return {"one_of": list(value.values)} if value.values is not None else {"unknown": list(value.names)}
    return value
