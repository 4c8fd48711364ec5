"""Expression of the engine's source -> its value, as far as it can be known without running anything.

Covers what argument code is made of: literals, module-level lists across imports, class attributes, enums, simple
helper functions, comprehensions and a few pure builtins. What depends on the machine becomes `Unknown`, never a guess.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from solver.learn_nodes import KEPT_METHODS, NODES
from solver.learn_source import Module
from solver.learn_values import Defined, Dotted, Made, Member, Unknown

_PURE: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (list, tuple, set, frozenset, dict, sorted, len, str, int, float, bool, range, min, max, sum, round, abs)
}
_CHANGES = {"extend", "append", "add", "update", "insert", "remove", "discard"}
_DECLARES = {"field", "auto"}
_DEEP = 40


class Evaluator:
    """Evaluates expressions of one module. `local` overrides names; `special` answers calls by the callee's name."""

    def __init__(
        self,
        module: Module,
        local: dict[str, Any] | None = None,
        special: dict[str, Callable[..., Any]] | None = None,
        depth: int = 0,
    ) -> None:
        self.module, self.depth = module, depth
        self.local = local if local is not None else {}
        self.special = special or {}

    def value(self, node: ast.expr | None) -> Any:
        """The value of an expression; `Unknown` where it cannot be known."""
        if node is None:
            return None
        if self.depth > _DEEP:
            return Unknown(ast.unparse(node))
        read = NODES.get(type(node))
        try:
            return Unknown(ast.unparse(node)) if read is None else read(self, node)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return Unknown(ast.unparse(node))

    def run(self, body: Iterable[ast.stmt]) -> Any:
        """Run the statements of a helper function: assignments, imports, known branches, return."""
        for statement in body:
            match statement:
                case ast.Return(value=value):
                    return self.value(value)
                case ast.If(test=test, body=then, orelse=other):
                    done = self.run(then if self.known(self.value(test)) else other)
                    if done is not None:
                        return done
                case _:
                    self.step(statement)
        return None

    def step(self, statement: ast.stmt) -> None:
        """One simple statement: bind its names or apply its change to a list or set."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.local[name] = self.value(value)
            case ast.Import() | ast.ImportFrom():
                for alias in statement.names:
                    name = alias.asname or alias.name.split(".")[0]
                    self.local[name] = self._imported(statement, name)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr=attr), args=args)) if attr in _CHANGES:
                held, given = self.value(target), [self.value(a) for a in args]
                if isinstance(held, list | set | dict) and not any(isinstance(g, Unknown) for g in given):
                    getattr(held, attr)(*given)
            case _:
                pass

    @staticmethod
    def known(value: Any) -> bool:
        """Truth of a condition; one that cannot be known counts as false (a plain CUDA machine, nothing set)."""
        return not isinstance(value, Unknown) and bool(value)

    def lookup(self, name: str) -> Any:
        if name in self.local:
            return self.local[name]
        statement = self.module.bindings.get(name)
        if statement is None:
            return Dotted(name)
        inner = self._in(self.module)
        match statement:
            case ast.Assign(value=value):
                return inner._changed(name, inner.value(value))
            case ast.AnnAssign(value=value) if value is not None:
                return inner._changed(name, inner.value(value))
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                return Defined(self.module, statement)
            case ast.Import() | ast.ImportFrom():
                return self._imported(statement, name)
        return Unknown(name)

    def attribute(self, holder: Any, attr: str) -> Any:
        """`holder.attr` for modules, classes, instances of classes and enum members."""
        match holder:
            case Dotted(name=name):
                return Dotted(f"{name}.{attr}")
            case Defined(module=module, node=None):
                return self._in(module).lookup(attr)
            case Defined(module=module, node=ast.ClassDef() as node):
                return self._class_attribute(module, node, attr)
            case Made(callee=Defined() as made):
                return self.attribute(made, attr)
            case Member():
                return holder.name if attr == "name" else holder.value if attr == "value" else Unknown(attr)
            case dict() if attr in holder and attr not in KEPT_METHODS:
                return holder[attr]
        return Unknown(attr)

    def members(self, holder: Any) -> list[Any]:
        """What iterating over a value gives; for an enum class its members in order."""
        if isinstance(holder, Defined) and isinstance(holder.node, ast.ClassDef):
            return [self._class_attribute(holder.module, holder.node, n) for n in _own(holder.node)]
        return list(holder)

    def nested(self, names: dict[str, Any]) -> Evaluator:
        """The same scope with more local names, for the inside of a comprehension."""
        return Evaluator(self.module, {**self.local, **names}, self.special, self.depth + 1)

    def _in(self, module: Module) -> Evaluator:
        return Evaluator(module, special=self.special, depth=self.depth + 1)

    def _changed(self, name: str, value: Any) -> Any:
        """Apply unconditional top-level `NAME += …` and `NAME.extend(…)` to a list before it is used."""
        if not isinstance(value, list | set):
            return value
        value = value.copy()
        scope = Evaluator(self.module, {name: value}, self.special, self.depth + 1)
        for statement in self.module.tree.body:
            match statement:
                case ast.AugAssign(target=ast.Name(id=target), value=more) if target == name:
                    value += scope.value(more)
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=target)))) if target == name:
                    scope.step(statement)
        return value

    def _imported(self, statement: ast.Import | ast.ImportFrom, name: str) -> Any:
        package = self.module.package
        for alias in statement.names:
            if (alias.asname or alias.name.split(".")[0]) != name:
                continue
            if isinstance(statement, ast.Import):
                module = package.module(alias.name)
                if not alias.asname:
                    return Dotted(name)
                return Defined(module, None) if module else Dotted(alias.name)
            source = self.module.absolute(statement)
            submodule, module = package.module(f"{source}.{alias.name}"), package.module(source)
            if module is not None and alias.name in module.bindings:
                return self._in(module).lookup(alias.name)
            return Defined(submodule, None) if submodule else Dotted(f"{source}.{alias.name}")
        return Unknown(name)

    def _class_attribute(self, module: Module, node: ast.ClassDef, attr: str) -> Any:
        scope = self._in_class(module, node, attr)
        bases = [ast.unparse(b).split(".")[-1] for b in node.bases]
        for statement in node.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == attr:
                    found = scope.value(value)
                    return Member(attr, _auto(found, node, attr)) if any("Enum" in b for b in bases) else found
                case ast.AnnAssign(target=ast.Name(id=name), value=value) if name == attr and value is not None:
                    return scope.value(value)
                case ast.FunctionDef(name=name) if name == attr:
                    return Defined(module, statement)
        for base in node.bases:
            found = scope.attribute(scope.value(base), attr)
            if not isinstance(found, Unknown | Dotted):
                return found
        return Unknown(attr)

    def _in_class(self, module: Module, node: ast.ClassDef, attr: str) -> Evaluator:
        """A class body sees its own earlier names; those that the attribute's value mentions are made local."""
        own = _own(node)
        scope = self._in(module)
        used = {n.id for n in ast.walk(own[attr]) if isinstance(n, ast.Name)} if attr in own else set()
        scope.local = {n: self._class_attribute(module, node, n) for n in sorted(used & own.keys() - {attr})}
        return scope

    def call(self, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """The result of calling `callee`: pure builtins and helper functions are evaluated, classes give `Made`."""
        name = callee.name if isinstance(callee, Dotted | Defined) else ""
        if name in self.special:
            return self.special[name](*args, **kwargs)
        if name in _PURE and isinstance(callee, Dotted):
            if args and isinstance(args[0], Defined):
                args = [self.members(args[0]), *args[1:]]
            return Unknown(name) if any(isinstance(a, Unknown) for a in args) else _PURE[name](*args)
        if isinstance(callee, Defined) and isinstance(callee.node, ast.FunctionDef):
            params = [p.arg for p in callee.node.args.args]
            local = {**dict(zip(params, args, strict=False)), **kwargs}
            result = Evaluator(callee.module, local, self.special, self.depth + 1).run(callee.node.body)
            return Unknown(name) if result is None else result
        made = isinstance(callee, Defined) or (isinstance(callee, Dotted) and name.split(".")[-1] in _DECLARES)
        return Made(callee, tuple(args), kwargs) if made else Unknown(name)


def _auto(value: Any, node: ast.ClassDef, attr: str) -> Any:
    """`auto()` numbers members from 1 (lower-cased names in a StrEnum); anything else is kept."""
    if not isinstance(value, Made) or value.callee.name.split(".")[-1] != "auto":
        return value
    return attr.lower() if any("StrEnum" in ast.unparse(b) for b in node.bases) else list(_own(node)).index(attr) + 1


def _own(node: ast.ClassDef) -> dict[str, ast.expr]:
    """Names that a class body assigns, in order, with their expressions."""
    assigned = [s for s in node.body if isinstance(s, ast.Assign)]
    return {t.id: s.value for s in assigned for t in s.targets if isinstance(t, ast.Name)}
