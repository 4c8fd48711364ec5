"""A list of arguments with their places -> one command text that the shell reader splits into the same arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from solver.gate.found import UNKNOWN, Found, Hints, Item, Kind, Slot, found
from solver.gate.nodes import Node
from solver.gate.scalars import scalar_text
from solver.gate.templates import PLACEHOLDER
from solver.gate.text import Builder, Text
from solver.launch import Launch, read_commands
from solver.options import HELP
from solver.records import Span

Expand = Callable[[Text], Text]
"""What stands for the references in one argument: their values as text, and `${ NAME}` for what is not known."""

_SAFE = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_TEMPLATE = re.compile(rf"\$?\{{\{{[^\n]*?\}}\}}|{PLACEHOLDER.pattern}")
"""What a template engine or a workflow fills in."""
_UNKNOWN = re.compile(r"\$\{ [^}]*\}")


class Argument(msgspec.Struct, frozen=True):
    """A scalar node, its text, and its place in the file with quotes. `raw`: shell text that is yet to be split."""

    node: Node | None
    text: Text
    place: Span | None = None
    raw: bool = False


def arguments_of(nodes: Sequence[Node], source: Text, expand: Expand | None = None) -> list[Argument]:
    """The arguments that scalar nodes stand for."""
    found = []
    for node in nodes:
        text = _templated(scalar_text(node, source))
        found.append(Argument(node, expand(text) if expand else text, source.place(Span(node.start, node.end))))
    return found


def joined(arguments: Sequence[Argument], separator: str = " ") -> tuple[Text, tuple[Item, ...]]:
    """One command text of all arguments, and where each stands in it and in the file."""
    builder = Builder(Text("", ()))
    items: list[Item] = []
    for argument in arguments:
        if builder.length:
            builder.compute(separator)
        start = builder.length
        if argument.raw:
            builder.add(argument.text)
            continue
        _quoted(argument.text, builder)
        if argument.place is not None:
            items.append(Item(Span(start, builder.length), argument.place))
    return builder.finish(), tuple(items)


def _quoted(argument: Text, builder: Builder) -> None:
    """One argument in quotes where it needs them; references of unknown value stay outside of single quotes."""
    if _SAFE.fullmatch(argument.text):
        builder.add(argument)
        return
    at = 0
    for match in _UNKNOWN.finditer(argument.text):
        _literal(argument.cut(at, match.start()), builder)
        builder.compute('"')
        builder.add(argument.cut(match.start(), match.end()))
        builder.compute('"')
        at = match.end()
    if at < len(argument.text) or not argument.text:
        _literal(argument.cut(at, len(argument.text)), builder)


def _literal(text: Text, builder: Builder) -> None:
    """Literal text in single quotes, single quotes in it in double ones."""
    if not text.text:
        builder.compute("''")
        return
    at = 0
    for part in re.findall(r"[^']+|'+", text.text):
        quote = '"' if part[0] == "'" else "'"
        builder.compute(quote)
        builder.add(text.cut(at, at + len(part)))
        builder.compute(quote)
        at += len(part)


def substituted(text: Text, reference: re.Pattern[str], value_of: Callable[[re.Match[str]], str | None]) -> Text:
    """References replaced by their values. `value_of` gives None for what is not known."""
    return replaced(text, reference, value_of) if "$" in text.text or "{" in text.text else text


def replaced(text: Text, reference: re.Pattern[str], value_of: Callable[[re.Match[str]], str | None]) -> Text:
    """The same for references of any form."""
    if not reference.search(text.text):
        return text
    builder = Builder(text)
    at = 0
    for match in reference.finditer(text.text):
        builder.take(at, match.start())
        value = value_of(match)
        builder.replace(match.start(), match.end(), UNKNOWN + _named(match) + "}" if value is None else value)
        at = match.end()
    builder.take(at, len(text.text))
    return builder.finish()


def _templated(text: Text) -> Text:
    """The text with a reference for each value that a template brings in."""
    is_template = "{{" in text.text or "⟨" in text.text
    return replaced(text, _TEMPLATE, lambda match: None) if is_template else text


def _asks_for_help(launch: Launch) -> bool:
    return any(word.text in HELP for word in launch.words)


def _named(match: re.Match[str]) -> str:
    return re.sub(r"[^\w.-]", "", match[0]) or "value"


def launches_in(
    kind: Kind,
    text: Text,
    fallback: Span,
    *,
    env: Mapping[str, str | None] | None = None,
    env_places: dict[str, Span] | None = None,
    hints: Hints | None = None,
    items: tuple[Item, ...] = (),
    slot: Slot | None = None,
    bare: bool = False,
) -> list[Found]:
    """Every launch in a command text; one that only asks for help is none. Errors: RequestError on an open quote."""
    text = _templated(text)
    launches = [launch for launch in read_commands(text.text, env, bare) if not _asks_for_help(launch)]
    hints = hints or Hints()
    return [
        found(kind, launch, text, hints, fallback, items=items, env_places=env_places, slot=slot) for launch in launches
    ]
