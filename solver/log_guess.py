"""One place of a log -> what it quotes, where it happened, and a guess at what it may be about."""

from __future__ import annotations

import re

import msgspec

from solver.context import Context
from solver.findings import spelling
from solver.knowledge import holds
from solver.log_events import Event, Frame
from solver.records import Fact, Finding
from solver.signatures import Place, Role, Signature
from solver.words import listed

PACKAGE = "sglang/"
ARGUMENT_CODE = re.compile(r"/server_args\.py$|/arg_groups/")
"""Modules that read every flag, so that only the function says which one matters."""
WORD = re.compile(r"--[a-z][a-z0-9-]+|[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*")
"""A flag, a variable, a value or a name inside a sentence."""
DISTINCT = re.compile(r"^\w*[a-zA-Z]\w*[_0-9]\w*$")
"""A value that is no word of the language."""
ARGUMENT_LINE = re.compile(r'File "[^"]*(?:/server_args\.py|/arg_groups/[^"]*)", line \d+')
ATTRIBUTE = re.compile(r"\b(?:self|server_args|args|cfg|view)\.([a-z]\w*)")
SAME_BEGINNING = 5
SHORTEST_MODULE = 10
MOST_PLACES = 2
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


def quoted(where: Located) -> Fact:
    """The line of the log that says most, with its place."""
    rank = f", {where.event.rank}" if where.event.rank else ""
    number, text = telling_line(where)
    text = text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"
    return Fact("log", text, f"line {number}{rank}")


def telling_line(where: Located) -> tuple[int, str]:
    """Number and text of the line with the root exception, else of the one that the signature knows most of."""
    event = where.event
    lines = [(n, t.strip()) for n, t in zip(event.numbers, event.text.split("\n"), strict=True) if t.strip()]
    root = next((r.kind for r in event.raised if r.kind), None)
    raised = next((line for line in lines if root and line[1].split(":")[0].split(".")[-1] == root), None)
    if raised or not where.signature:
        return raised or lines[-1]
    fragments = [f for fs in where.signature.match for f in fs]
    return max(lines, key=lambda line: sum(len(f) for f in fragments if f in line[1]))


def is_at(frame: Frame, file: str, symbol: str) -> bool:
    """Whether a frame lies in a function of a source file."""
    return frame.function == symbol.rsplit(".", 1)[-1] and frame.file.endswith(file)


def guess(context: Context, where: Located) -> Finding:
    """What an unknown crash may be about: the flags its message names, those that choose the code at its place, and
    what the module there reads."""
    event, program = where.event, context.resolver.program
    frame = most_specific(context, event)
    names = _names_about(context, event)
    named = [n if n.isupper() else spelling(program, n) for n in dict.fromkeys(named_in(context, event))]
    said = f" Its message names {listed(named)}." if named else ""
    at = f"{short(context, frame.file)}, {frame.function or 'function unknown'}" if frame else ""
    place = f" The innermost place that tells something is {at}." if at else " It does not say where it happened."
    kind = next((r.kind for r in event.raised if r.kind), None)
    message = (
        f"No signature knows this {kind or 'crash'}.{said}{place} This is a guess: what it names chooses that code, is "
        "read there or stands in the message; none is a known cause."
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


def _names_about(context: Context, event: Event) -> list[str]:
    """Flags and variables by how near they are: said, checked there, choosing the place, read there."""
    reads = context.index.logs.modules.get(engine_module(context, event) or "", ())
    given = context.facts.given
    ranked = [
        *named_in(context, event),
        *coded_in(context, event),
        *(n for f in event.frames for n in _checked_at(context, event, f)),
        *(n for place in places_in(context, event)[:MOST_PLACES] for n in place.about),
        *chosen_in(context, event),
        *(n for n in reads if n in given or n in context.facts.env),
        *reads,
    ]
    flags = context.resolver.program.flags
    return list(dict.fromkeys(n for n in ranked if n.isupper() or n in flags))[:MOST_GUESSED]


def said_in(event: Event) -> list[str]:
    """The messages of the exceptions, or the whole text where nothing was raised."""
    return [r.message for r in event.raised if r.message] or [event.text]


def named_in(context: Context, event: Event) -> list[str]:
    """Flags and variables of the release that a message names: as typed, as the engine calls them, or as words."""
    program = context.resolver.program
    names = {s: ident for ident, form in program.flags.items() for s in form.spellings}
    for ident, form in program.flags.items():
        names |= {name: ident for name in (ident, form.dest or ident) if "_" in name}
    words = [w for text in said_in(event) for w in WORD.findall(text)]
    named = [names.get(w, w) for w in words if w in names or w in program.env]
    text = " ".join(w.lower() for w in re.split(r"[\W_]+", " ".join(said_in(event))))
    spoken = {i: text.find(f" {i.replace('_', ' ')} ") for i in program.flags if "_" in i}
    return [*named, *sorted((i for i, at in spoken.items() if at >= 0), key=lambda i: spoken[i])]


def chosen_in(context: Context, event: Event) -> list[str]:
    """The flags of which a message names a value that is like no other word (`trtllm_mha`, `EAGLE3`)."""
    choices: dict[str, list[str]] = {}
    for ident, form in context.resolver.program.flags.items():
        for value in form.choices or ():
            if DISTINCT.search(str(value)):
                choices.setdefault(str(value), []).append(ident)
    words = [w for text in said_in(event) for w in WORD.findall(text)]
    return [ident for w in words for ident in choices.get(w, ())]


def _checked_at(context: Context, event: Event, frame: Frame) -> list[str]:
    """The flags of the errors that are known to be raised in a function of the argument code, those first whose words
    the message shares."""
    if not ARGUMENT_CODE.search(frame.file):
        return []
    rules = [r for name in context.store.rule_ids() if (r := context.store.rule(name)) and r.severity == "error"]
    at = [r for r in rules if any(s.file and s.symbol and is_at(frame, s.file, s.symbol) for s in r.sources)]
    held = [r for r in at if holds(r.versions, context.release)]
    heard = _telling_words(" ".join(said_in(event)))
    held.sort(key=lambda r: -len(heard & _telling_words(f"{r.title} {r.message} {' '.join(r.about)}")))
    return [n for r in held for n in r.about or [k for f in r.fix for k in f.set]]


def _telling_words(text: str) -> set[str]:
    """The beginnings of a text's longer words, by which two wordings of one thing are told from others."""
    return {word.lower()[:SAME_BEGINNING] for word in re.split(r"[\W_]+", text) if len(word) > SAME_BEGINNING}


def coded_in(context: Context, event: Event) -> list[str]:
    """Flags that the lines of the argument code quoted in a traceback look at, the innermost line first."""
    flags = context.resolver.program.flags
    lines = event.text.split("\n")
    quoted_lines = [lines[i + 1] for i, line in enumerate(lines[:-1]) if ARGUMENT_LINE.search(line)]
    return [n for line in reversed(quoted_lines) for n in ATTRIBUTE.findall(line) if n in flags]


def most_specific(context: Context, event: Event) -> Frame | None:
    """The innermost frame at a known place, else the innermost one in the engine, else of all."""
    known = [f for f in event.frames if place_of(context, f.file)]
    inside = [f for f in event.frames if f"/{PACKAGE}" in f"/{f.file}"]
    return next(iter((*known, *inside, *event.frames)), None)


def places_in(context: Context, event: Event) -> list[Place]:
    """The known places of a crash, the innermost first, those of the engine before those of kernel libraries.

    A shortened log may name a module without its path (`custom_all_reduce`); its place counts where there is no frame.
    """
    found = [p for f in event.frames if (p := place_of(context, f.file))]
    if not found:
        words = {w for w in WORD.findall(event.text) if len(w) >= SHORTEST_MODULE}
        modules = (m for m in context.index.logs.modules if m.rpartition("/")[2].removesuffix(".py") in words)
        found = [p for m in modules if (p := place_of(context, PACKAGE + m))]
    if not found:
        spoken = {p.path: [at for w in p.words if (at := event.text.find(w)) >= 0] for p in context.index.logs.places}
        found = sorted((p for p in context.index.logs.places if spoken[p.path]), key=lambda p: min(spoken[p.path]))
    unique = {p.path: p for p in found}
    return sorted(unique.values(), key=lambda p: not p.path.startswith("srt/"))


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
