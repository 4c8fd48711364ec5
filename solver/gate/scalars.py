"""A scalar node and the text it stands in -> its value with the way back, for each of YAML's five styles and JSON.

Value and source are walked together: characters that agree stand for themselves, an escape or a folded line end stands
for what YAML makes of it. Where the two cannot be brought together the whole scalar is the place of its value.
"""

from __future__ import annotations

import re

from solver.gate.nodes import Node
from solver.gate.text import Builder, Text

_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_CONTINUED = re.compile(r"\\\r?\n[ \t]*")
_FOLD = re.compile(r"[ \t]*(?:\r?\n[ \t]*)+")
_HEADER = re.compile(r"[|>][^\n]*\n")
_BREAK = re.compile(r"\r?\n")


def scalar_text(node: Node, source: Text) -> Text:
    """The value of a scalar with its places."""
    raw = source.text
    start = node.start + (node.style in ("'", '"'))
    if raw.startswith(node.value, start) and node.style not in ("|", ">") and "'" not in node.value:
        return source.cut(start, start + len(node.value))
    builder = Builder(source)
    whole = _block(node, builder) if node.style in ("|", ">") else _flow(node, builder, start)
    if whole:
        return builder.finish()
    builder = Builder(source)
    builder.replace(node.start, node.end, node.value)
    return builder.finish()


def _flow(node: Node, builder: Builder, at: int) -> bool:
    """Plain and quoted scalars; whether the whole value was matched."""
    raw, value = builder.source.text, node.value
    done = 0
    while done < len(value):
        char = value[done]
        if node.style == '"' and raw.startswith("\\", at):
            if continued := _CONTINUED.match(raw, at):
                at = continued.end()
                continue
            escape = _ESCAPE.match(raw, at)
            if escape is None:
                return False
            pair = escape[0][:2] == "\\u" and "\ud800" <= chr(int(escape[0][2:6], 16)) <= "\udbff"
            end = escape.end() + (6 if pair else 0)
            builder.replace(at, end, char)
            at, done = end, done + 1
        elif node.style == "'" and raw.startswith("''", at):
            builder.replace(at, at + 2, char)
            at, done = at + 2, done + 1
        elif fold := _FOLD.match(raw, at):
            text = " " if fold[0].count("\n") == 1 else "\n" * (fold[0].count("\n") - 1)
            if not value.startswith(text, done):
                return False
            builder.replace(at, fold.end(), text)
            at, done = fold.end(), done + len(text)
        else:
            run = _common(value, done, raw, at)
            if not run:
                return False
            builder.take(at, at + run)
            at, done = at + run, done + run
    return True


def _common(value: str, done: int, raw: str, at: int) -> int:
    """How many characters stand for themselves from here, up to what the style may treat otherwise."""
    run = 0
    while done + run < len(value) and value[done + run] == raw[at + run : at + run + 1]:
        char = raw[at + run]
        if char in "\\'\r\n" and run:
            break
        if char in " \t" and run and _FOLD.match(raw, at + run):
            break
        run += 1
    return run


def _block(node: Node, builder: Builder) -> bool:
    """Literal and folded scalars, line by line; whether the whole value was matched."""
    raw, value = builder.source.text, node.value
    header = _HEADER.match(raw, node.start)
    if header is None:
        return not value
    at, done = header.end(), 0
    indent = _indent(header[0], raw, at, value)
    while done < len(value):
        line_end = _BREAK.search(raw, at)
        end, after = (line_end.start(), line_end.end()) if line_end else (len(raw), len(raw))
        start = min(at + indent, end)
        if not raw[at:start].strip(" ") and value.startswith(raw[start:end], done):
            builder.take(start, end)
            done += end - start
        else:
            return False
        if done < len(value):
            folded = value[done]
            if folded == "\n":
                builder.replace(end, after, "\n")
                done += 1
            elif folded == " " and node.style == ">":
                builder.replace(end, min(after + indent, len(raw)), " ")
                done += 1
            else:
                return False
            if node.style == ">" and folded == "\n":
                after = _past_blank(raw, after, value, done)
        if after >= len(raw) and done < len(value):
            return False
        at = after
    return True


def _past_blank(raw: str, at: int, value: str, done: int) -> int:
    """In a folded scalar one line end disappears before blank lines, unless what surrounds them is indented more."""
    blank = re.compile(r"[ \t]*\r?\n").match(raw, at)
    if blank and value[done : done + 1] not in ("\n", ""):
        return blank.end()
    return at


def _indent(header: str, raw: str, at: int, value: str) -> int:
    """Columns before the content: that of the first line that has any, less the blanks that belong to the value."""
    first = next((line for line in raw[at:].split("\n") if line.strip()), "")
    shown = next((line for line in value.split("\n") if line.strip()), "")
    return len(first) - len(first.lstrip(" ")) - (len(shown) - len(shown.lstrip(" ")))
