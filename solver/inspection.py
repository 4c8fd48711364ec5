"""The name of a model or machine -> every trait of it with its origin, as text or JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import msgspec

from solver.errors import RequestError
from solver.index import Index
from solver.records import Source, Traits
from solver.store import Store, default_root

VALUE_WIDTH = 44


class Inspection(msgspec.Struct, frozen=True):
    """Traits without namespace, the origin of each, the sources of the catalogue entry behind them, and remarks."""

    traits: dict[str, Any]
    origins: dict[str, str]
    sources: tuple[Source, ...] = ()
    notes: tuple[str, ...] = ()


def inspect_model(values: dict[str, Any]) -> int:
    """Every trait of a checkpoint directory or a catalogue model, and where it was read."""
    name = _one(values["command"], "inspect model DIR|ID")
    _print("model", model(Store(default_root()).index, name), values["format"])
    return 0


def inspect_hardware(values: dict[str, Any]) -> int:
    """Every trait of a machine, and where it was read."""
    name = _one(values["command"] or ["auto"], "inspect hardware ID|FILE|auto")
    _print("hardware", hardware(Store(default_root()).index, name), values["format"])
    return 0


def _one(words: list[str], usage: str) -> str:
    if len(words) != 1:
        raise RequestError(f"expected one name: flagwise {usage}")
    return words[0]


def model(index: Index, name: str) -> Inspection:
    """Errors: RequestError for a name that is no directory and not in the catalogue, and for a damaged checkpoint."""
    from solver.traits.find import entry_behind, find_model

    if os.path.isdir(name):
        from pathlib import Path

        from solver.traits.model import examine
        from solver.traits.origins import model_origins

        config, read, stored = examine(Path(name))
        entry = entry_behind(index, name, read | stored)
        origins = model_origins(config, read, stored)
        return _completed(read | stored, origins, entry)
    notes: list[Any] = []
    traits = find_model(index, name, None, notes)[1]
    remarks = tuple(note.why for note in notes)
    if traits["id"] not in index.models:
        return Inspection(traits, dict.fromkeys(traits, f"catalogue, family {traits['family']}"), (), remarks)
    return _completed({}, {}, index.models[traits["id"]], remarks)


def _completed(
    traits: dict[str, Any], origins: dict[str, str], entry: Traits | None, notes: tuple[str, ...] = ()
) -> Inspection:
    if entry is None:
        return Inspection(traits, origins, (), notes)
    from solver.traits.find import with_entry

    whole = with_entry(entry, traits)
    named = dict.fromkeys(whole, f"catalogue entry {entry.id}") | {k: v for k, v in origins.items() if k != "id"}
    return Inspection(whole, named, entry.sources, notes)


def hardware(index: Index, name: str) -> Inspection:
    """Errors: RequestError for an unknown GPU, an unreadable file, or a machine without the vendor's tool."""
    from solver.traits.find import find_machine

    machine = find_machine(index, name)
    entry = index.hardware.get(machine.traits.get("gpu") or "")
    origins = {trait: machine.origins.get(trait, "computed") for trait in machine.traits}
    return Inspection(machine.traits, origins, entry.sources if entry else (), machine.notes)


def _print(space: str, found: Inspection, form: str) -> None:
    if form == "json":
        from solver.render.data import dumps

        print(dumps({space: found.traits, **{k: getattr(found, k) for k in ("origins", "sources", "notes")}}))
        return
    print("\n".join(_lines(space, found)))


def _lines(space: str, found: Inspection) -> Iterable[str]:
    names = sorted(found.traits)
    width = max(map(len, names), default=0) + len(space) + 1
    for name in names:
        value = _say(found.traits[name])
        yield f"{f'{space}.{name}'.ljust(width)}  {value.ljust(VALUE_WIDTH)}  {found.origins[name]}"
    if found.sources:
        yield "\nsources of the catalogue entry"
        yield from (f"  {' '.join(filter(None, (source.url, source.note)))}" for source in found.sources)
    if found.notes:
        yield "\nremarks"
        yield from (f"  {note}" for note in found.notes)


def _say(value: Any) -> str:
    from solver.words import say

    if value == []:
        return "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {say(item)}" for key, item in value.items())
    if isinstance(value, list) and value and isinstance(value[0], list):
        return " ".join("{" + say(item) + "}" for item in value)
    return say(value)
