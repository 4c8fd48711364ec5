"""Name of a checkpoint that is not in the catalogue -> the known model of which it is another format, and its shape."""

from __future__ import annotations

import re
from typing import Any

from solver.index import Index
from solver.records import FormatWords, Traits

CACHED = "models--"


def shape_of_variant(index: Index, name: str) -> tuple[str, dict[str, Any]] | None:
    """Family and shape of the model that `name` is a format of; None unless it is exactly one family's.

    Without the words of `knowledge/formats.yaml` at its end its own name must be a known name without such words, so
    size, generation and tuning agree.
    """
    endings = format_endings(index.format_words)
    entries = _entries_called(index, _base(own_name(name), endings), endings)
    families = {entry.family for entry in entries}
    if len(families) != 1 or not all(families):
        return None
    return str(entries[0].family), _agreed(index, entries)


def format_endings(words: FormatWords) -> re.Pattern[str]:
    """What a name may end in: format words, with what stands before the first and after each of them."""
    groups = (words.before, words.words, words.after)
    before, word, after = ("|".join(map(re.escape, group)) or "(?!)" for group in groups)
    return re.compile(rf"(?:[-.](?:{before}))*(?:[-.](?:{word})(?:[-.](?:{after}))*)+$")


def own_name(name: str) -> str:
    """The last part of a path or hub id, or the name in a hub cache's `models--owner--name`."""
    parts = [part for part in name.split("/") if part]
    cached = [part.rpartition("--")[2] for part in parts if part.startswith(CACHED)]
    return (cached or parts or [""])[-1]


def _base(name: str, endings: re.Pattern[str]) -> str:
    return endings.sub("", name.lower().replace("_", "-"))


def _entries_called(index: Index, base: str, endings: re.Pattern[str]) -> list[Traits]:
    """Entries whose id or hub name is `base`, words of their own format aside."""
    names = [(ident, ident) for ident in index.models]
    names += [(hub.rpartition("/")[2], ident) for hub, ident in index.hub_ids.items()]
    found = {ident for called, ident in names if _base(called, endings) == base}
    return [index.models[ident] for ident in sorted(found)]


def _agreed(index: Index, entries: list[Traits]) -> dict[str, Any]:
    """What the entries say of the shape; a trait in which they differ stays unknown."""
    said: dict[str, list[Any]] = {}
    for entry in entries:
        for trait, value in entry.traits.items():
            if index.traits[f"model.{trait}"].of is None:
                said.setdefault(trait, []).append(value)
    return {trait: values[0] for trait, values in said.items() if all(value == values[0] for value in values)}
