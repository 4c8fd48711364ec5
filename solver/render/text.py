"""Results -> lines for a terminal. Colour only where the output is one; the words are the same without it."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable, Sequence

from solver.check import Result
from solver.compiled import Program
from solver.context import Context
from solver.findings import spelling
from solver.handoff.command import flag_words
from solver.records import Finding, Fix, Source
from solver.words import listed, say

COLOURS = {"error": "31", "warning": "33", "note": "36", "invalid": "1;31", "conditional": "33", "valid": "1;32"}
WIDTH = 110


def paint(text: str, kind: str) -> str:
    """Colour a word when standard output is a terminal and NO_COLOR is not set."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{COLOURS.get(kind, '1')}m{text}\x1b[0m"


def wrapped(text: str, indent: str) -> list[str]:
    """A paragraph in lines."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def validation(context: Context, result: Result) -> str:
    """What `validate` prints: the verdict, what it was judged by, each finding, and one line per unknown fact."""
    lines = [f"{paint(result.verdict, result.verdict)}: {judged_by(context)}"]
    lines += [f"  assumed {a.what} {a.value}: {a.why}" for a in context.assumed]
    program = context.resolver.program
    certain = [f for f in result.findings if not f.conditional_on]
    for finding in certain:
        lines += ["", *finding_lines(finding, program)]
    lines += conditional_lines([f for f in result.findings if f.conditional_on])
    lines += evidence_lines(context, result)
    return "\n".join(lines)


def evidence_lines(context: Context, result: Result) -> list[str]:
    """What is on record about the launch, after a blank line; nothing while the model's architecture is not known."""
    from solver.evidence import support_of
    from solver.render.evidence import support_lines

    support = support_of(context, result)
    if support is None:
        return []
    first, *rest = support_lines(support, context.release, context.resolver.program)
    return ["", *wrapped(first, ""), *(text for line in rest for text in wrapped(line, "  "))]


def judged_by(context: Context) -> str:
    """Release, model and machine in one phrase."""
    model = context.model_name or "model unknown"
    return f"SGLang {context.release} ({context.release_from}), {model}, {context.hardware_name or 'machine unknown'}"


def finding_lines(finding: Finding, program: Program) -> list[str]:
    """One finding: what, why, what to do, where it is written."""
    indent = "    " if finding.after else ""
    head = f"{paint(finding.severity, finding.severity)}[{finding.rule}] {finding.title}"
    after = f" (after {finding.after})" if finding.after else ""
    body = wrapped(finding.message, "  ")
    about = " ".join((*finding.flags, *finding.env))
    brief = finding.severity == "note"
    body.append(f"  {finding.stage} stage, known from {finding.status}" + (f"; about {about}" if about else ""))
    facts = [f"{f.name} = {say(f.value)} ({f.origin})" for f in finding.because if f.origin != "default"]
    if facts and not brief:
        body += wrapped(f"because {'; '.join(facts)}", "  ")
    for number, fix in enumerate(finding.fixes):
        body += wrapped(f"{'fix' if number == 0 else ' or'}: {fix_text(fix, program)}", "  ")
    body += [f"  source: {source_text(s)}" for s in finding.sources[: 0 if brief else 2]]
    return [indent + text for text in [head + after, *body]]


def fix_text(fix: Fix, program: Program) -> str:
    """A fix as what to type."""
    parts = []
    sets = {n: v for n, v in fix.set.items() if v is not None}
    if sets:
        words = [" ".join(flag_words(program.flags[n], v)) for n, v in sets.items() if n in program.flags]
        parts.append(" ".join(words))
    if fix.env:
        parts.append("with " + " ".join(f"{n}={v}" for n, v in fix.env.items()))
    removed = [*fix.unset, *(n for n, v in fix.set.items() if v is None)]
    if removed:
        names = [n if n.startswith("-") or n.isupper() else spelling(program, n) for n in removed]
        parts.append(f"{'instead of' if sets else 'drop'} {listed(names)}")
    if fix.upgrade:
        parts.append(f"use SGLang {fix.upgrade} or newer" if fix.upgrade[0].isdigit() else f"use {fix.upgrade}")
    if fix.checkpoint:
        parts.append(f"serve a {fix.checkpoint} checkpoint")
    text = ", ".join(p for p in parts if p)
    return f"{text} (costs {fix.cost})" if fix.cost else text


def source_text(source: Source) -> str:
    """A source as one can look it up."""
    if source.url:
        return source.url
    return f"SGLang {source.release}, {source.file}" + (f", {source.symbol}" if source.symbol else "")


OPTIONS = {"machine": "give --hardware", "model": "give --model", "command": "write the value out"}
"""What settles an unknown fact."""


def conditional_lines(findings: Iterable[Finding]) -> list[str]:
    """At most one line per unknown fact: how many findings depend on it, and what to give."""
    by_fact: dict[str, list[Finding]] = {}
    for finding in findings:
        by_fact.setdefault(unknown_fact(finding.conditional_on[0]), []).append(finding)
    lines = []
    for fact, found in sorted(by_fact.items()):
        worst = sum(f.severity == "error" for f in found)
        count = "1 finding" if len(found) == 1 else f"{len(found)} findings"
        cases = f", {worst} of them an error" if worst else ""
        rules = sorted({f.rule for f in found})
        names = ", ".join(rules[:3]) + (", …" if len(rules) > 3 else "")
        text = f"depends on the {fact}: {count}{cases} ({names}); {OPTIONS[fact]}"
        lines += ["", *wrapped(text, "")]
    return lines


def unknown_fact(name: str) -> str:
    """Whether a condition of a finding is about the release, the model, the command or the machine."""
    space = name.split(".")[0]
    return (
        space
        if space == "release"
        else "model"
        if space == "model"
        else "command"
        if space in ("flag", "env")
        else "machine"
    )


def table(rows: Sequence[tuple[str, ...]], head: tuple[str, ...]) -> list[str]:
    """Aligned columns; the last one is not padded."""
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]

    def row(cells: tuple[str, ...]) -> str:
        return "  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip()

    return [row(head), *map(row, rows)]
