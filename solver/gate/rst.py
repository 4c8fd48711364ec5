"""reStructuredText -> its blocks of code: literal blocks, and those of `code-block`, `code` and `sourcecode`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from solver.gate.text import Builder, Text

_OPENING = re.compile(
    r"^([ \t]*)(?:\.\.[ \t]+(?:code-block|code|sourcecode|parsed-literal)::[ \t]*([\w+-]*)|[^\n]*::)[ \t\r]*$", re.M
)
_OPTION = re.compile(r"[ \t]+:[\w-]+:[^\n]*\n")
_INDENT = re.compile(r"[ \t]*")


def blocks(source: Text) -> Iterator[tuple[str, Text]]:
    """Each block of code: its language (empty: not said), and its text without indentation."""
    text, at = source.text, 0
    while opening := _OPENING.search(text, at):
        at = opening.end() + 1
        while option := _OPTION.match(text, at):
            at = option.end()
        end = _end(text, at, len(opening[1]))
        yield opening[2] or "", _body(source, at, end)
        at = max(end, opening.end())


def _end(text: str, at: int, indent: int) -> int:
    """Where the lines that are indented deeper end."""
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        line = text[at:end]
        if line.strip() and len(line) - len(line.lstrip(" \t")) <= indent:
            return at
        at = end
    return len(text)


def _body(source: Text, start: int, end: int) -> Text:
    lines = source.text[start:end].splitlines(keepends=True)
    depth = min((len(_INDENT.match(line)[0]) for line in lines if line.strip()), default=0)  # type: ignore[index]
    builder = Builder(source)
    at = start
    for line in lines:
        builder.take(at + min(depth, len(line) - len(line.lstrip(" \t"))), at + len(line))
        at += len(line)
    return builder.finish()
