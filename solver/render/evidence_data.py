"""What is on record about a launch -> plain JSON data (the key `evidence` of docs/json.md)."""

from __future__ import annotations

from typing import Any

import msgspec

from solver.check import Result
from solver.compiled import Program
from solver.context import Context
from solver.decisions import Resolver
from solver.evidence import Difference, Nearest, Scope, support_of
from solver.facts import key_of, make_room
from solver.render.evidence import named, typed


class DifferenceData(msgspec.Struct, frozen=True):
    """A flag or variable in which a launch and a record differ; null: left out."""

    flag: str
    here: Any
    there: Any


class NearestData(msgspec.Struct, frozen=True):
    """A launch on record. `dated`: its release was worked out; `differs`, `amounts`: its other choices and amounts."""

    id: str
    kind: str
    release: str
    dated: bool
    model: str
    hardware: str
    source: str
    note: str | None
    differs: tuple[DifferenceData, ...]
    amounts: tuple[DifferenceData, ...]


class PairData(msgspec.Struct, frozen=True):
    """Two choices of the launch, and the record on this kind of machine (with its release) that makes both, or null."""

    choices: tuple[str, str]
    record: str | None
    release: str | None


class EvidenceData(msgspec.Struct, frozen=True):
    """What is on record about a launch. `ran`: these choices ran for this model on this kind of machine."""

    architecture: str
    machine: str | None
    scope: Scope
    records: int
    ran: bool
    nearest: NearestData | None
    unseen: tuple[str, ...]
    pairs: tuple[PairData, ...]


def evidence_data(context: Context, result: Result) -> EvidenceData | None:
    """What is on record about a launch; null while the model's architecture is not known."""
    support = support_of(context, result)
    if support is None:
        return None
    program = context.resolver.program
    choices = {name: _typed(name, value, context.resolver) for name, value in support.choices.items()}
    return EvidenceData(
        architecture=support.architecture,
        machine=support.machine,
        scope=support.scope,
        records=support.records,
        ran=support.ran,
        nearest=_nearest(support.nearest, program) if support.nearest else None,
        unseen=tuple([choices[name] for name in support.unseen]),
        pairs=tuple(
            [
                PairData((choices[a], choices[b]), r.id if r else None, r.release if r else None)
                for a, b, r in support.pairs
            ]
        ),
    )


def _typed(name: str, value: Any, resolver: Resolver) -> str:
    """A choice as one types it; launches make the same ones again."""
    key = (name, key_of(value))
    words = resolver.typed.get(key)
    if words is None:
        make_room(resolver.typed)
        words = resolver.typed[key] = typed(name, value, resolver.program)
    return words


def _nearest(near: Nearest, program: Program) -> NearestData:
    ran = near.ran
    return NearestData(
        *(ran.id, ran.kind, ran.release, ran.dated, ran.model, ran.hardware, ran.source, ran.note),
        differs=_differences(near.differs, program),
        amounts=_differences(near.amounts, program),
    )


def _differences(found: tuple[Difference, ...], program: Program) -> tuple[DifferenceData, ...]:
    return tuple([DifferenceData(named(d.flag, program), d.here, d.there) for d in found])
