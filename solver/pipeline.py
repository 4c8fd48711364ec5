"""Facts + a release's rules in the engine's own order -> effective values with origins, and the rules that fired."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from solver.compiled import CompiledRule
from solver.conditions import Unknown, merge
from solver.decisions import Decision, Ready, Resolver
from solver.facts import Facts, State
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
            for space, name, value in values:
                reported |= self._assign(rule, space, name, value, names)
            if reported:
                self._fire(ready, names)
        if decision.violated:
            self._fire(ready, decision.names)
            for name in () if decision.names else rule.leaves_open:
                self._set(("flag", name), Unknown((RULE + rule.id,)))

    def _set(self, key: tuple[str, str], value: Any) -> None:
        space, name = key
        self.state.spaces[space][name] = value
        self.watch.changed(key, value)

    def _assign(self, rule: CompiledRule, space: str, name: str, value: Any, names: tuple[str, ...]) -> bool:
        """Write one value; true when the rule wants a finding for it."""
        before = self.state.spaces[space].get(name)
        after = merge([before, value], names) if names else value
        self.writes.append(Write(rule.id, space, name, before, after))
        same = before == after and type(before) is type(after)
        if same and before is not None:
            return False
        key = (space, name)
        origins = self.state.origins
        origin = origins.get(key)
        if not same:
            self._set(key, after)
        if not same or origin is None:
            origins[key] = rule.id
        return not same and rule.severity is not None and (rule.report == "change" or origin == "given")

    def _looked_at(self, ready: Ready) -> tuple[Fact, ...]:
        """The facts that a rule mentions, as they are now."""
        state = self.state
        return tuple(Fact(f"{s}.{n}", plain(state.get(s, n)), state.origin(s, n)) for s, n in ready.mentioned)

    def _fire(self, ready: Ready, names: tuple[str, ...]) -> None:
        state = self.state
        because = self._looked_at(ready)
        values = {fact.name: fact.value for fact in because}
        for name, value in state.spaces["let"].items():
            values[f"let.{name}"] = plain(value)
        for branch in ready.rule.branches:
            for item in branch.sets:
                values[f"{item.space}.{item.name}"] = plain(state.get(item.space, item.name))
                values[f"given.{item.name}"] = state.get("given", item.name)
        self.fired.append(Fired(ready.rule, names, because, values, state.spaces["let"]))


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

    def _assign(self, rule: CompiledRule, space: str, name: str, value: Any, names: tuple[str, ...]) -> bool:
        because = self._looked_at(self.resolver.ready(rule)) if (space, name) == self.key else ()
        reported = super()._assign(rule, space, name, value, names)
        write = self.writes[-1]
        if (space, name) == self.key and (write.before != write.after or type(write.before) is not type(write.after)):
            self.found.append(Traced(write, because))
        return reported


def plain(value: Any) -> Any:
    """A value fit for output: Unknown becomes the list of what it can be, or the word unknown."""
    if type(value) is Unknown:
        return {"one_of": list(value.values)} if value.values is not None else {"unknown": list(value.names)}
    return value
