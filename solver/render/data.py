"""Results -> plain JSON data (the stable form that docs/json.md describes)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from solver import __version__
from solver.check import Resolved, Result
from solver.compiled import Program
from solver.context import Context
from solver.facts import make_room
from solver.findings import spelling
from solver.handoff.command import argv_of, shell_of
from solver.records import Fact, Finding, Fix, Known, Severity, Source, Stage
from solver.render.evidence_data import EvidenceData, evidence_data

if TYPE_CHECKING:
    from solver.conflict import Impossible, Member
    from solver.repairs import Repair
    from solver.solve import Point, Reason, Solution

SCHEMA = "flagwise/1"


def dumps(data: Any) -> str:
    """JSON text, the same bytes for the same data."""
    return json.dumps(data, ensure_ascii=False, indent=2, default=_other)


def line(row_id: Any, data: Any) -> str:
    """A line of JSON: the fields of a record or mapping, after the `id` of the line it answers."""
    encode = msgspec.json.encode
    if type(data) is ResultData:
        data = msgspec.structs.replace(data, findings=tuple([_encoded(finding) for finding in data.findings]))
    return f'{{"id":{encode(row_id).decode()},{encode(data)[1:].decode()}\n'


_texts: dict[int, tuple[FindingData, msgspec.Raw]] = {}


def _encoded(finding: FindingData) -> Any:
    """A finding as JSON, where launches of a batch share it."""
    if finding.span is not None:  # in one command
        return finding
    kept = _texts.get(id(finding))
    if kept is None:
        make_room(_texts)
        kept = _texts[id(finding)] = (finding, msgspec.Raw(msgspec.json.encode(finding)))
    return kept[1]


def _other(value: Any) -> Any:
    return msgspec.to_builtins(value)


class Engine(msgspec.Struct, frozen=True):
    """The engine and the release a launch is judged by; `from`: given, image, installed or assumed."""

    name: str
    version: str
    source: str = msgspec.field(name="from")


class FixData(msgspec.Struct, frozen=True, omit_defaults=True):
    """One way out, in the release's spellings."""

    set: dict[str, Any] = {}
    remove: tuple[str, ...] = ()
    env: dict[str, str] = {}
    upgrade: str | None = None
    checkpoint: str | None = None
    cost: str | None = None


class FindingData(msgspec.Struct, frozen=True):
    """A rule that fired. `span`: offsets in the command text, end exclusive."""

    rule: str
    severity: Severity
    stage: Stage
    status: Known
    title: str
    flags: tuple[str, ...]
    env: tuple[str, ...]
    message: str
    because: tuple[Fact, ...]
    conditional_on: tuple[str, ...]
    after: str | None
    span: tuple[int, int] | None
    fixes: tuple[FixData, ...]
    sources: tuple[Source, ...]


class AssumedData(msgspec.Struct, frozen=True):
    """What was not stated and had to be taken from elsewhere."""

    what: str
    value: str
    why: str


class ResultData(msgspec.Struct, frozen=True):
    """What `validate --format json` prints, and each line of `--batch` (there with the line's `id`)."""

    schema: str
    flagwise: str
    knowledge: str
    engine: Engine
    model: str | None
    hardware: str | None
    verdict: Literal["valid", "conditional", "invalid"]
    findings: tuple[FindingData, ...]
    resolved: dict[str, Resolved]
    evidence: EvidenceData | None
    assumed: tuple[AssumedData, ...]


def json_schema() -> dict[str, Any]:
    """The JSON schema of `ResultData`."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(ResultData)}


def result_data(context: Context, result: Result) -> ResultData:
    """The JSON result of `validate`."""
    program = context.resolver.program
    return ResultData(
        **head(context),
        verdict=result.verdict,
        findings=tuple([finding_data(f, program) for f in result.findings]),
        resolved=result.resolved,
        evidence=evidence_data(context, result),
        assumed=assumed_data(context),
    )


def head(context: Context) -> dict[str, Any]:
    """What every result begins with: who judged by what."""
    return {
        "schema": SCHEMA,
        "flagwise": __version__,
        "knowledge": context.index.hash,
        "engine": Engine("sglang", context.release, context.release_from),
        "model": context.model_name,
        "hardware": context.hardware_name,
    }


def assumed_data(context: Context) -> tuple[AssumedData, ...]:
    """What was not stated."""
    return tuple(AssumedData(a.what, a.value, a.why) for a in context.assumed)


_kept: dict[int, tuple[Finding, FindingData]] = {}


def finding_data(finding: Finding, program: Program) -> FindingData:
    """One finding; launches of a batch share those that read the same."""
    if finding.span is not None:  # in one command
        return _finding_data(finding, program)
    kept = _kept.get(id(finding))
    if kept is None:
        make_room(_kept)
        kept = _kept[id(finding)] = (finding, _finding_data(finding, program))  # with it, so that its id stays its own
    return kept[1]


def _finding_data(finding: Finding, program: Program) -> FindingData:
    return FindingData(
        rule=finding.rule,
        severity=finding.severity,
        stage=finding.stage,
        status=finding.status,
        title=finding.title,
        flags=finding.flags,
        env=finding.env,
        message=finding.message,
        because=finding.because,
        conditional_on=finding.conditional_on,
        after=finding.after,
        span=(finding.span.start, finding.span.end) if finding.span else None,
        fixes=tuple([fix_data(f, program) for f in finding.fixes]),
        sources=finding.sources,
    )


def fix_data(fix: Fix, program: Program) -> FixData:
    """One fix: what to set (null: remove), which variables, what else."""
    return FixData(
        set={spelling(program, n): v for n, v in fix.set.items() if v is not None},
        remove=tuple(_named(program, n) for n in (*fix.unset, *(n for n, v in fix.set.items() if v is None))),
        env={n: str(v) for n, v in fix.env.items()},
        upgrade=fix.upgrade,
        checkpoint=fix.checkpoint,
        cost=fix.cost,
    )


def _named(program: Program, name: str) -> str:
    return name if name.startswith("-") or name.isupper() else spelling(program, name)


# --------------------------------------------------------------------- solve


def solution_data(context: Context, goal: str, answer: Solution) -> dict[str, Any]:
    """The JSON result of `solve` with a solution."""
    program = context.resolver.program
    return {
        **head(context),
        "goal": goal,
        **emit_data(context, answer),
        "findings": [finding_data(f, program) for f in answer.result.findings],
        "evidence": evidence_data(msgspec.structs.replace(context, facts=answer.facts), answer.result),
        "assumed": assumed_data(context),
    }


def emit_data(context: Context, answer: Solution) -> dict[str, Any]:
    """The solution itself: what `--emit json` prints."""
    program = context.resolver.program
    argv = argv_of(answer.given, program.flags)
    return {
        "argv": list(argv),
        "env": dict(sorted(answer.env.items())),
        "shell": shell_of(argv, answer.env),
        "objective": {
            "levels": [{"title": lv.title, "value": c} for lv, c in zip(answer.levels, answer.costs, strict=True)],
            "before": answer.before,
            "after": answer.after,
        },
        "proven": answer.proven,
        "reasons": [reason_data(r, program) for r in answer.reasons],
        "alternatives": [point_data(p, program) for p in answer.alternatives],
    }


def reason_data(reason: Reason, program: Program) -> dict[str, Any]:
    """Why one flag or variable is there."""
    return {
        "flag": shown(reason.flag, program),
        "value": reason.value,
        "kind": reason.kind,
        "by": reason.by,
        "text": reason.text,
    }


def shown(key: str, program: Program) -> str:
    """`flag.x` in the release's spelling; `env.X` as the variable."""
    space, name = key.split(".", 1)
    return name if space == "env" else spelling(program, name)


def point_data(point: Point, program: Program) -> dict[str, Any]:
    """One point of the trade-off."""
    return {
        "given": {spelling(program, n): v for n, v in point.given.items()},
        "metrics": point.metrics,
        "on_front": point.on_front,
    }


def impossible_data(context: Context, goal: str, answer: Impossible) -> dict[str, Any]:
    """The JSON result of `solve` without a solution."""
    return {
        **head(context),
        "goal": goal,
        "conflict": [member_data(m) for m in answer.members],
        "repairs": [repair_data(context, r) for r in answer.repairs],
    }


def member_data(member: Member) -> dict[str, Any]:
    """One line of a conflict."""
    return {"who": member.who, "text": member.text, "rule": member.rule}


def repair_data(context: Context, repair: Repair) -> dict[str, Any]:
    """One repair with its launch and metrics."""
    from solver.context import resolver_for

    program = resolver_for(context.store, repair.release).program
    return {
        "changes": list(repair.changes),
        "argv": list(argv_of(repair.given, program.flags)),
        "env": dict(sorted(repair.env.items())),
        "release": repair.release,
        "model": repair.model,
        "metrics": repair.metrics,
    }
