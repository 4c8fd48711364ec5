"""A mapping whose keys are flags of the engine -> the launch it configures.

That is the engine's own `--config` file, and the part of a recipe that names the flags of one role. Keys become
`--key value`: true is the bare flag, false and null nothing, a list several values, a mapping JSON.
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from solver.expansion import Word
from solver.gate.found import Entry, Found
from solver.gate.nodes import Node, pairs
from solver.gate.text import Text
from solver.launch import Launch
from solver.records import Span

FEWEST = 3
"""A mapping with fewer flags is taken for something else; of a whole file two are enough."""
_FILLED_IN = re.compile(r"\{\w+\}")
_TRUE = frozenset(("true", "True", "TRUE"))
_NOTHING = frozenset(("false", "False", "FALSE", "null", "Null", "NULL", "~", ""))


class FlagNames:
    """Every flag of every release, without the leading dashes; `read` gives their spellings when they are needed."""

    def __init__(self, read: Callable[[], Iterable[str]]) -> None:
        self._read = read

    @cached_property
    def exact(self) -> frozenset[str]:
        """The names in full."""
        return frozenset(name.removeprefix("--") for name in self._read() if name.startswith("--"))

    @cached_property
    def _ordered(self) -> list[str]:
        return sorted(self.exact)

    def abbreviates(self, name: str) -> bool:
        """Whether a name is the beginning of a flag, which the parser takes too."""
        at = bisect.bisect_left(self._ordered, name)
        return len(name) > 1 and at < len(self._ordered) and self._ordered[at].startswith(name)


def flags_in(
    node: Node, flags: FlagNames, fewest: int = FEWEST, underscores: bool = False
) -> list[tuple[str, Node, Node]]:
    """The entries of a mapping that configures the engine; empty for any other mapping.

    One key in ten may be no flag (misspelt, or of a fork); names of one word alone (host, port) say nothing. Where all
    are spelled with underscores they are a program's keyword arguments or the record of a run, unless `underscores`
    says that this may be the launcher's own file, which is then misspelt.
    """
    if len(node.value) < fewest or not (underscores or any("-" in name for name in node.fields)):
        return []
    names = [name.replace("_", "-") for name in node.fields]
    if flags.exact.isdisjoint(names):  # nearly always
        return []
    known = [name for name in names if name in flags.exact]
    if len(known) < fewest or sum("-" in name for name in known) < fewest - 1:
        return []
    entries = pairs(node)
    others = [name for name in names if name not in flags.exact and not flags.abbreviates(name)]
    return entries if len(others) * 10 <= len(entries) else []


def found(entries: list[tuple[str, Node, Node]], source: Text, is_file: bool = False) -> Found:
    """The launch of a mapping. Its words have the places of their key and value. `is_file`: it is the launcher's own;
    elsewhere a list may be the values that are tried in turn, and `{name}` one that is filled in."""
    words: list[Word] = []
    places: list[Span | None] = []
    written: list[Entry] = []
    for name, key, value in entries:
        key_place, value_place = (source.place(Span(n.start, max(n.end, n.start + 1))) for n in (key, value))
        if key_place is None or value_place is None:
            continue
        written.append(Entry(key_place, value_place))
        for number, text in enumerate(_arguments(name, value)):
            is_open = number > 0 and not is_file and (value.kind == "list" or bool(_FILLED_IN.fullmatch(text)))
            words.append(Word(text, Span(len(words), len(words) + 1), is_open, is_open))
            places.append(value_place if number else key_place)
    first = Span(entries[0][1].start, entries[0][1].end)
    return Found(
        kind="config",
        launch=Launch(tuple(words)),
        text=source,
        at=source.place(first) or first,
        placed=tuple(places),
        entries=tuple(written),
        partial=True,
        fragment=not is_file,
    )


def _arguments(name: str, value: Node) -> list[str]:
    """One entry as arguments."""
    if value.kind == "list":
        return [f"--{name}", *map(_text, value.value)] if value.value else []
    if value.kind == "map":
        return [f"--{name}", json.dumps(_data(value))]
    plain = value.style == "plain"
    if plain and value.value in _NOTHING:
        return []
    if plain and value.value in _TRUE:
        return [f"--{name}"]
    return [f"--{name}", value.value]


def _text(node: Node) -> str:
    return str(node.value) if node.kind == "scalar" else json.dumps(_data(node))


def _data(node: Node) -> Any:
    """A node as plain data; plain scalars that JSON knows keep their type."""
    if node.kind == "list":
        return [_data(item) for item in node.value]
    if node.kind == "map":
        return {name: _data(value) for name, _, value in pairs(node)}
    if node.style != "plain":
        return node.value
    try:
        return json.loads(node.value)
    except ValueError:
        return {"True": True, "False": False, "~": None}.get(node.value, node.value)
