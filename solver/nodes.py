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
        if isinstance(child, list):
            if child and isinstance(child[0], str) and child[0] in _KINDS:
                yield from walk(child)
            else:
                for item in child:
                    if isinstance(item, list) and item and isinstance(item[0], str) and item[0] in _KINDS:
                        yield from walk(item)


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


_KINDS = frozenset(
    "lit name table release var and or not bin if list index cmp call any all set".split()  # noqa: SIM905  # shorter
)  # first item of every node


def names_in(node: Node) -> tuple[tuple[str, str], ...]:
    """The (namespace, name) pairs that a node mentions, in order, without repeats."""
    found = {(n[1], n[2]): None for n in walk(node) if n[0] == "name"}
    return tuple(found)
