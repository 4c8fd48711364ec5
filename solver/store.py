"""A knowledge folder -> its programs, index and rule texts, from a cache that is rebuilt when a YAML file is newer.

Reading thousands of YAML lines costs more than a whole answer may take, so the hot path reads one small binary file
per release. The cache lies beside the knowledge when it was built into a wheel, else in the user's cache folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from zlib import crc32

import msgspec

from solver.compiled import Core, Program
from solver.known import Known
from solver.records import Release, Rule, TraitForm, Traits

if TYPE_CHECKING:
    from pathlib import Path

    from solver.signatures import Logs

FORMAT = 10
"""Raised whenever the layout of the cache changes."""
SEALED = "_compiled"
"""The cache folder inside a wheel's knowledge."""
COMPILERS = (
    "store.py",
    "compiled.py",
    "grammar.py",
    "conditions.py",
    "records.py",
    "knowledge.py",
    "known.py",
    "signatures.py",
)
"""The modules whose change makes a cache stale."""
INSTALL_SLACK_S = 60.0
"""Installers write files one after another: a YAML file this much newer than the sealed cache was edited."""


class Records(Mapping[str, Traits]):
    """Catalogue entries by id or another name, each decoded when it is asked for; ids alone are listed."""

    def __init__(self, raw: dict[str, msgspec.Raw], names: Mapping[str, str] | None = None) -> None:
        self._raw = raw
        self._names = names or {}

    def __getitem__(self, key: str) -> Traits:
        return msgspec.msgpack.decode(self._raw[self._names.get(key, key)], type=Traits)

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)


class Index:
    """What does not depend on the release, read part by part when it is first needed."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self._read = read
        self._parts: dict[str, Any] = {}

    def _part(self, name: str, kind: Any) -> Any:
        if name not in self._parts:
            self._parts[name] = msgspec.msgpack.decode(self._read(name), type=kind)
        return self._parts[name]

    @property
    def core(self) -> Core:
        found: Core = self._part("core", Core)
        return found

    @property
    def hash(self) -> str:
        return self.core.hash

    @property
    def releases(self) -> tuple[Release, ...]:
        return self.core.releases

    @property
    def traits(self) -> dict[str, TraitForm]:
        return self.core.traits

    @property
    def goals(self) -> dict[str, Any]:
        return self.core.goals

    @property
    def hub_ids(self) -> dict[str, str]:
        """Hub id in small letters -> model id."""
        return self.core.hub_ids

    @property
    def models(self) -> Records:
        return Records(self._part("models", dict[str, msgspec.Raw]))

    @property
    def hardware(self) -> Records:
        return Records(self._part("hardware", dict[str, msgspec.Raw]), self.core.gpu_names)

    @property
    def data(self) -> dict[str, Any]:
        """Links, acceptance and costs by their path below the knowledge."""
        found: dict[str, Any] = self._part("data", dict[str, Any])
        return found

    @property
    def logs(self) -> Logs:
        """Signatures, phases, and which module reads which flags."""
        from solver.signatures import Logs

        found: Logs = self._part("logs", Logs)
        return found

    @property
    def known_flags(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        found: Known = self._part("known", Known)
        return found.flags

    @property
    def known_env(self) -> dict[str, tuple[str, ...]]:
        found: Known = self._part("known", Known)
        return found.env

    @property
    def known_advice(self) -> dict[str, str]:
        found: Known = self._part("known", Known)
        return found.advice

    @property
    def known_stored(self) -> dict[str, Any]:
        found: Known = self._part("known", Known)
        return found.stored

    @property
    def known_choices(self) -> dict[str, dict[str, tuple[str, str]]]:
        found: Known = self._part("known", Known)
        return found.choices


class Store:
    """Programs, index and rule texts of one knowledge folder, from the cache where it is fresh."""

    def __init__(self, root: Path | str) -> None:
        self.root = str(root)
        self._folder = _fresh_folder(self.root)
        self._memory: dict[str, bytes] = {} if self._folder else _build(self.root)
        if not self._folder:
            self._folder = _keep(self.root, self._memory)
        self._texts: dict[str, msgspec.Raw] | None = None
        self._index: Index | None = None

    def _read(self, name: str) -> bytes:
        if name in self._memory:
            return self._memory[name]
        assert self._folder is not None
        return _bytes(self._folder, name)

    @property
    def index(self) -> Index:
        if self._index is None:
            self._index = Index(self._read)
        return self._index

    def program(self, release: str) -> Program:
        """The program of a known release."""
        return msgspec.msgpack.decode(self._read(f"release-{release}"), type=Program)

    def rule(self, rule_id: str) -> Rule | None:
        """A rule with its words and sources, or None."""
        if self._texts is None:
            self._texts = msgspec.msgpack.decode(self._read("texts"), type=dict[str, msgspec.Raw])
        raw = self._texts.get(rule_id)
        return None if raw is None else msgspec.msgpack.decode(raw, type=Rule)

    def rule_ids(self) -> tuple[str, ...]:
        """All rule ids, sorted."""
        self.rule("")
        return tuple(sorted(self._texts or ()))


def _bytes(folder: str, name: str) -> bytes:
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def stamp(root: str) -> list[tuple[str, int, int]]:
    """Name, size and change time (ns) of every YAML file below a folder, sorted."""
    found: list[tuple[str, int, int]] = []
    stack = [root]
    cut = len(root) + 1
    while stack:
        with os.scandir(stack.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".yaml"):
                    stat = entry.stat()
                    found.append((entry.path[cut:], stat.st_size, stat.st_mtime_ns))
                elif entry.is_dir() and not entry.name.startswith("_"):
                    stack.append(entry.path)
    found.sort()
    return found


def _cache_folder(root: str) -> str:
    base = os.environ.get("FLAGWISE_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "flagwise"
    )
    return os.path.join(base, f"{crc32(os.path.abspath(root).encode()):08x}")


def _fresh_folder(root: str) -> str | None:
    now = stamp(root) if os.path.isdir(root) else []
    sealed = os.path.join(root, SEALED)
    if _sealed_is_fresh(sealed, now):
        return sealed
    folder = _cache_folder(root)
    try:
        kept = _bytes(folder, "stamp")
    except OSError:
        return None
    return folder if kept == _stamp_value(now) else None


def _stamp_value(files: list[tuple[str, int, int]]) -> bytes:
    """What the files and the code that compiles them look like."""
    code = os.path.dirname(__file__)
    own = [(n, os.stat(os.path.join(code, n)).st_mtime_ns) for n in COMPILERS]
    return repr((FORMAT, own, files)).encode()


def _sealed_is_fresh(sealed: str, now: list[tuple[str, int, int]]) -> bool:
    try:
        built = os.stat(os.path.join(sealed, "sizes")).st_mtime
        sizes = _bytes(sealed, "sizes")
    except OSError:
        return False
    if sizes != _sizes_value(now):
        return False
    return all(changed / 1e9 <= built + INSTALL_SLACK_S for _, _, changed in now)


def _sizes_value(files: list[tuple[str, int, int]]) -> bytes:
    return repr((FORMAT, [(name, size) for name, size, _ in files])).encode()


def _build(root: str) -> dict[str, bytes]:
    from hashlib import blake2b
    from pathlib import Path

    from solver.compiled import compile_release, index_parts
    from solver.knowledge import load

    knowledge = load(Path(root))
    digest = blake2b(digest_size=8)
    for name, _, _ in stamp(root):
        digest.update(name.encode() + b"\0" + _bytes(root, name) + b"\0")
    encode = msgspec.msgpack.encode
    files = {f"release-{r.version}": encode(compile_release(knowledge, r.version)) for r in knowledge.releases}
    files |= {name: encode(part) for name, part in index_parts(knowledge, digest.hexdigest()).items()}
    files["texts"] = encode({r.id: r for r in knowledge.rules.values()})
    return files


def _keep(root: str, files: dict[str, bytes]) -> str | None:
    """Write the cache; a place that cannot be written is no error (the next run compiles again)."""
    folder = _cache_folder(root)
    try:
        os.makedirs(folder, exist_ok=True)
        for name, content in [*files.items(), ("stamp", _stamp_value(stamp(root)))]:
            part = os.path.join(folder, f".{name}.{os.getpid()}")
            with open(part, "wb") as file:
                file.write(content)
            os.replace(part, os.path.join(folder, name))
    except OSError:
        return None
    return folder


def seal(root: Path | str, target: Path | str) -> None:
    """Write the cache that a wheel carries (called by the build hook)."""
    os.makedirs(target, exist_ok=True)
    for name, content in [*_build(str(root)).items(), ("sizes", _sizes_value(stamp(str(root))))]:
        with open(os.path.join(target, name), "wb") as file:
            file.write(content)


def default_root() -> str:
    """The knowledge folder: `FLAGWISE_KNOWLEDGE`, else the installed package `knowledge`."""
    given = os.environ.get("FLAGWISE_KNOWLEDGE")
    if given:
        return given
    import knowledge

    return os.path.abspath(knowledge.__path__[0])
