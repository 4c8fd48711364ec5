"""Facts + a release's rules in the engine's own order -> effective values with origins, and the rules that fired."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from solver.compiled import CompiledRule
from solver.conditions import Unknown, merge
from solver.decisions import Decision, Ready, Resolver
from solver.facts import Facts, State, make_room
from solver.records import Fact

if TYPE_CHECKING:
    pass

RULE = "rule:"
"""Prefix of the unknown that a violated rule leaves behind."""


class Fired(msgspec.Struct, frozen=True):
    """A rule that fired, with the values at that point. `names`: unknown facts it depends on (empty: unconditional)."""

    compiled: CompiledRule
    names: tuple[str, ...]
    because: tuple[Fact, ...]
    values: dict[str, Any]
    lets: dict[str, Any] = {}
    """The rule's intermediate values, as its fixes read them."""


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


def run(resolver: Resolver, facts: Facts, estimates: Mapping[str, Any]) -> Outcome:
    """Resolve a launch as the engine would, past its first error, and collect every rule that fires."""
    return _Run(resolver, facts, estimates).outcome()


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
        ready_at, remember = self.resolver.ready_at, self.resolver.more_follow
        for place in self.watch:
            ready = ready_at(place)
            decision = ready.remembered(self.state) if remember else ready.decide(self.state)
            if decision:
                self._act(ready, decision)
        return Outcome(self.state, tuple(self.writes), tuple(self.fired))

    def _act(self, ready: Ready, decision: Decision) -> None:
        rule = ready.rule
        self.state.spaces["let"] = decision.lets
        for names, values in decision.writes:
            reported = False
            for key, value in values:
                reported |= self._assign(rule, key, value, names)
            if reported:
                self._fire(ready, decision, names)
        if decision.violated:
            self._fire(ready, decision, decision.names)
            for name in () if decision.names else rule.leaves_open:
                self._set(("flag", name), self.state.spaces["flag"].get(name), Unknown((RULE + rule.id,)))

    def _set(self, key: tuple[str, str], before: Any, after: Any) -> None:
        self.state.write(key, after)
        self.watch.changed(key, before, after)

    def _assign(self, rule: CompiledRule, key: tuple[str, str], value: Any, names: tuple[str, ...]) -> bool:
        """Write one value; true when the rule wants a finding for it."""
        space, name = key
        before = self.state.spaces[space].get(name)
        after = merge([before, value], names) if names else value
        self.writes.append(Write(rule.id, space, name, before, after))
        origins = self.state.origins
        if before == after and type(before) is type(after):
            if before is None:
                origins.setdefault(key, rule.id)
            return False
        origin = origins.get(key)
        self._set(key, before, after)
        origins[key] = rule.id
        return rule.severity is not None and (rule.report == "change" or origin == "given")

    def _fire(self, ready: Ready, decision: Decision, names: tuple[str, ...]) -> None:
        state = self.state
        if not self.resolver.more_follow or ready.inputs is None or (names and ready.rule.branches):
            self.fired.append(_fired(ready, state, names))
            return
        origins = tuple([state.origin(space, name) for space, name in ready.mentioned])
        key = (id(decision), origins, ready.targets(state.keys))
        kept = ready.fired.get(key)
        if kept is None or kept[0] is not decision:
            make_room(ready.fired)
            kept = ready.fired[key] = (decision, _fired(ready, state, names))
        self.fired.append(kept[1])


def looked_at(ready: Ready, state: State) -> tuple[Fact, ...]:
    """The facts that a rule mentions, as they are now."""
    return tuple(Fact(f"{s}.{n}", plain(state.get(s, n)), state.origin(s, n)) for s, n in ready.mentioned)


def _fired(ready: Ready, state: State, names: tuple[str, ...]) -> Fired:
    because = looked_at(ready, state)
    lets = state.spaces["let"]
    values = {fact.name: fact.value for fact in because}
    for name, value in lets.items():
        values[f"let.{name}"] = plain(value)
    for branch in ready.rule.branches:
        for item in branch.sets:
            values[f"{item.space}.{item.name}"] = plain(state.get(item.space, item.name))
            values[f"given.{item.name}"] = state.get("given", item.name)
    return Fired(ready.rule, names, because, values, lets)


class Traced(msgspec.Struct, frozen=True):
    """One value that a rule changed, with what the rule looked at as it stood then."""

    write: Write
    because: tuple[Fact, ...]


def trace(resolver: Resolver, facts: Facts, estimates: Mapping[str, Any], space: str, name: str) -> tuple[Traced, ...]:
    """Who changed one value on its way through the rules, in order."""
    run = _Trace(resolver, facts, estimates)
    run.key = (space, name)
    run.outcome()
    return tuple(run.found)


class _Trace(_Run):
    """A run that notes how one value came about."""

    def __init__(self, resolver: Resolver, facts: Facts, estimates: Mapping[str, Any]) -> None:
        super().__init__(resolver, facts, estimates)
        self.key = ("", "")
        self.found: list[Traced] = []

    def _assign(self, rule: CompiledRule, key: tuple[str, str], value: Any, names: tuple[str, ...]) -> bool:
        because = looked_at(self.resolver.ready(rule), self.state) if key == self.key else ()
        reported = super()._assign(rule, key, value, names)
        write = self.writes[-1]
        if key == self.key and (write.before != write.after or type(write.before) is not type(write.after)):
            self.found.append(Traced(write, because))
        return reported


def plain(value: Any) -> Any:
    """A value fit for output: Unknown becomes the list of what it can be, or the word unknown."""
    if type(value) is Unknown:
        return {"one_of": list(value.values)} if value.values is not None else {"unknown": list(value.names)}
    return value
