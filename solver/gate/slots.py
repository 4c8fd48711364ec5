"""A mapping that says what is started -> where another variable for it can be written, and how."""

from __future__ import annotations

from solver.gate.found import Slot
from solver.gate.nodes import Node, get
from solver.gate.text import Text
from solver.records import Span


def slot_in(node: Node, source: Text, key: str) -> Slot | None:
    """In front of the first variable of `env:` or `environment:`, else as a new key in front of the command."""
    env = get(node, key)
    if env is not None and env.kind != "scalar" and env.value:
        return _before_first(env, source)
    if env is not None or node.style == "flow":
        return None
    first = next((k for k, _ in node.value if k.value in ("command", "args", "entrypoint")), None)
    if first is None:
        return None
    indent = _column(source, first.start)
    if indent is None:
        return None
    entry = '{name}: "{value}"' if key == "environment" else '- {name: {name}, value: "{value}"}'
    return _at(source, first.start, f"{key}:\n{indent}  {entry}\n{indent}")


def _before_first(env: Node, source: Text) -> Slot | None:
    first = env.value[0] if env.kind == "list" else env.value[0][0]
    if env.kind == "map":
        entry = '{name}: "{value}"'
    else:
        entry = "{name}={value}" if first.kind == "scalar" else '{name: {name}, value: "{value}"}'
    if env.style == "flow":
        return _at(source, first.start, f"{entry}, ")
    start = first.start
    if env.kind == "list":
        start = source.text.rfind("-", 0, start)
        entry = f"- {entry}"
    indent = _column(source, start)
    return None if indent is None else _at(source, start, f"{entry}\n{indent}")


def _column(source: Text, start: int) -> str | None:
    """The indentation of something that stands at the beginning of its line, a list's dash counted as blank."""
    line = source.text[source.text.rfind("\n", 0, start) + 1 : start]
    return " " * len(line) if not line.strip(" -") and "\t" not in line else None


def _at(source: Text, start: int, text: str) -> Slot | None:
    place = source.place(Span(start, start + 1))
    return Slot(place.start, text) if place else None
