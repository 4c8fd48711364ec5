"""Condition text -> nodes: plain nested lists, fit for the compiled cache.

Grammar (Python's syntax, parsed with `ast` against a whitelist, never evaluated as Python):

    condition := or | and | not | comparison
    comparison:= sum (== != < <= > >=, in, not in) sum | name is set | name is unset
    sum       := + - * / // % ** unary minus | call | value if condition else value
    call      := min max round abs ceil int len lower startswith endswith json_kind json_keys number distinct (…)
                 | any(… for x in …) | all(… for x in …)
    value     := literal | list | @table | @table[key] | namespace.name | release | x
    namespace := flag given env model hardware software let estimate request
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any

from solver.conditions import evaluator
from solver.errors import ConditionError
from solver.nodes import Node, rebuilt
from solver.operators import COMPARISONS, FUNCTIONS

NAMESPACES = ("flag", "given", "env", "model", "hardware", "software", "let", "estimate", "request")

_OPERATORS: dict[type, str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in",
    ast.NotIn: "not in", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//",
    ast.Mod: "%", ast.Pow: "**",
}  # fmt: skip


def parse(text: str) -> Node:
    """Parse one condition or expression; ConditionError names the offending part."""
    try:
        tree = ast.parse(_tables_to_names(text), mode="eval")
    except SyntaxError as error:
        raise ConditionError(f"not a condition: {text!r} ({error.msg})") from None
    return _node(tree.body, text, ())


def _tables_to_names(text: str) -> str:
    """`@name` outside quotes becomes the attribute access `table.name`."""
    parts = re.split(r"""("[^"]*"|'[^']*')""", text)
    return "".join(p if i % 2 else re.sub(r"@([a-z][a-z0-9_]*)", r"table.\1", p) for i, p in enumerate(parts)).strip()


def _node(tree: ast.AST, text: str, variables: tuple[str, ...]) -> Node:
    def sub(child: ast.AST) -> Node:
        return _node(child, text, variables)

    match tree:
        case ast.Constant(value=value) if value is None or isinstance(value, str | int | float | bool):
            return ["lit", value]
        case ast.Name(id="release"):
            return ["release"]
        case ast.Name(id=name) if name in variables:
            return ["var", name]
        case ast.Name(id="null"):
            return ["lit", None]
        case ast.Name(id="true" | "false" as word):
            return ["lit", word == "true"]
        case ast.Attribute(value=ast.Name(id="table"), attr=name):
            return ["table", name]
        case ast.Attribute(value=ast.Name(id=space), attr=name) if space in NAMESPACES:
            return ["name", space, name]
        case ast.BoolOp(op=op, values=values):
            return ["and" if isinstance(op, ast.And) else "or", [sub(v) for v in values]]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ["not", sub(operand)]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return ["bin", "-", ["lit", 0], sub(operand)]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return ["bin", _OPERATORS[type(op)], sub(left), sub(right)]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return ["if", sub(test), sub(body), sub(orelse)]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return ["list", [sub(i) for i in items]]
        case ast.Subscript(value=value, slice=index):
            return ["index", sub(value), sub(index)]
        case ast.Compare():
            return _comparison(tree, text, variables)
        case ast.Call():
            return _call(tree, text, variables)
    raise ConditionError(f"{ast.unparse(tree)!r} is not part of the condition language, in {text!r}")


def _comparison(tree: ast.Compare, text: str, variables: tuple[str, ...]) -> Node:
    left = _node(tree.left, text, variables)
    parts: list[Node] = []
    for op, right_tree in zip(tree.ops, tree.comparators, strict=True):
        if isinstance(op, ast.Is | ast.IsNot):
            word = right_tree.id if isinstance(right_tree, ast.Name) else ""
            if isinstance(op, ast.IsNot) or word not in ("set", "unset"):
                raise ConditionError(f"`is` takes only `set` or `unset`, in {text!r}")
            parts.append(["set", left] if word == "set" else ["not", ["set", left]])
            continue
        right = _node(right_tree, text, variables)
        parts.append(["cmp", _OPERATORS[type(op)], left, right])
        left = right
    return parts[0] if len(parts) == 1 else ["and", parts]


def _call(tree: ast.Call, text: str, variables: tuple[str, ...]) -> Node:
    name = tree.func.id if isinstance(tree.func, ast.Name) else ast.unparse(tree.func)
    if name in ("any", "all") and len(tree.args) == 1 and isinstance(tree.args[0], ast.GeneratorExp):
        loop = tree.args[0].generators[0]
        if len(tree.args[0].generators) > 1 or loop.ifs or not isinstance(loop.target, ast.Name):
            raise ConditionError(f"{name}(… for x in …) takes one plain loop, in {text!r}")
        inner = _node(tree.args[0].elt, text, (*variables, loop.target.id))
        return [name, inner, loop.target.id, _node(loop.iter, text, variables)]
    if name not in FUNCTIONS or tree.keywords:
        raise ConditionError(f"unknown function {name!r} (known: {', '.join(sorted(FUNCTIONS))}), in {text!r}")
    return ["call", name, [_node(a, text, variables) for a in tree.args]]


def literal(value: Any) -> Node:
    """The node of a plain YAML value; `{expr: text}` is parsed."""
    if isinstance(value, dict) and set(value) == {"expr"}:
        return parse(value["expr"])
    return ["lit", value]


def fold_release(node: Node, key: Callable[[str], Any], release: str, lets: Mapping[str, Node] | None = None) -> Node:
    """Replace what is settled in this release: comparisons of `release`, `lets` by their nodes, and what follows.

    `key` orders versions (packaging's Version); a release compared with something else is refused.
    """
    if node[0] == "cmp" and ["release"] in node[2:]:
        left, right = (["lit", release] if n == ["release"] else n for n in node[2:])
        if left[0] != "lit" or right[0] != "lit":
            raise ConditionError("release is compared with a quoted version only")
        return ["lit", COMPARISONS[node[1]](key(left[1]), key(right[1]))]
    settled: Node | None = lets.get(node[2]) if lets and node[:2] == ["name", "let"] else None
    return settled or _settled(rebuilt(node, lambda child: fold_release(child, key, release, lets)))


def _settled(node: Node) -> Node:
    """The same value with less to work out, where parts of a node are literals."""
    kind = node[0]
    if kind in ("and", "or"):
        neutral = kind == "and"
        parts = [n for n in node[1] if n[0] != "lit" or bool(n[1]) is not neutral]
        if any(n[0] == "lit" for n in parts):
            return ["lit", not neutral]
        return [kind, parts] if parts else ["lit", neutral]
    if kind == "if" and node[1][0] == "lit":
        taken: Node = node[2] if node[1][1] else node[3]
        return taken
    inner = node[2] if kind == "call" else node[PARTS[kind] :] if kind in PARTS else ()
    if inner and all(n[0] == "lit" for n in inner):
        return ["lit", evaluator(node, {})(None)]
    return node


PARTS = {"not": 1, "set": 1, "cmp": 2, "bin": 2}
"""Where the parts begin that an operation works on."""
