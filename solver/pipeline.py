"""Facts + a release's rules in the engine's own order -> effective values with origins, and the rules that fired."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import msgspec

from solver.compiled import CompiledRule
from solver.conditions import Unknown, merge
from solver.decisions import Assignment, Decision, Ready, Resolver
from solver.facts import Facts, State, key_of, make_room
from solver.records import Fact
from solver.screen import NOTHING, Step

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


class Effect(NamedTuple):
    """What an assignment does where the fact had a certain value before. `key`: what the new one is compared by;
    `step`: what that changes for the rules that follow, if anything."""

    write: Write
    changes: bool
    key: Hashable
    step: Step | None


def run(resolver: Resolver, facts: Facts, estimates: Mapping[str, Any]) -> Outcome:
    """Resolve a launch as the engine would, past its first error, and collect every rule that fires."""
    return _Run(resolver, facts, estimates).outcome()


class _Run:
    """One launch on its way through the rules."""

    def __init__(self, resolver: Resolver, facts: Facts, estimates: Mapping[str, Any]) -> None:
        self.resolver = resolver
        self.state = State(resolver.program, facts, estimates)
        self.watch = resolver.watch(facts, self.state)
        self.keys = self.state.keys if resolver.more_follow else None
        self.writes: list[Write] = []
        self.fired: list[Fired] = []

    def outcome(self) -> Outcome:
        """Go through the rules in order."""
        made, ready_at, state, keys = self.resolver.made, self.resolver.ready_at, self.state, self.keys
        for place in self.watch:
            ready = made[place] or ready_at(place)
            if keys is None:
                decision = ready.decide(state)
            elif ready.inputs is None:
                decision = ready.remembered(state, keys)
            else:
                try:
                    decision = ready.decided[ready.inputs(keys)]
                except KeyError:
                    decision = ready.remembered(state, keys)
            if decision:
                self._act(ready, decision)
        return Outcome(self.state, tuple(self.writes), tuple(self.fired))

    def _act(self, ready: Ready, decision: Decision) -> None:
        rule = ready.rule
        lets, writes, violated, unknown = decision
        self.state.spaces["let"] = lets
        for names, assignments in writes:
            if self._assign(rule, assignments, names):
                self._fire(ready, decision, names)
        if violated:
            self._fire(ready, decision, unknown)
            for name in () if unknown else rule.leaves_open:
                self._leave_open(rule, ("flag", name))

    def _leave_open(self, rule: CompiledRule, fact: tuple[str, str]) -> None:
        before, unknown = self.state.get(*fact), Unknown((RULE + rule.id,))
        self.state.write(fact, unknown)
        self.watch.changed(fact, self.resolver.screen.step(fact, before, unknown, self.resolver.place(rule)))

    def _assign(self, rule: CompiledRule, assignments: tuple[Assignment, ...], names: tuple[str, ...]) -> bool:
        """Write some values; true when the rule wants a finding for it."""
        state, keys, number = self.state, self.keys, self.resolver.number
        spaces, origins, severity = state.spaces, state.origins, rule.severity
        reported = False
        for assignment in assignments:
            kept = assignment.effects.get(number)
            effect = kept.get(keys[assignment.dotted]) if kept is not None and keys is not None else None
            if effect is None:
                effect = self._effect(rule, assignment, names)
            fact, (write, changes, key, step) = assignment.fact, effect
            self.writes.append(write)
            if not changes:
                if write.before is None:
                    origins.setdefault(fact, rule.id)
                continue
            if severity is not None and (rule.report == "change" or origins.get(fact) == "given"):
                reported = True
            origins[fact] = rule.id
            if keys is None:
                state.write(fact, write.after)
            else:
                spaces[fact[0]][fact[1]] = write.after
                state.asked = None
                keys[assignment.dotted] = key
            if step is not None:
                self.watch.changed(fact, step)
        return reported

    def _effect(self, rule: CompiledRule, assignment: Assignment, names: tuple[str, ...]) -> Effect:
        space, name = fact = assignment.fact
        before = self.state.get(space, name)
        after = merge([before, assignment.value], names) if names else assignment.value
        changes = differs(before, after)
        step = self.resolver.screen.step(fact, before, after, self.resolver.place(rule)) if changes else NOTHING
        write = Write(rule.id, space, name, before, after)
        effect = Effect(write, changes, key_of(after), None if step == NOTHING else step)
        if self.keys is not None:
            kept = assignment.effects.setdefault(self.resolver.number, {})
            make_room(kept)
            kept[self.keys[assignment.dotted]] = effect
        return effect

    def _fire(self, ready: Ready, decision: Decision, names: tuple[str, ...]) -> None:
        state = self.state
        keys = self.keys
        if keys is None or ready.computes or (names and ready.rule.branches):
            self.fired.append(_fired(ready, state, names))
            return
        # the decision says which traits are known
        origin = state.origins.get
        key = (id(decision), tuple([origin(name) for name in ready.written_or_given]), ready.targets(keys))
        kept = ready.fired.get(key)
        if kept is None or kept[0] is not decision:
            make_room(ready.fired)
            kept = ready.fired[key] = (decision, _fired(ready, state, names))
        self.fired.append(kept[1])


def differs(before: Any, after: Any) -> bool:
    """Whether two values are not the same; 1, 1.0 and true are different ones."""
    return bool(before != after or type(before) is not type(after))


def looked_at(ready: Ready, state: State) -> tuple[Fact, ...]:
    """The facts that a rule mentions, as they are now."""
    return tuple([Fact(f"{s}.{n}", plain(state.get(s, n)), state.origin(s, n)) for s, n in ready.mentioned])


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

    def _act(self, ready: Ready, decision: Decision) -> None:
        because = looked_at(ready, self.state)
        before = len(self.writes)
        super()._act(ready, decision)
        for write in self.writes[before:]:
            if (write.space, write.name) == self.key and differs(write.before, write.after):
                self.found.append(Traced(write, because))


def plain(value: Any) -> Any:
    """A value fit for output: Unknown becomes the list of what it can be, or the word unknown."""
    if type(value) is Unknown:
        return {"one_of": list(value.values)} if value.values is not None else {"unknown": list(value.names)}
    return value
