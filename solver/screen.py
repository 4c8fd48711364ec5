"""A program's rules -> which of them can do anything while a fact has a value: the others need no look at all.

A rule acts only if all its conditions hold, and most conditions look at one fact. Each of those is evaluated once per
value that the fact takes; the answers are kept as bit masks (bit i: rule i of the program is ruled out).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import or_
from typing import Any

import msgspec

from solver.compiled import CompiledRule, Program, lets_of
from solver.conditions import Evaluator, Unknown, evaluator
from solver.facts import Facts, State
from solver.nodes import Node, inlined, names_in

Name = tuple[str, str]
"""Namespace and name of a fact."""
READ_AT_ONCE = ("flag", "given", "env", "model", "hardware", "software", "request")
"""Namespaces whose values are there; an estimate would have to be computed first."""
KEPT_AT_MOST = 1024
FEW = 4
"""So many rules are looked at sooner than found to be ruled out by another fact."""


class Screen:
    """The conditions of a program that look at a single fact, by fact, and those that look at one model or machine."""

    def __init__(self, program: Program) -> None:
        tests: dict[bytes, tuple[Name, Evaluator, int]] = {}
        self._of_traits: dict[str, list[tuple[Evaluator, int]]] = {"model": [], "hardware": []}
        never = 0
        for place, rule in enumerate(program.rules):
            for node in conditions_of(rule):
                names = names_in(node)
                if not names and not evaluator(node, program.tables)(_Only(None)):
                    never |= 1 << place
                spaces = {space for space, _ in names}
                if len(names) > 1 and len(spaces) == 1 and spaces <= self._of_traits.keys():
                    self._of_traits[names[0][0]].append((evaluator(node, program.tables), 1 << place))
                elif len(names) == 1 and names[0][0] in READ_AT_ONCE:
                    key = msgspec.msgpack.encode(node)
                    name, test, mask = tests.get(key) or (names[0], evaluator(node, program.tables), 0)
                    tests[key] = (name, test, mask | 1 << place)
        self._can_act = (1 << len(program.rules)) - 1 & ~never
        self._tests: dict[Name, list[tuple[Evaluator, int]]] = {}
        for name, test, mask in tests.values():
            self._tests.setdefault(name, []).append((test, mask))
        self._masks: dict[Name, dict[Any, int]] = {name: {} for name in self._tests}
        unset = {"flag": program.unset_flags, "given": {}, "env": program.unset_env}
        self._unset = {n: self.mask(n, unset[n[0]].get(n[1])) for n in self._tests if n[0] in unset}
        self._others = tuple(name for name in self._tests if name[0] in ("software", "request"))
        self._kept: dict[int, tuple[Mapping[str, Any], int]] = {}

    def start(self, facts: Facts, state: State) -> Watch:
        """What can act on the values that a run starts from."""
        ruled_out = self._unset.copy()
        spaces = state.spaces
        flags = (*facts.given, *facts.doubtful)
        for space, stated in (("flag", flags), ("given", facts.given), ("env", facts.env)):
            values = spaces[space]
            for name in stated:
                fact = (space, name)
                if fact in ruled_out:
                    ruled_out[fact] = self.mask(fact, values.get(name))
        by_traits = self._by_traits(facts.model, "model", state) | self._by_traits(facts.hardware, "hardware", state)
        for fact in self._others:
            by_traits |= self.mask(fact, state.get(*fact))
        return Watch(self, ruled_out, self._can_act & ~by_traits)

    def _by_traits(self, traits: Mapping[str, Any], space: str, state: State) -> int:
        """The rules that a model or machine rules out; launches of a batch share the mappings of their traits."""
        kept = self._kept.get(id(traits))
        if kept is None or kept[0] is not traits:
            if len(self._kept) >= KEPT_AT_MOST:
                self._kept.clear()
            masks = [self.mask(name, state.get(*name)) for name in self._tests if name[0] == space]
            masks += [mask for test, mask in self._of_traits[space] if _is_false(test(state))]
            kept = self._kept[id(traits)] = (traits, reduce(or_, masks, 0))
        return kept[1]

    def mask(self, name: Name, value: Any) -> int:
        """The rules that cannot act while a fact has a value."""
        known = self._masks.get(name)
        if known is None:
            return 0
        key = (Unknown, value.names, value.values) if type(value) is Unknown else value
        try:
            found = known.get(key)
        except TypeError:  # a list or a mapping
            return self._evaluated(name, value)
        if found is None:
            found = known[key] = self._evaluated(name, value)
        return found

    def _evaluated(self, name: Name, value: Any) -> int:
        state = _Only(value)
        found = 0
        for test, mask in self._tests[name]:
            if _is_false(test(state)):
                found |= mask
        return found


class Watch:
    """The places of the rules to look at in one run, in order, while flags and variables change."""

    __slots__ = ("_alive", "_place", "_possible", "_ruled_out", "_screen")

    def __init__(self, screen: Screen, ruled_out: dict[Name, int], possible: int) -> None:
        self._screen = screen
        self._ruled_out = ruled_out
        self._possible = possible
        self._alive = possible & ~reduce(or_, ruled_out.values(), 0)
        self._place = 0

    def __iter__(self) -> Iterator[int]:
        while rest := self._alive >> self._place:
            self._place += (rest & -rest).bit_length()
            yield self._place - 1

    def changed(self, name: Name, value: Any) -> None:
        """A flag or variable has another value now."""
        before = self._ruled_out.get(name)
        if before is None:
            return
        after = self._ruled_out[name] = self._screen.mask(name, value)
        freed = before & ~after & self._possible
        if freed >> self._place and freed.bit_count() > FEW:  # the rules before this place have had their turn
            freed &= ~reduce(or_, self._ruled_out.values())
        self._alive = self._alive & ~after | freed


def _is_false(value: Any) -> bool:
    return type(value) is not Unknown and not value


class _Only:
    """A state of which only one value is ever asked."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def get(self, space: str, name: str) -> Any:
        return self.value


def conditions_of(rule: CompiledRule) -> list[Node]:
    """Conditions without which the rule neither writes nor fires, `let` names replaced by what they stand for."""
    lets = lets_of(rule)
    if rule.branches:
        acts: Node = ["or", [["and", list(b.when)] for b in rule.branches]]
    else:
        acts = ["or", [*(["not", n] for n in rule.require), *rule.forbid]]
    nodes = (*rule.when, acts)
    return [part for node in nodes for part in _conjuncts(inlined(node, lets) if lets else node)]


def _conjuncts(node: Node) -> list[Node]:
    """The parts of a condition all of which must hold."""
    inner = node[1]
    if node[0] == "and":
        return [part for n in inner for part in _conjuncts(n)]
    if node[0] == "or" and len(inner) == 1:
        return _conjuncts(inner[0])
    if node[0] == "not" and inner[0] == "or":
        return [part for n in inner[1] for part in _conjuncts(["not", n])]
    if node[0] == "not" and inner[0] == "not":
        return _conjuncts(inner[1])
    return [node]
