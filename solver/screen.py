"""A program's rules -> which of them can do anything while a fact has a value: the others need no look at all.

A rule acts only if all its conditions hold, and most conditions look at one fact. Each of those is evaluated once per
value that the fact takes. A run counts, for each rule, the facts that rule it out; it looks at those with none.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from functools import reduce
from operator import or_
from typing import Any, Literal, NamedTuple

from solver.compiled import Program
from solver.conditions import Evaluator, Unknown, evaluator
from solver.facts import Facts, State, key_of, make_room
from solver.screening import Only, Test, bits, is_false, screening_of

Name = tuple[str, str]
"""Namespace and name of a fact."""
ORDER: Literal["little"] = "little"
"""Of the bytes of a number that stands for all rules: the first rule's comes first."""

ASLEEP = 128
"""What a rule's blockers are more while none of its flags and variables has changed; no rule has as many blockers."""

DIGITS = bytes.maketrans(b"01", b"\0\1")

FREE = Unknown(())
"""The value of a fact that may have any."""


class Screen:
    """What the conditions of a program that look at a single fact, or at one model or machine, say to each value."""

    def __init__(self, program: Program) -> None:
        screening = program.screening or screening_of(program)
        self._program = program
        self._rules = len(program.rules)
        self._blockers = int.from_bytes(screening.blockers, ORDER)
        self._asleep = int.from_bytes(screening.asleep, ORDER) * ASLEEP
        self._tests: dict[Name, list[Test]] = {}
        self._of_traits: dict[str, list[Test]] = {}
        for test in screening.tests:
            if test.name is None:
                self._of_traits.setdefault(test.space, []).append(test)
            else:
                self._tests.setdefault((test.space, test.name), []).append(test)
        self._ready: dict[Name, list[tuple[Evaluator, int]]] = {}
        self._masks: dict[Name, dict[Hashable, int]] = {name: {} for name in self._tests}
        self._numbers: dict[int, int] = {}
        self._told: dict[tuple[str, str, Hashable], Stated] = {}
        self.wakes = {(space, name): places for space, name, places in screening.wakes}
        self._others = tuple(name for name in self._tests if name[0] in ("software", "request"))
        self._kept: dict[int, tuple[Mapping[str, Any], int]] = {}
        self._steps: dict[Name, dict[tuple[Hashable, Hashable, int], Step]] = {}

    def start(self, facts: Facts, state: State, free: Collection[Name] = ()) -> Watch:
        """What can act on the values that a run starts from. `free`: further facts, which may have any value; with a
        flag goes what is given for it."""
        blockers = self._blockers + self._by_traits(facts.model, "model", state)
        blockers += self._by_traits(facts.hardware, "hardware", state)
        for fact in self._others:
            blockers += self.number(self.mask(fact, state.get(*fact)))
        changed: set[Name] = set()
        woken = 0
        flags, env = state.spaces["flag"], state.spaces["env"]
        stated = [("given", name, value) for name, value in facts.given.items()]
        stated += [("flag", name, flags[name]) for name in facts.doubtful]
        stated += [("env", name, env.get(name)) for name in facts.env]
        if free:
            stated = [s for s in stated if ("flag" if s[0] == "given" else s[0], s[1]) not in free]
            stated += [("given" if space == "flag" else space, name, FREE) for space, name in free if space != "given"]
        for space, name, value in stated:
            told = self._stated(space, name, value)
            changed.update(told.facts)
            blockers += told.more
            woken |= told.woken
        blockers += self._asleep & ~woken
        return Watch(bytearray(blockers.to_bytes(self._rules, ORDER)), changed)

    def _stated(self, space: str, name: str, value: Any) -> Stated:
        """What it means that a flag is given (namespace `given`), or a flag or variable has a value without that."""
        key = (space, name, key_of(value))
        kept = self._told.get(key)
        if kept is None:
            make_room(self._told)
            facts = (("flag", name), ("given", name)) if space == "given" else ((space, name),)
            more = woken = 0
            for fact in facts:
                more += self.number(self.mask(fact, value)) - self.number(self.mask(fact, self.unset(fact)))
                woken |= bits(self.wakes.get(fact, ()))
            kept = self._told[key] = Stated(facts, more, self.number(woken) * ASLEEP)
        return kept

    def unset(self, name: Name) -> Any:
        """The value of a flag or variable while nothing is given."""
        space, key = name
        known = {"flag": self._program.unset_flags, "env": self._program.unset_env}.get(space)
        return known.get(key) if known is not None else None

    def step(self, name: Name, before: Any, after: Any, place: int = -1) -> Step:
        """What another value of a flag or variable changes for the rules after a place."""
        steps = self._steps.setdefault(name, {})
        key = (key_of(before), key_of(after), place)
        found = steps.get(key)
        if found is None:
            make_room(steps)
            old, new = self.mask(name, before), self.mask(name, after)
            later = -1 << place + 1
            freed, blocked = places_of(old & ~new & later), places_of(new & ~old & later)
            found = steps[key] = Step(tuple([p for p in self.wakes.get(name, ()) if p > place]), freed, blocked)
        return found

    def _by_traits(self, traits: Mapping[str, Any], space: str, state: State) -> int:
        """What a model or machine rules out, as `number`; launches of a batch share the mappings of their traits."""
        kept = self._kept.get(id(traits))
        if kept is None or kept[0] is not traits:
            make_room(self._kept)
            masks = [self.mask(name, state.get(*name)) for name in self._tests if name[0] == space]
            masks += [mask for test, mask in self._of_several(space) if is_false(test(state))]
            kept = self._kept[id(traits)] = (traits, self.number(reduce(or_, masks, 0)))
        return kept[1]

    def mask(self, name: Name, value: Any) -> int:
        """The rules that cannot act while a fact has a value (bit i: the i-th of the program)."""
        known = self._masks.get(name)
        if known is None:
            return 0
        key = key_of(value)
        found = known.get(key)
        if found is None:
            make_room(known)
            found = known[key] = self._evaluated(name, value)
        return found

    def number(self, mask: int) -> int:
        """A bit mask as a number whose bytes are 0 and 1: such numbers can be added up."""
        found = self._numbers.get(mask)
        if found is None:
            make_room(self._numbers)
            ones = f"{mask:b}"[::-1].encode().translate(DIGITS)
            found = self._numbers[mask] = int.from_bytes(ones, ORDER)
        return found

    def _of_several(self, space: str) -> list[tuple[Evaluator, int]]:
        """The conditions that look at several traits."""
        name = (space, "")
        if name not in self._ready:
            self._ready[name] = self._made(self._of_traits.get(space, []))
        return self._ready[name]

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
        return [(evaluator(test.node, self._program.tables), bits(test.rules)) for test in tests]


class Stated(NamedTuple):
    """The facts that a stated value settles, what that adds to the blockers while nothing is given, and what the
    blockers of the rules lose that it wakes."""

    facts: tuple[Name, ...]
    more: int
    woken: int


class Step(NamedTuple):
    """Places of the rules that a fact's first change wakes, that its new value frees, and that it rules out."""

    woken: tuple[int, ...] = ()
    freed: tuple[int, ...] = ()
    blocked: tuple[int, ...] = ()


NOTHING = Step()


def places_of(mask: int) -> tuple[int, ...]:
    """The places of a bit mask's ones."""
    found = []
    while mask:
        found.append((mask & -mask).bit_length() - 1)
        mask &= mask - 1
    return tuple(found)


class Watch:
    """The places of the rules to look at in one run, in order, while flags and variables change.

    `blockers`: a byte a rule, how many facts rule it out, and `ASLEEP` where none of its flags or variables has changed
    yet. `changed`: facts that are not, or were not, as they are when nothing is given.
    """

    __slots__ = ("_blockers", "_changed")

    def __init__(self, blockers: bytearray, changed: set[Name]) -> None:
        self._blockers, self._changed = blockers, changed

    def __iter__(self) -> Iterator[int]:
        find = self._blockers.find
        place = find(0)
        while place >= 0:
            yield place
            place = find(0, place + 1)

    def changed(self, name: Name, step: Step) -> None:
        """A flag or variable has another value now. `step`: what the screen says to that."""
        blockers = self._blockers
        woken, freed, blocked = step
        if name not in self._changed:
            self._changed.add(name)
            for place in woken:
                if blockers[place] >= ASLEEP:
                    blockers[place] -= ASLEEP
        for place in freed:
            blockers[place] -= 1
        for place in blocked:
            blockers[place] += 1
