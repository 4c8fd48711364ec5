"""Wheels, unpacked directories or `sglang==X` -> the catalogues in knowledge/sglang, and the drift of each release.

    python -m solver.learn WHEEL_OR_DIRECTORY_OR_sglang==X... --write knowledge/sglang
    python -m solver.learn --help-text FILE --name my-fork

Reads source text only; nothing of the engine is imported. Releases that the catalogue already holds stay, so one new
wheel is enough to add one new release. Layout, guarantees and limits: docs/catalogues.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
from packaging.version import Version

from solver.errors import KnowledgeError
from solver.forks import Fork, compare, path_of, resemblance
from solver.learn_citations import Fingerprints, check_citations, citation_lines, fingerprints
from solver.learn_drift import drift, drift_lines
from solver.learn_env import Read, read_env
from solver.learn_fetch import PACKAGE, fetched
from solver.learn_files import read_catalogue, read_fingerprints, write_catalogue, write_fingerprints, write_fork
from solver.learn_flags import Registered, read_flags
from solver.learn_help import read_help
from solver.learn_merge import Catalogue, add_release, ranges
from solver.learn_source import Package
from solver.records import EnvVar, Flag, FlagForm, Release, Rule


class ReleaseCatalogue(msgspec.Struct, frozen=True):
    """What one release registers and reads."""

    release: Release
    flags: tuple[Registered, ...]
    env: tuple[Read, ...]


def learn(where: Path | Package) -> ReleaseCatalogue:
    """Read one wheel or unpacked wheel. Errors: ValueError when it is neither."""
    package = where if isinstance(where, Package) else Package(where)
    return ReleaseCatalogue(Release(package.version, package.date), read_flags(package), read_env(package))


def merge(learned: Iterable[ReleaseCatalogue], known: Catalogue | None = None) -> Catalogue:
    """Add releases, oldest first, to what is known; a release that is there already is replaced."""
    catalogue = known or Catalogue()
    for item in sorted(learned, key=lambda c: Version(c.release.version)):
        catalogue = add_release(catalogue, item.release, item.flags, item.env)
    return catalogue


def learn_fork(text: str, name: str, known: Catalogue, base: str | None = None) -> Fork:
    """A fork from its `--help` output, laid over `base` or else the release that resembles it most.

    Errors: ValueError where the text shows no flags or the release is not known.
    """
    shown = read_help(text)
    forms = {r.version: _forms_in(known, r.version) for r in known.releases}
    if base is not None and base not in forms:
        raise ValueError(f"unknown release {base!r}; known are {', '.join(forms)}")
    nearest = base or max(forms, key=lambda v: (resemblance(shown, forms[v]), Version(v)))
    elsewhere = {s: (i, f) for held in forms.values() for i, f in held.items() for s in f.spellings}
    return compare(name, nearest, shown, forms[nearest], elsewhere)


def _forms_in(known: Catalogue, version: str) -> dict[str, FlagForm]:
    return {i: held[version] for i, held in known.flags.items() if version in held}


def main(argv: Sequence[str] | None = None) -> int:
    """Command line. Exit 0: all was read; 1: `--check` finds a stale catalogue; 2: a wrong request."""
    options = _options(argv)
    try:
        if options.help_text is not None:
            return _fork(options)
        return _releases(options)
    except (ValueError, OSError, KnowledgeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m solver.learn", description="Read flag and environment catalogues.")
    parser.add_argument("releases", nargs="*", metavar="WHEEL_OR_DIRECTORY_OR_sglang==X")
    parser.add_argument("--wheel", action="append", default=[], metavar="FILE", help="the same as naming it alone")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="catalogue folder to update, knowledge/sglang")
    parser.add_argument("--catalogue", type=Path, metavar="FOLDER", help="folder to compare with (the one written to)")
    parser.add_argument("--check", action="store_true", help="exit 1 where the catalogue is not what the wheels give")
    parser.add_argument("--fingerprints", action="store_true", help="renew only the hashes of what rules cite")
    parser.add_argument("--verified", nargs="*", default=(), metavar="RELEASE", help="releases whose own code was run")
    parser.add_argument("--help-text", type=Path, metavar="FILE", help="captured --help output of a fork")
    parser.add_argument("--name", metavar="NAME", help="what the fork is called in --engine-version")
    parser.add_argument("--base", metavar="RELEASE", help="the release the fork rests on (else: the most alike)")
    options = parser.parse_args(argv)
    if (options.help_text is None) == (not options.releases and not options.wheel):
        parser.error("expected wheels, directories or sglang==X, or else --help-text with --name")
    if options.fingerprints and options.write is None:
        parser.error("--fingerprints needs --write FOLDER")
    if (options.help_text is None) != (options.name is None):
        parser.error("--help-text and --name belong together")
    return options


def _releases(options: argparse.Namespace) -> int:
    folder = options.catalogue or options.write
    known = read_catalogue(folder) if folder else Catalogue()
    marks: Fingerprints = read_fingerprints(folder) if folder else {}
    rules = _rules(folder)
    with ExitStack() as stack:
        packages = [_package(item, stack) for item in (*options.releases, *options.wheel)]
        if options.fingerprints:
            write_fingerprints({**marks, **{p.version: fingerprints(rules, p) for p in packages}}, folder)
            return 0
        learned = [_told(learn(package)) for package in packages]
        catalogue = merge(learned, known)
        marks = {**marks, **{p.version: fingerprints(rules, p) for p in packages}}
        for package in sorted(packages, key=lambda p: Version(p.version)):
            print("\n".join(_drift(catalogue, package, rules, marks)))
    if options.write is not None:
        write_catalogue(catalogue, options.write, verified=options.verified)
        write_fingerprints(marks, options.write)
    stale = options.check and _by_name(catalogue) != _by_name(known)
    if stale:
        print("error: the catalogue is not what these releases give; write it again with --write", file=sys.stderr)
    return int(stale)


def _by_name(catalogue: Catalogue) -> tuple[dict[str, Flag], dict[str, EnvVar]]:
    flags, env = ranges(catalogue)
    return {f.id: f for f in flags}, {v.name: v for v in env}


def _package(item: str, stack: ExitStack) -> Package:
    return Package(stack.enter_context(fetched(item)) if PACKAGE.fullmatch(item) else Path(item))


def _rules(folder: Path | None) -> tuple[Rule, ...]:
    """The rules beside a catalogue folder; a catalogue alone has none."""
    if folder is None or not (folder / "rules").is_dir():
        return ()
    from solver.knowledge import load

    return tuple(load(folder.parent).rules.values())


def _drift(catalogue: Catalogue, package: Package, rules: Sequence[Rule], marks: Fingerprints) -> Iterator[str]:
    yield from drift_lines(drift(catalogue, package.version))
    if rules:
        yield from citation_lines(check_citations(rules, package, marks))


def _told(item: ReleaseCatalogue) -> ReleaseCatalogue:
    gaps = [f"{f.spellings[0]} ({', '.join(f.unread)})" for f in item.flags if f.unread]
    unread = f"; could not read {', '.join(gaps)}" if gaps else ""
    count = f"{len(item.flags)} flags, {len(item.env)} variables{unread}"
    print(f"{item.release.version} ({item.release.date}): {count}", file=sys.stderr)
    return item


def _fork(options: argparse.Namespace) -> int:
    folder = options.catalogue or options.write
    if folder is None:
        from solver.store import default_root

        folder = Path(default_root()) / "sglang"
    path = path_of(options.name)
    text = options.help_text.read_text(encoding="utf-8")
    fork = learn_fork(text, options.name, read_catalogue(folder), options.base)
    write_fork(fork, path)
    counts = f"{len(fork.forms)} flags of its own or changed, {len(fork.removed)} of the release missing"
    print(f"{fork.name} rests on {fork.base}: {counts}\nwritten to {path}; use it with --engine-version {fork.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
