"""One expression node + the names in scope -> its value; a function for each node type that argument code uses."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, Protocol

from solver.learn_values import Dotted, Made, Unknown

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
_OF_TEXTS = {"lower", "upper", "title", "strip", "split", "replace", "join"}
KEPT_METHODS = _OF_TEXTS | {"keys", "values", "items", "get", "copy", "union"}


class Scope(Protocol):
    """What the node functions need from the evaluator."""

    def value(self, node: ast.expr | None) -> Any: ...
    def lookup(self, name: str) -> Any: ...
    def attribute(self, holder: Any, attr: str) -> Any: ...
    def members(self, holder: Any) -> list[Any]: ...
    def call(self, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any: ...
    def nested(self, names: dict[str, Any]) -> Scope: ...
    def known(self, value: Any) -> bool: ...


def _constant(scope: Scope, node: ast.Constant) -> Any:
    return node.value


def _name(scope: Scope, node: ast.Name) -> Any:
    return scope.lookup(node.id)


def _attribute(scope: Scope, node: ast.Attribute) -> Any:
    return scope.attribute(scope.value(node.value), node.attr)


def _list(scope: Scope, node: ast.List) -> Any:
    return _items(scope, node.elts)


def _tuple(scope: Scope, node: ast.Tuple) -> Any:
    return tuple(_items(scope, node.elts))


def _set(scope: Scope, node: ast.Set) -> Any:
    return set(_items(scope, node.elts))


def _items(scope: Scope, nodes: list[ast.expr]) -> list[Any]:
    found: list[Any] = []
    for node in nodes:
        found.extend(scope.members(scope.value(node.value)) if isinstance(node, ast.Starred) else [scope.value(node)])
    return found


def _dict(scope: Scope, node: ast.Dict) -> Any:
    found: dict[Any, Any] = {}
    for key, item in zip(node.keys, node.values, strict=True):
        found.update(scope.value(item) if key is None else {scope.value(key): scope.value(item)})
    return found


def _unaryop(scope: Scope, node: ast.UnaryOp) -> Any:
    operand = scope.value(node.operand)
    if isinstance(operand, Unknown):
        return operand
    if isinstance(node.op, ast.Not):
        return not operand
    return -operand if isinstance(node.op, ast.USub) else operand


def _binop(scope: Scope, node: ast.BinOp) -> Any:
    return _BINARY[type(node.op)](scope.value(node.left), scope.value(node.right))


def _boolop(scope: Scope, node: ast.BoolOp) -> Any:
    result: Any = None
    for operand in node.values:
        result = scope.value(operand)
        if isinstance(result, Unknown) or bool(result) == isinstance(node.op, ast.Or):
            return result
    return result


def _compare(scope: Scope, node: ast.Compare) -> Any:
    left, right = scope.value(node.left), scope.value(node.comparators[0])
    if len(node.ops) > 1 or isinstance(left, Unknown) or isinstance(right, Unknown):
        return Unknown(ast.unparse(node))
    return _COMPARE[type(node.ops[0])](left, right)


def _ifexp(scope: Scope, node: ast.IfExp) -> Any:
    test = scope.value(node.test)
    return test if isinstance(test, Unknown) else scope.value(node.body if test else node.orelse)


def _subscript(scope: Scope, node: ast.Subscript) -> Any:
    return scope.value(node.value)[scope.value(node.slice)]


def _joinedstr(scope: Scope, node: ast.JoinedStr) -> Any:
    parts = [scope.value(p.value) if isinstance(p, ast.FormattedValue) else scope.value(p) for p in node.values]
    return Unknown(ast.unparse(node)) if any(isinstance(p, Unknown) for p in parts) else "".join(map(str, parts))


def _listcomp(scope: Scope, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Any:
    loop = node.generators[0]
    found = []
    for item in scope.members(scope.value(loop.iter)):
        inner = scope.nested(_unpacked(loop.target, item))
        if all(inner.known(inner.value(c)) for c in loop.ifs):
            found.append(inner.value(node.elt))
    return set(found) if isinstance(node, ast.SetComp) else found


def _lambda(scope: Scope, node: ast.Lambda) -> Any:
    return Made(Dotted("lambda"), (), {"value": scope.value(node.body)})


def _call(scope: Scope, node: ast.Call) -> Any:
    if isinstance(node.func, ast.Attribute) and node.func.attr in KEPT_METHODS:
        answer = _method(scope, node, scope.value(node.func.value))
        if not isinstance(answer, Unknown):
            return answer
    callee = scope.value(node.func)
    args, kwargs = [scope.value(a) for a in node.args], {k.arg or "**": scope.value(k.value) for k in node.keywords}
    return scope.call(callee, args, kwargs)


def _method(scope: Scope, node: ast.Call, holder: Any) -> Any:
    assert isinstance(node.func, ast.Attribute)
    if isinstance(holder, str | list | tuple | dict | set):
        found = getattr(holder, node.func.attr)(*(scope.value(a) for a in node.args))
        return list(found) if node.func.attr in {"keys", "values", "items"} else found
    if isinstance(holder, Made) and node.func.attr == "get" and holder.args:  # an environment descriptor, unset
        return holder.args[0]
    return Unknown(ast.unparse(node))


def _unpacked(target: ast.expr, item: Any) -> dict[str, Any]:
    if isinstance(target, ast.Name):
        return {target.id: item}
    if isinstance(target, ast.Tuple):
        return {t.id: i for t, i in zip(target.elts, item, strict=True) if isinstance(t, ast.Name)}
    return {}


NODES: dict[type[ast.expr], Callable[[Scope, Any], Any]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.List: _list,
    ast.Tuple: _tuple,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.UnaryOp: _unaryop,
    ast.BinOp: _binop,
    ast.BoolOp: _boolop,
    ast.Compare: _compare,
    ast.IfExp: _ifexp,
    ast.Subscript: _subscript,
    ast.JoinedStr: _joinedstr,
    ast.ListComp: _listcomp,
    ast.GeneratorExp: _listcomp,
    ast.SetComp: _listcomp,
    ast.Lambda: _lambda,
    ast.Call: _call,
}
