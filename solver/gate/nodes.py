"""Trees of scalars, lists and mappings with their offsets: what YAML and JSON texts are read into."""

from __future__ import annotations

from typing import Any, Literal

from solver.gate.found import Unreadable

DEEPEST = 100
MOST_VALUES = 200_000
"""Values in a document, each counted as often as its aliases repeat it."""


class Node:
    """`value` is the text of a scalar, the elements of a list or the (key, value) pairs of a mapping.

    `style` of a scalar: plain, ', ", | or >; of a list or mapping: block or flow. `start` and `end` include quotes and
    brackets.
    """

    __slots__ = ("_fields", "end", "kind", "start", "style", "value")

    def __init__(self, kind: Literal["scalar", "list", "map"], start: int, style: str, value: Any, end: int) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.style = style
        self.value = value
        self._fields: dict[str, tuple[Node, Node]] | None = None

    @property
    def fields(self) -> dict[str, tuple[Node, Node]]:
        """The entries of a mapping; `<<` brings in what the mapping itself does not have. Empty for anything else."""
        if self._fields is None:
            self._fields = {}  # what an alias inside of it sees
            self._fields = _entries(self) if self.kind == "map" else self._fields
        return self._fields


def _entries(node: Node) -> dict[str, tuple[Node, Node]]:
    found: dict[str, tuple[Node, Node]] = {}
    merged: list[Node] = []
    for key, value in node.value:
        if key.kind != "scalar":
            continue
        if key.value == "<<" and key.style == "plain":
            merged += value.value if value.kind == "list" else [value]
        else:
            found.setdefault(key.value, (key, value))
    for other in merged:
        for name, entry in other.fields.items():
            found.setdefault(name, entry)
    return found


def pairs(node: Node | None) -> list[tuple[str, Node, Node]]:
    """The entries of a mapping as (key, key node, value)."""
    return [(name, key, value) for name, (key, value) in node.fields.items()] if node else []


def get(node: Node | None, *path: str) -> Node | None:
    """The value at a path of keys, or None."""
    for name in path:
        entry = node.fields.get(name) if node is not None else None
        if entry is None:
            return None
        node = entry[1]
    return node


def text_at(node: Node | None, *path: str) -> str | None:
    """The scalar at a path of keys, or None."""
    node = get(node, *path)
    return node.value if node is not None and node.kind == "scalar" else None


def scalars(node: Node | None) -> list[Node] | None:
    """The elements of a list of scalars; None for anything else."""
    if node is None or node.kind != "list" or any(item.kind != "scalar" for item in node.value):
        return None
    return list(node.value)


def refuse_expansion(node: Node) -> None:
    """Refuse a document whose aliases stand for far more than is written."""
    sizes: dict[int, int] = {}

    def size(node: Node) -> int:
        known = sizes.get(id(node))
        if known is None:
            sizes[id(node)] = 1  # an alias inside what it names counts once
            children = (c for c in node.value) if node.kind == "list" else (c for pair in node.value for c in pair)
            known = sizes[id(node)] = 1 + sum(map(size, children)) if node.kind != "scalar" else 1
        return known

    if size(node) > MOST_VALUES:
        raise Unreadable(f"its aliases stand for more than {MOST_VALUES:,} values")
