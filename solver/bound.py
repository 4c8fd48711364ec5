"""Values that depend on variables, at one point of the rules -> plain values under a binding of the variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from solver.conditions import Unknown
from solver.constraints import Lazy
from solver.facts import State
from solver.variables import DOUBT, Var


def reopened(value: Any, binding: Mapping[str, Any], name: str) -> Any:
    """A value under a binding as conditions read it: what is in doubt is unknown to them."""
    if type(value) is Var:
        value = binding[value.name]
    elif type(value) is Lazy:
        value = value.run(binding)
    return Unknown((name,)) if value is DOUBT else value


class Frozen:
    """The values of a state at one point, read under a binding of variables."""

    __slots__ = ("spaces", "state", "values")

    def __init__(self, state: State, spaces: dict[str, dict[str, Any]]) -> None:
        self.state, self.spaces = state, spaces
        self.values: Mapping[str, Any] = {}

    def bound(self, values: Mapping[str, Any]) -> Frozen:
        self.values = values
        return self

    def get(self, space: str, name: str) -> Any:
        values = self.spaces.get(space, {})
        value = values[name] if name in values else self.state.get(space, name)
        return reopened(value, self.values, f"{space}.{name}")
