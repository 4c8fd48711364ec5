"""A report -> GitLab's code quality report: a list of issues with a description, a check, a severity and a place."""

from __future__ import annotations

from typing import Any

from solver.gate.report import Reported
from solver.render.data import dumps

SEVERITIES = {"error": "critical", "warning": "minor", "note": "info"}


def output(shown: list[Reported]) -> str:
    """The report as JSON text. What is switched off is left out; GitLab itself tells new from known issues."""
    issues = [_issue(item) for item in shown if item.suppressed is None]
    return dumps(issues)


def _issue(item: Reported) -> dict[str, Any]:
    finding, where = item.finding, item.where
    doubt = f" (depends on {', '.join(finding.conditional_on)})" if finding.conditional_on else ""
    return {
        "description": f"{finding.title}: {finding.message}{doubt}",
        "check_name": f"flagwise: {finding.rule}",
        "fingerprint": item.fingerprint,
        "severity": "info" if finding.conditional_on else SEVERITIES[finding.severity],
        "location": {
            "path": where.file.removeprefix("./"),
            "positions": {
                "begin": {"line": where.line, "column": where.column},
                "end": {"line": where.end_line, "column": where.end_column},
            },
            "lines": {"begin": where.line, "end": where.end_line},
        },
    }
