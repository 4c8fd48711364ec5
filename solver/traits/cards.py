"""Text of `nvidia-smi`, `rocm-smi` or `amd-smi` -> the GPUs that it lists, and the driver and CUDA it names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from solver.traits.matrix import COLOUR

Row = dict[str, Any]
LISTED = re.compile(r"GPU ([\d,]+): (.+?)( \(UUID:.*)?$")
CAPABILITY = re.compile(r"GPU ([\d,]+) Compute Capability: (\d+\.\d)$")
BOX = re.compile(r"\|\s+(\d+)\s+(\S.*?)\s+(?:On|Off|N/A|WDDM|TCC|MCDM)\s*\|\s+[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:")
USED = re.compile(r"(\d+)MiB\s*/\s*(\d+)MiB")
DRIVER = re.compile(r"(?:[Dd]river|KMD) [Vv]ersion:\s*(\d+(?:\.\d+)+)")
CUDA = re.compile(r"CUDA (?:UMD )?Version:\s*(\d+\.\d+)")
QUERY = re.compile(r"--query-gpu[= ]([\w.,]+)")
FIELD = re.compile(r"[a-z_]+(?:[._][a-z_]+)*(?: \[\w+\])?")
NAME = re.compile(r"(?:NVIDIA|Tesla|Quadro|GeForce|GRID|AMD|RTX)\b.{0,60}\d.{0,40}", re.IGNORECASE)
FULL_VERSION = re.compile(r"\d{3}\.\d+\.\d+")
ROCM = re.compile(r"GPU\[(\d+)\]\s*:\s*(?:\(Topology\) )?([\w ()]+?)\s*:\s*(.+?)\s*$")
ROCM_ROW = re.compile(r"(\d+)\s+(?:\[\s*)?\d+\s+(0x[0-9a-f]{4}),")
AMD_BLOCK = re.compile(r"GPU:\s*(\d+)$")
AMD_KEY = re.compile(r"(MARKET_NAME|TARGET_GRAPHICS_VERSION|DEVICE_ID):\s*(.+)$")
MIB = 2**20
#: Field of a query -> the key of a card.
FIELDS = {
    "index": "index",
    "name": "name",
    "gpu_name": "name",
    "memory.total": "memory_mib",
    "compute_cap": "sm",
    "driver_version": "driver",
    "pcie.link.gen.max": "pcie_gen",
    "pcie.link.gen.current": "pcie_gen_now",
    "pcie.link.width.max": "pcie_width_max",
    "pcie.link.width.current": "pcie_width",
    "power.limit": "power_w",
}


class Card(msgspec.Struct, frozen=True):
    """One GPU as a tool prints it; None is what the text does not say. `cut` marks a name that the table shortened."""

    index: int
    name: str | None = None
    cut: bool = False
    memory_mib: int | None = None
    sm: int | None = None
    gfx: str | None = None
    driver: str | None = None
    pcie_gen: int | None = None
    pcie_width: int | None = None
    power_w: float | None = None


class Cards(msgspec.Struct, frozen=True):
    """All GPUs of a text in the order of their indexes, and what it says of the machine."""

    cards: tuple[Card, ...]
    driver: str | None = None
    cuda: str | None = None


def read_cards(text: str) -> Cards:
    """What a text lists; several listings of the same GPUs complete each other, the most exact one first."""
    lines = [COLOUR.sub("", line).strip() for line in text.splitlines()]
    found: dict[int, Row] = {}
    for rows in (_queried(lines, text), _listed(lines), _boxed(lines), _rocm(lines), _amd(lines)):
        for row in rows:
            known = found.setdefault(row["index"], {})
            known.update({k: v for k, v in row.items() if v is not None and known.get(k) is None})
    cards = tuple(_card(found[index]) for index in sorted(found))
    driver = next((card.driver for card in cards if card.driver), None) or _first(DRIVER, text)
    return Cards(cards, driver, _first(CUDA, text))


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return match[1] if match else None


def _card(row: Row) -> Card:
    return Card(**{key: value for key, value in row.items() if key in Card.__struct_fields__})


def _queried(lines: list[str], text: str) -> Iterator[Row]:
    """Rows of `--query-gpu=… --format=csv`, by header line, else by the query in the text, else by the cells' look."""
    asked = _first(QUERY, text)
    columns = asked.split(",") if asked else None
    count = 0
    for line in lines:
        cells = [cell.strip() for cell in line.split(",")]
        fields = [cell.partition(" [")[0] for cell in cells]
        if QUERY.search(line):
            continue
        if len(cells) > 1 and all(map(FIELD.fullmatch, cells)) and not FIELDS.keys().isdisjoint(fields):
            columns, count = fields, 0
        elif columns and len(cells) == len(columns) and len(cells) > 1:
            yield _row(dict(zip(columns, cells, strict=True)), count)
            count += 1
        elif columns is None and len(cells) > 1 and (row := _guessed(cells, count)):
            yield row
            count += 1


def _row(cells: dict[str, str], position: int) -> Row:
    values = {FIELDS[name]: cell for name, cell in cells.items() if name in FIELDS and cell.strip("[]") not in UNSAID}
    widths = [_whole(values.get(key)) for key in ("pcie_width", "pcie_width_max")]
    return {
        "index": _whole(values.get("index")) or (0 if values.get("index") == "0" else position),
        "name": values.get("name"),
        "memory_mib": _whole(values.get("memory_mib")),
        "sm": _capability(values.get("sm")),
        "driver": values.get("driver"),
        "pcie_gen": max(filter(None, map(_whole, (values.get("pcie_gen"), values.get("pcie_gen_now")))), default=None),
        "pcie_width": max(filter(None, widths), default=None),
        "power_w": _number(values.get("power_w")),
    }


UNSAID = frozenset({"N/A", "Not Supported", "Unknown Error", "Insufficient Permissions", ""})


def _guessed(cells: list[str], count: int) -> Row | None:
    """A row without header: a name says that it is one; of bare numbers only those that cannot be others are read."""
    name = next((cell for cell in cells if NAME.fullmatch(cell)), None)
    if name is None:
        return None
    return {
        "index": int(cells[0]) if cells[0].isdigit() and int(cells[0]) == count else count,
        "name": name,
        "memory_mib": next((_whole(cell) for cell in cells if cell.endswith(" MiB")), None),
        "driver": next((cell for cell in cells if FULL_VERSION.fullmatch(cell)), None),
    }


def _whole(cell: str | None) -> int | None:
    digits = (cell or "").split(" ")[0]
    return int(digits) if digits.isdigit() and int(digits) > 0 else None


def _number(cell: str | None) -> float | None:
    try:
        return float((cell or "").split(" ")[0])
    except ValueError:
        return None


def _capability(cell: str | None) -> int | None:
    """`12.0` is SM 120."""
    major, _, minor = (cell or "").partition(".")
    return int(major) * 10 + int(minor) if major.isdigit() and minor.isdigit() else None


def _listed(lines: Iterable[str]) -> Iterator[Row]:
    """`nvidia-smi -L`, and the environment reports of SGLang and vLLM, which name equal cards in one line."""
    for line in lines:
        if match := CAPABILITY.match(line):
            yield from ({"index": index, "sm": _capability(match[2])} for index in _indexes(match[1]))
        elif (match := LISTED.match(line)) and (match[3] or NAME.fullmatch(match[2])):
            yield from ({"index": index, "name": match[2]} for index in _indexes(match[1]))


def _indexes(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def _boxed(lines: Iterable[str]) -> Iterator[Row]:
    """The table of a plain `nvidia-smi`: a line with index and name, the next with power and memory."""
    row: Row | None = None
    for line in lines:
        if match := BOX.match(line):
            name = match[2].removesuffix("...")
            row = {"index": int(match[1]), "name": name.strip(), "cut": True if name != match[2] else None}
        elif row is not None and (used := USED.search(line)):
            power = re.search(r"/\s*(\d+)W", line)
            yield row | {"memory_mib": int(used[2]), "power_w": float(power[1]) if power else None}
            row = None
        elif row is not None and "N/A" in line and line.startswith("|"):
            yield row
            row = None


def _rocm(lines: Iterable[str]) -> Iterator[Row]:
    """`rocm-smi`: its table of devices, and the lines of `--showproductname` and `--showmeminfo vram`."""
    for line in lines:
        if match := ROCM_ROW.match(line):
            yield {"index": int(match[1]), "name": match[2]}
        elif match := ROCM.match(line):
            key, value = match[2].lower(), match[3]
            said = {"card series": ("name", value), "gfx version": ("gfx", value)}.get(key)
            if key == "vram total memory (b)" and value.isdigit():
                said = ("memory_mib", str(int(value) // MIB))
            if said and said[1].upper() != "N/A":
                yield {"index": int(match[1]), said[0]: int(said[1]) if said[0] == "memory_mib" else said[1]}


def _amd(lines: Iterable[str]) -> Iterator[Row]:
    """`amd-smi static`: blocks by GPU."""
    index: int | None = None
    for line in lines:
        if match := AMD_BLOCK.match(line):
            index = int(match[1])
        elif index is not None and (match := AMD_KEY.match(line)) and match[2].upper() != "N/A":
            key = {"MARKET_NAME": "name", "TARGET_GRAPHICS_VERSION": "gfx", "DEVICE_ID": "name"}[match[1]]
            yield {"index": index, key: match[2].strip()}
