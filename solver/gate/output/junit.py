"""A report -> JUnit XML: a suite a file, a case a launch, a failure a finding at or above the fail level."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from solver.gate.report import Checked, Report, Reported

_UNPRINTABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def output(report: Report, shown: list[Reported], on_unknown: bool) -> str:
    """The report as XML text. Times are zero: launches are not run."""
    cases: dict[str, list[tuple[str, list[Reported]]]] = {}
    for index, launch in enumerate(report.launches):
        mine = [item for item in shown if item.launch == index]
        cases.setdefault(launch.where.file, []).append((_name(launch), mine))
    for item in shown:
        if item.launch is None:
            cases.setdefault(item.where.file, []).append((f"line {item.where.line}", [item]))
    suites = [_suite(file, found, on_unknown) for file, found in cases.items()]
    suites += [_trouble(trouble.file, trouble.problem) for trouble in report.troubles]
    tests = sum(map(len, cases.values())) + len(report.troubles)
    failures = sum(_failed(items, on_unknown) for found in cases.values() for _, items in found)
    failures += len(report.troubles)
    head = f'<testsuites name="flagwise" tests="{tests}" failures="{failures}" errors="0" time="0">'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *suites, "</testsuites>"])


def _name(launch: Checked) -> str:
    return f"line {launch.where.line}: {launch.kind}"


def _failed(items: list[Reported], on_unknown: bool) -> bool:
    return any(item.fails(on_unknown) for item in items)


def _suite(file: str, cases: list[tuple[str, list[Reported]]], on_unknown: bool) -> str:
    failures = sum(_failed(items, on_unknown) for _, items in cases)
    body = "\n".join(_case(file, name, items, on_unknown) for name, items in cases)
    name = _attribute(file)
    return (
        f'<testsuite name={name} tests="{len(cases)}" failures="{failures}" errors="0" time="0">\n{body}\n</testsuite>'
    )


def _case(file: str, name: str, items: list[Reported], on_unknown: bool) -> str:
    """A case with its first failing finding as the failure and all of them as text: schemas allow one a case."""
    head = f'<testcase classname={_attribute(file)} name={_attribute(name)} time="0">'
    failing = [item for item in items if item.fails(on_unknown)]
    if not failing:
        return f"{head}</testcase>"
    first = failing[0].finding
    text = "\n\n".join(_text(item) for item in failing)
    failure = (
        f"<failure type={_attribute(first.rule)} message={_attribute(first.title)}>{escape(_printable(text))}</failure>"
    )
    return f"{head}{failure}</testcase>"


def _text(item: Reported) -> str:
    finding, where = item.finding, item.where
    return f"{where.file}:{where.line}:{where.column}: {finding.severity}[{finding.rule}] {finding.message}"


def _trouble(file: str, problem: str) -> str:
    failure = f'<failure type="unreadable" message={_attribute(problem)}></failure>'
    case = f'<testcase classname={_attribute(file)} name="read" time="0">{failure}</testcase>'
    return f'<testsuite name={_attribute(file)} tests="1" failures="1" errors="0" time="0">\n{case}\n</testsuite>'


def _attribute(text: str) -> str:
    return quoteattr(_printable(text))


def _printable(text: str) -> str:
    """XML allows no control characters."""
    return _UNPRINTABLE.sub("\ufffd", text)
