"""Facts + a release's rules in the engine's own order -> effective values with origins, and the rules that fired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from solver.compiled import CompiledRule, Program
from solver.conditions import Evaluator, Unknown, evaluator, merge
from solver.facts import Facts, State
from solver.nodes import Node, names_in
from solver.records import Fact

if TYPE_CHECKING:
    from solver.screen import Screen, Watch

RULE = "rule:"
"""Prefix of the unknown that a violated rule leaves behind."""
OFTEN = 8
KEPT_DECISIONS = 4096
MISSING = object()


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

    From its `OFTEN`th run on it asks a `Screen` which rules need a look at all, and remembers what they decided: making
    and keeping that pays only then.
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
        """What tells a run which rules to look at; None for the first runs."""
        self._runs += 1
        return self.screen.start(facts, state) if self._runs >= OFTEN else None

    @cached_property
    def screen(self) -> Screen:
        from solver.screen import Screen

        return Screen(self.program)


class Decision(NamedTuple):
    """What a rule does: the values it writes, branch by branch, or whether it is violated.

    `names`: unknown facts that this depends on.
    """

    lets: dict[str, Any]
    writes: tuple[tuple[tuple[str, ...], tuple[tuple[str, str, Any], ...]], ...] = ()
    violated: bool = False
    names: tuple[str, ...] = ()


class _Ready:
    """The evaluators of one rule, each made when it is first needed: most rules end at their first condition."""

    def __init__(self, rule: CompiledRule, tables: dict[str, Any]) -> None:
        self.rule = rule
        self._tables = tables
        self.let = [(name, evaluator(node, tables)) for name, node in rule.let]
        self.when = [_Late(node, tables) for node in rule.when]
        self._decided: dict[tuple[Any, ...], Decision | None] = {}

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

    @cached_property
    def inputs(self) -> tuple[tuple[str, str], ...] | None:
        """All facts that the decision depends on; None where a computed figure is among them."""
        values = [s.value for b in self.rule.branches for s in b.sets]
        names = dict.fromkeys((*self.mentioned, *(n for v in values for n in names_in(v) if n[0] != "let")))
        names.update(dict.fromkeys(n for _, node in self.rule.let for n in names_in(node) if n[0] != "let"))
        return None if any(space == "estimate" for space, _ in names) else tuple(names)

    def remembered(self, state: State) -> Decision | None:
        """The same as `decide`, looked up where the facts have had these values before."""
        if self.inputs is None:
            return self.decide(state)
        spaces = state.spaces
        values = [spaces[space].get(name, MISSING) for space, name in self.inputs]
        key = (*values, *map(type, values))  # 1, 1.0 and true are the same key otherwise
        try:
            return self._decided[key]
        except KeyError:
            if len(self._decided) >= KEPT_DECISIONS:
                self._decided.clear()
            decision = self._decided[key] = self.decide(state)
            return decision
        except TypeError:  # a list among the values
            return self.decide(state)

    def decide(self, state: State) -> Decision | None:
        """What the rule does on these facts; None: nothing."""
        state.spaces["let"] = lets = {}
        for name, value in self.let:
            lets[name] = value(state)
        applies = conjunction(self.when, state)
        if applies is False:
            return None
        return self._written(applies, state, lets) if self.rule.branches else self._violation(applies, state, lets)

    def _violation(self, applies: Any, state: State, lets: dict[str, Any]) -> Decision | None:
        holds = conjunction(self.require, state)
        broken = [f(state) for f in self.forbid]
        if holds is False or any(b is not False and type(b) is not Unknown and b for b in broken):
            return Decision(lets, (), True, _names([applies]))
        if type(holds) is Unknown or any(type(b) is Unknown for b in broken):
            return Decision(lets, (), True, _names([applies, holds, *broken]))
        return None

    def _written(self, applies: Any, state: State, lets: dict[str, Any]) -> Decision | None:
        doubt = [applies]
        writes = []
        for when, sets in self.branches:
            holds = conjunction(when, state)
            if holds is False:
                continue
            doubt.append(holds)
            writes.append((_names(doubt), tuple((space, name, value(state)) for space, name, value in sets)))
            if holds is True:
                break
        return Decision(lets, tuple(writes)) if writes else None


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
        ready_at = self.resolver.ready_at
        if self.watch:
            for place in self.watch:
                ready = ready_at(place)
                if decision := ready.remembered(self.state):
                    self._act(ready, decision)
        else:
            for place in range(len(self.resolver.program.rules)):
                ready = ready_at(place)
                if decision := ready.decide(self.state):
                    self._act(ready, decision)
        return Outcome(self.state, tuple(self.writes), tuple(self.fired))

    def _act(self, ready: _Ready, decision: Decision) -> None:
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
        if self.watch:
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

    def _fire(self, ready: _Ready, names: tuple[str, ...]) -> None:
        state = self.state
        because = tuple(Fact(f"{s}.{n}", plain(state.get(s, n)), state.origin(s, n)) for s, n in ready.mentioned)
        values = {fact.name: fact.value for fact in because}
        for name, value in state.spaces["let"].items():
            values[f"let.{name}"] = plain(value)
        for branch in ready.rule.branches:
            for item in branch.sets:
                values[f"{item.space}.{item.name}"] = plain(state.get(item.space, item.name))
                values[f"given.{item.name}"] = state.get("given", item.name)
        self.fired.append(Fired(ready.rule, names, because, values))


def _names(values: list[Any]) -> tuple[str, ...]:
    """The unknown facts that values depend on."""
    return tuple(dict.fromkeys(n for v in values if type(v) is Unknown for n in v.names))


def plain(value: Any) -> Any:
    """A value fit for output: Unknown becomes the list of what it can be, or the word unknown."""
    if type(value) is Unknown:
        return {"one_of": list(value.values)} if value.values is not None else {"unknown": list(value.names)}
    return value
