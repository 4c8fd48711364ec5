"""What reading source text can find: plain Python values, and these records for everything that is not one.

`plain` turns a found value into what YAML can hold.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from solver.learn_source import Module


@dataclass(frozen=True)
class Unknown:
    """A value that only the running engine knows; `text` is the expression."""

    text: str


@dataclass(frozen=True)
class Dotted:
    """Something outside the package (`json.loads`, `argparse.SUPPRESS`) or a builtin (`str`)."""

    name: str


@dataclass(frozen=True)
class Defined:
    """A class, function or whole module of the package."""

    module: Module
    node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | None

    @property
    def name(self) -> str:
        return self.module.name if self.node is None else self.node.name


@dataclass(frozen=True)
class Made:
    """An object made by calling something of the package or outside it: the callee and its arguments."""

    callee: Dotted | Defined
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(hash=False)


@dataclass(frozen=True)
class Member:
    """A member of an enum."""

    name: str
    value: Any


def plain(value: Any) -> Any:
    """A value as YAML can hold it; `argparse.SUPPRESS` (no default of its own) is null, an enum member its value."""
    match value:
        case Member(value=held):
            return plain(held)
        case Dotted(name="argparse.SUPPRESS"):
            return None
        case list() | tuple():
            items = [plain(v) for v in value]
            return next((i for i in items if isinstance(i, Unknown)), items)
        case set() | frozenset():
            return sorted((plain(v) for v in value), key=str)
        case dict():
            return {str(plain(k)): plain(v) for k, v in value.items()}
        case Dotted() | Defined() | Made():
            return Unknown(repr(value))
    return value
