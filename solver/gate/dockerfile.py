"""Dockerfile -> the launches in it: what each stage starts by ENTRYPOINT and CMD, and what it runs while it is built.

Instructions may go on over lines (a comment line inside is passed over); their words are a JSON list (exec form) or
shell text. A stage has the variables of ENV, and those of the stage it is built FROM.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from solver.errors import RequestError
from solver.expansion import LONGEST
from solver.gate.arguments import Argument, arguments_of, joined, launches_in
from solver.gate.found import Finds, Hints, Slot, Unreadable
from solver.gate.json_nodes import value_at
from solver.gate.nodes import scalars
from solver.gate.text import Builder, Text
from solver.records import Span
from solver.shell import tokens
from solver.wrappers import Env

_INSTRUCTION = re.compile(r"[ \t]*([A-Za-z]+)(?=[ \t\\])")
_SPACES = re.compile(r"[ \t]+")
_OPTIONS = re.compile(r"(?:[ \t]*--[a-z-]+=\S+)+[ \t]*")
_DOCUMENT = re.compile(r"<<-?[\"']?(\w+)[\"']?")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)
_NAMED = re.compile(r"sglang|launch_server")


class Instruction(NamedTuple):
    """One instruction: its name in capitals, and the text after it without continuations' comment lines."""

    name: str
    body: Text
    place: Span


class Stage(msgspec.Struct):
    """What is in force at one point of a stage.

    `says`: it names a command of its own; `is_base`: another stage is built on it, which then starts in its place.
    """

    image: str | None = None
    env: Env = {}
    places: dict[str, Span] = {}
    entrypoint: Instruction | None = None
    cmd: Instruction | None = None
    says: bool = False
    is_base: bool = False


def find(source: Text) -> Finds:
    """The launches of a Dockerfile."""
    finds = Finds()
    stages: dict[str, Stage] = {}
    arguments: Env = {}
    stage = Stage()
    made: list[Stage] = []
    for instruction in instructions(source):
        body = instruction.body
        match instruction.name:
            case "FROM":
                made.append(stage)
                stage = _from(body.text, stages, arguments)
            case "ARG":
                for name, (value, _) in _assignments(body, stage.env | arguments).items():
                    arguments[name] = value
            case "ENV":
                for name, (value, place) in _assignments(body, arguments | stage.env).items():
                    stage.env = {**stage.env, name: value}
                    stage.places = {**stage.places, **({name: place} if place else {})}
            case "ENTRYPOINT":
                stage.entrypoint, stage.cmd, stage.says = instruction, None, True
            case "CMD":
                stage.cmd, stage.says = instruction, True
            case "RUN" if _NAMED.search(body.text):
                _read([instruction], stage, source, finds, arguments | stage.env)
    for ended in [*made, stage]:
        if not ended.is_base and ended.says:
            _started(ended, source, finds)
    return finds


def instructions(source: Text) -> list[Instruction]:
    """The instructions of a Dockerfile in order, a here-document with its own."""
    found: list[Instruction] = []
    lines = source.text.splitlines(keepends=True)
    at = number = 0
    while number < len(lines):
        match = _INSTRUCTION.match(lines[number])
        if match is None:
            at += len(lines[number])
            number += 1
            continue
        start, builder = at, Builder(source)
        skipped = match.end()
        documents = _DOCUMENT.findall(lines[number])
        while number < len(lines):
            line = lines[number]
            comment = line.lstrip().startswith("#") and not skipped
            if not comment:
                builder.take(at + skipped, at + len(line))
            skipped = 0
            at += len(line)
            number += 1
            if not comment and not line.rstrip().endswith("\\"):
                break
        for ending in documents:
            while number < len(lines):
                line = lines[number]
                builder.take(at, at + len(line))
                at += len(line)
                number += 1
                if line.strip() == ending:
                    break
        found.append(Instruction(match[1].upper(), builder.finish(), source.place(Span(start, at)) or Span(start, at)))
    return found


def _from(text: str, stages: dict[str, Stage], arguments: Env) -> Stage:
    """A new stage: that of an earlier one, or of an image."""
    words = [word for word in text.split() if not word.startswith("--")]
    image = _filled(words[0], arguments) if words else None
    before = stages.get((image or "").lower())
    if before:
        before.is_base = True
    stage = Stage(before.image, before.env, before.places, before.entrypoint, before.cmd) if before else Stage(image)
    if len(words) == 3 and words[1].lower() == "as":
        stages[words[2].lower()] = stage
    return stage


def _filled(text: str, known: Env) -> str:
    """References in an image's name replaced where they are known."""
    return _VARIABLE.sub(lambda m: known.get(m[1] or m[2]) or m[0], text)


def _assignments(body: Text, known: Env) -> dict[str, tuple[str | None, Span | None]]:
    """`NAME=value …`, or the old `NAME value`."""
    found: dict[str, tuple[str | None, Span | None]] = {}
    try:
        words = [token for token in tokens(body.text.strip("\n")) if token.kind == "word"]
    except RequestError:
        return found
    if words and "=" not in words[0].text and len(words) > 1:
        value = body.text.strip().partition(" ")[2].strip()
        place = body.place(Span(words[0].start, words[-1].end))
        return {words[0].text: (_filled_whole(value, known), place)}
    for word in words:
        name, equals, _ = word.text.partition("=")
        value = "".join(_piece(piece.kind, piece.text, known) for piece in word.pieces).partition("=")[2]
        if equals:
            unknown = "\0" in value or len(value) > LONGEST
            found[name] = (None if unknown else value, body.place(Span(word.start, word.end)))
    return found


def _piece(kind: str, text: str, known: Env) -> str:
    """One piece of a value; a null character marks what is not known."""
    if kind == "text":
        return text
    name, minus, default = text.partition(":-")
    value = known.get(name) if kind == "variable" else None
    return value if value is not None else default if minus else "\0"


def _filled_whole(text: str, known: Env) -> str | None:
    filled = _filled(text, known)
    return None if _VARIABLE.search(filled) or len(filled) > LONGEST else filled


def _started(stage: Stage, source: Text, finds: Finds) -> None:
    """What a container of the stage starts: its entry point with its command as arguments, else its command."""
    parts = [part for part in (stage.entrypoint, stage.cmd) if part is not None]
    if stage.entrypoint and _elements(stage.entrypoint) is None:
        parts = [stage.entrypoint]  # the shell form takes no arguments
    if any(_NAMED.search(part.body.text) for part in parts) or "sglang" in (stage.image or ""):
        _read(parts, stage, source, finds, stage.env)


def _read(parts: list[Instruction], stage: Stage, source: Text, finds: Finds, env: Env) -> None:
    arguments: list[Argument] = []
    for part in parts:
        elements = _elements(part)
        if elements is None:
            head = _OPTIONS.match(part.body.text) if part.name == "RUN" else _SPACES.match(part.body.text)
            body = part.body.cut(head.end() if head else 0, len(part.body.text))
            arguments.append(Argument(None, body, raw=True))
        else:
            arguments += elements
    text, items = joined(arguments)
    bare = text.text.startswith("-") and "sglang" in (stage.image or "")
    hints = Hints(image=stage.image)
    slot = Slot(parts[0].place.start, "ENV {name}={value}\n") if parts and parts[0].name != "RUN" else None
    try:
        found = launches_in(
            "dockerfile", text, parts[0].place if parts else Span(0, 0), env=env, env_places=stage.places, hints=hints,
            items=items, slot=slot, bare=bare,
        )  # fmt: skip
    except RequestError as error:
        line = source.text.count("\n", 0, parts[0].place.start) + 1
        finds.problems.append(f"{error} (in the instruction on line {line})")
        return
    takes_more = len(parts) == 1 and parts[0].name == "ENTRYPOINT" and bool(items)  # from whoever starts the image
    finds.found += [msgspec.structs.replace(launch, partial=takes_more) for launch in found]


def _elements(part: Instruction) -> list[Argument] | None:
    """The arguments of the exec form; None for the shell form."""
    text = part.body.text
    try:
        node, end = value_at(re.sub(r"\\(?=\r?\n)", " ", text), 0)
    except Unreadable:
        return None
    items = scalars(node)
    if items is None or text[end:].strip():
        return None
    return arguments_of(items, part.body)
