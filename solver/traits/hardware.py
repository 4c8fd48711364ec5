"""A hardware id such as `8xb200`, or a file of YAML or tool output -> hardware traits with their origins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from solver.errors import RequestError
from solver.records import Traits

if TYPE_CHECKING:
    from pathlib import Path

Values = dict[str, Any]
Read = tuple[Any, str]
"""A value and where it was read."""
LEAST = frozenset({"memory_mib", "memory_gib", "sm", "bandwidth_gbs", "bf16_tflops", "fp8_tflops", "fp4_tflops"})
LEAST |= {"pcie_gen", "pcie_width", "power_w"}
"""Traits in which the least card counts, since a launch must run on every one."""
EQUAL: Values = {"mixed": False, "memory_mib_largest": None, "p2p": None}
"""What holds of a machine of which only the one kind of its cards is known."""
READ_AT_MOST = 4 * 2**20
"""Bytes of a hardware file; output of the tools is some kilobytes."""
TELLING = ("sm", "link", "memory_gib")
"""Traits by which GPUs of one short name differ in what they can run."""
COUNTED = re.compile(r"(?:(?P<count>\d+)\s*[x*]\s*)?(?P<gpu>\S.*)", re.IGNORECASE)
MIB_PER_GIB = 1024


class Machine(msgspec.Struct, frozen=True):
    """Traits without `hardware.`, where each was read, and what could not be read, one line each."""

    traits: Values
    origins: dict[str, str] = {}
    notes: tuple[str, ...] = ()


class HardwareFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A YAML file: a GPU of the catalogue with its count, and what differs from the catalogue.

    `traits` overrides or adds traits by name; a file for a GPU that is not in the catalogue leaves `gpu` out
    and states at least `vendor`, `memory_gib` and, for NVIDIA, `sm`.
    """

    gpu: str | None = None
    gpus: int = 1
    nodes: int = 1
    traits: Values = {}


def hardware_of(name: str, catalogue: Mapping[str, Traits]) -> Machine:
    """The machine that `<gpu>` or `<count>x<gpu>` names, several kinds joined by `+`; each GPU by id or alias.

    Errors: RequestError naming the nearest ids for an unknown GPU or a count of 0.
    """
    kinds = [_counted(part, catalogue) for part in name.split("+")]
    if len(kinds) > 1:
        return _mixed(kinds, f"the name {name}")
    entry, count = kinds[0]
    machine = machine_of(entry, {}, count, 1, f"the name {name}")
    return msgspec.structs.replace(machine, notes=_taken_for(name, entry, catalogue))


def _counted(name: str, catalogue: Mapping[str, Traits]) -> tuple[Traits, int]:
    match = COUNTED.fullmatch(name.strip())
    if match is None:
        raise RequestError(f"hardware {name!r}: expected <gpu> or <count>x<gpu>, such as 8xb200")
    count = int(match["count"] or 1)
    if count < 1:
        raise RequestError(f"hardware {name!r}: the count must be at least 1")
    return find(match["gpu"], catalogue), count


def _taken_for(name: str, entry: Traits, catalogue: Mapping[str, Traits]) -> tuple[str, ...]:
    """What else a short name could mean, where that differs in what rules look at."""
    begin = COUNTED.sub(r"\g<gpu>-", name.strip().lower())
    family = [i for i in catalogue if i.startswith(begin) and i != entry.id]
    others = [i for i in family if any(catalogue[i].traits.get(t) != entry.traits.get(t) for t in TELLING)]
    return (f"taken for {entry.id}; there are {', '.join(others)} as well",) if others else ()


def _mixed(kinds: list[tuple[Traits, int]], source: str) -> Machine:
    cards = [entry_traits(entry) for entry, _ in kinds]
    read = in_common(cards, source)
    count = sum(count for _, count in kinds)
    traits = machine_traits({name: value for name, (value, _) in read.items()}, None, count, 1)
    origins = {name: read.get(name, (None, source))[1] for name in traits}
    return Machine(traits, origins)


def entry_traits(entry: Traits) -> dict[str, Read]:
    """The traits of a catalogue entry as those of one card."""
    where = f"catalogue entry {entry.id}"
    read = {name: (value, where) for name, value in with_memory(entry.traits).items()}
    return read | {"gpu": (entry.id, where)}


def in_common(cards: Sequence[Mapping[str, Read]], source: str) -> dict[str, Read]:
    """What holds for every card of a machine: traits that all share, and of sizes the least.

    Cards of different kinds have no `gpu`; `names` lists them, and `memory_mib_largest` is known where they differ.
    """
    kinds = list(dict.fromkeys((card.get("gpu", (None,))[0], card.get("name", (None,))[0]) for card in cards))
    found: dict[str, Read] = {name: (value, source) for name, value in EQUAL.items()}
    found["mixed"] = (len(kinds) > 1, source)
    for name in cards[0]:
        values = [card[name][0] for card in cards if name in card]
        if len(values) < len(cards):
            continue
        if name in LEAST and None not in values:
            found[name] = cards[values.index(min(values))][name]
        elif all(value == values[0] for value in values):
            found[name] = cards[0][name]
    if len(kinds) > 1:
        names = [str(name or gpu) for gpu, name in kinds]
        found |= {"gpu": (None, source), "names": (names, source), "name": (", ".join(names), source)}
        sizes = [card["memory_mib"][0] for card in cards if "memory_mib" in card]
        if len(sizes) == len(cards) and len(set(sizes)) > 1:
            found["memory_mib_largest"] = (max(sizes), source)
    return found


def machine_of(entry: Traits, own: Values, gpus: int, nodes: int, source: str) -> Machine:
    """A machine with GPUs of a catalogue entry; `own` goes before what the entry says."""
    own = {**EQUAL, **own}
    origins = dict.fromkeys(entry.traits, f"catalogue entry {entry.id}")
    origins |= dict.fromkeys((*own, "gpu", "gpus", "nodes"), source)
    return Machine(machine_traits({**entry.traits, **own}, entry.id, gpus, nodes), origins)


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
    ids = {name for entry in entries for name in (entry.id, *entry.aliases) if not name.startswith("0x")}
    from difflib import get_close_matches  # only a wrong request pays for it

    close = get_close_matches(gpu, sorted(ids), n=5, cutoff=0.4)
    return close or sorted(ids)


def machine_traits(gpu: Values, gpu_id: str | None, gpus: int, nodes: int) -> Values:
    """One GPU's traits plus the machine's. A single GPU has no link to another one: its `link` is known to be null."""
    own = {"gpu": gpu_id, "gpus": gpus, "nodes": nodes, "id": f"{gpus}x{gpu_id}" if gpu_id else None}
    traits = with_memory(gpu) | own
    if gpus * nodes == 1:
        traits["link"] = None
    return traits


def with_memory(traits: Values) -> Values:
    """The traits, with the memory in MiB from the nominal one where only that is known."""
    if "memory_mib" in traits or "memory_gib" not in traits:
        return dict(traits)
    return traits | {"memory_mib": int(traits["memory_gib"] * MIB_PER_GIB)}


def read_hardware_file(path: Path, catalogue: Mapping[str, Traits], known: Iterable[str] = ()) -> Machine:
    """A file with output of nvidia-smi, rocm-smi or amd-smi, or with YAML in the form of `HardwareFile`.

    `known` are the traits that a YAML file may state, none for all. Errors: RequestError for a file that cannot be
    read, is neither, has unknown keys or traits, or names an unknown GPU.
    """
    text = read_text(path)
    if path.suffix not in (".yaml", ".yml"):
        from solver.traits.machine import read_machine, refuse

        machine = read_machine(text, catalogue, str(path))
        if machine is not None:
            return machine
        if not re.search(r"^(?:gpu|gpus|nodes|traits)\s*:", text, re.MULTILINE):
            raise refuse(str(path))
    return described(read_yaml(text, path), path, catalogue, frozenset(known))


def described(file: HardwareFile, path: Path, catalogue: Mapping[str, Traits], known: frozenset[str]) -> Machine:
    """The machine that a YAML file describes."""
    if file.gpus < 1 or file.nodes < 1:
        raise RequestError(f"{path}: gpus and nodes must be at least 1")
    strange = sorted(known and file.traits.keys() - known)
    if strange:
        raise RequestError(f"{path}: unknown trait {strange[0]!r}; expected one of {', '.join(sorted(known))}")
    if file.gpu is not None:
        return machine_of(find(file.gpu, catalogue), file.traits, file.gpus, file.nodes, str(path))
    missing = [key for key in ("vendor", "memory_gib") if file.traits.get(key) is None]
    if file.traits.get("vendor") == "nvidia" and file.traits.get("sm") is None:
        missing.append("sm")
    if missing:
        raise RequestError(f"{path}: without `gpu`, `traits` must say {', '.join(missing)}")
    traits = machine_traits(file.traits, None, file.gpus, file.nodes)
    return Machine(traits, dict.fromkeys((*file.traits, "gpus", "nodes"), str(path)))


def read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(READ_AT_MOST + 1)
        if len(raw) > READ_AT_MOST:
            raise RequestError(f"{path}: larger than {READ_AT_MOST // 2**20} MiB, so it describes no machine")
        return raw.decode()
    except OSError as error:
        raise RequestError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise RequestError(f"{path}: not text in UTF-8") from None


def read_yaml(text: str, path: Path) -> HardwareFile:
    import yaml  # 15 ms, and most requests name hardware by id

    try:
        content = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" on line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise RequestError(f"{path}: not YAML{where}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise RequestError(f"{path}: not YAML: {error}") from None
    try:
        return msgspec.convert(content, HardwareFile)
    except msgspec.ValidationError as error:
        raise RequestError(f"{path}: {error}; expected gpu, gpus, nodes and traits") from None
