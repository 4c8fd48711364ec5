"""Evidence records of a knowledge -> one part per architecture, with the arguments read as their release reads them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

from solver.errors import KnowledgeError, RequestError
from solver.evidence import Part, Ran, machine_of, split
from solver.launch import read_argv
from solver.reading import read_flags
from solver.traits.hardware import hardware_of
from solver.unknown import read_env

if TYPE_CHECKING:
    from solver.compiled import Program
    from solver.knowledge import Knowledge
    from solver.records import Evidence


def evidence_parts(knowledge: Knowledge, programs: Mapping[str, Program]) -> dict[str, Part]:
    """Architecture -> its part. Errors: KnowledgeError naming the record that cannot be read."""
    found: dict[str, list[Ran]] = {}
    for record in knowledge.evidence:
        if record.release not in programs or record.model not in knowledge.models:
            raise KnowledgeError(f"evidence {record.id}: unknown release {record.release} or model {record.model}")
        architecture = knowledge.models[record.model].traits["architecture"]
        found.setdefault(architecture, []).append(_ran(record, knowledge, programs[record.release]))
    how = knowledge.compare
    incidental, amounts = frozenset(how.incidental), frozenset(how.amounts)
    return {a: Part(incidental, amounts, how.jobs, how.same, tuple(records)) for a, records in found.items()}


def _ran(record: Evidence, knowledge: Knowledge, program: Program) -> Ran:
    try:
        hardware = hardware_of(record.hardware, knowledge.hardware)
    except RequestError as error:
        raise KnowledgeError(f"evidence {record.id}: {error}") from None
    launch = read_argv(shlex.split(record.args), env=record.env)
    given = read_flags(launch.words, program.flags).given
    choices, amounts = split(given, read_env(program, launch), program.flags, program.env, knowledge.compare)
    return Ran(
        id=record.id,
        kind=record.kind,
        release=record.release,
        dated=record.dated,
        model=record.model,
        hardware=record.hardware,
        machine=machine_of(hardware.traits) or "",
        choices=choices,
        amounts=amounts,
        source=record.source.url or "",
        note=record.note,
    )
