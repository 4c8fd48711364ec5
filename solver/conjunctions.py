"""Conditions that must all hold -> true, false, or `Unknown` with the facts that it depends on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from solver.conditions import Evaluator, Unknown, evaluator
from solver.nodes import Node


class Conditions:
    """Conditions that must all hold, whose evaluators are made when they are first needed."""

    __slots__ = ("_made", "_nodes", "_tables")

    def __init__(self, nodes: Sequence[Node], tables: dict[str, Any]) -> None:
        self._nodes, self._tables = nodes, tables
        self._made: list[Evaluator] = []

    def hold(self, state: Any) -> Any:
        """What they say together, see `conjunction`."""
        made = self._made
        holds = conjunction(made, state)
        while holds is not False and len(made) < len(self._nodes):
            made.append(evaluator(self._nodes[len(made)], self._tables))
            holds = _both(holds, conjunction(made[-1:], state))
        return holds


def _both(one: Any, other: Any) -> Any:
    """Two results of `conjunction` in one, the first of which is not false."""
    if one is True or other is False:
        return other
    return one if other is True else Unknown(tuple(dict.fromkeys((*one.names, *other.names))), (True, False))


def conjunction(parts: Sequence[Evaluator], state: Any) -> Any:
    """True, False, or Unknown with the names it depends on."""
    names: dict[str, None] = {}
    for part in parts:
        value = part(state)
        if type(value) is Unknown:
            names.update(dict.fromkeys(value.names))
        elif not value:
            return False
    return Unknown(tuple(names), (True, False)) if names else True
