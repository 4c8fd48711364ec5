"""Wheel or unpacked directory -> parsed modules of one release, looked up by dotted name. Nothing is imported.

`Package` hides whether the files lie in a wheel (zip) or a directory, `Module` finds what a top-level name is bound to.
"""

from __future__ import annotations

import ast
import re
import zipfile
from collections.abc import Iterator
from datetime import date
from functools import cached_property
from pathlib import Path


class Package:
    """The Python files of one unpacked or packed wheel, and its version and build date."""

    def __init__(self, where: Path) -> None:
        self.where = where
        self._zip = zipfile.ZipFile(where) if where.is_file() else None
        self._modules: dict[str, Module | None] = {}

    @cached_property
    def names(self) -> frozenset[str]:
        """Paths inside the wheel, with forward slashes."""
        if self._zip is not None:
            return frozenset(self._zip.namelist())
        return frozenset(p.relative_to(self.where).as_posix() for p in self.where.rglob("*") if p.is_file())

    def text(self, path: str) -> str:
        raw = self._zip.read(path) if self._zip is not None else (self.where / path).read_bytes()
        return raw.decode("utf-8", errors="replace")

    @cached_property
    def version(self) -> str:
        """The version in the wheel's own metadata."""
        for name in sorted(self.names):
            if re.fullmatch(r"sglang-[^/]+\.dist-info/METADATA", name):
                found = re.search(r"^Version: (\S+)$", self.text(name), re.MULTILINE)
                if found:
                    return found[1]
        raise ValueError(f"{self.where}: no release of SGLang (no sglang-*.dist-info); give a .whl or an unpacked one")

    @cached_property
    def date(self) -> str:
        """Newest file time of the package, ISO; an unpacked directory keeps the times of its wheel."""
        if self._zip is not None:
            return date(*max(i.date_time for i in self._zip.infolist())[:3]).isoformat()
        newest = max((self.where / n).stat().st_mtime for n in self.names)
        return date.fromtimestamp(newest).isoformat()

    def module(self, dotted: str) -> Module | None:
        """The parsed module, or None where the package has no such file."""
        if dotted not in self._modules:
            base = dotted.replace(".", "/")
            path = next((p for p in (f"{base}.py", f"{base}/__init__.py") if p in self.names), None)
            self._modules[dotted] = None if path is None else Module(self, dotted, path)
        return self._modules[dotted]


class Module:
    """One parsed file. `binding` gives the statement that binds a top-level name."""

    def __init__(self, package: Package, name: str, path: str) -> None:
        self.package, self.name, self.path = package, name, path
        self.tree = ast.parse(package.text(path))

    @cached_property
    def bindings(self) -> dict[str, ast.stmt]:
        """First binding of each top-level name; branches of `if` and `try` count, the first one wins."""
        found: dict[str, ast.stmt] = {}
        for statement in _flat(self.tree.body):
            for name in _bound(statement):
                found.setdefault(name, statement)
        return found

    def absolute(self, node: ast.ImportFrom) -> str:
        """Dotted name of the module that `from … import` reads, relative levels resolved."""
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        if not self.path.endswith("__init__.py"):
            parts = parts[:-1]
        parts = parts[: len(parts) - (node.level - 1)]
        return ".".join([*parts, *([node.module] if node.module else [])])


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.If):
            yield from _flat(statement.body)
            yield from _flat(statement.orelse)
        elif isinstance(statement, ast.Try):
            yield from _flat(statement.body)
            for handler in statement.handlers:
                yield from _flat(handler.body)
        else:
            yield statement


def _bound(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.Assign(targets=targets):
            yield from (t.id for t in targets if isinstance(t, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names):
            yield from ((a.asname or a.name.split(".")[0]) for a in names)
        case ast.ImportFrom(names=names):
            yield from ((a.asname or a.name) for a in names)
