"""A report -> workflow commands of GitHub Actions, which become annotations on the changed lines.

    ::error file=F,line=L,endLine=L,col=C,endColumn=C,title=T::MESSAGE

In the message `%` and line ends are escaped, in a property `:` and `,` too.
"""

from __future__ import annotations

from solver.gate.report import Report, Reported

COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def output(report: Report, shown: list[Reported]) -> str:
    """One command a finding; what is switched off, known or rests on unknown facts is a notice or left out."""
    lines = [_command(item) for item in shown if item.suppressed is None and item.state == "new"]
    lines += [f"::error file={_property(t.file)},title=flagwise::{_message(t.problem)}" for t in report.troubles]
    return "\n".join(lines)


def _command(item: Reported) -> str:
    finding, where = item.finding, item.where
    doubt = f" (depends on {', '.join(finding.conditional_on)})" if finding.conditional_on else ""
    name = "notice" if finding.conditional_on else COMMANDS[finding.severity]
    columns = f",col={where.column},endColumn={where.end_column}" if where.line == where.end_line else ""
    place = f"file={_property(where.file)},line={where.line},endLine={where.end_line}{columns}"
    title = _property(f"{finding.title} (flagwise: {finding.rule})")
    return f"::{name} {place},title={title}::{_message(finding.message + doubt)}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
