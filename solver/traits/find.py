"""What a request calls its model and its machine -> their traits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from solver.errors import RequestError
from solver.index import Index
from solver.records import Traits
from solver.release import Assumed
from solver.traits.variant import own_name, shape_of_variant

if TYPE_CHECKING:
    from solver.traits.hardware import Machine

THIS_MACHINE = "auto"
NOTHING_READ = {"mtp_in_checkpoint": None, "described": False}
"""What is known of a model that is neither here nor in the catalogue: none of its files was read."""


def find_model(index: Index, wanted: str | None, path: Any, notes: list[Assumed]) -> tuple[str | None, dict[str, Any]]:
    """Traits of the model: a directory, a catalogue id, a hub id, a path a part of which is a known hub name, or the
    name of another format of a known model (see `shape_of_variant`)."""
    name = wanted if wanted is not None else path if isinstance(path, str) else None
    if name is None:
        return None, {}
    if os.path.isdir(name):
        return name, read_directory(index, name)
    models = index.models
    entry = models.get(name) or models.get(index.hub_ids.get(name.lower(), ""))
    if entry is None:
        entry = _named_in_path(index, name)
        if entry is not None:
            notes.append(Assumed("model", entry.id, f"a part of {name} is the hub name of this catalogue entry"))
    if entry is not None:
        return entry.id, with_entry(entry, {})
    variant = shape_of_variant(index, name)
    if variant is not None:
        family, shape = variant
        notes.append(Assumed("model", name, f"shape of {family}; the format of {name} is not known"))
        return name, {**NOTHING_READ, **shape, "id": own_name(name), "family": family, "described": True}
    if wanted is not None:
        from difflib import get_close_matches

        near = get_close_matches(wanted.lower(), [*index.models, *index.hub_ids], 3, 0.4)
        hint = f"; near are {', '.join(near)}" if near else ""
        raise RequestError(f"unknown model {wanted!r}: no directory and no catalogue id{hint}")
    return name, dict(NOTHING_READ)


def read_directory(index: Index, name: str) -> dict[str, Any]:
    """Traits of a checkpoint directory; what only documentation tells comes from the catalogue entry of that name."""
    from pathlib import Path

    from solver.traits.model import read_checkpoint

    read = {**read_checkpoint(Path(name)), "described": True}
    entry = entry_behind(index, name, read)
    return read if entry is None else with_entry(entry, read)


def entry_behind(index: Index, name: str, read: dict[str, Any]) -> Traits | None:
    """The entry of the model that a directory is named like, if architecture and quantisation are the same."""
    entry = index.models.get(index.hub_ids.get(str(read.get("hub_id")).lower(), ""))
    entry = entry or _named_in_path(index, os.path.abspath(name))
    if entry is None or any(entry.traits.get(k) != read.get(k) for k in ("architecture", "quant_method")):
        return None
    return entry


def with_entry(entry: Traits, read: dict[str, Any]) -> dict[str, Any]:
    """What was read, and behind it what the catalogue says."""
    hub_id = entry.hub_ids[0] if entry.hub_ids else None
    known = {"id": entry.id, "family": entry.family, "hub_id": read.get("hub_id", hub_id), "described": True}
    return {**entry.traits, **read, **known}


def _named_in_path(index: Index, name: str) -> Traits | None:
    """The entry whose hub name is a part of a path, the last one first; hub caches write `models--owner--name`."""
    by_name: dict[str, set[str]] = {}
    for hub, ident in index.hub_ids.items():
        by_name.setdefault(hub.rsplit("/", 1)[-1], set()).add(ident)
    for part in reversed(name.lower().split("/")):
        found = by_name.get(part.rpartition("--")[2], set())
        if len(found) == 1:
            return index.models[next(iter(found))]
    return None


def find_hardware(index: Index, wanted: str | None) -> dict[str, Any]:
    """Traits of the machine alone, none if none is named; see `find_machine`."""
    return {} if wanted is None else find_machine(index, wanted).traits


def find_machine(index: Index, wanted: str) -> Machine:
    """The machine: catalogue ids such as `8xrtx-pro-6000`, a file, or `auto` for this one."""
    from solver.traits.hardware import hardware_of, read_hardware_file

    if wanted == THIS_MACHINE:
        return _this_machine(index)
    is_path = os.sep in wanted or wanted.endswith((".yaml", ".yml"))
    try:
        if not is_path:
            return hardware_of(wanted, index.hardware)
    except RequestError:
        if not os.path.isfile(wanted):
            raise
    from pathlib import Path

    known = [name.removeprefix("hardware.") for name in index.traits if name.startswith("hardware.")]
    return read_hardware_file(Path(wanted), index.hardware, known)


def _this_machine(index: Index) -> Machine:
    from solver.traits.live import ask_this_machine
    from solver.traits.machine import read_machine

    machine = read_machine(ask_this_machine(), index.hardware, "this machine")
    if machine is None:
        raise RequestError("hardware auto: the tools of this machine list no GPU; name the machine, such as 8xb200")
    return machine


class Lookup:
    """Models and machines by the name they are asked for, each looked up once."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._models: dict[tuple[str | None, str | None], tuple[str | None, dict[str, Any], list[Assumed]]] = {}
        self._machines: dict[str, tuple[dict[str, Any], list[Assumed]]] = {}

    def model(self, wanted: str | None, path: Any) -> tuple[str | None, dict[str, Any], list[Assumed]]:
        """Name, traits and what was assumed (see `find_model`)."""
        key = (wanted, path if isinstance(path, str) else None)
        if key not in self._models:
            notes: list[Assumed] = []
            self._models[key] = (*find_model(self.index, *key, notes), notes)
        return self._models[key]

    def machine(self, wanted: str | None) -> tuple[dict[str, Any], list[Assumed]]:
        """Traits of a machine, if one is named, and what could not be read of it (see `find_machine`)."""
        if wanted is None:
            return {}, []
        if wanted not in self._machines:
            machine = find_machine(self.index, wanted)
            self._machines[wanted] = machine.traits, [Assumed("hardware", wanted, note) for note in machine.notes]
        return self._machines[wanted]
