"""A launch's words -> what of them tells it from others: values that make no difference in the release are left out.

Launches of a tree mostly differ in port, host and name. What they agree on is found before they are read, so that one
of each kind is read and judged. Left out are values of flags that are written out, given once and taken as they are,
if no rule that can act looks at them; where rules look at a condition, it stands for the value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from solver.expansion import Word
from solver.options import dest_of
from solver.records import FlagForm

if TYPE_CHECKING:
    from solver.gate.alike import Counting

READ_BESIDES = frozenset(("model_path", "config"))
"""Flags whose value names what is looked up elsewhere."""
LONGEST_NUMBER = 18


class Value(NamedTuple):
    """A word that may make no difference: its place, its flag, whether it is a number, and whether conditions count."""

    place: int
    flag: str
    number: bool
    conditions: bool


class Shapes:
    """The words of launches of one release, by the flags that they name."""

    def __init__(self, counting: Counting) -> None:
        self._counting = counting
        self._program = counting.resolver.program
        self._known: dict[tuple[str, ...], tuple[Value, ...]] = {}

    def telling(self, words: Sequence[Word]) -> tuple[tuple[object, ...], frozenset[str]]:
        """The texts of the words, with what stands for those that make no difference, and the flags of these."""
        texts: list[object] = [word.text for word in words]
        shape = tuple([word.text if word.text.startswith("-") else "" for word in words])
        values = self._known.get(shape)
        if values is None:
            values = self._known[shape] = self._values(shape)
        left_out = []
        for place, flag, number, conditions in values:
            word = words[place]
            text = word.text
            if word.unknown or word.splits or (number and not _is_number(text)):
                continue
            value = int(text) if number else text
            texts[place] = self._counting.mask(flag, {flag: value}) if conditions else None
            left_out.append(flag)
        return tuple(texts), frozenset(left_out)

    def _values(self, shape: tuple[str, ...]) -> tuple[Value, ...]:
        """The words that may make no difference. `shape`: each word that names a flag, empty for others."""
        index, flags = self._program.options, self._program.flags
        options = [index.find(word) for word in shape]
        ids = [index.spellings.get(option.spelling, "help") if option else "" for option in options]
        if "help" in ids or any(word and not flag for word, flag in zip(shape, ids, strict=True)):
            return ()  # a mistake, or what could be one
        named = Counter([index.owners.get(dest_of(flags[flag]), flag) for flag in ids if flag])
        dead = self._counting.dead_without({*named, "model_path"})
        found = []
        for place, flag in enumerate(ids[:-1]):
            if not flag or shape[place + 1] or shape[place] not in flags[flag].spellings or flag in READ_BESIDES:
                continue
            form = flags[flag]
            if named[flag] == 1 and _is_plain(form) and not self._counting.values.get(("flag", flag), 0) & ~dead:
                found.append(Value(place + 1, flag, form.type == "int", flag in self._counting.unset))
        return tuple(found)


def _is_plain(form: FlagForm) -> bool:
    """Whether a flag takes one value, any text or any whole number, and keeps it as it is."""
    usual = form.action == "store" and form.nargs is None and form.choices is None and form.type in ("str", "int")
    return usual and not (form.deprecated or form.refused or form.into)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER
