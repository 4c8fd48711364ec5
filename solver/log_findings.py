"""One place of a log + the check of its command -> findings: a rule that the log confirms, a signature, or a guess."""

from __future__ import annotations

import re
import shlex
from typing import Any

import msgspec

from solver.check import Result
from solver.compiled import Program
from solver.conditions import Unknown, evaluator
from solver.context import Context, Options, build
from solver.errors import RequestError
from solver.findings import reading_findings, spelling
from solver.grammar import parse
from solver.knowledge import holds
from solver.launch import read_argv
from solver.log_events import Event
from solver.log_guess import Located, guess, is_at, named_in, quoted
from solver.records import Finding, Fix, Rule
from solver.signatures import Signature, is_computed, worded_value
from solver.words import fill, holes


def explained(context: Context, result: Result | None, where: Located) -> list[Finding]:
    """What a place of the log means, the best explanation first. Never empty."""
    signature = where.signature
    if signature is None:
        fired = _told_by(context, result, where.event)
        return [_confirmed(f, where) for f in fired] or [guess(context, where)]
    fired = [f for name in signature.rules for f in (result.findings if result else ()) if f.rule == name]
    fired = fired or _at_place(result, where.event)
    if fired:
        finding = _confirmed(min(fired, key=lambda f: bool(f.conditional_on)), where)
        there = [_result_of(f) for f in finding.fixes]
        own = [f for f in _fixes(context, result, signature.fix) if _result_of(f) not in there]
        return [msgspec.structs.replace(finding, fixes=(*finding.fixes, *own))]
    return _of_words(context, signature, where) or [_of_signature(context, result, signature, where)]


# ---------------------------------------------------------------- confirmed


def _confirmed(finding: Finding, where: Located) -> Finding:
    """A finding of the command that the log shows to have happened: it depends on nothing any more."""
    return msgspec.structs.replace(finding, because=(quoted(where), *finding.because), conditional_on=(), after=None)


def _told_by(context: Context, result: Result | None, event: Event) -> list[Finding]:
    """Errors of the command whose source is a function of the traceback; else those about flags the message names."""
    said = {n if n.isupper() else spelling(context.resolver.program, n) for n in named_in(context, event)}
    return _at_place(result, event) or [f for f in _errors(result) if said & {*f.flags, *f.env}]


def _errors(result: Result | None) -> list[Finding]:
    return [f for f in (result.findings if result else ()) if f.severity == "error"]


def _at_place(result: Result | None, event: Event) -> list[Finding]:
    """Errors of the command whose source is a function of the traceback."""

    def there(finding: Finding) -> bool:
        places = [(s.file, s.symbol) for s in finding.sources if s.file and s.symbol]
        return any(is_at(frame, *place) for frame in event.frames for place in places)

    return [f for f in _errors(result) if there(f)]


# ---------------------------------------------------------------- signature


def _of_words(context: Context, signature: Signature, where: Located) -> list[Finding]:
    """The problems of arguments that the log repeats as they were typed, as the release's reader names them."""
    if signature.words is None or signature.words not in (read := read_values(signature, where.event.text)):
        return []
    try:
        launch = read_argv(shlex.split(read[signature.words]))
        typed = build(context.store, launch, Options(engine_version=context.release))
    except (RequestError, ValueError):
        return []
    problems = [p for p in typed.problems if p.kind != "missing-required"]
    return [
        _confirmed(f, where) for f in reading_findings(context.store, typed.resolver.program, problems, typed.facts)
    ]


def read_values(signature: Signature, text: str) -> dict[str, str]:
    """Name -> what the signature's pattern of that name finds in a text."""
    matches = {name: re.search(pattern, text) for name, pattern in signature.read.items()}
    return {name: match[1] for name, match in matches.items() if match}


def _of_signature(context: Context, result: Result | None, signature: Signature, where: Located) -> Finding:
    """The signature itself in words; what it does not say itself, the first rule tied to it says."""
    program = context.resolver.program
    rule = _tied(context, signature)
    about = signature.about or (rule.about if rule else ())
    values = {f"log.{name}": text for name, text in read_values(signature, where.event.text).items()}
    values |= _values(context, result, signature.message)
    fixes = signature.fix or (tuple(f for f in rule.fix if not f.only_if) if rule else ())
    return Finding(
        rule=signature.id,
        severity=signature.severity,
        stage=signature.stage,
        status=signature.status,
        title=signature.title,
        message=fill(signature.message, values),
        flags=tuple(spelling(program, n) for n in about if not n.isupper()),
        env=tuple(n for n in about if n.isupper()),
        because=(quoted(where),),
        fixes=_fixes(context, result, fixes),
        sources=signature.sources or (rule.sources if rule else ()),
    )


def _tied(context: Context, signature: Signature) -> Rule | None:
    """The first rule tied to a signature that holds in the release, else the first one."""
    rules = [r for name in signature.rules if (r := context.store.rule(name)) and not r.withdrawn]
    return next((r for r in rules if holds(r.versions, context.release)), rules[0] if rules else None)


def _values(context: Context, result: Result | None, message: str) -> dict[str, Any]:
    values: dict[str, Any] = {"release": context.release}
    for hole in holes(message):
        space, _, name = hole.partition(".")
        if space == "spell":
            values[hole] = spelling(context.resolver.program, name)
        elif space == "flag" and result is not None:
            values[hole] = _likeliest(result, hole, context.resolver.program)
    return values


def _fixes(context: Context, result: Result | None, fixes: tuple[Fix, ...]) -> tuple[Fix, ...]:
    return tuple(settled for f in fixes if (settled := _settled(context, result, f)) is not None)


def _result_of(fix: Fix) -> tuple[Any, ...]:
    """What a fix comes down to, whatever it is said to cost."""
    return fix.set, fix.env, fix.upgrade, fix.checkpoint, () if fix.set else fix.unset


def _settled(context: Context, result: Result | None, fix: Fix) -> Fix | None:
    """A fix with its computed values worked out, or in words where nothing is known to compute from.

    None where a condition of the fix is known to fail, or where nothing of it is left to do in this launch.
    """
    program = context.resolver.program
    if fix.only_if and result is not None and _likeliest(result, fix.only_if, program) is False:
        return None
    values: dict[str, Any] = {}
    for name, value in fix.set.items():
        if is_computed(value):
            computed = _likeliest(result, value["expr"], program) if result is not None else "unknown"
            value = worded_value(value) if computed in (None, "unknown") else computed
        if name in program.flags:
            values[name] = value
    there = {*context.facts.given, *context.facts.env}
    unset = tuple(n for n in fix.unset if result is None or n in there)
    if (fix.set and not values) or not (values or unset or fix.env or fix.upgrade or fix.checkpoint):
        return None
    return msgspec.structs.replace(fix, set=values, unset=unset)


def _likeliest(result: Result, expression: str, program: Program) -> Any:
    """What an expression gives on most of the machines that the launch may run on; `unknown` where nothing does."""
    evaluate = evaluator(parse(str(expression)), program.tables)
    values = [v for outcome in result.outcomes if type(v := evaluate(outcome.state)) is not Unknown]
    rounded = [round(v, 3) if isinstance(v, float) else v for v in values]
    return max(rounded, key=rounded.count, default="unknown")
