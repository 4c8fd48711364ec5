"""A launch + the launches on record for its model's architecture -> whether it ran, what ran nearest, what never."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from solver.facts import typed_env

if TYPE_CHECKING:
    from solver.check import Result
    from solver.context import Context
    from solver.records import Compare, EnvForm, FlagForm

Scope = Literal["model and machine", "architecture and machine", "model", "architecture"]
"""What the records that a launch is held against share with it; machines are the same when SM or gfx are."""


class Ran(msgspec.Struct, frozen=True, array_like=True):
    """One launch on record. `choices` and `amounts`: flag id, or `env.NAME`, -> value, where it is not the default."""

    id: str
    kind: str
    release: str
    dated: bool
    model: str
    hardware: str
    machine: str
    choices: dict[str, Any]
    amounts: dict[str, Any]
    source: str
    note: str | None


class Part(msgspec.Struct, frozen=True, array_like=True):
    """The evidence of one architecture, and how to compare with it."""

    incidental: tuple[str, ...]
    amounts: tuple[str, ...]
    jobs: tuple[str, ...]
    same: dict[str, dict[str, Any]]
    records: tuple[Ran, ...]


class Difference(msgspec.Struct, frozen=True):
    """One flag (by id, or `env.NAME`) in which a launch and a record differ; null: left out."""

    flag: str
    here: Any
    there: Any


class Nearest(msgspec.Struct, frozen=True):
    """A record with its distance: choices that differ count, amounts are shown."""

    ran: Ran
    differs: tuple[Difference, ...]
    amounts: tuple[Difference, ...]


class Support(msgspec.Struct, frozen=True):
    """What is on record about a launch. `unseen` and `pairs` are about its architecture on this kind of machine.

    `unseen`: choices that no such record makes; `pairs`: each two of the others with the record that makes both (this
    model and the nearest release first), or None.
    """

    architecture: str
    machine: str | None
    scope: Scope
    records: int
    nearest: Nearest | None
    choices: dict[str, Any]
    unseen: tuple[str, ...]
    pairs: tuple[tuple[str, str, Ran | None], ...]

    @property
    def unseen_pairs(self) -> tuple[tuple[str, str], ...]:
        return tuple((one, other) for one, other, ran in self.pairs if ran is None)

    @property
    def ran(self) -> bool:
        """Whether these choices ran for this model on this kind of machine."""
        return self.scope == "model and machine" and bool(self.nearest and not self.nearest.differs)


def split(
    given: Mapping[str, Any], env: Mapping[str, str], flags: Mapping[str, FlagForm], variables: Mapping[str, EnvForm],
    how: Compare | Part,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """The choices and the amounts that a launch makes: what is incidental or equals the default is no choice."""
    values = {name: (value, flags[name].default) for name, value in given.items() if name in flags}
    for name, text in env.items():
        if name in variables:
            values[f"env.{name}"] = (typed_env(variables[name], text), variables[name].default)
    choices: dict[str, Any] = {}
    amounts: dict[str, Any] = {}
    for name, (value, default) in values.items():
        if value is not None and value != default and name not in how.incidental:
            one = how.same.get(name, {}).get(value, value) if isinstance(value, str) else value
            (amounts if name in how.amounts else choices)[name] = one
    return choices, amounts


def machine_of(hardware: Mapping[str, Any]) -> str | None:
    """The kind of a machine: its SM, or the gfx name."""
    return f"SM{hardware['sm']}" if hardware.get("sm") else hardware.get("gfx")


def in_scope(records: Iterable[Ran], model: str | None, machine: str | None) -> tuple[Scope, tuple[Ran, ...]]:
    """The closest kind of record there is: this kind of machine before others, the model before its architecture."""
    kept = tuple(records)
    kinds: tuple[tuple[Scope, tuple[Ran, ...]], ...] = (
        ("model and machine", tuple(r for r in kept if r.model == model and r.machine == machine)),
        ("architecture and machine", tuple(r for r in kept if r.machine == machine)),
        ("model", tuple(r for r in kept if r.model == model)),
        ("architecture", kept),
    )
    return next((kind for kind in kinds if kind[1]), kinds[-1])


def same_job(part: Part, choices: Mapping[str, Any]) -> tuple[Ran, ...]:
    """The records of servers that do what this one does."""
    wanted = [(name, choices.get(name)) for name in part.jobs]
    return tuple(r for r in part.records if wanted == [(name, r.choices.get(name)) for name in part.jobs])


def differences(
    here: Mapping[str, Any], there: Mapping[str, Any], effective: Mapping[str, Any]
) -> tuple[Difference, ...]:
    """What differs. A value that the launch leaves out and the engine takes by itself is no difference."""
    return tuple(
        Difference(name, here.get(name), there.get(name))
        for name in sorted({*here, *there})
        if here.get(name) != there.get(name) and (name in here or effective.get(name) != there[name])
    )


def support_of(context: Context, result: Result) -> Support | None:
    """What is on record about a checked launch. None while the model's architecture is not known."""
    architecture = context.facts.model.get("architecture")
    if not isinstance(architecture, str):
        return None
    part = context.index.evidence(architecture)
    program, facts = context.resolver.program, context.facts
    choices, amounts = split(facts.given, facts.env, program.flags, program.env, part)
    effective = {name: value.value for name, value in result.resolved.items()}
    machine = machine_of(facts.hardware)
    scope, records = in_scope(same_job(part, choices) or part.records, facts.model.get("id"), machine)
    order = context.index.release_order
    here = order.get(context.release, 0)

    def far(ran: Ran) -> int:
        return abs(order.get(ran.release, 0) - here)

    def distance(ran: Ran) -> tuple[int, int, int, str]:
        return (
            _count(choices, ran.choices, effective),
            _count(amounts, ran.amounts, effective),
            far(ran),
            ran.id,
        )

    near = min(records, key=distance, default=None)
    same_kind = [r for r in part.records if machine is None or r.machine == machine]
    same_kind.sort(key=lambda r: (r.model != facts.model.get("id"), far(r), r.id))
    makers = {n: _makers(n, v, same_kind) for n, v in choices.items()}
    occurring = [n for n in choices if makers[n]]
    return Support(
        architecture=architecture,
        machine=machine,
        scope=scope,
        records=len(records),
        nearest=_nearest(near, choices, amounts, effective) if near else None,
        choices=choices,
        unseen=tuple(n for n in choices if not makers[n]) if same_kind else (),
        pairs=tuple((a, b, _first(same_kind, makers[a] & makers[b])) for a, b in combinations(occurring, 2)),
    )


def _nearest(ran: Ran, choices: Mapping[str, Any], amounts: Mapping[str, Any], effective: Mapping[str, Any]) -> Nearest:
    return Nearest(ran, differences(choices, ran.choices, effective), differences(amounts, ran.amounts, effective))


def _count(here: Mapping[str, Any], there: Mapping[str, Any], effective: Mapping[str, Any]) -> int:
    """How many `differences` there are."""
    found = 0
    for name, value in here.items():
        if there.get(name) != value:
            found += 1
    for name, value in there.items():
        if name not in here and effective.get(name) != value:
            found += 1
    return found


def _makers(name: str, value: Any, records: Iterable[Ran]) -> int:
    """The records that make a choice, as a bit mask."""
    found = 0
    for place, ran in enumerate(records):
        if ran.choices.get(name) == value:
            found |= 1 << place
    return found


def _first(records: Sequence[Ran], mask: int) -> Ran | None:
    """The first of the records whose bit is set."""
    return records[(mask & -mask).bit_length() - 1] if mask else None
