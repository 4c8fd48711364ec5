"""A compiled rule + the facts at its place -> what it does there: the values it writes, or that it is violated."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from solver.compiled import CompiledRule, Program
from solver.conditions import Evaluator, Unknown, evaluator
from solver.conjunctions import Conditions, conjunction
from solver.facts import Facts, Keys, State, dotted, gatherer, make_room
from solver.nodes import Node, inlined, names_in
from solver.screening import lets_of, names_of

if TYPE_CHECKING:
    from solver.screen import Screen, Watch


_numbers = count()
_shared: dict[bytes, Ready] = {}
"""Rules as they are compiled, with the tables that they name -> what is made of them: most are the same in several
releases, and then decide the same on the same facts."""


class Resolver:
    """A program made ready to run: conditions become functions when their rule is first looked at.

    Once told that more runs follow, it remembers what rules decided: keeping that does not pay for one run.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.number = next(_numbers)
        self.made: list[Ready | None] = [None] * len(program.rules)
        """The evaluators of each rule, where it was looked at before."""
        self._places = {rule.id: place for place, rule in enumerate(program.rules)}
        self.more_follow = False
        self.words: dict[str, tuple[Callable[[Keys], Hashable] | None, list[tuple[str, str]]]] = {}
        """Rule -> gathers what its words and fixes read at the end of a run, and what these unset (see `findings`)."""
        self.typed: dict[tuple[str, Hashable], str] = {}
        """A flag and what its value is compared by -> both as one types them (see `render.evidence_data`)."""

    def ready(self, rule: CompiledRule) -> Ready:
        return self.ready_at(self.place(rule))

    def place(self, rule: CompiledRule) -> int:
        """Where the rule stands in the program."""
        return self._places[rule.id]

    def ready_at(self, place: int) -> Ready:
        """The evaluators of the rule at a place of the program."""
        found = self.made[place]
        if found is None:
            rule, tables = self.program.rules[place], self.program.tables
            found = self.made[place] = shared(rule, tables) if self.more_follow else Ready(rule, tables)
        return found

    def watch(self, facts: Facts, state: State) -> Watch:
        """What tells a run which rules to look at."""
        return self.screen.start(facts, state)

    @cached_property
    def screen(self) -> Screen:
        from solver.screen import Screen

        return Screen(self.program)


def shared(rule: CompiledRule, tables: dict[str, Any]) -> Ready:
    """What is made of a rule, by whichever release it was needed first."""
    encode = msgspec.msgpack.encode
    key = encode(rule)
    if b"table" in key:
        key += encode([tables.get(name) for name in _tables_of(rule)])
    found = _shared.get(key)
    if found is None:
        make_room(_shared)
        found = _shared[key] = Ready(rule, tables)
    return found


def _tables_of(rule: CompiledRule) -> list[str]:
    """The tables that a rule names, in order."""
    found: dict[str, None] = {}
    rest: list[Any] = [rule.let, rule.when, rule.require, rule.forbid, rule.fix_when]
    for branch in rule.branches:
        rest += [branch.when, *[item.value for item in branch.sets]]
    while rest:
        item = rest.pop()
        if type(item) is tuple:
            rest += item
        elif type(item) is list and item and item[0] == "table":
            found[item[1]] = None
        elif type(item) is list and item and item[0] != "lit":
            rest += item
    return list(found)


class Assignment:
    """One value that a rule writes. `effects`: what that did under a resolver, by its number and by what the fact was
    compared by (see `pipeline`)."""

    __slots__ = ("dotted", "effects", "fact", "value")

    def __init__(self, fact: tuple[str, str], value: Any) -> None:
        self.fact, self.value = fact, value
        self.dotted = dotted(*fact)
        self.effects: dict[int, dict[Hashable, Any]] = {}


class Decision(NamedTuple):
    """What a rule does: the values it writes, branch by branch, or whether it is violated.

    `names`: unknown facts that this depends on.
    """

    lets: dict[str, Any]
    writes: tuple[tuple[tuple[str, ...], tuple[Assignment, ...]], ...] = ()
    violated: bool = False
    names: tuple[str, ...] = ()


class Ready:
    """The evaluators of one rule, each made when it is first needed: most rules end at their first condition."""

    def __init__(self, rule: CompiledRule, tables: dict[str, Any]) -> None:
        self.rule = rule
        self._tables = tables
        self.let = [(name, evaluator(node, tables)) for name, node in rule.let]
        self.when = Conditions(rule.when, tables)
        self.inputs: Callable[[Keys], Hashable] | None = None
        """Gathers all facts that the decision depends on; None until it is remembered, or where it computes figures."""
        self.decided: dict[Hashable, Decision | None] = {}
        self.fired: dict[Hashable, tuple[Decision, Any]] = {}
        """Decision, origins of the facts and values of the targets -> what fired (see `pipeline`)."""
        self.findings: dict[Hashable, tuple[Any, Any]] = {}
        """Number of the resolver, what fired and the values that its words mention besides -> the finding (see
        `findings`)."""

    def _all(self, nodes: Any) -> list[Evaluator]:
        return [evaluator(n, self._tables) for n in nodes]

    @cached_property
    def require(self) -> list[Evaluator]:
        return self._all(self.rule.require)

    @cached_property
    def forbid(self) -> list[Evaluator]:
        return self._all(self.rule.forbid)

    @cached_property
    def branches(self) -> list[tuple[list[Evaluator], list[tuple[tuple[str, str], Evaluator]]]]:
        return [
            (self._all(b.when), [((s.space, s.name), evaluator(s.value, self._tables)) for s in b.sets])
            for b in self.rule.branches
        ]

    @cached_property
    def fix_when(self) -> list[Evaluator | None]:
        return [None if n is None else evaluator(n, self._tables) for n in self.rule.fix_when]

    @cached_property
    def mentioned(self) -> tuple[tuple[str, str], ...]:
        return mentioned(self.rule)

    @cached_property
    def written_or_given(self) -> list[tuple[str, str]]:
        """Those of them that a command or a rule may have changed."""
        return [name for name in self.mentioned if name[0] in ("flag", "env")]

    @cached_property
    def targets(self) -> Callable[[Keys], Hashable]:
        """Gathers the flags and variables that the rule may write, and what was given for them."""
        names = [(s.space, s.name) for b in self.rule.branches for s in b.sets]
        return gatherer([*names, *(("given", name) for _, name in names)])

    @cached_property
    def computes(self) -> bool:
        """Whether the decision depends on a computed figure."""
        return any(space == "estimate" for space, _ in self._names)

    @cached_property
    def _names(self) -> tuple[tuple[str, str], ...]:
        return names_of(self.rule)

    def remembered(self, state: State, keys: Keys) -> Decision | None:
        """The same as `decide`, looked up where the facts have had these values before. `keys`: the state's."""
        if self.computes:
            return self._figured(state, keys)
        if self.inputs is None:
            self.inputs = gatherer(self._names)
        key = self.inputs(keys)
        if key not in self.decided:
            make_room(self.decided)
            self.decided[key] = self.decide(state)
        return self.decided[key]

    def _figured(self, state: State, keys: Keys) -> Decision | None:
        """The decision of a rule that computes figures; what it says of facts alone is looked up."""
        applies = self._stated.applies(state, keys)
        if applies is False:
            return None
        state.spaces["let"] = lets = self._stated.lets(state, keys)
        return self._act(applies, state, lets)

    @cached_property
    def _stated(self) -> _Stated:
        return _Stated(self.rule, self._tables, self.let)

    def decide(self, state: State) -> Decision | None:
        """What the rule does on these facts; None: nothing."""
        if self._bound:
            lets = _values(self.let, state)
            applies = self.when.hold(state)
            return None if applies is False else self._act(applies, state, lets)
        applies = self.when.hold(state)
        return None if applies is False else self._act(applies, state, _values(self.let, state))

    @cached_property
    def _bound(self) -> bool:
        """Whether the conditions look at intermediate values."""
        return bool(self.let) and any(space == "let" for node in self.rule.when for space, _ in names_in(node))

    def _act(self, applies: Any, state: State, lets: dict[str, Any]) -> Decision | None:
        return self._written(applies, state, lets) if self.rule.branches else self._violation(applies, state, lets)

    def _violation(self, applies: Any, state: State, lets: dict[str, Any]) -> Decision | None:
        holds = conjunction(self.require, state)
        broken = [f(state) for f in self.forbid]
        violated, unknown = holds is False, type(holds) is Unknown
        for value in broken:
            if type(value) is Unknown:
                unknown = True
            elif value:
                violated = True
        if violated:
            return Decision(lets, (), True, _names([applies]))
        return Decision(lets, (), True, _names([applies, holds, *broken])) if unknown else None

    def _written(self, applies: Any, state: State, lets: dict[str, Any]) -> Decision | None:
        doubt = [applies]
        writes = []
        for when, sets in self.branches:
            holds = conjunction(when, state)
            if holds is False:
                continue
            doubt.append(holds)
            writes.append((_names(doubt), tuple([Assignment(fact, value(state)) for fact, value in sets])))
            if holds is True:
                break
        return Decision(lets, tuple(writes)) if writes else None


class _Stated:
    """What a rule that computes figures says of facts alone, remembered, and then what the figures say."""

    def __init__(self, rule: CompiledRule, tables: dict[str, Any], let: list[tuple[str, Evaluator]]) -> None:
        lets = lets_of(rule)
        nodes = [inlined(node, lets) for node in rule.when]
        stated = [node for node in nodes if not _computes(node)]
        self._all, self._stated = Conditions(nodes, tables), Conditions(stated, tables)
        self._computed = Conditions([node for node in nodes if _computes(node)], tables)
        self._let, self._let_computes = let, any(map(_computes, lets.values()))
        self._premises = gatherer(dict.fromkeys(name for node in stated for name in names_in(node)))
        self._bound = gatherer(dict.fromkeys(name for node in lets.values() for name in names_in(node)))
        self._applied: dict[Hashable, Any] = {}
        self._lets: dict[Hashable, dict[str, Any]] = {}

    def applies(self, state: State, keys: Keys) -> Any:
        """What the conditions say together, see `conjunction`."""
        key = self._premises(keys)
        if key not in self._applied:
            make_room(self._applied)
            self._applied[key] = self._stated.hold(state)
        applies = self._applied[key]
        if applies is False:
            return False
        return (self._computed if applies is True else self._all).hold(state)

    def lets(self, state: State, keys: Keys) -> dict[str, Any]:
        """The rule's intermediate values."""
        if self._let_computes:
            return _values(self._let, state)
        key = self._bound(keys)
        if key not in self._lets:
            make_room(self._lets)
            self._lets[key] = _values(self._let, state)
        return self._lets[key]


def _computes(node: Node) -> bool:
    return any(space == "estimate" for space, _ in names_in(node))


def _values(let: list[tuple[str, Evaluator]], state: State) -> dict[str, Any]:
    """Intermediate values in order, which the state has too from now on."""
    state.spaces["let"] = lets = {}
    for name, value in let:
        lets[name] = value(state)
    return lets


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


def _names(values: list[Any]) -> tuple[str, ...]:
    """The unknown facts that values depend on."""
    return tuple(dict.fromkeys([n for v in values if type(v) is Unknown for n in v.names]))
