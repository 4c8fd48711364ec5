"""Expression of the engine's source -> its value, as far as it can be known without running anything.

Covers what argument code is made of: literals, module-level lists across imports, class attributes, enums, simple helper
functions, comprehensions and a few pure builtins. Whatever depends on the machine becomes `Unknown`, never a guess.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
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


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.BitOr: operator.or_,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.Lt: operator.lt, ast.Gt: operator.gt, ast.LtE: operator.le, ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_PURE: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (list, tuple, set, frozenset, dict, sorted, len, str, int, float, bool, range, min, max, sum, round, abs)
}
_METHODS = {"keys", "values", "items", "lower", "upper", "strip", "split", "copy", "union", "replace", "join", "get", "title"}
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
        self.module, self.local, self.special, self.depth = module, local if local is not None else {}, special or {}, depth

    def value(self, node: ast.expr | None) -> Any:
        """The value of an expression; `Unknown` where it cannot be known."""
        if node is None:
            return None
        if self.depth > _DEEP:
            return Unknown(ast.unparse(node))
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        try:
            return Unknown(ast.unparse(node)) if method is None else method(node)
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
        inner = self if not self.local else self._in(self.module)
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
            case dict() if attr in holder and attr not in _METHODS:
                return holder[attr]
        return Unknown(attr)

    def members(self, holder: Any) -> list[Any]:
        """What iterating over a value gives; for an enum class its members in order."""
        if isinstance(holder, Defined) and isinstance(holder.node, ast.ClassDef):
            names = [n.id for s in holder.node.body if isinstance(s, ast.Assign) for n in s.targets if isinstance(n, ast.Name)]
            return [self._class_attribute(holder.module, holder.node, n) for n in names]
        return list(holder)

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
                return Defined(module, None) if module and alias.asname else Dotted(alias.name if alias.asname else name)
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
        own = {t.id: s for s in node.body if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)}
        scope = self._in(module)
        used = {n.id for n in ast.walk(own[attr].value) if isinstance(n, ast.Name)} if attr in own else set()
        scope.local = {n: self._class_attribute(module, node, n) for n in sorted(used & own.keys() - {attr})}
        return scope

    # One method per node type; `value` finds them by the node's class name.

    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    def _name(self, node: ast.Name) -> Any:
        return self.lookup(node.id)

    def _attribute(self, node: ast.Attribute) -> Any:
        return self.attribute(self.value(node.value), node.attr)

    def _list(self, node: ast.List) -> Any:
        return self._items(node.elts)

    def _tuple(self, node: ast.Tuple) -> Any:
        return tuple(self._items(node.elts))

    def _set(self, node: ast.Set) -> Any:
        return set(self._items(node.elts))

    def _items(self, nodes: list[ast.expr]) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            found.extend(self.members(self.value(node.value)) if isinstance(node, ast.Starred) else [self.value(node)])
        return found

    def _dict(self, node: ast.Dict) -> Any:
        found: dict[Any, Any] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            found.update(self.value(item) if key is None else {self.value(key): self.value(item)})
        return found

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        operand = self.value(node.operand)
        if isinstance(operand, Unknown):
            return operand
        if isinstance(node.op, ast.Not):
            return not operand
        return -operand if isinstance(node.op, ast.USub) else operand

    def _binop(self, node: ast.BinOp) -> Any:
        return _BINARY[type(node.op)](self.value(node.left), self.value(node.right))

    def _boolop(self, node: ast.BoolOp) -> Any:
        result: Any = None
        for operand in node.values:
            result = self.value(operand)
            if isinstance(result, Unknown) or bool(result) == isinstance(node.op, ast.Or):
                return result
        return result

    def _compare(self, node: ast.Compare) -> Any:
        left, right = self.value(node.left), self.value(node.comparators[0])
        if len(node.ops) > 1 or isinstance(left, Unknown) or isinstance(right, Unknown):
            return Unknown(ast.unparse(node))
        return _COMPARE[type(node.ops[0])](left, right)

    def _ifexp(self, node: ast.IfExp) -> Any:
        test = self.value(node.test)
        return test if isinstance(test, Unknown) else self.value(node.body if test else node.orelse)

    def _subscript(self, node: ast.Subscript) -> Any:
        return self.value(node.value)[self.value(node.slice)]

    def _joinedstr(self, node: ast.JoinedStr) -> Any:
        parts = [self.value(p.value) if isinstance(p, ast.FormattedValue) else self.value(p) for p in node.values]
        return Unknown(ast.unparse(node)) if any(isinstance(p, Unknown) for p in parts) else "".join(map(str, parts))

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Any:
        loop = node.generators[0]
        found = []
        for item in self.members(self.value(loop.iter)):
            scope = Evaluator(self.module, {**self.local, **_unpacked(loop.target, item)}, self.special, self.depth + 1)
            if all(self.known(scope.value(c)) for c in loop.ifs):
                found.append(scope.value(node.elt))
        return set(found) if isinstance(node, ast.SetComp) else found

    _generatorexp = _setcomp = _listcomp

    def _lambda(self, node: ast.Lambda) -> Any:
        return Made(Dotted("lambda"), (), {"value": self.value(node.body)})

    def _call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            answer = self._method(node, self.value(node.func.value))
            if not isinstance(answer, Unknown):
                return answer
        callee = self.value(node.func)
        args, kwargs = [self.value(a) for a in node.args], {k.arg or "**": self.value(k.value) for k in node.keywords}
        return self.call(callee, args, kwargs)

    def _method(self, node: ast.Call, holder: Any) -> Any:
        assert isinstance(node.func, ast.Attribute)
        if isinstance(holder, str | list | tuple | dict | set):
            found = getattr(holder, node.func.attr)(*(self.value(a) for a in node.args))
            return list(found) if node.func.attr in {"keys", "values", "items"} else found
        if isinstance(holder, Made) and node.func.attr == "get" and holder.args:  # an environment descriptor, unset
            return holder.args[0]
        return Unknown(ast.unparse(node))

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


def _unpacked(target: ast.expr, item: Any) -> dict[str, Any]:
    if isinstance(target, ast.Name):
        return {target.id: item}
    if isinstance(target, ast.Tuple):
        return {t.id: i for t, i in zip(target.elts, item, strict=True) if isinstance(t, ast.Name)}
    return {}


def _auto(value: Any, node: ast.ClassDef, attr: str) -> Any:
    """`auto()` numbers members from 1 (lower-cased names in a StrEnum); anything else is kept."""
    if not isinstance(value, Made) or value.callee.name.split(".")[-1] != "auto":
        return value
    names = [t.id for s in node.body if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)]
    return attr.lower() if any("StrEnum" in ast.unparse(b) for b in node.bases) else names.index(attr) + 1
