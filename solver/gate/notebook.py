"""Jupyter notebook (JSON) -> the launches in its code cells: `!` lines and shell cells as scripts, others as Python."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from solver.gate.found import Finds, Found, Kind, Unreadable
from solver.gate.json_nodes import document
from solver.gate.nodes import Node, get
from solver.gate.scalars import scalar_text
from solver.gate.text import Builder, Text

_NAMED = re.compile(r"sglang|launch_server")
_SHELL_CELL = re.compile(r"\s*%%(?:bash|sh|script\b.*|!)[^\n]*\n")
_COMMAND = re.compile(r"^[ \t]*[!%](?:sh\b|system\b|sx\b)?[ \t]*", re.M)


def find(source: Text, find_kind: Callable[[Text, Kind], Finds]) -> Finds:
    """The launches of a notebook. A cell that cannot be read is passed over. Errors: Unreadable."""
    finds = Finds()
    cells = get(document(source.text), "cells")
    for cell in cells.value if cells is not None and cells.kind == "list" else ():
        code = _code(cell, source)
        if code is None or not _NAMED.search(code.text):
            continue
        for kind, part in _parts(code):
            try:
                inside = find_kind(part, kind)
            except Unreadable:
                continue
            finds.found += [_shown(found) for found in inside.found if found.launch.words]
    return finds


def _shown(found: Found) -> Found:
    return msgspec.structs.replace(found, kind="notebook")


def _code(cell: Node, source: Text) -> Text | None:
    """The text of a code cell, which is one string or a list of lines."""
    kind, content = get(cell, "cell_type"), get(cell, "source")
    if kind is None or kind.value != "code" or content is None:
        return None
    builder = Builder(source)
    for line in content.value if content.kind == "list" else [content]:
        if line.kind == "scalar":
            builder.add(scalar_text(line, source))
    return builder.finish()


def _parts(code: Text) -> list[tuple[Kind, Text]]:
    """A cell as scripts and as a program; the commands are blank lines in the program."""
    if shell := _SHELL_CELL.match(code.text):
        return [("shell", code.cut(shell.end(), len(code.text)))]
    parts: list[tuple[Kind, Text]] = []
    program = Builder(code)
    at = 0
    for match in _COMMAND.finditer(code.text):
        if match.start() < at:
            continue
        end = _end_of_command(code.text, match.end())
        parts.append(("shell", code.cut(match.end(), end)))
        program.take(at, match.start())
        program.compute("pass\n" * code.text.count("\n", match.start(), end))
        at = end
    program.take(at, len(code.text))
    return [*parts, ("python", program.finish())]


def _end_of_command(text: str, at: int) -> int:
    """The offset after a line and those that continue it."""
    while (end := text.find("\n", at)) >= 0:
        if not text[at:end].rstrip().endswith("\\"):
            return end + 1
        at = end + 1
    return len(text)
