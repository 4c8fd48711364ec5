"""YAML text -> nodes with offsets. Nothing is constructed, no tag is looked at, depth and expansion are limited."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from solver.gate.found import Unreadable
from solver.gate.nodes import DEEPEST, MOST_VALUES, Node, refuse_expansion


def documents(text: str) -> Iterator[Node]:
    """The documents of a YAML text, one after the other. Errors: Unreadable with the line and what is wrong there."""
    import yaml

    try:
        yield from _compose(text, yaml)
    except yaml.MarkedYAMLError as error:
        if "nesting" in str(error.problem):
            raise Unreadable(f"nested more than {DEEPEST} levels deep") from None
        mark = error.problem_mark or error.context_mark
        where = f" on line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise Unreadable(f"not YAML{where}: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise Unreadable(f"not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise Unreadable(f"nested more than {DEEPEST} levels deep") from None


def _compose(text: str, yaml: Any) -> Iterator[Node]:
    """The events of the parser alone -> documents, without recursion. Aliases share the node they name.

    There is no loader, so that nothing can be constructed.
    """
    parser: Any = yaml.cyaml.CParser(text) if hasattr(yaml, "cyaml") else yaml.SafeLoader(text)
    next_event, scalar, alias, end = parser.get_event, yaml.ScalarEvent, yaml.AliasEvent, yaml.StreamEndEvent
    anchors: dict[str, Node] = {}
    stack: list[tuple[Node, list[Any]]] = []
    count = 0
    repeats = False
    while (kind := type(event := next_event())) is not end:
        if kind is scalar:
            style = event.style
            style = "plain" if not style or style == "\x00" else style
            node = Node("scalar", event.start_mark.index, style, event.value, event.end_mark.index)
        elif kind is yaml.SequenceStartEvent or kind is yaml.MappingStartEvent:
            style = "flow" if event.flow_style else "block"
            node = Node("list" if kind is yaml.SequenceStartEvent else "map", event.start_mark.index, style, [], 0)
        elif kind is alias:
            if event.anchor not in anchors:
                raise Unreadable(
                    f"not YAML on line {event.start_mark.line + 1}: the alias *{event.anchor} names nothing"
                )
            node, repeats = anchors[event.anchor], True
        else:
            if kind is yaml.SequenceEndEvent or kind is yaml.MappingEndEvent:
                node, values = stack.pop()
                node.end = event.end_mark.index
                node.value = values if node.kind == "list" else list(zip(values[::2], values[1::2], strict=True))
                if not stack:
                    if repeats:
                        refuse_expansion(node)
                    yield node
            elif kind is yaml.DocumentStartEvent:
                anchors, repeats = {}, False
            continue
        count += 1
        if len(stack) >= DEEPEST:
            raise Unreadable(f"nested more than {DEEPEST} levels deep")
        if count > MOST_VALUES:
            raise Unreadable(f"holds more than {MOST_VALUES:,} values")
        if kind is not alias and event.anchor:
            anchors[event.anchor] = node
        if stack:
            stack[-1][1].append(node)
        elif kind is scalar:
            yield node
        if kind is not scalar and kind is not alias:
            stack.append((node, []))
