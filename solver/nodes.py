"""Nodes: conditions in the form in which they are kept and rewritten, plain nested lists with the kind in front.

Where they come from is in `grammar`; what they are worth is in `conditions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Node = list[Any]


def walk(node: Node) -> Iterator[Node]:
    """The node and all nodes below it."""
    yield node
    for child in node[1:] if node[0] != "lit" else ():
        if isinstance(child, list) and child:
            for part in child if isinstance(child[0], list) else (child,):
                yield from walk(part)


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with each of the nodes directly below it changed."""

    def changed(child: Any) -> Any:
        if not isinstance(child, list) or not child:
            return child
        return [change(n) for n in child] if isinstance(child[0], list) else change(child)

    return node if node[0] == "lit" else [node[0], *map(changed, node[1:])]


def inlined(node: Node, lets: Mapping[str, Node]) -> Node:
    """The node with every `let` name replaced by what it stands for."""
    if node[0] == "name" and node[1] == "let":
        return lets[node[2]]
    return rebuilt(node, lambda child: inlined(child, lets))


def names_in(node: Node) -> tuple[tuple[str, str], ...]:
    """The (namespace, name) pairs that a node mentions, in order, without repeats."""
    found: dict[tuple[str, str], None] = {}
    _add_names(node, found)
    return tuple(found)


def _add_names(node: Node, found: dict[tuple[str, str], None]) -> None:
    if node[0] == "name":
        found[(node[1], node[2])] = None
    elif node[0] != "lit":
        for child in node[1:]:
            if type(child) is list and child:
                for part in child if type(child[0]) is list else (child,):
                    _add_names(part, found)
