"""Changes of a launch's words -> edits of the file it stands in, each as its carrier wants it.

A word is carried by shell text, by an element of a list (YAML, JSON, exec form), or by an entry of a mapping of flags.
Whether an edit means what it should is not decided here: the file is read again (solver/gate/mend.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from solver.errors import RequestError
from solver.gate.found import Found
from solver.quoting import quote
from solver.records import Span
from solver.shell import tokens


class Edit(NamedTuple):
    """Put `text` in the place of the file's characters from `start` to `end`."""

    start: int
    end: int
    text: str


class Unmendable(Exception):
    """Why a word cannot be changed where it stands."""


_SAFE = re.compile(r"[A-Za-z0-9_./@%+=,-][\w./:@%+=,-]*(?<!:)", re.ASCII)
_BLANK_BEFORE = re.compile(r"(?:[ \t\r\n]|\\(?=\r?\n))*\Z")


def apply(text: str, edits: Sequence[Edit]) -> str:
    """The text with all edits made. Edits at one place are made in the order given. Errors: Unmendable on overlap."""
    parts: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.start < at:
            raise Unmendable("two changes meet at one place")
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


class Editor:
    """Edits of one launch's words in its file."""

    def __init__(self, found: Found, text: str) -> None:
        self.found = found
        self.text = text
        self.items = {item.at: item.place for item in found.items}

    # ---------------------------------------------------------------- places

    def _item(self, index: int) -> Span | None:
        """The list element that carries a word."""
        span = self.found.launch.words[index].span
        return self.items.get(span) if span else None

    def _place(self, index: int) -> Span:
        """The place of a word that is written out. Errors: Unmendable for one that is computed."""
        word, place = self.found.launch.words[index], self.found.words[index]
        if place is None or word.unknown:
            raise Unmendable(f"{word.text} is computed, not written there")
        if not self.found.entries and self._item(index) is None and self._written(place) != word.text:
            raise Unmendable(f"{word.text} comes from a variable or is put together")
        return place

    def _written(self, place: Span) -> str | None:
        """What a stretch of shell text says, if it is one literal word."""
        try:
            found = tokens(self.text[place.start : place.end])
        except RequestError:
            return None
        if len(found) != 1 or any(piece.kind != "text" for piece in found[0].pieces):
            return None
        return "".join(piece.text for piece in found[0].pieces)

    # --------------------------------------------------------------- changes

    def rename(self, index: int, old: str, new: str) -> list[Edit]:
        """Another spelling for the flag that a word names."""
        place = self._place(index)
        if self.found.entries:
            old, new = old.removeprefix("--"), new.removeprefix("--")
        at = self.text.find(old, place.start, place.end)
        if at < 0:
            raise Unmendable(f"{old} is not written there as one piece")
        return [Edit(at, at + len(old), new)]

    def revalue(self, index: int, value: str) -> list[Edit]:
        """Another text for a whole word (a value, or `--flag=value`)."""
        place = self._item(index) or self._place(index)
        return [Edit(place.start, place.end, self._encoded(place, value, index))]

    def remove(self, indices: Sequence[int]) -> list[Edit]:
        """Take words away."""
        if self.found.entries:
            return [self._without_entry(self._place(indices[0]))]
        return [self._without_item(item) if (item := self._item(i)) else self._without_word(i) for i in indices]

    def append(self, words: Sequence[str], after: int | None) -> list[Edit]:
        """Put words after the word `after`, laid out as those before it are. None: right after the engine's name."""
        if self.found.entries:
            return [self._new_entry(words)]
        anchor = self.found.at if after is None else self._item(after) or self._place(after)
        item = self._item(after) if after is not None else self._item_at(self.found.at)
        if item is not None:
            return [self._new_items(item, words)]
        separator = self._separator(after)
        return [Edit(anchor.end, anchor.end, separator + " ".join(map(quote, words)))]

    # ----------------------------------------------------------------- shell

    def _without_word(self, index: int) -> Edit:
        place = self._place(index)
        blank = _BLANK_BEFORE.search(self.text, 0, place.start)
        return Edit(blank.start() if blank else place.start, place.end, "")

    def _separator(self, after: int | None) -> str:
        """What stands before the last flag."""
        words = self.found.launch.words
        for index in range(after if after is not None else -1, -1, -1):
            place = self.found.words[index]
            if words[index].text.startswith("--") and place is not None:
                blank = _BLANK_BEFORE.search(self.text, 0, place.start)
                found = blank[0] if blank else ""
                return found if found.strip(" \t") else " "
        return " "

    # ----------------------------------------------------------------- lists

    def _item_at(self, place: Span) -> Span | None:
        """The list element at a place, if it is no more than that."""
        return next(
            (p for p in self.items.values() if p.start <= place.start and place.end <= p.end <= place.end + 1), None
        )

    def _is_block(self, item: Span) -> bool:
        """Whether an element stands after a dash on a line of its own."""
        head = self.text[self.text.rfind("\n", 0, item.start) + 1 : item.start]
        return bool(re.fullmatch(r"[ \t>]*-[ \t]+", head))

    def _without_item(self, item: Span) -> Edit:
        text = self.text
        if self._is_block(item):
            start = text.rfind("\n", 0, item.start) + 1
            rest = text.find("\n", item.end)
            rest = len(text) if rest < 0 else rest + 1
            tail = text[item.end : rest]
            if not tail.strip():
                return Edit(start, rest, "")
            dash = text.rindex("-", start, item.start)
            return Edit(dash, len(text[:rest]) - len(tail.lstrip(" \t")), "")  # a comment after it stays
        comma = re.compile(r"\s*,[ \t]*").match(text, item.end)
        if comma:
            return Edit(item.start, comma.end(), "")
        before = re.compile(r",\s*\Z").search(text, 0, item.start)
        return Edit(before.start() if before else item.start, item.end, "")

    def _new_items(self, item: Span, words: Sequence[str]) -> Edit:
        encoded = [self._scalar(self.text[item.start], word) for word in words]
        if self._is_block(item):
            start = self.text.rfind("\n", 0, item.start) + 1
            head = self.text[start : item.start]
            return Edit(item.end, item.end, "".join(f"{self._line_end()}{head}{word}" for word in encoded))
        return Edit(item.end, item.end, "".join(f", {word}" for word in encoded))

    def _encoded(self, place: Span, value: str, index: int) -> str:
        """A word's text as its place wants it."""
        first = self.text[place.start]
        if self.found.entries:
            return self._entry_value(value)
        if self._item(index) is not None:
            return self._scalar(first, value)
        if first in "'\"" and self.text[place.end - 1] == first and _SAFE.fullmatch(value):
            return f"{first}{value}{first}"
        return quote(value)

    def _scalar(self, style: str, value: str) -> str:
        """A YAML or JSON scalar in the style of its neighbour."""
        if style == "'":
            return "'" + value.replace("'", "''") + "'"
        if style == '"' or not _SAFE.fullmatch(value):
            return json.dumps(value, ensure_ascii=False)
        return value

    def _line_end(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    # --------------------------------------------------------------- entries

    def _entry_of(self, place: Span) -> tuple[Span, Span]:
        return next((e.key, e.value) for e in self.found.entries if place in (e.key, e.value))

    def _without_entry(self, place: Span) -> Edit:
        key, value = self._entry_of(place)
        start = self.text.rfind("\n", 0, key.start) + 1
        end = self.text.find("\n", max(value.end - 1, key.end))
        if self.text[start : key.start].strip() or "#" in self.text[value.end : end]:
            raise Unmendable("the entry does not stand on lines of its own")
        return Edit(start, len(self.text) if end < 0 else end + 1, "")

    def _new_entry(self, words: Sequence[str]) -> Edit:
        """A new entry in front of the last one."""
        last = self.found.entries[-1].key
        start = self.text.rfind("\n", 0, last.start) + 1
        head = self.text[start : last.start]
        if head.strip(" "):
            raise Unmendable("the entries do not stand on lines of their own")
        value = self._entry_value(words[1]) if len(words) == 2 else f"[{', '.join(map(self._entry_value, words[1:]))}]"
        shown = value if len(words) > 1 else "true"
        return Edit(start, start, f"{head}{words[0].removeprefix('--')}: {shown}{self._line_end()}")

    def _entry_value(self, value: str) -> str:
        return value if _SAFE.fullmatch(value) else json.dumps(value, ensure_ascii=False)
