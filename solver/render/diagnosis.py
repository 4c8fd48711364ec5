"""A diagnosis -> lines for a terminal, or plain JSON data."""

from __future__ import annotations

from typing import Any

from solver.check import verdict_of
from solver.diagnosis import Diagnosis
from solver.handoff.command import argv_of, shell_of
from solver.log_guess import telling_line
from solver.records import Finding
from solver.render.data import assumed_data, dumps, finding_data, fix_data, head
from solver.render.text import finding_lines, fix_text, judged_by, paint, wrapped
from solver.words import listed

KINDS = {
    "cause": "first cause",
    "guess": "guess",
    "hint": "hint",
    "consequence": "no cause in this log, but a consequence of one",
}
BRIEF = 6
"""So many further findings of the command are named; `validate` shows them in full."""


def output(found: Diagnosis, form: str) -> str:
    """What `diagnose` prints."""
    return dumps(data(found)) if form == "json" else text(found)


# ---------------------------------------------------------------------- text


def text(found: Diagnosis) -> str:
    """The cause with its place, its finding, what else the log or the command shows, and the mended command."""
    lines = [_headline(found), f"  judged by {judged_by(found.context)}"]
    lines += [t for a in found.context.assumed for t in wrapped(f"assumed {a.what} {a.value}: {a.why}", "  ")]
    program = found.context.resolver.program
    if found.findings:
        lines += ["", *finding_lines(found.findings[0], program)]
    certain = [f for f in found.findings[1:] if not f.conditional_on and f.severity != "note"]
    if certain:
        lines += ["", "what else the log and the command show", *(_brief(f) for f in certain[:BRIEF])]
    if len(certain) > BRIEF:
        lines.append(f"  and {len(certain) - BRIEF} more; flagwise validate shows them")
    return "\n".join([*lines, *_repaired_lines(found)])


def _headline(found: Diagnosis) -> str:
    if not found.findings:
        return f"nothing known went wrong in these {found.lines} lines"
    if found.cause is None:
        return "the log shows no problem; from the command"
    word = paint(KINDS["guess" if found.guess else found.cause.role or "cause"], "error")
    event = found.cause.event
    phase = f", in the {found.cause.phase} phase" if found.cause.phase else ""
    rank = f", {event.rank}" if event.rank else ""
    return f"{word}: line {telling_line(found.cause)[0]} of {found.lines}{rank}{phase}"


def _brief(finding: Finding) -> str:
    about = " ".join((*finding.flags, *finding.env))
    return f"  {paint(finding.severity, finding.severity)}[{finding.rule}] {finding.title}" + (
        f" ({about})" if about else ""
    )


def _repaired_lines(found: Diagnosis) -> list[str]:
    """The mended command with what was done to it, as far as it could be done."""
    if found.repaired is None:
        return []
    program = found.context.resolver.program
    shell = shell_of(argv_of(found.repaired.facts.given, program.flags), found.repaired.facts.env)
    lines = ["", "repaired command", *shell.split("\n")]
    for rule, fix in found.repaired.applied:
        lines += wrapped(f"{rule}: {fix_text(fix, program)}", "  ")
    if found.repaired.left:
        lines += wrapped(f"still to be mended by hand: {listed(found.repaired.left)}", "  ")
    return lines


# ---------------------------------------------------------------------- data


def data(found: Diagnosis) -> dict[str, Any]:
    """The JSON result: `findings` as in `validate` with the first cause first, and what was read from the log."""
    program = found.context.resolver.program
    return {
        **head(found.context),
        "verdict": verdict_of(found.findings),
        "guess": found.guess,
        "cause": _cause_data(found),
        "findings": [finding_data(f, program) for f in found.findings],
        "log": {
            "lines": found.lines,
            "ranks": list(found.facts.ranks),
            "release": found.facts.release,
            "model": found.facts.model,
            "gpu": found.facts.gpu,
            "arguments": found.facts.arguments,
        },
        "repaired": _repaired_data(found),
        "assumed": assumed_data(found.context),
    }


def _cause_data(found: Diagnosis) -> dict[str, Any] | None:
    if found.cause is None:
        return None
    event, signature = found.cause.event, found.cause.signature
    raised = next((r for r in event.raised if r.kind), None)
    return {
        "line": telling_line(found.cause)[0],
        "rank": event.rank,
        "phase": found.cause.phase,
        "signature": signature.id if signature else None,
        "exception": raised.kind if raised else None,
        "frames": [{"file": f.file, "function": f.function} for f in event.frames[:BRIEF]],
    }


def _repaired_data(found: Diagnosis) -> dict[str, Any] | None:
    if found.repaired is None:
        return None
    program, facts = found.context.resolver.program, found.repaired.facts
    argv = argv_of(facts.given, program.flags)
    return {
        "argv": list(argv),
        "env": dict(sorted(facts.env.items())),
        "shell": shell_of(argv, facts.env),
        "applied": [{"rule": rule, "fix": fix_data(fix, program)} for rule, fix in found.repaired.applied],
        "left": list(found.repaired.left),
    }
