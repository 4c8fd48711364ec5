"""One place of a log + the check of its command -> findings: a rule that the log confirms, a signature, or a guess."""

from __future__ import annotations

import re
import shlex
from typing import Any

import msgspec

from solver.check import Result, reading_findings, spelling
from solver.conditions import Unknown, evaluator
from solver.context import Context, Options, build
from solver.errors import RequestError
from solver.grammar import parse
from solver.knowledge import holds
from solver.launch import read_argv
from solver.log_events import Event, Frame
from solver.records import Fact, Finding, Fix, Rule
from solver.signatures import Place, Role, Signature
from solver.words import fill, holes

PACKAGE = "sglang/"
ARGUMENT_CODE = re.compile(r"/server_args\.py$|/arg_groups/")
"""Modules that read every flag, so that only the function says which one matters."""
WORD = re.compile(r"--[a-z][a-z0-9-]+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
"""A flag or a variable inside a sentence."""
LONGEST_QUOTE = 160
MOST_GUESSED = 12
UNKNOWN_CAUSE = "unrecognised-crash"


class Located(msgspec.Struct, frozen=True):
    """One message of the log that matters: the phase it falls in, and the signature that knows it, if one does."""

    event: Event
    phase: str | None
    signature: Signature | None

    @property
    def role(self) -> Role | None:
        return self.signature.role if self.signature else None


def explained(context: Context, result: Result | None, where: Located) -> list[Finding]:
    """What a place of the log means, the best explanation first. Never empty."""
    signature = where.signature
    if signature is None:
        fired = _told_by(context, result, where.event)
        return [_confirmed(f, where) for f in fired] or [_guess(context, where)]
    fired = [f for name in signature.rules for f in (result.findings if result else ()) if f.rule == name]
    if fired:
        return [_confirmed(min(fired, key=lambda f: bool(f.conditional_on)), where)]
    return _of_words(context, signature, where) or [_of_signature(context, result, signature, where)]


# ---------------------------------------------------------------- confirmed


def _confirmed(finding: Finding, where: Located) -> Finding:
    """A finding of the command that the log shows to have happened: it depends on nothing any more."""
    return msgspec.structs.replace(finding, because=(quoted(where), *finding.because), conditional_on=(), after=None)


def quoted(where: Located) -> Fact:
    """The line of the log that says most, with its place."""
    rank = f", {where.event.rank}" if where.event.rank else ""
    return Fact("log", _telling_line(where), f"line {where.event.line}{rank}")


def _telling_line(where: Located) -> str:
    lines = [text.strip() for text in where.event.text.split("\n") if text.strip()]
    root = next((r for r in where.event.raised if r.kind), None)
    if root and root.kind:
        line = next((t for t in lines if t.split(":")[0].split(".")[-1] == root.kind), root.kind)
    elif where.signature:
        fragments = [f for fs in where.signature.match for f in fs]
        line = max(lines, key=lambda t: sum(len(f) for f in fragments if f in t))
    else:
        line = lines[-1]
    return line if len(line) <= LONGEST_QUOTE else line[: LONGEST_QUOTE - 1] + "…"


def _told_by(context: Context, result: Result | None, event: Event) -> list[Finding]:
    """Errors of the command whose source is a function of the traceback; else those about flags the message names."""
    errors = [f for f in (result.findings if result else ()) if f.severity == "error"]
    at_place = [f for f in errors if any(_is_at(frame, *place) for frame in event.frames for place in _places(f))]
    said = {n if n.isupper() else spelling(context.resolver.program, n) for n in named_in(context, event)}
    return at_place or [f for f in errors if said & {*f.flags, *f.env}]


def _places(finding: Finding) -> set[tuple[str, str]]:
    return {(s.file, s.symbol) for s in finding.sources if s.file and s.symbol}


def _is_at(frame: Frame, file: str, symbol: str) -> bool:
    return frame.function == symbol.rsplit(".", 1)[-1] and frame.file.endswith(file)


# ---------------------------------------------------------------- signature


def _of_words(context: Context, signature: Signature, where: Located) -> list[Finding]:
    """The problems of arguments that the log repeats as they were typed, as the release's reader names them."""
    if signature.words is None or signature.words not in (read := read_values(signature, where.event.text)):
        return []
    try:
        launch = read_argv(shlex.split(read[signature.words]))
        typed = build(context.store, launch, Options(model="", engine_version=context.release))
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
        fixes=tuple(settled for f in fixes if (settled := _settled(context, result, f)) is not None),
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
            value = result.outcomes[0].state.get("flag", name)
            values[hole] = "unknown" if type(value) is Unknown else value
    return values


def _settled(context: Context, result: Result | None, fix: Fix) -> Fix | None:
    """A fix with its computed values worked out, or in words where nothing is known to compute from.

    None where a condition of the fix is known to fail.
    """
    state = result.outcomes[0].state if result is not None else None
    tables = context.resolver.program.tables
    if fix.only_if and state is not None and evaluator(parse(fix.only_if), tables)(state) is False:
        return None
    values: dict[str, Any] = {}
    for name, value in fix.set.items():
        if isinstance(value, dict) and set(value) == {"expr", "words"}:
            computed = evaluator(parse(value["expr"]), tables)(state) if state is not None else None
            known = computed is not None and type(computed) is not Unknown
            value = (
                (round(computed, 3) if isinstance(computed, float) else computed) if known else f"<{value['words']}>"
            )
        if name in context.resolver.program.flags:
            values[name] = value
    if fix.set and not values:
        return None
    return msgspec.structs.replace(fix, set=values)


# -------------------------------------------------------------------- guess


def _guess(context: Context, where: Located) -> Finding:
    """What an unknown crash may be about: the flags its message names, those that choose the code at its place, and
    what the module there reads."""
    event, program = where.event, context.resolver.program
    found = most_specific(context, event)
    names = _names_about(context, event, found[1] if found else None)
    place = f"{short(context, found[0].file)}, {found[0].function or 'function unknown'}" if found else "not in the log"
    kind = next((r.kind for r in event.raised if r.kind), None)
    message = (
        f"No signature knows this {kind or 'crash'}. The innermost place that tells something is {place}. This is a "
        "guess: what it names chooses that code, is read there or stands in the message; none of it is a known cause."
    )
    return Finding(
        rule=UNKNOWN_CAUSE,
        severity="error",
        stage="run" if where.phase == "serve" else "capture" if where.phase == "capture" else "load",
        status="guess",
        title="A crash that no signature knows",
        message=message,
        flags=tuple(spelling(program, n) for n in names if not n.isupper()),
        env=tuple(n for n in names if n.isupper()),
        because=(quoted(where),),
    )


def _names_about(context: Context, event: Event, place: Place | None) -> list[str]:
    """Flags and variables by how near they are: said, checked there, choosing the place, read there."""
    module = engine_module(context, event)
    reads = context.index.logs.modules.get(module or "", ())
    given = context.facts.given
    ranked = [
        *named_in(context, event),
        *(n for f in event.frames for n in _checked_at(context, f)),
        *(place.about if place else ()),
        *(n for n in reads if n in given or n in context.facts.env),
        *reads,
    ]
    flags = context.resolver.program.flags
    return list(dict.fromkeys(n for n in ranked if n.isupper() or n in flags))[:MOST_GUESSED]


def named_in(context: Context, event: Event) -> list[str]:
    """Flags and variables of the release that the messages of the exceptions name, or of a line without traceback."""
    messages = [r.message for r in event.raised if r.message] or [event.text]
    by_spelling = {s: ident for ident, form in context.resolver.program.flags.items() for s in form.spellings}
    words = [w for text in messages for w in WORD.findall(text)]
    env = context.resolver.program.env
    return [by_spelling.get(w, w) for w in words if w in by_spelling or w in env]


def _checked_at(context: Context, frame: Frame) -> list[str]:
    """The flags of the errors that are known to be raised in a function of the argument code."""
    if not ARGUMENT_CODE.search(frame.file):
        return []
    rules = [r for name in context.store.rule_ids() if (r := context.store.rule(name)) and r.severity == "error"]
    at = [r for r in rules if any(s.file and s.symbol and _is_at(frame, s.file, s.symbol) for s in r.sources)]
    return [n for r in at if holds(r.versions, context.release) for n in r.about or [k for f in r.fix for k in f.set]]


def most_specific(context: Context, event: Event) -> tuple[Frame, Place | None] | None:
    """The innermost frame at a known place, with the place; else the innermost one in the engine, else of all."""
    for frame in event.frames:
        place = place_of(context, frame.file)
        if place is not None:
            return frame, place
    inside = [f for f in event.frames if f"/{PACKAGE}" in f"/{f.file}"]
    return next(((f, None) for f in (*inside, *event.frames)), None)


def place_of(context: Context, file: str) -> Place | None:
    """The place of a file, the one with the longest path."""
    path = short(context, file).removeprefix(PACKAGE)
    found = [p for p in context.index.logs.places if path.startswith(p.path)]
    return max(found, key=lambda p: len(p.path), default=None)


def short(context: Context, file: str) -> str:
    """A path from its package on."""
    packages = {p.path.split("/")[0] + "/" for p in context.index.logs.places} - {"srt/"}
    for package in (PACKAGE, *sorted(packages)):
        at = f"/{file}".rfind(f"/{package}")
        if at >= 0:
            return file[at:]
    return file


def engine_module(context: Context, event: Event) -> str | None:
    """The innermost module of the engine, below its package."""
    paths = (short(context, f.file) for f in event.frames)
    return next((p.removeprefix(PACKAGE) for p in paths if p.startswith(PACKAGE)), None)
