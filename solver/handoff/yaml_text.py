"""Nested data -> block YAML with comments, the same for readers of YAML 1.1 and 1.2.

A text is written plain where no reader could take it for anything else, else in double quotes. A key that begins with
`#` is a comment line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_PLAIN = re.compile(r"(?:--?)?[A-Za-z/][\w./-]*(?::[A-Za-z0-9/][\w./-]*)?", re.ASCII)
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"))
"""Words that one reader or another takes for a truth value or nothing."""
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def yaml_text(data: Mapping[str, Any]) -> str:
    """The YAML text of a mapping, without a line end after its last line."""
    return "\n".join(_lines(data))


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key.startswith("#"):
                yield key
            elif isinstance(item, Mapping | list) and item:
                yield f"{scalar(key)}:"
                yield from (f"  {line}" for line in _lines(item))
            else:
                yield f"{scalar(key)}: {scalar(item)}"
        return
    for item in value:
        if not isinstance(item, Mapping | list) or not item:
            yield f"- {scalar(item)}"
            continue
        for number, line in enumerate(_lines(item)):
            yield f"  {line}" if number else f"- {line}"


def scalar(value: Any) -> str:
    """One value on one line: text, number, truth value, or an empty collection."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Mapping | list):
        return "{}" if isinstance(value, Mapping) else "[]"
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return str(value)
    return f'"{"".join(_escaped(char) for char in value)}"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
