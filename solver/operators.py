"""What the signs and functions of the condition language do to plain values.

Ordering against null is false, and arithmetic on null is null; values that are not known are seen to in `conditions`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from solver.texts import distinct, json_keys, json_kind, number


def _contains(item: Any, container: Any) -> bool:
    return container is not None and item is not None and item in container


def _ordered(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda left, right: False if left is None or right is None else function(left, right)


def _divided(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda left, right: function(left, right) if right else None


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "in": _contains,
    "not in": lambda item, container: not _contains(item, container),
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
}


def _null_safe(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        for arg in args:
            if arg is None:
                return None
        return function(*args)

    return call


def null_safe_pair(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A function of two that is null where one of them is."""
    return lambda left, right: None if left is None or right is None else function(left, right)


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided(operator.truediv),
    "//": _divided(operator.floordiv),
    "%": _divided(operator.mod),
    "**": operator.pow,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": _null_safe(min),
    "max": _null_safe(max),
    "round": _null_safe(round),
    "abs": _null_safe(abs),
    "ceil": _null_safe(math.ceil),
    "int": _null_safe(int),
    "len": _null_safe(len),
    "lower": _null_safe(lambda text: text.lower()),
    "startswith": _null_safe(lambda text, head: text.startswith(head)),
    "endswith": _null_safe(lambda text, tail: text.endswith(tail)),
    "distinct": distinct,
    "json_kind": json_kind,
    "json_keys": json_keys,
    "number": number,
}


def index(container: Any, key: Any) -> Any:
    """An entry of a mapping or list; null where there is none."""
    if isinstance(container, dict):
        return container.get(key)
    if isinstance(container, list | tuple) and isinstance(key, int) and -len(container) <= key < len(container):
        return container[key]
    return None
