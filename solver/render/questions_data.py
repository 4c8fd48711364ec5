"""Answers to the questions about a solution -> plain JSON data, as docs/solve.md describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from solver.compiled import Program
from solver.context import Context
from solver.front import Front
from solver.handoff.command import argv_of, shell_of
from solver.records import Fact
from solver.render.data import member_data, repair_data, shown
from solver.rivals import LevelChange, Moved, Rival
from solver.why import Cause, Other, Why
from solver.why_not import WhyNot

if TYPE_CHECKING:
    from solver.questions import Answers


def answers_data(context: Context, answers: Answers) -> dict[str, Any]:
    """One key for each kind of question that was asked."""
    program = context.resolver.program
    data: dict[str, Any] = {}
    if answers.why:
        data["why"] = [why_data(w, program) for w in answers.why]
    if answers.why_not:
        data["why_not"] = [why_not_data(context, w) for w in answers.why_not]
    if answers.best:
        data["top"] = {"complete": len(answers.best) < answers.asked_for, "answers": _ranked(answers, program)}
    if answers.front is not None:
        data["front"] = front_data(answers.front, program)
    return data


def _ranked(answers: Answers, program: Program) -> list[dict[str, Any]]:
    return [{"place": place, **rival_data(r, program)} for place, r in enumerate(answers.best, 1)]


def why_data(why: Why, program: Program) -> dict[str, Any]:
    """The chain of reasons of one flag."""
    return {
        "flag": shown(why.key, program),
        "given": why.given,
        "in_force": why.in_force,
        "kind": why.kind,
        "by": why.by,
        "text": why.text,
        "causes": [_cause(c) for c in why.causes],
        "others": [_other(o) for o in why.others],
        "rests_on": [why_data(w, program) for w in why.rests_on],
    }


def _cause(cause: Cause) -> dict[str, Any]:
    change = {"before": cause.before, "after": cause.after} if cause.writes else {}
    does = "writes" if cause.writes else "refuses"
    because = [_fact(f) for f in cause.because]
    return {"rule": cause.rule, "does": does, "title": cause.title, "because": because, **change}


def _fact(fact: Fact) -> dict[str, Any]:
    return {"name": fact.name, "value": fact.value, "origin": fact.origin}


def _other(other: Other) -> dict[str, Any]:
    worse = level_data(other.level) if other.level else None
    return {"value": other.value, "possible": other.possible, "refused": list(other.refused), "worse": worse}


def why_not_data(context: Context, found: WhyNot) -> dict[str, Any]:
    """What would have to give, and what it would cost."""
    program = context.resolver.program
    conflict = found.conflict
    return {
        "asked": found.demand.text,
        "status": found.status,
        "by": found.by,
        "pin": found.pin,
        "unasked": found.unasked,
        "launch": rival_data(found.cost, program) if found.cost else None,
        "conflict": [member_data(m) for m in conflict.members] if conflict else None,
        "repairs": [repair_data(context, r) for r in conflict.repairs] if conflict else None,
    }


def rival_data(rival: Rival, program: Program) -> dict[str, Any]:
    """Another launch with how it differs from the answer."""
    argv = argv_of(rival.facts.given, program.flags)
    return {
        "argv": list(argv),
        "env": dict(sorted(rival.facts.env.items())),
        "shell": shell_of(argv, rival.facts.env),
        "flags": [_moved(m, program) for m in rival.flags],
        "in_force": [_moved(m, program) for m in rival.effects],
        "levels": [level_data(c) for c in rival.levels],
        "decided": rival.decided,
        "better": rival.better,
        "metrics": rival.metrics,
        "gained": list(rival.gained),
        "lost": list(rival.lost),
    }


def _moved(moved: Moved, program: Program) -> dict[str, Any]:
    return {"flag": shown(moved.key, program), "before": moved.before, "after": moved.after}


def level_data(change: LevelChange) -> dict[str, Any]:
    """One level, before and after."""
    values = {"before": change.before, "after": change.after, "difference": change.difference}
    return {"title": change.title, **values, "worse": change.worse, "rules": list(change.rules)}


def front_data(front: Front, program: Program) -> dict[str, Any]:
    """The front with the launch behind each point."""
    names = [m.id for m in front.metrics]
    points = [
        {"values": dict(zip(names, p.values, strict=True)), "answer": p.is_answer, **rival_data(p.launch, program)}
        for p in front.points
    ]
    metrics = [{"id": m.id, "title": m.title, "better": "more" if m.maximised else "less"} for m in front.metrics]
    place = dict(zip(names, front.answer, strict=True)) if front.answer else None
    return {
        "metrics": metrics,
        "answer": place,
        "proven": True,
        "points": points,
        "others": [list(p) for p in front.others],
    }
