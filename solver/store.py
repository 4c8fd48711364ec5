"""A knowledge folder -> its programs, index and rule texts, from a cache that is rebuilt when a YAML file is newer.

Reading thousands of YAML lines costs more than a whole answer may take, so the hot path reads one small binary file
per release. The cache lies beside the knowledge when it was built into a wheel, else in the user's cache folder.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec

from solver.compiled import Program
from solver.index import Index
from solver.records import Rule

if TYPE_CHECKING:
    from pathlib import Path

    from solver.looks import Looks

FORMAT = 17
"""Raised whenever the layout of the cache changes."""
SEALED = "_compiled"
"""The cache folder inside a wheel's knowledge."""
COMPILERS = (
    *("store.py", "compiled.py", "grammar.py", "conditions.py", "operators.py", "nodes.py", "records.py"),
    *("knowledge.py", "known.py", "evidence.py", "evidence_parts.py", "looks.py", "screening.py", "signatures.py"),
)
"""The modules whose change makes a cache stale."""
INSTALL_SLACK_S = 60.0
"""Installers write files one after another: a YAML file this much newer than the sealed cache was edited."""


class Store:
    """Programs, index and rule texts of one knowledge folder, from the cache where it is fresh."""

    def __init__(self, root: Path | str) -> None:
        self.root = str(root)
        self._folder = _fresh_folder(self.root)
        self._memory: dict[str, bytes] = {} if self._folder else _build(self.root)
        if not self._folder:
            self._folder = _keep(self.root, self._memory)
        self._texts: dict[str, msgspec.Raw] | None = None
        self._rules: dict[str, Rule] = {}

    def _read(self, name: str) -> bytes:
        if name in self._memory:
            return self._memory[name]
        assert self._folder is not None
        return _bytes(self._folder, name)

    @cached_property
    def index(self) -> Index:
        return Index(self._read)

    def program(self, release: str) -> Program:
        """The program of a known release."""
        return msgspec.msgpack.decode(self._read(f"release-{release}"), type=Program)

    def looks(self, release: str) -> Looks:
        """What the rules of a known release look at."""
        from solver.looks import Looks

        return msgspec.msgpack.decode(self._read(f"looks-{release}"), type=Looks)

    def rule(self, rule_id: str) -> Rule | None:
        """A rule with its words and sources, or None."""
        if self._texts is None:
            self._texts = msgspec.msgpack.decode(self._read("texts"), type=dict[str, msgspec.Raw])
        if rule_id in self._texts and rule_id not in self._rules:
            self._rules[rule_id] = msgspec.msgpack.decode(self._texts[rule_id], type=Rule)
        return self._rules.get(rule_id)

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
    now = stamp(root) if os.path.isdir(os.path.join(root, "sglang")) else []
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
    from solver.evidence_parts import evidence_parts
    from solver.knowledge import load
    from solver.looks import looks_of

    knowledge = load(Path(root))
    digest = blake2b(digest_size=8)
    for name, _, _ in stamp(root):
        digest.update(name.encode() + b"\0" + _bytes(root, name) + b"\0")
    encode = msgspec.msgpack.encode
    programs = {r.version: compile_release(knowledge, r.version) for r in knowledge.releases}
    files = {f"release-{release}": encode(program) for release, program in programs.items()}
    files |= {f"looks-{release}": encode(looks_of(program)) for release, program in programs.items()}
    evidence = evidence_parts(knowledge, programs)
    files |= {
        f"evidence-{architecture}": encode(part, order="deterministic") for architecture, part in evidence.items()
    }
    files |= {n: encode(part) for n, part in index_parts(knowledge, digest.hexdigest(), tuple(evidence)).items()}
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
