"""Wheels or unpacked directories of SGLang -> the flag and environment catalogues in knowledge/sglang.

    python -m solver.learn WHEEL_OR_DIRECTORY... --write knowledge/sglang

Reads source text only; nothing of the engine is imported. Releases that the catalogue already holds stay, so one new
wheel is enough to add one new release. Layout, guarantees and limits: docs/catalogues.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from packaging.version import Version

from solver.learn_env import Read, read_env
from solver.learn_files import read_catalogue, write_catalogue
from solver.learn_flags import Registered, read_flags
from solver.learn_merge import Catalogue, add_release
from solver.learn_source import Package
from solver.records import Release


class ReleaseCatalogue(msgspec.Struct, frozen=True):
    """What one release registers and reads."""

    release: Release
    flags: tuple[Registered, ...]
    env: tuple[Read, ...]


def learn(where: Path) -> ReleaseCatalogue:
    """Read one wheel or unpacked wheel. Errors: ValueError when it is neither."""
    package = Package(where)
    return ReleaseCatalogue(Release(package.version, package.date), read_flags(package), read_env(package))


def merge(learned: Iterable[ReleaseCatalogue], known: Catalogue | None = None) -> Catalogue:
    """Add releases, oldest first, to what is known; a release that is there already is replaced."""
    catalogue = known or Catalogue()
    for item in sorted(learned, key=lambda c: Version(c.release.version)):
        catalogue = add_release(catalogue, item.release, item.flags, item.env)
    return catalogue


def main(argv: Sequence[str] | None = None) -> int:
    """Command line. Exit 0 when everything was read, 2 when a path is no release."""
    parser = argparse.ArgumentParser(prog="python -m solver.learn", description="Read flag and environment catalogues.")
    parser.add_argument("paths", nargs="+", type=Path, metavar="WHEEL_OR_DIRECTORY")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="catalogue folder to update, knowledge/sglang")
    parser.add_argument("--verified", nargs="*", default=(), metavar="RELEASE", help="releases whose own code was run")
    options = parser.parse_args(argv)
    learned = []
    for path in options.paths:
        try:
            learned.append(learn(path))
        except (ValueError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        print(_line(learned[-1]), file=sys.stderr)
    if options.write is not None:
        write_catalogue(merge(learned, read_catalogue(options.write)), options.write, verified=options.verified)
    return 0


def _line(item: ReleaseCatalogue) -> str:
    gaps = [f"{f.spellings[0]} ({', '.join(f.unread)})" for f in item.flags if f.unread]
    unread = f"; could not read {', '.join(gaps)}" if gaps else ""
    return f"{item.release.version} ({item.release.date}): {len(item.flags)} flags, {len(item.env)} variables{unread}"


if __name__ == "__main__":
    raise SystemExit(main())
