"""Text of `nvidia-smi topo` or `rocm-smi --showtopo` -> tables of how every two GPUs are connected.

A table is a line of device names, then one row a GPU:

    header = device+ ["CPU Affinity" ["NUMA Affinity" ["GPU NUMA ID"]]]        device = GPU<n> | NIC<n> | mlx5_<n> …
    row    = device cell* [cpus [numa [id]]] | device cell* "NUMA" numa
    cell   = X | NV<n> | PIX | PXB | PHB | NODE | SYS | XGMI | PCIE            how they are connected (topo -m)
           | X | OK | NS | CNS | GNS | TNS | DR | U | True | False             whether peers may read (topo -p2p)

Prompts, legends, colours and indentation around it are passed over; header and rows may be broken over lines, and
rows may be cut or missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

Pair = tuple[int, int]
COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
DEVICE = re.compile(r"(?:GPU|NIC)\d+|(?:mlx|hfi|bnxt|irdma|ibp|roce)\w*")
GPU = re.compile(r"GPU(\d+)")
CONNECTION = re.compile(r"NV\d+|PIX|PXB|PHB|NODE|SOC|SYS|XGMI|PCIE")
PEER = frozenset({"OK", "NS", "CNS", "GNS", "TNS", "DR", "U", "True", "False"})
ALLOWED = frozenset({"OK", "True"})
OTHER_P2P = re.compile(r"topo\s+-p2p\s+(?:n|a)\b|topo\s+--p2p_status\s+(?:n|a)\b")
TITLE = re.compile(r"^\s*(?:NVIDIA|GPU) Topology:")
"""What environment reports put before the header of the matrix, on its line."""
AFFINITY = frozenset({"CPU", "NUMA", "GPU"})
REST = re.compile(r"[\d,\-]+(?:N/A)?|N/A")


class Matrix(msgspec.Struct, frozen=True):
    """One table. `cells` holds what its rows say, by (row, column); `numa` the NUMA node that a row's GPU sits on.

    `cut` are GPUs of the header whose row is missing or ends before its last GPU.
    """

    gpus: tuple[int, ...]
    cells: dict[Pair, str]
    numa: dict[int, str]
    cut: tuple[int, ...]

    @property
    def connections(self) -> dict[Pair, str]:
        """Ordered pair (smaller index first) -> connection; one direction stands for both."""
        found = {pair: cell for pair, cell in self.cells.items() if CONNECTION.fullmatch(cell)}
        return {(min(a, b), max(a, b)): cell for (a, b), cell in sorted(found.items()) if a != b}

    @property
    def peers(self) -> dict[Pair, bool]:
        """Ordered pair -> whether both directions are allowed."""
        found = {pair: cell in ALLOWED for pair, cell in self.cells.items() if cell in PEER and pair[0] != pair[1]}
        return {(a, b): found.get((a, b), True) and found.get((b, a), True) for a, b in (sorted(p) for p in found)}


class _Table:
    """A table while it is read."""

    def __init__(self, names: list[str], affinity: str) -> None:
        self.columns = names
        self.affinity = affinity
        self.rows: dict[str, list[str]] = {}

    def finished(self) -> Matrix:
        columns = {name: int(match[1]) for name in self.columns if (match := GPU.fullmatch(name))}
        cells: dict[Pair, str] = {}
        for name, row in self.rows.items():
            pairs = zip(self.columns, row, strict=False)
            cells |= {(columns[name], columns[other]): cell for other, cell in pairs if other in columns}
        last = list(columns.values())[-1]
        numa = {columns[name]: side for name, row in self.rows.items() if (side := self._numa(row))}
        return Matrix(
            tuple(columns.values()), cells, numa, tuple(i for i in columns.values() if (i, last) not in cells)
        )

    def _numa(self, row: list[str]) -> str | None:
        """What stands after the cells: CPUs, then the NUMA node, which a paste may glue to the next column's N/A."""
        rest = row[len(self.columns) :]
        if len(rest) > 1 and (rest[0] == "NUMA" or "NUMA Affinity" in self.affinity):
            return rest[1].removesuffix("N/A") or None
        return None


def read_matrices(text: str) -> list[Matrix]:
    """Every table of a text, in order; tables of NVLink or atomics support (`topo -p2p n`, `a`) are left out."""
    tables: list[_Table] = []
    open_row: list[str] | None = None
    wanted = True
    for line in _lines(text):
        words = line.split()
        if "topo" in words:
            wanted = OTHER_P2P.search(line) is None
        table = tables[-1] if tables else None
        names, affinity = _header(words)
        if names and (len(words) == 1 or not _is_cell(words[1])):
            if table is not None and not table.rows and names[0] not in table.columns:
                table.columns += names  # a header that the terminal broke
                table.affinity += affinity
            elif wanted and GPU.fullmatch(names[0]) and not (len(words) == 1 and table and words[0] in table.columns):
                tables.append(_Table(names, affinity))
            open_row = None
        elif table is not None and words and DEVICE.fullmatch(words[0]):
            open_row = words[1:]
            if GPU.fullmatch(words[0]) and words[0] in table.columns and wanted:
                table.rows.setdefault(words[0], open_row)
        elif open_row is not None and words and all(map(_is_cell, words)):
            open_row += words  # a row that the terminal broke
        else:
            open_row = None
    found = [table.finished() for table in tables if table.rows]
    return [matrix for matrix in found if matrix.connections or matrix.peers or len(matrix.gpus) == 1]


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield TITLE.sub("", COLOUR.sub("", line)).replace("GPU NUMA ID", "").strip(" \t>|")


def _header(words: list[str]) -> tuple[list[str], str]:
    """The devices that a line begins with, and the affinity columns after them; nothing if another word follows."""
    count = next((i for i, word in enumerate(words) if not DEVICE.fullmatch(word)), len(words))
    rest = words[count:]
    known = not rest or (rest[0] in AFFINITY and "=" not in rest)
    return (words[:count], " ".join(rest)) if known else ([], "")


def _is_cell(word: str) -> bool:
    return word == "X" or word in PEER or bool(CONNECTION.fullmatch(word) or REST.fullmatch(word))


def groups(gpus: Iterable[int], pairs: Iterable[Pair]) -> list[list[int]]:
    """GPUs that chains of pairs connect, each group and the list of groups in ascending order."""
    parts = {gpu: {gpu} for gpu in gpus}
    for a, b in pairs:
        if parts[a] is not parts[b]:
            parts[a] |= parts[b]
            for gpu in parts[b]:
                parts[gpu] = parts[a]
    return sorted({id(part): sorted(part) for part in parts.values()}.values())
