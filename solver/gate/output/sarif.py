"""A report -> SARIF 2.1.0, for code scanning: findings with regions, what is switched off or known marked as such."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from solver import __version__
from solver.gate.report import GATE_RULES, Report, Reported, Where
from solver.records import Finding, Source
from solver.render.data import dumps
from solver.render.text import source_text
from solver.store import Store

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "note": "note"}


def output(report: Report, shown: list[Reported], store: Store) -> str:
    """The report as SARIF text."""
    rules: dict[str, Finding] = {}
    for item in shown:
        rules.setdefault(item.finding.rule, item.finding)
    places = {rule: index for index, rule in enumerate(rules)}
    run = {
        "tool": {
            "driver": {
                "name": "flagwise",
                "version": __version__,
                "semanticVersion": __version__,
                "informationUri": "https://github.com/flagwise/flagwise",
                "properties": {"knowledge": store.index.hash},
                "rules": [_rule(finding) for finding in rules.values()],
            }
        },
        "invocations": [
            {
                "executionSuccessful": not report.troubles,
                "toolExecutionNotifications": [
                    {"level": "error", "message": {"text": f"{trouble.file}: {trouble.problem}"}}
                    for trouble in report.troubles
                ],
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": [_result(item, places[item.finding.rule]) for item in shown],
    }
    return dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(finding: Finding) -> dict[str, Any]:
    links = [_source(source) for source in finding.sources]
    described: dict[str, Any] = {
        "id": finding.rule,
        "shortDescription": {"text": finding.title},
        "defaultConfiguration": {"level": LEVELS[finding.severity]},
    }
    if finding.rule not in GATE_RULES:
        text = f"{finding.title}. Stage {finding.stage}, known from {finding.status}."
        described["help"] = {"text": "\n".join([text, *(f"Source: {link}" for link in links)])}
        described["properties"] = {"stage": finding.stage, "status": finding.status}
    return described


def _source(source: Source) -> str:
    return source_text(source)


def _result(item: Reported, rule: int) -> dict[str, Any]:
    """One result. What rests on unknown facts is a note: it may not hold."""
    finding = item.finding
    doubt = f" (depends on {', '.join(finding.conditional_on)})" if finding.conditional_on else ""
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": "note" if finding.conditional_on else LEVELS[finding.severity],
        "message": {"text": finding.message + doubt},
        "locations": [{"physicalLocation": _location(item.where)}],
        "partialFingerprints": {"flagwise/v1": item.fingerprint},
        "baselineState": "unchanged" if item.state == "known" else "new",
    }
    if item.suppressed is not None:
        result["suppressions"] = [{"kind": "inSource", "status": "accepted", "justification": item.suppressed}]
    elif item.state == "known":
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": "in the baseline"}]
    return result


def _location(where: Where) -> dict[str, Any]:
    return {
        "artifactLocation": {"uri": quote(where.file, safe="/:@!$&'()*+,;=~.-_")},
        "region": {
            "startLine": where.line,
            "startColumn": where.column,
            "endLine": where.end_line,
            "endColumn": max(where.end_column, where.column),
            "byteOffset": where.start,
            "byteLength": max(where.end - where.start, 0),
        },
    }
