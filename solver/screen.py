"""A program's rules -> which of them can do anything while a fact has a value: the others need no look at all.

A rule acts only if all its conditions hold, and most conditions look at one fact. Each of those is evaluated once per
value that the fact takes; the answers are kept as bit masks (bit i: rule i of the program is ruled out).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, reduce
from operator import or_
from typing import Any

from solver.compiled import Program
from solver.conditions import Evaluator, Unknown, evaluator
from solver.facts import Facts, State
from solver.screening import Only, Test, bits, is_false, screening_of

Name = tuple[str, str]
"""Namespace and name of a fact."""
KEPT_AT_MOST = 1024

class Screen:
    """What the conditions of a program that look at a single fact, or at one model or machine, say to each value."""

    def __init__(self, program: Program) -> None:
        screening = program.screening or screening_of(program)
        self._tables = program.tables
        self._can_act = (1 << len(program.rules)) - 1 & ~bits(screening.never)
        self._tests: dict[Name, list[Test]] = {}
        self._of_traits: dict[str, list[Test]] = {}
        for test in screening.tests:
            if test.name is None:
                self._of_traits.setdefault(test.space, []).append(test)
            else:
                self._tests.setdefault((test.space, test.name), []).append(test)
        self._ready: dict[Name, list[tuple[Evaluator, int]]] = {}
        self._masks: dict[Name, dict[Any, int]] = {name: {} for name in self._tests}
        self.unset = {(space, name): int.from_bytes(mask, "little") for space, name, mask in screening.unset}
        self.wakes = {(space, name): bits(places) for space, name, places in screening.wakes}
        self._asleep = reduce(or_, self.wakes.values(), 0)
        self._others = tuple(name for name in self._tests if name[0] in ("software", "request"))
        self._kept: dict[int, tuple[Mapping[str, Any], int]] = {}

    def start(self, facts: Facts, state: State) -> Watch:
        """What can act on the values that a run starts from."""
        asleep = self._asleep
        counts = Counts(self._unset_counts)
        ruled_out: dict[Name, int] = {}
        spaces = state.spaces
        flags = (*facts.given, *facts.doubtful)
        for space, stated in (("flag", flags), ("given", facts.given), ("env", facts.env)):
            values = spaces[space]
            for name in stated:
                fact = (space, name)
                asleep &= ~self.wakes.get(fact, 0)
                before = self.unset.get(fact)
                if before is not None:
                    after = ruled_out[fact] = self.mask(fact, values.get(name))
                    counts.change(before, after)
        by_traits = self._by_traits(facts.model, "model", state) | self._by_traits(facts.hardware, "hardware", state)
        for fact in self._others:
            by_traits |= self.mask(fact, state.get(*fact))
        return Watch(self, counts, ruled_out, self._can_act & ~by_traits, asleep)

    @cached_property
    def _unset_counts(self) -> Counts:
        counts = Counts()
        for mask in self.unset.values():
            counts.change(0, mask)
        return counts

    def _by_traits(self, traits: Mapping[str, Any], space: str, state: State) -> int:
        """The rules that a model or machine rules out; launches of a batch share the mappings of their traits."""
        kept = self._kept.get(id(traits))
        if kept is None or kept[0] is not traits:
            if len(self._kept) >= KEPT_AT_MOST:
                self._kept.clear()
            masks = [self.mask(name, state.get(*name)) for name in self._tests if name[0] == space]
            masks += [mask for test, mask in self._made(self._of_traits.get(space, [])) if is_false(test(state))]
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
        if name not in self._ready:
            self._ready[name] = self._made(self._tests[name])
        state = Only(value)
        found = 0
        for test, mask in self._ready[name]:
            if is_false(test(state)):
                found |= mask
        return found

    def _made(self, tests: list[Test]) -> list[tuple[Evaluator, int]]:
        return [(evaluator(test.node, self._tables), bits(test.rules)) for test in tests]


class Counts:
    """How many facts rule out each rule, as binary numbers: bit i of the n-th mask is digit n of rule i's count."""

    __slots__ = ("_digits",)

    def __init__(self, start: Counts | None = None) -> None:
        self._digits: list[int] = start._digits.copy() if start else []

    def change(self, before: int, after: int) -> None:
        """One fact ruled out the rules of `before`, and rules out those of `after` now."""
        digits = self._digits
        carry = after & ~before
        for place, digit in enumerate(digits):
            if not carry:
                break
            digits[place] = digit ^ carry
            carry &= digit
        if carry:
            digits.append(carry)
        borrow = before & ~after
        for place, digit in enumerate(digits):
            if not borrow:
                break
            digits[place] = digit ^ borrow
            borrow &= ~digit

    def some(self) -> int:
        """The rules that any fact rules out."""
        return reduce(or_, self._digits, 0)


class Watch:
    """The places of the rules to look at in one run, in order, while flags and variables change."""

    __slots__ = ("_alive", "_asleep", "_counts", "_possible", "_ruled_out", "_screen")

    def __init__(self, screen: Screen, counts: Counts, ruled_out: dict[Name, int], possible: int, asleep: int) -> None:
        self._screen = screen
        self._counts = counts
        self._ruled_out = ruled_out  # by facts that are not as they are when nothing is given
        self._possible = possible
        self._asleep = asleep
        self._alive = possible & ~asleep & ~counts.some()

    def __iter__(self) -> Iterator[int]:
        place = 0
        while rest := self._alive >> place:
            place += (rest & -rest).bit_length()
            yield place - 1

    def changed(self, name: Name, value: Any) -> None:
        """A flag or variable has another value now."""
        screen = self._screen
        woken = self._asleep & screen.wakes.get(name, 0)
        self._asleep ^= woken
        before = self._ruled_out.get(name)
        if before is None:
            before = screen.unset.get(name)
        after = before
        if before is not None:
            after = self._ruled_out[name] = screen.mask(name, value)
        if before != after:
            self._counts.change(before or 0, after or 0)
        if woken or before != after:
            self._alive = self._possible & ~self._asleep & ~self._counts.some()
