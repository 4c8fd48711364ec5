"""Facts -> `Result`: every finding of a launch at once, its verdict, and the values in force."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec

from solver.compiled import Program
from solver.conditions import Unknown
from solver.decisions import Resolver
from solver.facts import Facts
from solver.findings import merged, reading_findings
from solver.pipeline import Outcome, plain, run
from solver.problems import Problem
from solver.records import SEVERITIES, STAGES, Finding, Severity
from solver.store import Store

Verdict = Literal["valid", "conditional", "invalid"]
_SEVERITY = {severity: place for place, severity in enumerate(SEVERITIES)}
_STAGE = {stage: place for place, stage in enumerate(STAGES)}


class Resolved(msgspec.Struct, frozen=True):
    """One value in force at the end of the engine's resolution, and the rules that wrote it, in order."""

    value: Any
    origin: str
    because: tuple[str, ...] = ()


class Result(msgspec.Struct, frozen=True):
    """What `check` found. `outcomes` are the runs behind it, one per case of an unknown machine."""

    verdict: Verdict
    findings: tuple[Finding, ...]
    resolved: dict[str, Resolved]
    outcomes: tuple[Outcome, ...]


class Case(msgspec.Struct, frozen=True):
    """One machine that an unknown machine could be, and how to name it."""

    name: str
    hardware: dict[str, Any]


def check(
    store: Store,
    resolver: Resolver,
    facts: Facts,
    estimates: Mapping[str, Any],
    problems: Iterable[Problem] = (),
    cases: Callable[[], tuple[Case, ...]] = tuple,
) -> Result:
    """Run the pipeline once, or once per case when a rule depends on a machine that nobody stated."""
    first = run(resolver, facts, estimates)
    unknown = [n for fired in first.fired if fired.names for n in fired.names]
    split = cases() if any(n.startswith("hardware.") for n in unknown) else ()
    if not split:
        outcomes: tuple[Outcome, ...] = (first,)
        labels: tuple[str, ...] = ("",)
    else:
        resolver.more_follow = True
        outcomes = tuple(run(resolver, _with_hardware(facts, c.hardware), estimates) for c in split)
        labels = tuple(c.name for c in split)
    findings = [
        *reading_findings(store, resolver.program, problems, facts),
        *merged(store, resolver, outcomes, labels),
    ]
    findings.sort(key=order)
    return Result(verdict_of(findings), tuple(findings), resolved_of(resolver.program, facts, outcomes), outcomes)


def _with_hardware(facts: Facts, hardware: dict[str, Any]) -> Facts:
    return msgspec.structs.replace(facts, hardware={**hardware, **facts.hardware})


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """Invalid with an unconditional error, else conditional with a conditional one, else valid."""
    errors = [f for f in findings if f.severity == "error"]
    if any(not f.conditional_on and not f.after for f in errors):
        return "invalid"
    return "conditional" if any(f.conditional_on for f in errors) else "valid"


def opened(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings on a command that may give any flag besides: what rests on a flag's default depends on that flag."""
    return tuple(map(_opened, findings))


def _opened(finding: Finding) -> Finding:
    defaults = [fact.name for fact in finding.because if fact.origin == "default" and fact.name.startswith("flag.")]
    if not defaults or finding.severity == "note":
        return finding
    return msgspec.structs.replace(finding, conditional_on=tuple(dict.fromkeys((*finding.conditional_on, *defaults))))


def at_or_above(finding: Finding, level: Severity) -> bool:
    """Whether a finding's severity reaches a fail level."""
    return _SEVERITY[finding.severity] >= _SEVERITY[level]


def order(finding: Finding) -> tuple[int, bool, int, str, str]:
    """Where a finding stands among others: most severe first, then what is certain, then by stage."""
    return (
        -_SEVERITY[finding.severity],
        bool(finding.conditional_on),
        _STAGE[finding.stage],
        finding.rule,
        finding.message,
    )


# ------------------------------------------------------------------ values


def resolved_of(program: Program, facts: Facts, outcomes: tuple[Outcome, ...]) -> dict[str, Resolved]:
    """Each flag by name whose value is given or was written by a rule, with the rules that wrote it in order."""
    resolved: dict[str, Resolved] = {}
    ends = [outcome.state.spaces["flag"] for outcome in outcomes]
    written: dict[str, tuple[str, ...]] = {}
    for outcome in outcomes:
        for write in outcome.writes:
            if write.space == "flag":
                by = written.get(write.name, ())
                if write.rule not in by:
                    written[write.name] = (*by, write.rule)
    first, origins = ends[0], outcomes[0].state.origins
    for name in sorted({*written, *facts.given} & program.flags.keys()):
        value = first[name] if len(ends) == 1 else _in_all(name, ends)
        value = plain(value) if type(value) is Unknown else value
        resolved[name] = Resolved(value, origins.get(("flag", name), "default"), written.get(name, ()))
    return resolved


def _in_all(name: str, ends: list[dict[str, Any]]) -> Any:
    """The value of a flag over several cases: the one it has in all, or all that it has."""
    values = [plain(flags.get(name)) for flags in ends]
    distinct = [v for i, v in enumerate(values) if v not in values[:i]]
    return distinct[0] if len(distinct) == 1 else {"one_of": distinct}
