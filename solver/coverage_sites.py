"""A release's wheel or unpacked directory -> every place of its argument path that refuses a launch or writes a value.

Read statically, nothing is imported. The argument path is `server_args.py`, `arg_groups/` and the model configuration:
the functions that can be reached by name from where a launch is resolved and checked.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from solver.learn_source import Package

Kind = Literal["raise", "assert", "write"]
FILES = ("sglang/srt/server_args.py", "sglang/srt/configs/model_config.py", "sglang/srt/dllm/config.py")
FOLDER = "sglang/srt/arg_groups/"
RECORDS_OF_THEIR_OWN = FILES[1:]
"""Files whose constructors fill another record than the arguments."""
ROOTS = (
    "__post_init__", "resolve_once", "check_server_args", "run_resolution_pipeline", "from_server_args", "ModelConfig",
    "__init__", "prepare_server_args",
)  # fmt: skip
RECORDS = ("self", "server_args", "args", "cfg", "sa")
"""Names under which the engine's functions hold the record of arguments."""
MAPS = ("overrides", "updates", "declared", "fields", "result")
"""Names of the maps in which newer releases collect what they write."""


class Site(msgspec.Struct, frozen=True):
    """One place. `flags`: what it writes, or what the nearest condition reads; `guards`: names all conditions read."""

    file: str
    symbol: str
    line: int
    kind: Kind
    flags: tuple[str, ...]
    guards: tuple[str, ...]


def sites(where: Path, names: Collection[str]) -> list[Site]:
    """All sites in the order of the files. `names`: the release's own names of its arguments."""
    package = Package(where)
    paths = [n for n in sorted(package.names) if n in FILES or (n.startswith(FOLDER) and n.endswith(".py"))]
    trees = {path: ast.parse(package.text(path)) for path in paths}
    reached = _reached(trees.values())
    found: list[Site] = []
    for path, tree in trees.items():
        for function in _functions(tree):
            if function.name in reached and not (function.name == "__init__" and path in RECORDS_OF_THEIR_OWN):
                found += _Reader(path, function.name, frozenset(names)).read(function)
    return sorted(found, key=lambda s: (s.file, s.line))


Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(tree: ast.AST) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node


def _reached(trees: Iterable[ast.AST]) -> set[str]:
    """Names of the functions that a launch can run: named by a reached one, or registered by a decorator."""
    bodies: dict[str, set[str]] = {}
    todo = list(ROOTS)
    for tree in trees:
        for function in _functions(tree):
            bodies.setdefault(function.name, set()).update(_names(function))
            if any("register" in name for d in function.decorator_list for name in _names(d)):
                todo.append(function.name)
    reached: set[str] = set()
    while todo:
        name = todo.pop()
        if name in bodies and name not in reached:
            reached.add(name)
            todo += bodies[name]
    return reached - {"add_cli_args", "__setattr__", "__getattr__", "init_new"}


def _names(node: ast.AST) -> set[str]:
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return found | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}


class _Reader:
    """Walks one function, holding the conditions around the place it is at."""

    def __init__(self, file: str, symbol: str, names: frozenset[str]) -> None:
        self.file, self.symbol, self.names = file, symbol, names

    def read(self, function: Function) -> list[Site]:
        return list(self._block(function.body, ()))

    def _block(self, body: list[ast.stmt], tests: tuple[ast.expr, ...]) -> Iterator[Site]:
        for node in body:
            yield from self._statement(node, tests)

    def _statement(self, node: ast.stmt, tests: tuple[ast.expr, ...]) -> Iterator[Site]:
        if isinstance(node, Function | ast.ClassDef):
            return
        if isinstance(node, ast.If):
            yield from self._block(node.body, (*tests, node.test))
            yield from self._block(node.orelse, (*tests, ast.UnaryOp(ast.Not(), node.test)))
        elif isinstance(node, ast.Raise):
            if node.exc is not None:
                yield self._site(node, "raise", self._read_by(tests), tests)
        elif isinstance(node, ast.Assert):
            yield self._site(node, "assert", self._read_by((*tests, node.test)), (*tests, node.test))
        elif isinstance(node, ast.For | ast.While | ast.With | ast.Try):
            for part in ("body", "orelse", "finalbody"):
                yield from self._block(getattr(node, part, []), tests)
            for handler in getattr(node, "handlers", []):
                yield from self._block(handler.body, tests)
        else:
            for name in dict.fromkeys(self._written(node)):
                yield self._site(node, "write", (name,), tests)

    def _site(self, node: ast.stmt, kind: Kind, flags: Iterable[str], tests: tuple[ast.expr, ...]) -> Site:
        guards = sorted({name for test in tests for name in _positive(test)})
        return Site(self.file, self.symbol, node.lineno, kind, tuple(flags), tuple(guards))

    def _read_by(self, tests: tuple[ast.expr, ...]) -> tuple[str, ...]:
        """The arguments that the nearest condition naming any reads."""
        for test in reversed(tests):
            found = sorted({n.attr for n in ast.walk(test) if isinstance(n, ast.Attribute) and n.attr in self.names})
            if found:
                return tuple(found)
        return ()

    def _written(self, node: ast.stmt) -> Iterator[str]:
        """The arguments that a statement gives a value."""
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id in RECORDS:
                yield from (n for n in (target.attr,) if n in self.names)
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id in MAPS:
                yield from (n for n in _texts([target.slice]) if n in self.names)
        for part in ast.walk(node):
            if isinstance(part, ast.Call) and _called(part) in ("declare_resolution", "update", "dict", "override"):
                yield from (k.arg for k in part.keywords if k.arg in self.names)
            elif isinstance(part, ast.Dict) and isinstance(node, ast.Return | ast.Assign | ast.Expr):
                yield from (n for n in _texts(part.keys) if n in self.names)


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _texts(nodes: Iterable[ast.expr | None]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _positive(test: ast.expr) -> set[str]:
    """Names that a condition reads without `not` before them."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return set()
    if isinstance(test, ast.BoolOp):
        return {name for value in test.values for name in _positive(value)}
    return _names(test)
