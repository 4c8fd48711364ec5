"""A file of known findings: written once, compared with in later runs, so that only what is new fails."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from solver.errors import RequestError
from solver.gate.output.target import check_target, replace_file
from solver.gate.report import Report
from solver.render.data import dumps

SCHEMA = "flagwise-gate/baseline-1"


def write(path: str, report: Report) -> int:
    """Write the findings of a report, but for what is switched off; their number. Errors: RequestError."""
    check_target(path)
    known = sorted((i.where.file, i.finding.rule, i.fingerprint) for i in report.findings if i.suppressed is None)
    rows = [{"file": file, "rule": rule, "fingerprint": mark} for file, rule, mark in known]
    try:
        replace_file(path, f"{dumps({'schema': SCHEMA, 'known': rows})}\n".encode())
    except OSError as error:
        raise RequestError(f"--baseline {path}: cannot be written ({error.strerror})") from None
    return len(rows)


def read(path: str) -> dict[str, str]:
    """Fingerprint -> what it is, of every known finding. Errors: RequestError."""
    try:
        with open(path, encoding="utf-8") as file:
            content: Any = json.load(file)
    except FileNotFoundError:
        raise RequestError(f"--baseline {path}: there is no such file; write it with --write-baseline") from None
    except (OSError, ValueError, RecursionError) as error:
        raise RequestError(f"--baseline {path}: cannot be read ({error})") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise RequestError(f"--baseline {path}: is no baseline of flagwise (expected the schema {SCHEMA})")
    try:
        return {row["fingerprint"]: f"{row['file']}: {row['rule']}" for row in content["known"]}
    except (KeyError, TypeError):
        raise RequestError(f"--baseline {path}: expected rows of file, rule and fingerprint") from None


def compare(known: dict[str, str], report: Report) -> None:
    """Mark the findings of a report that are known, and list what is gone."""
    report.findings = [
        msgspec.structs.replace(item, state="known") if item.fingerprint in known else item for item in report.findings
    ]
    present = {item.fingerprint for item in report.findings}
    report.gone = [(mark, what) for mark, what in known.items() if mark not in present]
