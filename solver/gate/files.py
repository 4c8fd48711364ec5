"""Paths -> the files to look at, in a stable order, and one line about each that cannot be looked at.

Only here are files opened. Nothing is followed that leads back, nothing is read that is too large or no text.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from solver.gate.found import Kind, Unreadable
from solver.gate.kinds import MARKS, kind_of_name, kind_of_text

LARGEST = 4 * 1024 * 1024
"""Bytes of the largest file that is read; launches stand in files of a few KiB."""
PROGRAMS = frozenset(("python", "notebook", "restructuredtext"))
"""Kinds of which a project has many that are no business of the gate: one too large or no text is passed over."""
PASSED_OVER = frozenset(
    (
        *(".git", ".hg", ".svn", "node_modules", "site-packages", ".venv", "venv", ".tox", ".nox"),
        *("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"),
    )
)
"""Folders whose content is not the project's own."""


class Candidate(NamedTuple):
    """A file to look at. `named`: asked for by its name. `problem`: why it cannot be looked at."""

    path: str
    named: bool = False
    problem: str | None = None
    kind: Kind | None = None
    """What its name says."""


def candidates(paths: Iterable[str], is_excluded: Callable[[str], bool]) -> Iterator[Candidate]:
    """The files under the paths. A path that is given is looked at whatever it is called."""
    seen: set[str] = set()
    for path in paths:
        for candidate in _under(path, is_excluded):
            if candidate.path not in seen:
                seen.add(candidate.path)
                yield candidate


def _under(path: str, is_excluded: Callable[[str], bool]) -> Iterator[Candidate]:
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        yield Candidate(path, True, f"cannot be read ({error.strerror})")
        return
    if stat.S_ISDIR(mode):
        yield from _folder("" if path in (".", "./") else path, path, is_excluded)
    elif stat.S_ISREG(mode):
        yield Candidate(path, True, kind=kind_of_name(path))
    else:
        yield Candidate(path, True, "is neither a file nor a folder")


def _folder(shown: str, path: str, is_excluded: Callable[[str], bool]) -> Iterator[Candidate]:
    try:
        with os.scandir(path) as found:
            entries = {entry.name: entry for entry in found}
    except OSError as error:
        yield Candidate(shown or path, False, f"cannot be read ({error.strerror})")
        return
    before = f"{shown.rstrip('/')}/" if shown else ""
    for base in sorted(entries.keys() - PASSED_OVER):
        entry, name = entries[base], before + base
        if is_excluded(name):
            continue
        try:
            if entry.is_symlink() and _leads_back(name):
                yield Candidate(name, False, "is a link that leads back to a folder above it, not followed")
            elif entry.is_dir(follow_symlinks=False):
                yield from _folder(name, entry.path, is_excluded)
            elif entry.is_file() and ((kind := kind_of_name(base)) is not None or "." not in base):
                yield Candidate(name, kind=kind)
        except OSError as error:
            yield Candidate(name, False, f"cannot be read ({error.strerror})")


def _leads_back(path: str) -> bool:
    """Whether a link ends at a folder that holds it. Errors: OSError for one that never ends."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return False  # it names nothing: no loop, and nothing to look at
    target = os.path.realpath(path).rstrip(os.sep) + os.sep
    return f"{os.path.realpath(os.path.dirname(path))}{os.sep}".startswith(target)


def read(candidate: Candidate) -> tuple[bytes, Kind] | None:
    """The content of a file and its kind; None where it holds no launch. Errors: Unreadable."""
    if candidate.problem:
        raise Unreadable(candidate.problem)
    try:
        content = _content(candidate)
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})") from None
    if content is None:
        return None
    if b"\0" in content:
        if candidate.kind in PROGRAMS:
            return None
        raise Unreadable("is binary, no text")
    for mark in MARKS:
        if mark in content:
            if candidate.kind in PROGRAMS and not _is_text(content):
                return None
            return content, candidate.kind or kind_of_text(decoded(content))
    return None


def _is_text(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _content(candidate: Candidate) -> bytes | None:
    """The bytes of a file; None where neither its name nor its first line says that it can hold a launch."""
    number = os.open(candidate.path, os.O_RDONLY)  # file objects cost more than the small files themselves
    try:
        begin = b"" if candidate.kind or candidate.named else os.read(number, 2)
        if begin not in (b"", b"#!"):
            return None
        size = os.fstat(number).st_size
        if size > LARGEST:
            if candidate.kind in PROGRAMS:
                return None
            raise Unreadable(f"is larger than {LARGEST // 2**20} MiB, too large for a file of launches")
        parts = [begin]
        while part := os.read(number, size + 1):
            parts.append(part)
            if len(part) <= size - len(begin):
                break  # a regular file is read in one go
        return b"".join(parts)
    finally:
        os.close(number)


def decoded(content: bytes) -> str:
    """The text of a file, byte order mark and line ends kept. Errors: Unreadable."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(f"is no text in UTF-8 (byte {error.start + 1:,})") from None


def beside(path: str) -> Callable[[str], str | None]:
    """How a file's neighbours are read: those below its own folder, None for what is not there."""
    folder = os.path.dirname(path)

    def read_beside(name: str) -> str | None:
        target = os.path.normpath(os.path.join(folder, name))
        try:
            if os.path.isabs(name) or name.startswith("..") or os.path.getsize(target) > LARGEST:
                return None
            with open(target, encoding="utf-8") as file:
                return file.read()
        except (OSError, UnicodeDecodeError, ValueError):
            return None

    return read_beside
