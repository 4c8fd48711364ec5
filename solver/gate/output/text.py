"""A report -> lines for people: each finding with its place and its line of the file, then a summary."""

from __future__ import annotations

from typing import Any

from solver.compiled import Program
from solver.gate.output import Programs
from solver.gate.report import Report, Reported
from solver.records import Finding
from solver.render.text import fix_text, paint, unknown_fact, wrapped
from solver.words import listed

SETTLES = {"machine": "hardware=", "model": "model=", "command": "a written value", "release": "release="}


def output(report: Report, shown: list[Reported], on_unknown: bool, programs: Programs) -> str:
    """The report as text."""
    lines: list[str] = []
    bodies: dict[tuple[int, int], list[str]] = {}  # launches that are alike share their findings
    for item in shown:
        if item.finding.conditional_on or item.suppressed is not None or item.state == "known":
            continue
        program = programs(item.launch)
        key = (id(item.finding), id(program))
        if key not in bodies:
            bodies[key] = _body(item.finding, program)
        lines += [_head(item), *bodies[key], ""]
    lines += _conditional(report, shown)
    lines += [f"mended {m.file}:{m.line} [{m.rule}]: {m.what}" for m in report.mends if m.why_not is None]
    lines += [f"not mended {m.file}:{m.line} [{m.rule}]: {m.why_not}" for m in report.mends if m.why_not is not None]
    lines += [f"{trouble.file}: {trouble.problem}" for trouble in report.troubles]
    lines += [f"gone: {what}" for _, what in report.gone]
    return "\n".join([*lines, _summary(report, shown, on_unknown)])


def _head(item: Reported) -> str:
    finding, where = item.finding, item.where
    head = f"{where.file}:{where.line}:{where.column}: {paint(finding.severity, finding.severity)}[{finding.rule}] "
    return head + finding.title + (f" (after {finding.after})" if finding.after else "")


def _body(finding: Finding, program: Program | None) -> list[str]:
    """What a finding says, and how to mend it."""
    lines = wrapped(finding.message, "  ")
    if program is None:
        return lines
    for number, fix in enumerate(finding.fixes[:2]):
        lines += wrapped(f"{'fix' if number == 0 else ' or'}: {fix_text(fix, program)}", "  ")
    return lines


def _conditional(report: Report, shown: list[Reported]) -> list[str]:
    """One line a launch about what depends on facts that nobody stated."""
    by_launch: dict[int, list[Finding]] = {}
    for item in shown:
        if item.finding.conditional_on and item.launch is not None and item.counts:
            by_launch.setdefault(item.launch, []).append(item.finding)
    lines: list[str] = []
    for launch, findings in by_launch.items():
        where = report.launches[launch].where
        facts = sorted({unknown_fact(finding.conditional_on[0]) for finding in findings})
        errors = len({f.rule for f in findings if f.severity == "error"})
        rules = sorted({f.rule for f in findings}, key=lambda r: r)
        names = ", ".join(rules[:3]) + (", …" if len(rules) > 3 else "")
        worst = f", {errors} of them an error" if errors else ""
        what = f"depends on the {listed(facts)}: {len(rules)} findings{worst} ({names})"
        said = listed([SETTLES[fact] for fact in facts])
        lines += [*wrapped(f"{where.file}:{where.line}:{where.column}: {what}; say {said}", ""), ""]
    return lines


def _summary(report: Report, shown: list[Reported], on_unknown: bool) -> str:
    counted = [item for item in shown if item.counts and (on_unknown or not item.finding.conditional_on)]
    parts = [f"{count(report.launches, 'launch', 'launches')} in {count(_files(report), 'file')}"]
    parts += [
        count(found, severity)
        for severity in ("error", "warning", "note")
        if (found := [item for item in counted if item.finding.severity == severity])
    ]
    parts += [] if counted else ["nothing found"]
    labelled: tuple[tuple[str, list[Any]], ...] = (
        ("switched off", [i for i in shown if i.suppressed is not None]),
        ("known from the baseline", [i for i in shown if i.state == "known"]),
        ("gone since the baseline", report.gone),
    )
    parts += [f"{len(items)} {label}" for label, items in labelled if items]
    parts += [f"{count(report.troubles, 'file')} not looked at, whole or in part"] if report.troubles else []
    return f"flagwise: {', '.join(parts)} ({count([None] * report.files, 'file')} looked at)"


def _files(report: Report) -> set[str]:
    return {launch.where.file for launch in report.launches}


def count(found: object, one: str, many: str = "") -> str:
    """`1 file`, `2 files`."""
    number = len(found)  # type: ignore[arg-type]  # anything that has a length
    return f"{number} {one if number == 1 else many or one + 's'}"
