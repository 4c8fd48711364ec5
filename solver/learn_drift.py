"""The catalogue with one release more -> `Drift`: what that release changed against the one before it.

Flags are compared under their canonical ids, so that a renamed flag is one change and not a removal and an addition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from packaging.version import Version

from solver.learn_merge import Catalogue
from solver.records import FlagForm


class Change(msgspec.Struct, frozen=True):
    """One difference. `what`: added, removed, renamed (the old name is gone), deprecated, or a key of the form."""

    what: str
    name: str
    before: Any = None
    after: Any = None


class Drift(msgspec.Struct, frozen=True):
    """What changed between two neighbouring releases. `before` is None for the first release of a catalogue."""

    before: str | None
    release: str
    flags: tuple[Change, ...] = ()
    env: tuple[Change, ...] = ()


def drift(catalogue: Catalogue, release: str) -> Drift:
    """The changes of one release of the catalogue against the release before it."""
    older = [r.version for r in catalogue.releases if Version(r.version) < Version(release)]
    if not older:
        return Drift(None, release)
    before = older[-1]
    flags = (c for held in catalogue.flags.values() for c in _flag_changes(held.get(before), held.get(release)))
    env = (
        c for n, held in sorted(catalogue.env.items()) for c in _changes(n, held.get(before), held.get(release), _ENV)
    )
    return Drift(before, release, tuple(flags), tuple(env))


_FLAG = ("type", "nargs", "choices", "default", "const", "required", "refused")
_ENV = ("type", "default")


def _flag_changes(before: FlagForm | None, after: FlagForm | None) -> Iterator[Change]:
    if before is not None and after is not None and set(before.spellings) != set(after.spellings):
        what = "spellings" if _name(before) in after.spellings else "renamed"
        yield Change(what, _name(after), " ".join(before.spellings), " ".join(after.spellings))
    form = after or before
    if form is not None:
        yield from _changes(_name(form), before, after, _FLAG)


def _changes(name: str, before: Any, after: Any, keys: tuple[str, ...]) -> Iterator[Change]:
    if before is None or after is None:
        if before is not after:
            yield Change("added" if before is None else "removed", name)
        return
    for key in keys:
        left, right = getattr(before, key), getattr(after, key)
        if left != right or type(left) is not type(right):
            yield Change(key, name, left, right)
    if after.deprecated and not before.deprecated:
        yield Change("deprecated", name, None, after.deprecated)


def _name(form: FlagForm) -> str:
    return next((s for s in form.spellings if s.startswith("--")), form.spellings[0])


def drift_lines(found: Drift) -> Iterator[str]:
    """The drift in words, one change a line."""
    if found.before is None:
        yield f"{found.release} is the oldest release here, so there is nothing to compare it with"
        return
    yield f"{found.release} against {found.before}:"
    for title, changes in (("flags", found.flags), ("variables", found.env)):
        yield f"  {title}: {_counts(changes)}"
        yield from (f"    {_said(change)}" for change in changes)


def _counts(changes: tuple[Change, ...]) -> str:
    counts: dict[str, int] = {}
    for change in changes:
        counts[change.what] = counts.get(change.what, 0) + 1
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "no change"


def _said(change: Change) -> str:
    match change.what:
        case "added" | "removed":
            return f"{change.what}  {change.name}"
        case "renamed":
            return f"renamed  {change.before} -> {change.after}"
        case "deprecated":
            return f"deprecated  {change.name}, write {change.after}"
        case "choices" if isinstance(change.before, tuple) and isinstance(change.after, tuple):
            more = [f"+{c}" for c in change.after if c not in change.before]
            less = [f"-{c}" for c in change.before if c not in change.after]
            return f"choices  {change.name}: {' '.join([*more, *less]) or 'another order'}"
    return f"{change.what}  {change.name}: {_shown(change.before)} -> {_shown(change.after)}"


def _shown(value: Any) -> str:
    return "unset" if value is None else str(value)


def as_data(found: Drift) -> Mapping[str, Any]:
    """The drift as plain data."""
    data: dict[str, Any] = msgspec.to_builtins(found)
    return data
