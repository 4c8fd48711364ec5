"""Facts + a release's rules in the engine's own order -> effective values with origins, and the rules that fired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from solver.compiled import CompiledRule, Program
from solver.conditions import Evaluator, Node, Unknown, evaluator, merge, names_in
from solver.facts import Facts, State
from solver.records import Fact

if TYPE_CHECKING:
    from solver.screen import Screen, Watch

RULE = "rule:"
"""Prefix of the unknown that a violated rule leaves behind."""
SCREENED_FROM = 8


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
    """A program made ready to run: conditions become functions when their rule is first reached.

    From its `SCREENED_FROM`th run on it asks a `Screen` which rules need a look at all; making that pays then.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._ready: list[_Ready | None] = [None] * len(program.rules)
        self._places = {rule.id: place for place, rule in enumerate(program.rules)}
        self._runs = 0

    def ready(self, step: CompiledRule) -> _Ready:
        return self.ready_at(self._places[step.id])

    def ready_at(self, place: int) -> _Ready:
        """The evaluators of the rule at a place of the program."""
        found = self._ready[place]
        if found is None:
            found = self._ready[place] = _Ready(self.program.rules[place], self.program.tables)
        return found

    def watch(self, facts: Facts, state: State) -> Watch | None:
        """What tells a run which rules to look at; None while that would cost more than it saves."""
        self._runs += 1
        return self.screen.start(facts, state) if self._runs >= SCREENED_FROM else None

    @cached_property
    def screen(self) -> Screen:
        from solver.screen import Screen

        return Screen(self.program)


class _Ready:
    """The evaluators of one rule, each made when it is first needed: most rules end at their first condition."""

    def __init__(self, rule: CompiledRule, tables: dict[str, Any]) -> None:
        self.rule = rule
        self._tables = tables
        self.let = [(name, evaluator(node, tables)) for name, node in rule.let]
        self.when = [_Late(node, tables) for node in rule.when]

    def _all(self, nodes: Any) -> list[Evaluator]:
        return [evaluator(n, self._tables) for n in nodes]

    @cached_property
    def require(self) -> list[Evaluator]:
        return self._all(self.rule.require)

    @cached_property
    def forbid(self) -> list[Evaluator]:
        return self._all(self.rule.forbid)

    @cached_property
    def branches(self) -> list[tuple[list[Evaluator], list[tuple[str, str, Evaluator]]]]:
        return [
            (self._all(b.when), [(s.space, s.name, evaluator(s.value, self._tables)) for s in b.sets])
            for b in self.rule.branches
        ]

    @cached_property
    def fix_when(self) -> list[Evaluator | None]:
        return [None if n is None else evaluator(n, self._tables) for n in self.rule.fix_when]

    @cached_property
    def mentioned(self) -> tuple[tuple[str, str], ...]:
        return mentioned(self.rule)


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
    return _Run(resolver, facts, estimates).outcome()


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


class _Run:
    """One launch on its way through the rules."""

    def __init__(self, resolver: Resolver, facts: Facts, estimates: Mapping[str, Any]) -> None:
        self.resolver = resolver
        self.state = State(resolver.program, facts, estimates)
        self.watch = resolver.watch(facts, self.state)
        self.writes: list[Write] = []
        self.fired: list[Fired] = []

    def outcome(self) -> Outcome:
        """Go through the rules in order."""
        spaces = self.state.spaces
        for place in self.watch or range(len(self.resolver.program.rules)):
            ready = self.resolver.ready_at(place)
            spaces["let"] = lets = {}
            for name, value in ready.let:
                lets[name] = value(self.state)
            applies = conjunction(ready.when, self.state)
            if applies is False:
                continue
            if ready.rule.branches:
                self._write(ready, applies)
            else:
                self._require(ready, applies)
        return Outcome(self.state, tuple(self.writes), tuple(self.fired))

    def _set(self, space: str, name: str, value: Any) -> None:
        self.state.spaces[space][name] = value
        if self.watch:
            self.watch.changed((space, name), value)

    def _require(self, ready: _Ready, applies: Any) -> None:
        holds = conjunction(ready.require, self.state)
        broken = [f(self.state) for f in ready.forbid]
        unknown = [v for v in (applies, holds, *broken) if type(v) is Unknown]
        definite_violation = holds is False or any(b is not False and type(b) is not Unknown and b for b in broken)
        if definite_violation:
            unknown = [applies] if type(applies) is Unknown else []
        elif not unknown or (type(holds) is not Unknown and not any(type(b) is Unknown for b in broken)):
            return
        self._fire(ready, _names(unknown))
        for name in ready.rule.leaves_open:
            if definite_violation and not unknown:
                self._set("flag", name, Unknown((RULE + ready.rule.id,)))

    def _write(self, ready: _Ready, applies: Any) -> None:
        doubt = [applies] if type(applies) is Unknown else []
        for when, sets in ready.branches:
            holds = conjunction(when, self.state)
            if holds is False:
                continue
            if type(holds) is Unknown:
                doubt.append(holds)
            reported = False
            values = [(space, name, value(self.state)) for space, name, value in sets]
            for space, name, value in values:
                reported |= self._assign(ready.rule, space, name, value, _names(doubt))
            if reported:
                self._fire(ready, _names(doubt))
            if holds is True:
                return

    def _assign(self, rule: CompiledRule, space: str, name: str, value: Any, names: tuple[str, ...]) -> bool:
        """Write one value; true when the rule wants a finding for it."""
        before = self.state.spaces[space].get(name)
        after = merge([before, value], names) if names else value
        origin = self.state.origin(space, name)
        self.writes.append(Write(rule.id, space, name, before, after))
        same = before == after and type(before) is type(after)
        if not same:
            self._set(space, name, after)
        if not same or (origin == "default" and before is None):
            self.state.origins[(space, name)] = rule.id
        return bool(rule.severity) and not same and (rule.report == "change" or origin == "given")

    def _fire(self, ready: _Ready, names: tuple[str, ...]) -> None:
        state = self.state
        because = tuple(Fact(f"{s}.{n}", plain(state.get(s, n)), state.origin(s, n)) for s, n in ready.mentioned)
        values = {fact.name: fact.value for fact in because}
        values.update({f"let.{name}": plain(v) for name, v in state.spaces["let"].items()})
        for branch in ready.rule.branches:
            for item in branch.sets:
                values[f"{item.space}.{item.name}"] = plain(state.get(item.space, item.name))
                values[f"given.{item.name}"] = state.get("given", item.name)
        self.fired.append(Fired(ready.rule, names, because, values))


def _names(unknown: list[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(n for u in unknown for n in u.names))


def plain(value: Any) -> Any:
    """A value fit for output: Unknown becomes the list of what it can be, or the word unknown."""
    if type(value) is Unknown:
        return {"one_of": list(value.values)} if value.values is not None else {"unknown": list(value.names)}
    return value
