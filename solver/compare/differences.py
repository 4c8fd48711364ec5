"""Two accounts -> what differs, kind by kind. Plain data; nothing is judged here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from solver.compare.account import Account, Brief

HEAD = ("knowledge", "release", "model", "hardware", "verdict")


class Difference(msgspec.Struct, frozen=True):
    """One thing with its value on both sides; a side that does not have it has no value (left out in JSON)."""

    name: str
    before: Any | UnsetType = UNSET
    after: Any | UnsetType = UNSET


class Differences(msgspec.Struct, frozen=True):
    """All that differs. `head`: what the launches are judged by, and the verdict; `changed`: the same finding says
    something else (as it is after)."""

    head: tuple[Difference, ...]
    flags: tuple[Difference, ...]
    env: tuple[Difference, ...]
    effective: tuple[Difference, ...]
    traits: tuple[Difference, ...]
    rules: tuple[Difference, ...]
    metrics: tuple[Difference, ...]
    gained: tuple[Brief, ...]
    lost: tuple[Brief, ...]
    changed: tuple[Brief, ...]

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__struct_fields__)


def differences(before: Account, after: Account) -> Differences:
    """What differs between two launches, or between one launch then and now."""
    old, new = ({finding.key: finding for finding in account.findings} for account in (before, after))
    return Differences(
        head=tuple(_between({n: getattr(before, n) for n in HEAD}, {n: getattr(after, n) for n in HEAD})),
        flags=tuple(_between(before.flags, after.flags)),
        env=tuple(_between(before.env, after.env)),
        effective=tuple(_between(before.effective, after.effective)),
        traits=tuple(_between(before.traits, after.traits)),
        rules=tuple(_between(before.rules, after.rules)),
        metrics=tuple(_between(before.metrics, after.metrics)),
        gained=tuple(finding for key, finding in new.items() if key not in old),
        lost=tuple(finding for key, finding in old.items() if key not in new),
        changed=tuple(finding for key, finding in new.items() if key in old and finding != old[key]),
    )


def _between(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    for name in dict.fromkeys((*before, *after)):
        pair = (before.get(name, UNSET), after.get(name, UNSET))
        if pair[0] != pair[1] or type(pair[0]) is not type(pair[1]):
            yield Difference(name, *pair)
