"""JSON text (comments and trailing commas allowed, as editors do) -> nodes with offsets.

Grammar:

    value   := object | array | string | other
    object  := { (string : value),* }
    array   := [ value,* ]
    string  := "(character | escape)*"
    other   := number | true | false | null      kept as written
    blank   := spaces | // to the line's end | /* ... */
"""

from __future__ import annotations

import json
import re

from solver.gate.found import Unreadable
from solver.gate.nodes import DEEPEST, Node

_BLANK = re.compile(r"(?:[ \t\r\n]+|\ufeff|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_BEFORE_BLANK = " \t\r\n\ufeff/"
_PLAIN = re.compile(r'"([^"\\\x00-\x1f]*)"(?:[ \t\r\n]*(,)[ \t\r\n]*)?')
"""A text without escapes and the comma after it: what lists of arguments are made of."""
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_OTHER = re.compile(r"[-+.\w]+", re.ASCII)


def document(text: str) -> Node:
    """The value of a JSON text; of several lines with a value each, their list. Errors: Unreadable with the line and
    what is wrong there."""
    node, at = value_at(text, 0)
    values = [node]
    while (start := _skip(text, at)) < len(text):
        if "\n" not in text[at:start]:
            raise _wrong(text, start, "something follows the value")
        node, at = value_at(text, start)
        values.append(node)
    return values[0] if len(values) == 1 else Node("list", 0, "block", values, at)


def value_at(text: str, at: int, depth: int = 0) -> tuple[Node, int]:
    """The value that starts at an offset, and the offset after it."""
    at = _skip(text, at)
    if depth > DEEPEST:
        raise Unreadable(f"nested more than {DEEPEST} levels deep")
    char = text[at : at + 1]
    if char == "[":
        return _array(text, at, depth)
    if char == "{":
        return _object(text, at, depth)
    if char == '"':
        return _string(text, at)
    if match := _OTHER.match(text, at):
        return Node("scalar", at, "plain", match[0], match.end()), match.end()
    raise _wrong(text, at, "expected a value")


def _array(text: str, start: int, depth: int) -> tuple[Node, int]:
    items: list[Node] = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != "]":
        if plain := _PLAIN.match(text, at):
            items.append(Node("scalar", at, '"', plain[1], plain.end(1) + 1))
            at = _skip(text, plain.end()) if plain[2] else _comma(text, plain.end(), "]")
            continue
        item, at = value_at(text, at, depth + 1)
        items.append(item)
        at = _comma(text, at, "]")
    return Node("list", start, "flow", items, at + 1), at + 1


def _object(text: str, start: int, depth: int) -> tuple[Node, int]:
    found: list[tuple[Node, Node]] = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != "}":
        if text[at : at + 1] != '"':
            raise _wrong(text, at, "expected a name in double quotes")
        key, at = _string(text, at)
        at = _skip(text, at)
        if text[at : at + 1] != ":":
            raise _wrong(text, at, "expected a colon")
        value, at = value_at(text, at + 1, depth + 1)
        found.append((key, value))
        at = _comma(text, at, "}")
    return Node("map", start, "flow", found, at + 1), at + 1


def _comma(text: str, at: int, closing: str) -> int:
    """Past the comma after an element, up to the next one or the end."""
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        return _skip(text, at + 1)
    if text[at : at + 1] != closing:
        raise _wrong(text, at, f"expected a comma or {closing}")
    return at


def _string(text: str, at: int) -> tuple[Node, int]:
    match = _STRING.match(text, at)
    try:
        value = None if match is None else json.loads(match[0]) if "\\" in match[0] else match[0][1:-1]
    except ValueError:
        value = None
    if match is None or value is None:
        raise _wrong(text, at, "a text is not closed or holds a wrong escape")
    return Node("scalar", at, '"', value, match.end()), match.end()


def _skip(text: str, at: int) -> int:
    if text[at : at + 1] not in _BEFORE_BLANK:
        return at
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _wrong(text: str, at: int, problem: str) -> Unreadable:
    line = text.count("\n", 0, at) + 1
    return Unreadable(f"not JSON on line {line}, column {at - text.rfind(chr(10), 0, at)}: {problem}")
