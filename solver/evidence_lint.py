"""Evidence records + rules -> complaints: records that cannot be read, and rules that contradict what ran."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

from solver.context import Options, build, check_context
from solver.errors import RequestError
from solver.knowledge import Knowledge
from solver.launch import read_argv
from solver.records import Evidence
from solver.store import Store

HUB = "--model-path="


def evidence_complaints(knowledge: Knowledge, store: Store, only: str | None = None) -> list[str]:
    """All complaints about evidence. `only` limits them to ids that contain it."""
    found = [f"evidence: {c}" for c in (*_repeated(knowledge), *_compare(knowledge))]
    for record in knowledge.evidence:
        if not only or only in record.id:
            found += [f"{record.id}: {c}" for c in (*_source(record), *contradictions(store, record))]
    return found


def _repeated(knowledge: Knowledge) -> Iterator[str]:
    ids = Counter(e.id for e in knowledge.evidence)
    yield from (f"{name} stands {count} times" for name, count in ids.items() if count > 1)


def _compare(knowledge: Knowledge) -> Iterator[str]:
    how = knowledge.compare
    for name in (*how.incidental, *how.amounts, *how.jobs, *how.same):
        known = name[4:] in knowledge.env if name.startswith("env.") else name in knowledge.flags
        if not known:
            yield f"compare.yaml names the unknown {name}"


def _source(record: Evidence) -> Iterator[str]:
    if not record.source.url:
        yield "a record needs a source with a url"


def contradictions(store: Store, record: Evidence) -> Iterator[str]:
    """The unconditional errors that the rules find in a launch that ran, and what its release cannot read."""
    launch = read_argv([HUB + record.model, *shlex.split(record.args)], env=record.env)
    options = Options(model=record.model, hardware=record.hardware, engine_version=record.release)
    try:
        context = build(store, launch, options)
    except RequestError as error:
        yield str(error)
        return
    for finding in check_context(context).findings:
        if finding.severity == "error" and not finding.conditional_on and not finding.after:
            yield f"ran under {context.release}, and {finding.rule} says: {finding.message}"
