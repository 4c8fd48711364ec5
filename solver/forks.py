"""What is learned of a fork or private build <-> a file in the user's configuration folder, laid over a release.

`$XDG_CONFIG_HOME/flagwise/forks/NAME.yaml` says on which release the fork rests and how its flags differ. Flags of the
fork are then known; the rules are those of that release.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from solver.compiled import Program
from solver.errors import RequestError
from solver.records import FlagForm, Strict

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


class Fork(Strict, frozen=True):
    """A fork's flags as differences from the release `base`. Forms replace those of the same id."""

    name: str
    base: str
    forms: dict[str, FlagForm]
    removed: tuple[str, ...]


def folder() -> Path:
    """Where forks are kept."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "flagwise" / "forks"


def path_of(name: str) -> Path:
    """The file of a fork. Errors: ValueError for a name that is no plain word."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name for a fork; expected letters, digits and . _ + -")
    return folder() / f"{name}.yaml"


def known_forks() -> tuple[str, ...]:
    """Names of the forks that were learned."""
    where = folder()
    return tuple(sorted(p.stem for p in where.glob("*.yaml"))) if where.is_dir() else ()


def find_fork(name: str) -> Fork | None:
    """A fork by its name, or None. Errors: RequestError where its file cannot be used."""
    if name not in known_forks():
        return None
    from solver.knowledge import read_yaml

    try:
        return msgspec.convert(read_yaml(path_of(name)), Fork)
    except (ValueError, OSError) as error:
        raise RequestError(f"the fork {name} cannot be read: {error}") from None


def compare(
    name: str,
    base: str,
    shown: Iterable[FlagForm],
    flags: Mapping[str, FlagForm],
    elsewhere: Mapping[str, tuple[str, FlagForm]],
) -> Fork:
    """The differences of the flags that a help text shows from those of a release.

    `elsewhere`: spelling -> id and form in some other release, for flags that the fork took from there.
    """
    owners = {s: i for i, form in flags.items() for s in form.spellings}
    forms: dict[str, FlagForm] = {}
    seen: set[str] = set()
    for form in shown:
        flag = next((owners[s] for s in form.spellings if s in owners), None)
        if flag is None:
            flag, known = next((elsewhere[s] for s in form.spellings if s in elsewhere), (_id(form), form))
            forms[flag] = _laid_over(known, form)
            continue
        seen.add(flag)
        laid = _laid_over(flags[flag], form)
        if laid != flags[flag]:
            forms[flag] = laid
    gone = {i for i, form in flags.items() if i not in seen and not form.hidden}
    return Fork(name, base, forms, tuple(sorted(gone)))


def _id(form: FlagForm) -> str:
    return next(s for s in form.spellings if s.startswith("--")).lstrip("-").replace("-", "_")


def _laid_over(known: FlagForm, shown: FlagForm) -> FlagForm:
    """The release's form with what the text says otherwise: spellings and choices."""
    changes: dict[str, Any] = {"versions": ""}
    if set(shown.spellings) != set(known.spellings):
        changes["spellings"] = shown.spellings
    if known.choices is not None and shown.choices is not None and set(map(str, known.choices)) != set(shown.choices):
        kept = {str(c): c for c in known.choices}
        changes["choices"] = tuple(kept.get(c, c) for c in shown.choices)
    return msgspec.structs.replace(known, **changes) if len(changes) > 1 else known


def resemblance(shown: Iterable[FlagForm], flags: Mapping[str, FlagForm]) -> float:
    """Share of spellings that a help text and a release have in common, 0 to 1."""
    left = {s for form in shown for s in form.spellings}
    right = {s for form in flags.values() for s in form.spellings}
    return len(left & right) / max(1, len(left | right))


def applied(program: Program, fork: Fork) -> Program:
    """The program of the base release with the fork's flags."""
    flags = {i: f for i, f in program.flags.items() if i not in fork.removed} | fork.forms
    return msgspec.structs.replace(program, flags=flags, screening=None)
