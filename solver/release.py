"""What a request says of the engine's version -> the release to judge by, how it is known, and what was assumed."""

# On the hot path: importing pathlib costs a tenth of what an answer may take.
# ruff: noqa: PTH112, PTH208
from __future__ import annotations

import functools
import os
import re

import msgspec

from solver.errors import RequestError
from solver.index import Index
from solver.launch import Launch

FORK = "fork"
_TAG = re.compile(r":v?(\d+\.\d+\.\d+(?:\.?(?:post|rc|dev|a|b)\d+)?)")


class Assumed(msgspec.Struct, frozen=True):
    """Something that was not stated and had to be taken from elsewhere."""

    what: str
    value: str
    why: str


def choose_release(index: Index, wanted: str | None, launch: Launch | None) -> tuple[str, str, list[Assumed]]:
    """The release to judge by: given (or the base of a fork), else the image tag, the installed engine, the newest
    verified one. What is not known of it is among the notes."""
    release, origin, notes = _chosen(index, wanted, launch)
    if release not in index.with_rules:
        why = f"the rules begin with SGLang {index.with_rules[0]}; of {release} only flags and variables are known"
        notes = [*notes, Assumed("rules", "of the command line alone", why)]
    return release, origin, notes


def refuse_without_rules(index: Index, release: str) -> None:
    """Raise RequestError for a release of which only the flags are known: nothing could be worked out for it."""
    if release not in index.with_rules:
        begin = index.with_rules[0]
        raise RequestError(f"only the command line of SGLang {release} is known; the rules begin with {begin}")


def _chosen(index: Index, wanted: str | None, launch: Launch | None) -> tuple[str, str, list[Assumed]]:
    known = index.release_order
    if wanted is not None and wanted.removeprefix("v") in known:  # as tags are called
        return wanted.removeprefix("v"), "given", []
    if wanted is not None:
        return _fork_base(list(known), wanted)
    tag = image_version(launch.image) if launch and launch.image else None
    for version, origin in ((tag, "image"), (_installed_version(), "installed")):
        if version:
            release, notes = nearest(list(known), version)
            return release, origin, notes
    newest = [r.version for r in index.releases if r.verified][-1]
    why = "no --engine-version, image tag or installed engine; this is the newest verified release"
    return newest, "assumed", [Assumed("release", newest, why)]


def _fork_base(known: list[str], name: str) -> tuple[str, str, list[Assumed]]:
    from solver.forks import find_fork, known_forks

    fork = find_fork(name)
    if fork is None:
        raise RequestError(f"unknown release {name!r}; known are {', '.join((*known, *known_forks()))}")
    if fork.base not in known:
        raise RequestError(f"the fork {name} rests on the release {fork.base}, which is not known here")
    return fork.base, FORK, [Assumed("release", fork.base, f"{name} has its own flags and the rules of this release")]


def image_version(image: str) -> str | None:
    """The version in the tag of an image of the engine."""
    match = _TAG.search(image) if "sglang" in image else None
    return match[1] if match else None


def _installed_version() -> str | None:
    """The version of an installed engine, found by the name of its metadata folder (no import)."""
    import sys

    return _installed_in(tuple(sys.path))


@functools.cache
def _installed_in(folders: tuple[str, ...]) -> str | None:
    for folder in folders:
        if folder and os.path.isdir(folder):
            for name in os.listdir(folder):
                match = re.fullmatch(r"sglang-(\d[^-]*)\.dist-info", name) if name.startswith("sglang-") else None
                if match:
                    return match[1]
    return None


def nearest(known: list[str], version: str) -> tuple[str, list[Assumed]]:
    if version in known:
        return version, []
    from packaging.version import InvalidVersion, Version

    try:
        wanted = Version(version)
    except InvalidVersion:
        raise RequestError(f"cannot read the engine version {version!r}; give --engine-version") from None
    below = [k for k in known if Version(k) <= wanted]
    release = below[-1] if below else known[0]
    why = f"{version} is not a known release; judged by the nearest one below it" if below else "older than all known"
    return release, [Assumed("release", release, why)]
