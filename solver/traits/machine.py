"""Text of the vendors' tools and the catalogue -> traits of the machine, each with where it was read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from solver.errors import RequestError
from solver.records import Traits
from solver.traits.cards import Card, Cards, read_cards
from solver.traits.hardware import Machine, Read, Values, entry_traits, in_common, machine_traits
from solver.traits.matrix import Matrix, Pair, groups, read_matrices

TOPOLOGY = "topo -m"
PEERS = "topo -p2p"
#: Connections from near to far; SOC is what old drivers call SYS.
PATHS = ("nvlink", "xgmi", "pix", "pxb", "phb", "node", "sys")
SAME_NODE = frozenset({"pix", "pxb", "phb", "node"})
MIG = re.compile(r"^\s*MIG \d+g\.", re.MULTILINE)
AMD_SUFFIX = re.compile(r" (?:OAM|VF|HF|OAM HF)$", re.IGNORECASE)


def read_machine(text: str, catalogue: Mapping[str, Traits], source: str) -> Machine | None:
    """The machine that a text describes, or None if it holds no output of a known tool.

    `source` is what origins call the text. A machine whose cards differ has the traits that all of them share, and for
    what a launch must fit on every card the least: memory, SM, bandwidth, throughput.
    """
    cards, matrices = read_cards(text), read_matrices(text)
    found = _Found(source)
    if not cards.cards and not matrices:
        return _without_gpus(found, cards)
    _add_peers(found, [m for m in matrices if m.peers])
    for matrix in [m for m in matrices if not m.peers][-1:]:
        _add_topology(found, matrix)
    if cards.cards:
        _add_cards(found, cards, catalogue)
    sizes = {len(cards.cards), *(len(m.gpus) for m in matrices)} - {0}
    if len(sizes) > 1:
        found.notes.append(f"the outputs disagree on the number of GPUs ({', '.join(map(str, sorted(sizes)))})")
    if matrices and "vendor" not in found.traits:
        amd = any("XGMI" in m.connections.values() for m in matrices)
        found.add(f"{source}, {TOPOLOGY}", vendor="amd" if amd else "nvidia")
    if MIG.search(text):
        found.notes.append("the cards are divided (MIG); the memory and count of their parts are not read")
    found.add(source, gpus=max(sizes), nodes=1, p2p=None)
    return found.machine(max(sizes))


def _without_gpus(found: _Found, cards: Cards) -> Machine | None:
    """Of a table that was cut before its first GPU, driver and CUDA remain."""
    if cards.driver is None:
        return None
    found.add(found.source, vendor="nvidia", **_stated(cards))
    return Machine(found.traits, found.origins, ("only the head of the table is there: it lists no GPU",))


class _Found:
    """Traits and origins while they are collected; what was added first stays."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.traits: Values = {}
        self.origins: dict[str, str] = {}
        self.notes: list[str] = []

    def add(self, origin: str, **traits: Any) -> None:
        for name, value in traits.items():
            if name not in self.traits:
                self.traits[name], self.origins[name] = value, origin

    def machine(self, count: int) -> Machine:
        traits = machine_traits(self.traits, self.traits.get("gpu"), count, 1)
        for name in traits.keys() - self.origins.keys():
            self.origins[name] = "computed"
        return Machine(traits, self.origins, tuple(self.notes))


# --------------------------------------------------------------------- cards


def _add_cards(found: _Found, cards: Cards, catalogue: Mapping[str, Traits]) -> None:
    found.add(found.source, **_stated(cards))
    kinds = {card: _entry(card, catalogue) for card in cards.cards}
    read = in_common([_traits_of(card, kinds[card]) for card in cards.cards], found.source)
    for name, (value, origin) in read.items():
        found.add(origin, **{name: value})
    if found.traits["mixed"]:
        listed = found.traits["name"]
        found.notes.append(f"the cards differ ({listed}); what must fit on each is taken from the least")
    unknown = [str(card.name) for card, entry in kinds.items() if entry is None and card.name]
    if unknown:
        listed = ", ".join(dict.fromkeys(unknown))
        found.notes.append(f"not in the catalogue: {listed}; what the text does not say of it is unknown")
    cut = {str(card.name): entry.id for card, entry in kinds.items() if entry is not None and card.cut}
    found.notes += [f"the table cuts the name {name}…; taken for {entry}" for name, entry in cut.items()]


def _stated(cards: Cards) -> Values:
    return {key: value for key, value in (("driver", cards.driver), ("cuda", cards.cuda)) if value is not None}


def _traits_of(card: Card, entry: Traits | None) -> dict[str, Read]:
    """Trait -> (value, origin) of one card: what was read goes before what the catalogue says."""
    said = {"memory_mib": card.memory_mib, "sm": card.sm, "gfx": card.gfx, "pcie_width": card.pcie_width}
    values: dict[str, Read] = {}
    if entry is not None:
        values = entry_traits(entry)
    else:
        amd = bool(card.gfx or (card.name or "").upper().startswith("AMD"))
        values["vendor"] = ("amd" if amd else "nvidia", "the tool that printed it")
    values |= {name: (value, "the tool's output") for name, value in said.items() if value is not None}
    if card.name is not None and not card.cut:
        values["name"] = (card.name, "the tool's output")
    if card.memory_mib is not None:
        values.setdefault("memory_gib", (round(card.memory_mib / 1024, 1), "the tool's output"))
    if card.pcie_gen is not None:
        known = values.get("pcie_gen", (0, ""))[0]
        if card.pcie_gen > known:  # a link that is idle runs at less than it can
            values["pcie_gen"] = (card.pcie_gen, "the tool's output")
    return values


def _entry(card: Card, catalogue: Mapping[str, Traits]) -> Traits | None:
    """The catalogue entry of a name or device id; of a name that a table cut, the first that memory and power allow."""
    if card.name is None:
        return None
    name = AMD_SUFFIX.sub("", card.name).lower()
    plain = name.removeprefix("nvidia ")
    for entry in catalogue.values():
        known = str(entry.traits.get("name", "")).lower()
        if plain in (known.removeprefix("nvidia "), *entry.aliases) or name in entry.aliases:
            return entry
    if not card.cut:
        return None
    near = [e for e in catalogue.values() if str(e.traits.get("name", "")).lower().startswith(name)]
    near = [e for e in near if card.memory_mib in (None, e.traits.get("memory_mib", card.memory_mib))]
    by_power = [e for e in near if e.traits.get("power_w") == card.power_w]  # a limit may have been lowered by hand
    return next(iter(by_power or near), None)


# ------------------------------------------------------------------ topology


def _add_topology(found: _Found, matrix: Matrix) -> None:
    where = f"{found.source}, {TOPOLOGY}"
    paths = {pair: _path(cell) for pair, cell in matrix.connections.items()}
    if matrix.cut:
        cut = ", ".join(f"GPU{gpu}" for gpu in matrix.cut)
        found.notes.append(f"the rows of {cut} are cut or missing; the links are judged by the other rows")
    fast = {pair for pair, path in paths.items() if path in ("nvlink", "xgmi")}
    mesh = bool(fast) and len(fast) == len(paths)
    if len(matrix.gpus) > 1:
        slow = "pcie" if paths else None
        found.add(where, link=paths[next(iter(fast))] if mesh else slow, path=max(paths.values(), key=PATHS.index))
        found.add(where, fast_groups=[g for g in groups(matrix.gpus, fast) if len(g) > 1])
        found.add(where, pcie_switches=_together(matrix, paths, {"pix"}))
        found.add(where, pcie_switch_trees=_together(matrix, paths, {"pix", "pxb"}))
    sides = _numa_sides(matrix, paths)
    if sides:
        found.add(where, numa_groups=sides, numa_nodes=len(sides))
    elif matrix.numa:
        silent = ", ".join(f"GPU{gpu}" for gpu in matrix.gpus if gpu not in matrix.numa)
        found.notes.append(f"the NUMA node of {silent} is not shown, so the NUMA sides are unknown")
    if mesh:
        found.add(f"{where}: the link allows it", p2p=True)


def _path(cell: str) -> str:
    return "nvlink" if cell.startswith("NV") else {"SOC": "sys", "PCIE": "phb"}.get(cell, cell.lower())


def _together(matrix: Matrix, paths: Mapping[Pair, str], kinds: set[str]) -> list[list[int]]:
    joined = [pair for pair, path in paths.items() if path in kinds]
    return [group for group in groups(matrix.gpus, joined) if len(group) > 1]


def _numa_sides(matrix: Matrix, paths: Mapping[Pair, str]) -> list[list[int]]:
    """GPUs by NUMA node: those that say the same one, or whose path stays inside it. Empty where rows leave it open."""
    joined: list[Pair] = [pair for pair, path in paths.items() if path in SAME_NODE]
    by_node: dict[str, list[int]] = {}
    for gpu, node in matrix.numa.items():
        by_node.setdefault(node, []).append(gpu)
    joined += [(same[0], other) for same in by_node.values() for other in same[1:]]
    sides = groups(matrix.gpus, joined)
    placed = {gpu for pair in joined for gpu in pair} | matrix.numa.keys()
    placed |= {gpu for pair, path in paths.items() if path == "sys" for gpu in pair}
    return sides if placed >= set(matrix.gpus) else []


def _add_peers(found: _Found, matrices: Iterable[Matrix]) -> None:
    allowed = [allow for matrix in matrices for allow in matrix.peers.values()]
    if allowed:
        found.add(f"{found.source}, {PEERS}", p2p=all(allowed))


def refuse(source: str) -> RequestError:
    """The error for a text that is neither a hardware file nor the output of a known tool."""
    return RequestError(
        f"{source}: no GPU found in it; expected the output of nvidia-smi (plain, -L, topo -m or --query-gpu=… "
        f"--format=csv), rocm-smi or amd-smi, or YAML with gpu, gpus, nodes and traits"
    )
