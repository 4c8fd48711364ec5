"""A launch + the launches on record for its model's architecture -> whether it ran, what ran nearest, what never."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from solver.facts import typed_env

if TYPE_CHECKING:
    from solver.check import Resolved, Result
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


class Part(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """The evidence of one architecture, and how to compare with it. `jobs`: flags that say what a server does."""

    incidental: frozenset[str]
    amounts: frozenset[str]
    jobs: tuple[str, ...]
    same: dict[str, dict[str, Any]]
    records: tuple[Ran, ...]

    def job(self, choices: Mapping[str, Any]) -> str:
        """What a server with these choices does."""
        return repr([choices.get(name) for name in self.jobs])

    @cached_property
    def _by_job(self) -> dict[str, list[Ran]]:
        found: dict[str, list[Ran]] = {}
        for ran in self.records:
            found.setdefault(self.job(ran.choices), []).append(ran)
        return found

    def same_job(self, choices: Mapping[str, Any]) -> Sequence[Ran]:
        """The records of servers that do what one with these choices does."""
        return self._by_job.get(self.job(choices), ())


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
    values = [(name, value, flags[name].default) for name, value in given.items() if name in flags]
    for name, text in env.items():
        if name in variables:
            values.append((f"env.{name}", typed_env(variables[name], text), variables[name].default))
    choices: dict[str, Any] = {}
    amounts: dict[str, Any] = {}
    incidental, same = how.incidental, how.same
    for name, value, default in values:
        if value is not None and value != default and name not in incidental:
            one = same[name].get(value, value) if name in same and isinstance(value, str) else value
            (amounts if name in how.amounts else choices)[name] = one
    return choices, amounts


def machine_of(hardware: Mapping[str, Any]) -> str | None:
    """The kind of a machine: its SM, or the gfx name."""
    return f"SM{hardware['sm']}" if hardware.get("sm") else hardware.get("gfx")


def in_scope(records: Iterable[Ran], model: str | None, machine: str | None) -> tuple[Scope, tuple[Ran, ...]]:
    """The closest kind of record there is: this kind of machine before others, the model before its architecture."""
    kept = tuple(records)
    here = tuple([r for r in kept if r.machine == machine])
    if here:
        same = tuple([r for r in here if r.model == model])
        return ("model and machine", same) if same else ("architecture and machine", here)
    same = tuple([r for r in kept if r.model == model])
    return ("model", same) if same else ("architecture", kept)


def differences(
    here: Mapping[str, Any], there: Mapping[str, Any], resolved: Mapping[str, Resolved]
) -> tuple[Difference, ...]:
    """What differs. A value that the launch leaves out and the engine takes by itself is no difference."""
    return tuple([Difference(n, here.get(n), there.get(n)) for n in sorted(_differing(here, there, resolved))])


def _differing(here: Mapping[str, Any], there: Mapping[str, Any], resolved: Mapping[str, Resolved]) -> list[str]:
    found = []
    for name, value in here.items():
        if there.get(name) != value:
            found.append(name)
    for name, value in there.items():
        if name not in here:
            end = resolved.get(name)
            if (end.value if end is not None else None) != value:
                found.append(name)
    return found


class Shelf:
    """The records of one architecture on one kind of machine, those of the nearest releases first."""

    def __init__(self, part: Part, machine: str | None, order: Mapping[str, int], release: str) -> None:
        here = order.get(release, 0)
        self.part, self._machine = part, machine
        self._nearest = sorted(part.records, key=lambda r: (abs(order.get(r.release, 0) - here), r.id))
        self.same_kind = [r for r in self._nearest if machine is None or r.machine == machine]
        self._compared: dict[tuple[str | None, str], tuple[Scope, tuple[Ran, ...]]] = {}

    @cached_property
    def _makers(self) -> dict[str, list[tuple[Any, int]]]:
        found: dict[str, list[tuple[Any, int]]] = {}
        for place, ran in enumerate(self.same_kind):
            for name, value in ran.choices.items():
                found.setdefault(name, []).append((value, 1 << place))
        return found

    @cached_property
    def _of_model(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for place, ran in enumerate(self.same_kind):
            found[ran.model] = found.get(ran.model, 0) | 1 << place
        return found

    def makers(self, name: str, value: Any) -> int:
        """The records of this kind of machine that make a choice, as a bit mask."""
        return sum([bit for made, bit in self._makers.get(name, ()) if made == value])

    def first(self, mask: int, model: str | None) -> Ran | None:
        """The first of the records whose bit is set, those of a model before others."""
        mask = mask & self._of_model.get(model or "", 0) or mask
        return self.same_kind[(mask & -mask).bit_length() - 1] if mask else None

    def compared(self, choices: Mapping[str, Any], model: str | None) -> tuple[Scope, tuple[Ran, ...]]:
        """The records that a launch is held against: of servers that do its job if there are any."""
        key = (model, self.part.job(choices))
        if key not in self._compared:
            doing = {r.id for r in self.part.same_job(choices)}
            records = [r for r in self._nearest if r.id in doing] if doing else self._nearest
            self._compared[key] = in_scope(records, model, self._machine)
        return self._compared[key]


def support_of(context: Context, result: Result) -> Support | None:
    """What is on record about a checked launch. None while the model's architecture is not known."""
    architecture = context.facts.model.get("architecture")
    if not isinstance(architecture, str):
        return None
    program, facts = context.resolver.program, context.facts
    machine = machine_of(facts.hardware)
    model = facts.model.get("id")
    shelf = context.index.shelf(architecture, machine, context.release)
    choices, amounts = split(facts.given, facts.env, program.flags, program.env, shelf.part)
    resolved = result.resolved
    scope, records = shelf.compared(choices, model)
    near = _least(_least(records, choices, "choices", resolved), amounts, "amounts", resolved)
    makers = {n: shelf.makers(n, v) for n, v in choices.items()}
    occurring = [n for n in choices if makers[n]]
    return Support(
        architecture=architecture,
        machine=machine,
        scope=scope,
        records=len(records),
        nearest=_nearest(near[0], choices, amounts, resolved) if near else None,
        choices=choices,
        unseen=tuple([n for n in choices if not makers[n]]) if shelf.same_kind else (),
        pairs=tuple([(a, b, shelf.first(makers[a] & makers[b], model)) for a, b in combinations(occurring, 2)]),
    )


def _least(
    records: Sequence[Ran],
    here: Mapping[str, Any],
    part: Literal["choices", "amounts"],
    resolved: Mapping[str, Resolved],
) -> Sequence[Ran]:
    """Those with the fewest differences, in their order."""
    if len(records) < 2:
        return records
    counts = [len(_differing(here, getattr(ran, part), resolved)) for ran in records]
    least = min(counts)
    return [ran for ran, count in zip(records, counts, strict=True) if count == least]


def _nearest(
    ran: Ran, choices: Mapping[str, Any], amounts: Mapping[str, Any], resolved: Mapping[str, Resolved]
) -> Nearest:
    return Nearest(ran, differences(choices, ran.choices, resolved), differences(amounts, ran.amounts, resolved))
