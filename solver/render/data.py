"""Results -> plain JSON data (the stable form that docs/json.md describes)."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from solver.check import Result, spelling
from solver.compiled import Program
from solver.conflict import Impossible, Member, Repair
from solver.context import Context
from solver.handoff.command import argv_of, shell_of
from solver.records import Fact, Finding, Fix, Source
from solver.solve import Point, Reason, Solution

SCHEMA = "flagwise/1"


def dumps(data: Any) -> str:
    """JSON text, the same bytes for the same data."""
    return json.dumps(data, ensure_ascii=False, indent=2, default=_other)


def line(data: Any) -> str:
    """JSON on one line."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=_other)


def _other(value: Any) -> Any:
    return msgspec.to_builtins(value)


def result_data(context: Context, result: Result) -> dict[str, Any]:
    """The JSON result of `validate`."""
    program = context.resolver.program
    return {
        **_head(context),
        "verdict": result.verdict,
        "findings": [finding_data(f, program) for f in result.findings],
        "resolved": {
            name: {"value": r.value, "origin": r.origin, "because": list(r.because)}
            for name, r in sorted(result.resolved.items())
        },
        "assumed": [{"what": a.what, "value": a.value, "why": a.why} for a in context.assumed],
    }


def _head(context: Context) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "flagwise": version(),
        "knowledge": context.index.hash,
        "engine": {"name": "sglang", "version": context.release, "from": context.release_from},
        "model": context.model_name,
        "hardware": context.hardware_name,
    }


def version() -> str:
    """The installed version of flagwise."""
    from solver import __version__

    return __version__


def finding_data(finding: Finding, program: Program) -> dict[str, Any]:
    """One finding."""
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "stage": finding.stage,
        "status": finding.status,
        "title": finding.title,
        "flags": list(finding.flags),
        "env": list(finding.env),
        "message": finding.message,
        "because": [fact_data(f) for f in finding.because],
        "conditional_on": list(finding.conditional_on),
        "after": finding.after,
        "span": [finding.span.start, finding.span.end] if finding.span else None,
        "fixes": [fix_data(f, program) for f in finding.fixes],
        "sources": [source_data(s) for s in finding.sources],
    }


def fact_data(fact: Fact) -> dict[str, Any]:
    """One fact with its origin."""
    return {"name": fact.name, "value": fact.value, "origin": fact.origin}


def source_data(source: Source) -> dict[str, Any]:
    """One source, without empty keys."""
    return {k: v for k, v in msgspec.structs.asdict(source).items() if v is not None}


def fix_data(fix: Fix, program: Program) -> dict[str, Any]:
    """One fix, in the release's spellings: what to set (null: remove), which variables, what else."""
    data: dict[str, Any] = {
        "set": {spelling(program, n): v for n, v in fix.set.items() if v is not None},
        "remove": [_named(program, n) for n in (*fix.unset, *(n for n, v in fix.set.items() if v is None))],
        "env": {n: str(v) for n, v in fix.env.items()},
        "upgrade": fix.upgrade,
        "checkpoint": fix.checkpoint,
        "cost": fix.cost,
    }
    return {k: v for k, v in data.items() if v}


def _named(program: Program, name: str) -> str:
    return name if name.startswith("-") or name.isupper() else spelling(program, name)


# --------------------------------------------------------------------- solve


def solution_data(context: Context, goal: str, answer: Solution) -> dict[str, Any]:
    """The JSON result of `solve` with a solution."""
    program = context.resolver.program
    return {
        **_head(context),
        "goal": goal,
        **emit_data(context, answer),
        "findings": [finding_data(f, program) for f in answer.result.findings],
        "assumed": [{"what": a.what, "value": a.value, "why": a.why} for a in context.assumed],
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
    return {"given": {spelling(program, n): v for n, v in point.given.items()}, "metrics": point.metrics, "on_front": point.on_front}


def impossible_data(context: Context, goal: str, answer: Impossible) -> dict[str, Any]:
    """The JSON result of `solve` without a solution."""
    return {
        **_head(context),
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
