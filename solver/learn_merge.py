"""One more release's arguments and variables + the catalogue so far -> the catalogue over all releases.

Every argument gets its canonical id here: the name of its value (argparse's `dest`) in the newest release that has it.
A spelling that only writes another argument's value keeps an entry of its own, so that an id has at most one form in a
release.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from packaging.version import Version

from solver.learn_env import Read
from solver.learn_flags import SERVER_ARGS, Registered
from solver.records import EnvForm, EnvVar, Flag, FlagForm, Release, Source, Strict

RETIRED = "retired"
_FILE = SERVER_ARGS.replace(".", "/") + ".py"
_SAME_VALUE = {"DeprecatedAliasStoreAction", "DeprecatedStoreTrueAction"}
"""Actions that hand the old spelling's value on unchanged, so that old and new name mean the same."""


class Rename(Strict, frozen=True):
    """`old` was the name of this value before the release `since`; `id` is its canonical id now."""

    old: str
    id: str
    since: str
    sources: tuple[Source, ...] = ()
    note: str | None = None


class Catalogue(msgspec.Struct, frozen=True):
    """All releases, each flag and variable as release -> form (the form's own range is empty until it is written)."""

    releases: tuple[Release, ...] = ()
    flags: dict[str, dict[str, FlagForm]] = {}
    env: dict[str, dict[str, EnvForm]] = {}
    topics: dict[str, str] = {}
    renames: tuple[Rename, ...] = ()


def add_release(known: Catalogue, release: Release, flags: Iterable[Registered], env: Iterable[Read]) -> Catalogue:
    """The catalogue with one release added or replaced."""
    version = release.version
    held = next((r for r in known.releases if r.version == version), None)
    others = [r for r in known.releases if r.version != version]
    kept = msgspec.structs.replace(held, date=release.date) if held else _new_release(others, release)
    releases = sorted([*others, kept], key=lambda r: Version(r.version))
    forms = {i: {v: f for v, f in held.items() if v != version} for i, held in known.flags.items()}
    registered = tuple(flags)
    primary = _primary(registered)
    before = [r.version for r in releases if Version(r.version) < Version(version)]
    renames = {r.old: r for r in known.renames}
    if before:
        for rename in _detected(forms, before[-1], version, registered, primary):
            renames.setdefault(rename.old, rename)
    topics = dict(known.topics)
    for item in registered:
        canonical = _canonical(item.dest, renames)
        alias = primary[item.dest] is not item
        form_id = _spelled(item) if alias else canonical
        if version in forms.get(form_id, {}):
            raise ValueError(f"{version}: two arguments would both be {form_id}; look at {' '.join(item.spellings)}")
        forms.setdefault(form_id, {})[version] = _form(item, form_id, canonical if alias else None)
        if item.topic is not None and not alias:
            topics[form_id] = item.topic
    variables = {n: {v: f for v, f in held.items() if v != version} for n, held in known.env.items()}
    for read in env:
        form = EnvForm("", read.type, read.default, read.computed, read.deprecated)
        variables.setdefault(read.name, {})[version] = form
    forms = _renamed(forms, renames)
    return Catalogue(tuple(releases), forms, variables, topics, tuple(renames[o] for o in sorted(renames)))


def _new_release(others: list[Release], release: Release) -> Release:
    """A release from before the first one that has rules has none either: rules hold from a release on."""
    with_rules = [Version(r.version) for r in others if r.rules]
    early = bool(with_rules) and Version(release.version) < min(with_rules)
    return Release(release.version, release.date, rules=not early)


def _primary(registered: tuple[Registered, ...]) -> dict[str, Registered]:
    """The argument that owns each value: a current spelling before a retired one, its namesake before others."""
    found: dict[str, Registered] = {}
    for item in sorted(registered, key=lambda r: (r.deprecated is not None, _spelled(r) != r.dest)):
        found.setdefault(item.dest, item)
    return found


def _spelled(item: Registered) -> str:
    long = next((s for s in item.spellings if s.startswith("--")), item.spellings[0])
    return long.lstrip("-").replace("-", "_")


def _form(item: Registered, form_id: str, into: str | None) -> FlagForm:
    values = {n: getattr(item, n) for n in FlagForm.__struct_fields__ if n not in {"versions", "dest", "into"}}
    told = item.dest == form_id == _spelled(item)
    return FlagForm(versions="", dest=None if told else item.dest, into=into, **values)


def _canonical(dest: str, renames: Mapping[str, Rename]) -> str:
    while dest in renames:
        dest = renames[dest].id
    return dest


def _detected(
    forms: Mapping[str, Mapping[str, FlagForm]],
    before: str,
    version: str,
    registered: tuple[Registered, ...],
    primary: Mapping[str, Registered],
) -> Iterable[Rename]:
    """Values that changed their name between two releases while a spelling shows that they are the same.

    Either a spelling of the old owner belongs to the new one, or the old name became an alias that hands its value on.
    """
    for form_id, held in forms.items():
        form = held.get(before)
        if form is None or form.into is not None:
            continue
        old = form.dest or form_id
        if old in primary:
            continue
        for item in registered:
            owner = primary[item.dest] is item
            shares = owner and set(item.spellings) & set(form.spellings)
            handed = not owner and _spelled(item) == old and item.action in _SAME_VALUE
            if shares or handed:
                where = Source(release=version, file=_FILE, symbol=item.dest)
                yield Rename(old, item.dest, version, (where,))
                break


def _renamed(forms: Mapping[str, dict[str, FlagForm]], renames: Mapping[str, Rename]) -> dict[str, dict[str, FlagForm]]:
    """Move values under an old name to the canonical id; their own name stays as `dest`."""
    found: dict[str, dict[str, FlagForm]] = {}
    for form_id, held in forms.items():
        for version, form in held.items():
            target = form_id if form.into is not None else _canonical(form_id, renames)
            if target != form_id:
                form = msgspec.structs.replace(form, dest=form.dest or form_id)
            elif form.into is not None:
                form = msgspec.structs.replace(form, into=_canonical(form.into, renames))
            found.setdefault(target, {})[version] = form
    return {i: found[i] for i in sorted(found) if found[i]}


def ranges(catalogue: Catalogue) -> tuple[tuple[Flag, ...], tuple[EnvVar, ...]]:
    """Flags and variables with adjacent equal releases folded into ranges; the newest range stays open."""
    versions = [r.version for r in catalogue.releases]
    flags = tuple(Flag(i, tuple(_folded(held, versions))) for i, held in catalogue.flags.items())
    env = tuple(EnvVar(n, tuple(_folded(held, versions))) for n, held in sorted(catalogue.env.items()) if held)
    return flags, env


def _folded(held: Mapping[str, Any], versions: list[str]) -> Iterable[Any]:
    start, form = "", None
    for version in [*versions, ""]:
        current = held.get(version)
        if form is not None and (current != form or not version):
            yield msgspec.structs.replace(form, versions=f">={start}" + (f",<{version}" if version else ""))
        if current != form:
            start, form = version, current


def topic_of(catalogue: Catalogue, flag: Flag) -> str:
    """File that a flag belongs in: its namespace in the newest release, or `retired` when that release lacks it."""
    newest = catalogue.releases[-1].version
    form = catalogue.flags[flag.id].get(newest)
    if form is None or form.into is not None:
        return RETIRED
    return catalogue.topics.get(flag.id, "command").replace(".", "-")
