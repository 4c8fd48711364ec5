"""Pages (Markdown, reStructuredText) -> the launches in their code, each block read as what its language says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from solver.gate import rst
from solver.gate.found import Finds, Found, Kind, Unreadable
from solver.gate.text import Builder, Text

_FENCE = re.compile(r"^([ \t>]*)(`{3,}|~{3,})[ \t]*\{?\.?([\w+-]*)[^\n`]*$", re.M)
_PROMPT = re.compile(r"(?:\(\w+\)[ ]?)?[$#>%][ ](?=\S)")
_LEFT_OUT = frozenset(("...", "…", "[...]", "[…]"))
_BRACKETED = re.compile(r"\[(?![\d\s\"'{\[\]-])")
"""A placeholder such as `[options]` or `[other flags]`; no list of numbers, texts or objects."""
_NAMED = re.compile(r"sglang|launch_server")
KINDS: dict[str, Kind] = {
    **dict.fromkeys(("", "bash", "sh", "shell", "zsh", "console", "shell-session", "shellsession"), "shell"),
    **dict.fromkeys(("terminal", "text", "txt", "cmd", "command", "commandline", "ssh"), "shell"),
    **dict.fromkeys(("dockerfile", "docker", "containerfile"), "dockerfile"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    **dict.fromkeys(("json", "jsonc", "json5"), "json"),
    **dict.fromkeys(("python", "py", "python3"), "python"),
    **dict.fromkeys(("make", "makefile", "just"), "makefile"),
    **dict.fromkeys(("ini", "systemd", "service", "unit"), "systemd"),
}  # fmt: skip
"""First word of an info string -> how the fence is read. Others are programs."""


def find(source: Text, kind_of_page: Kind, find_kind: Callable[[Text, Kind], Finds]) -> Finds:
    """The launches of a page. A block that cannot be read is passed over: pages show fragments."""
    finds = Finds()
    for language, body in fences(source) if kind_of_page == "markdown" else rst.blocks(source):
        kind = KINDS.get(language.lower())
        if kind is None or not _NAMED.search(body.text):
            continue
        try:
            inside = find_kind(body, kind)
        except Unreadable:
            continue
        shown = [_shown(found, kind_of_page) for found in inside.found if found.launch.words]  # a name is a mention
        finds.found += shown
    return finds


def _shown(found: Found, kind: Kind) -> Found:
    """A launch on a page, where an ellipsis or `[options]` stands for arguments that are left out."""
    words, is_inside = [], False
    for word in found.launch.words:
        is_inside = is_inside or bool(_BRACKETED.match(word.text))
        is_left_out = is_inside or word.text in _LEFT_OUT
        words.append(msgspec.structs.replace(word, unknown=True, splits=True) if is_left_out else word)
        is_inside = is_inside and not word.text.endswith("]")
    launch = msgspec.structs.replace(found.launch, words=tuple(words))
    return msgspec.structs.replace(found, kind=kind, launch=launch)


def fences(source: Text) -> Iterator[tuple[str, Text]]:
    """Each fenced block: its language, and its text without indentation and prompts."""
    text, at = source.text, 0
    while opening := _FENCE.search(text, at):
        body_start = min(opening.end() + 1, len(text))
        closing = re.compile(rf"^[ \t>]*{re.escape(opening[2])}{opening[2][0]}*[ \t\r]*$", re.M).search(
            text, body_start
        )
        end = closing.start() if closing else len(text)
        console = opening[3].lower() in ("console", "shell-session", "shellsession", "")
        yield opening[3], _body(source, body_start, end, opening[1], console)
        at = closing.end() if closing else len(text)


def _body(source: Text, start: int, end: int, indent: str, console: bool) -> Text:
    builder = Builder(source)
    at = start
    for line in source.text[start:end].splitlines(keepends=True):
        skip = 0
        while skip < min(len(indent), len(line)) and line[skip] in " \t>":
            skip += 1
        if console and (prompt := _PROMPT.match(line, skip)):
            skip = prompt.end()
        builder.take(at + skip, at + len(line))
        at += len(line)
    return builder.finish()
