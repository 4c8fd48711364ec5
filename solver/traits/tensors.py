"""Folder of a checkpoint -> names, types, shapes and sizes of its tensors, from safetensors headers; no weight is read.

The experts of a layer are told apart by a number only and are counted together, since a large checkpoint names several
hundred thousand of their tensors.

A safetensors file begins with 8 bytes, the length of the header that follows (little end first), then that as JSON:
name -> dtype, shape, data_offsets. The index names the file of each tensor.
"""

from __future__ import annotations

from math import prod

import msgspec

from solver.errors import RequestError
from solver.traits.folder import Folder

EXPERTS = ".experts."
INDEX = "model.safetensors.index.json"
INDEX_AT_MOST_MIB = 256
HEADER_AT_MOST = 100_000_000
"""Bytes; the limit of the format's own library (safetensors 0.4, tensor.rs, MAX_HEADER_SIZE)."""


class Header(msgspec.Struct, frozen=True, gc=False):
    """What a file says of one tensor; `data_offsets` are bytes from the end of the header."""

    dtype: str = ""
    shape: tuple[int, ...] = ()
    data_offsets: tuple[int, int] = (0, 0)


class Tensor(msgspec.Struct):
    """Tensors of one name but for the number of the expert: type and shape of the first, and what all of them hold."""

    dtype: str
    shape: tuple[int, ...]
    elements: int
    bytes: int


class Index(msgspec.Struct, frozen=True):
    """The index file; other keys are passed over."""

    weight_map: dict[str, str]
    metadata: dict[str, msgspec.Raw] = {}


Tensors = dict[str, Tensor]


def read_tensors(folder: Folder) -> Tensors | None:
    """Every tensor of the checkpoint; None when the directory holds no safetensors, or some are links out of it.

    Errors: RequestError for a broken index, files that the index names and that are not there, and a header that is
    cut, no JSON, or claims more than the format allows or the file has.
    """
    files = _files(folder)
    if not files:
        return None
    found: Tensors = {}
    for name in files:
        _add(found, _header(folder, name))
    return found


def _files(folder: Folder) -> list[str]:
    if not folder.holds(INDEX):
        return []
    raw = folder.read(INDEX, INDEX_AT_MOST_MIB)
    if raw is None:
        names = sorted(p.name for p in folder.path.glob("*.safetensors") if not p.name.startswith("consolidated"))
        return names if all(map(folder.holds, names)) else []
    try:
        names = sorted(set(msgspec.json.decode(raw, type=Index).weight_map.values()))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"{folder.path / INDEX}: broken index: {error}") from None
    strange = [name for name in names if "/" in name or name.startswith(".")]
    if strange:
        raise RequestError(f"{folder.path / INDEX}: names {strange[0]!r}, which is no file of this directory")
    if not all(map(folder.holds, names)):
        return []
    missing = [name for name in names if folder.target(name) is None]
    if missing:
        raise RequestError(
            f"{folder.path}: {len(missing)} of the {len(names)} files that {INDEX} names are not here ({missing[0]}, "
            f"…); finish the download, or remove the index to go by config.json alone"
        )
    return names


def _header(folder: Folder, name: str) -> dict[str, Header]:
    path = folder.path / name
    real = folder.target(name)
    if real is None:
        raise RequestError(f"{path}: a link to a file that is not there")
    try:
        size = real.stat().st_size
        with real.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(HEADER_AT_MOST, size - 8):
                raise RequestError(f"{path}: {size} bytes, and its header claims {length}; the file is cut or damaged")
            raw = file.read(length)
    except OSError as error:
        raise RequestError(f"{path}: cannot be read ({error.strerror})") from None
    return _decoded(raw, str(path), size - 8 - length)


def _decoded(raw: bytes, path: str, data: int) -> dict[str, Header]:
    try:
        tensors = msgspec.json.decode(raw, type=dict[str, Header])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"{path}: broken safetensors header: {error}") from None
    tensors.pop("__metadata__", None)
    end = max((tensor.data_offsets[1] for tensor in tensors.values()), default=0)
    if end > data:
        raise RequestError(f"{path}: its tensors end at byte {end}, and it holds {data}; the file is cut")
    return tensors


def _add(found: Tensors, headers: dict[str, Header]) -> None:
    for name, header in headers.items():
        prefix, mark, rest = name.partition(EXPERTS)
        number, _, tail = rest.partition(".")
        key = f"{prefix}{EXPERTS}0.{tail}" if mark and number.isdigit() else name
        start, end = header.data_offsets
        known = found.get(key)
        if known is None:
            found[key] = Tensor(header.dtype, header.shape, prod(header.shape), end - start)
        else:
            known.elements += prod(header.shape)
            known.bytes += end - start
