"""A hardware id such as `8xb200`, or a YAML file -> hardware traits of the machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from solver.errors import RequestError
from solver.records import Traits

if TYPE_CHECKING:
    from pathlib import Path

Values = dict[str, Any]
COUNTED = re.compile(r"(?:(?P<count>\d+)\s*[x*]\s*)?(?P<gpu>\S+)", re.IGNORECASE)
MIB_PER_GIB = 1024


class Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A hardware file: a GPU of the catalogue with its count, and what differs from the catalogue.

    `traits` overrides or adds traits by name; a file for a GPU that is not in the catalogue leaves `gpu` out
    and states at least `vendor`, `memory_gib` and, for NVIDIA, `sm`.
    """

    gpu: str | None = None
    gpus: int = 1
    nodes: int = 1
    traits: Values = {}


def hardware_of(name: str, catalogue: Mapping[str, Traits]) -> Values:
    """Trait name without `hardware.` -> value, for `<gpu>` or `<count>x<gpu>`; the GPU by id or alias.

    Errors: RequestError naming the nearest ids for an unknown GPU or a count of 0.
    """
    match = COUNTED.fullmatch(name.strip())
    if match is None:
        raise RequestError(f"hardware {name!r}: expected <gpu> or <count>x<gpu>, such as 8xb200")
    count = int(match["count"] or 1)
    if count < 1:
        raise RequestError(f"hardware {name!r}: the count must be at least 1")
    entry = find(match["gpu"], catalogue)
    return machine_traits(entry.traits, entry.id, count, 1)


def find(gpu: str, catalogue: Mapping[str, Traits]) -> Traits:
    """The catalogue entry with this id or alias, or with this name as nvidia-smi prints it."""
    wanted = gpu.lower()
    if wanted in catalogue:
        return catalogue[wanted]
    for entry in catalogue.values():
        if wanted in entry.aliases or wanted == str(entry.traits.get("name", "")).lower():
            return entry
    near = nearest(wanted, catalogue.values())
    raise RequestError(f"unknown GPU {gpu!r}; nearest in the catalogue: {', '.join(near)}")


def nearest(gpu: str, entries: Iterable[Traits]) -> list[str]:
    """Up to five ids, closest spelling first; the whole catalogue when nothing is close."""
    ids = {name for entry in entries for name in (entry.id, *entry.aliases)}
    from difflib import get_close_matches  # only a wrong request pays for it

    close = get_close_matches(gpu, sorted(ids), n=5, cutoff=0.4)
    return close or sorted(ids)


def machine_traits(gpu: Values, gpu_id: str | None, gpus: int, nodes: int) -> Values:
    """One GPU's traits plus the machine's. A single GPU has no link to another one: its `link` is known to be null."""
    traits = dict(gpu) | {"gpu": gpu_id, "gpus": gpus, "nodes": nodes, "id": f"{gpus}x{gpu_id}" if gpu_id else None}
    if "memory_mib" not in traits and "memory_gib" in traits:
        traits["memory_mib"] = int(traits["memory_gib"] * MIB_PER_GIB)
    if gpus * nodes == 1:
        traits["link"] = None
    return traits


def read_hardware_file(path: Path, catalogue: Mapping[str, Traits]) -> Values:
    """Traits from a YAML file in the form of `Machine`.

    Errors: RequestError for a file that cannot be read, is no YAML, has unknown keys or names an unknown GPU.
    """
    machine = read_machine(path)
    if machine.gpus < 1 or machine.nodes < 1:
        raise RequestError(f"{path}: gpus and nodes must be at least 1")
    if machine.gpu is not None:
        entry = find(machine.gpu, catalogue)
        return machine_traits(entry.traits | machine.traits, entry.id, machine.gpus, machine.nodes)
    missing = [key for key in ("vendor", "memory_gib") if machine.traits.get(key) is None]
    if machine.traits.get("vendor") == "nvidia" and machine.traits.get("sm") is None:
        missing.append("sm")
    if missing:
        raise RequestError(f"{path}: without `gpu`, `traits` must say {', '.join(missing)}")
    return machine_traits(machine.traits, None, machine.gpus, machine.nodes)


def read_machine(path: Path) -> Machine:
    import yaml  # 15 ms, and most requests name hardware by id

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RequestError(f"{path}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RequestError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    try:
        return msgspec.convert(content, Machine)
    except msgspec.ValidationError as error:
        raise RequestError(f"{path}: {error}; expected gpu, gpus, nodes and traits") from None
