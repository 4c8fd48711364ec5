"""Annotated fields of the argument record -> the arguments that `add_cli_args_from_dataclass` registers for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import msgspec

from solver.learn_evaluate import Evaluator
from solver.learn_source import Module
from solver.learn_values import Defined, Dotted, Made, Unknown

MISSING = object()
"""Default of a field that has none."""


class Field(msgspec.Struct, frozen=True):
    """One field of the argument record: its annotation, its default, the namespace and module it is declared in."""

    name: str
    annotation: ast.expr
    default: Any
    topic: str | None
    module: Module


def named(names: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """argparse's own rule: the destination is the first long option without its dashes."""
    long = next((n for n in names if n.startswith("--")), names[0])
    return {"names": tuple(names), "dest": long.lstrip("-").replace("-", "_"), **kwargs}


def declared_fields(module: Module, record: ast.ClassDef) -> Iterator[Field]:
    """Fields of `ServerArgs` and of the namespace classes that newer releases assemble it from, in field order."""
    scope = Evaluator(module)
    sources: list[tuple[Module, ast.ClassDef]] = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "collect_input_fields":
            classes = [c for c in scope.value(node.args[0]) if isinstance(c, Defined)]
            sources = [(c.module, c.node) for c in classes if isinstance(c.node, ast.ClassDef)]
    found = {f.name: f for m, node in sources for f in _declared(m, node)}
    found.update((f.name, f) for f in _declared(module, record))
    order = module.package.module("sglang.srt.arg_groups.field_order")
    known = Evaluator(order).lookup("POSITIONAL_FIELD_ORDER") if order else ()
    yield from (found.pop(n) for n in known if n in found)
    yield from found.values()


def _declared(module: Module, node: ast.ClassDef) -> Iterator[Field]:
    scope = Evaluator(module)
    paths = [s.value for s in node.body if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == "_NS_PATH"]
    topic = str(scope.value(paths[0])) if paths else None
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            default = MISSING if statement.value is None else _field_default(scope.value(statement.value))
            marked = topic or _marker(statement.annotation, scope)
            yield Field(statement.target.id, statement.annotation, default, marked, module)


def _field_default(value: Any) -> Any:
    """`field(default_factory=list)` and the like give what the factory makes."""
    if isinstance(value, Made) and value.callee.name.split(".")[-1] == "field":
        if "default" in value.kwargs:
            return value.kwargs["default"]
        factory = value.kwargs.get("default_factory")
        if isinstance(factory, Made):  # a lambda
            return factory.kwargs["value"]
        empty: dict[str, Any] = {"list": [], "dict": {}, "set": [], "tuple": []}
        return empty.get(factory.name, value) if isinstance(factory, Dotted) else value
    return value


def _marker(annotation: ast.expr, scope: Evaluator) -> str | None:
    for node in ast.walk(annotation):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "NS":
            return str(scope.value(node.args[0]))
    return None


def annotated(field: Field) -> dict[str, Any] | None:
    """What `add_cli_args_from_dataclass` would register for `name: A[type, "help" | Arg(…)] = default`, or None."""
    node = field.annotation
    if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple)):
        return None
    if ast.unparse(node.value) not in {"A", "Annotated"}:
        return None
    scope, (kind, *metadata) = Evaluator(field.module), node.slice.elts
    arg: dict[str, Any] | None = None
    for item in metadata:
        value = scope.value(item)
        if isinstance(value, Made) and value.callee.name == "Arg":
            arg = value.kwargs
        elif isinstance(value, str | Unknown):  # a plain help text
            arg = {"help": value}
        if arg is not None:
            break
    if arg is None or arg.get("no_cli"):
        return None
    names = [arg.get("cli_name") or "--" + field.name.replace("_", "-"), *(arg.get("aliases") or [])]
    kwargs: dict[str, Any] = {"dest": field.name, "help": arg.get("help")}
    if field.default is not MISSING:
        kwargs["default"] = field.default
    if arg.get("action") is not None:
        return named(names, {**kwargs, "action": arg["action"], **(arg.get("action_kwargs") or {})})
    return named(names, {**kwargs, **_by_type(kind, arg, scope, field.default is MISSING)})


def _by_type(kind: ast.expr, arg: dict[str, Any], scope: Evaluator, no_default: bool) -> dict[str, Any]:
    """`type`, `nargs`, `choices` … as the annotation's type decides them."""
    inner = _unwrap_optional(kind)
    head = ast.unparse(inner.value).split(".")[-1] if isinstance(inner, ast.Subscript) else ""
    parser, given = arg.get("type_parser"), {k: arg[k] for k in ("choices", "const") if arg.get(k) is not None}
    if isinstance(inner, ast.Subscript) and head == "Literal":
        values = scope.value(inner.slice)
        values = list(values) if isinstance(values, tuple) else [values]
        return {"type": parser or Dotted(_builtin(type(values[0]).__name__)), "choices": values, **given}
    if isinstance(inner, ast.Subscript) and head in {"List", "list"} and parser is None:
        return {"type": Dotted(_builtin(ast.unparse(inner.slice))), "nargs": arg.get("nargs") or "+", **given}
    if ast.unparse(inner) == "bool":
        return {"action": "store_true"}
    required = arg.get("required") is True or (arg.get("required") is None and no_default)
    nargs = {"nargs": arg["nargs"]} if arg.get("nargs") else {}
    return {"type": parser or Dotted(_builtin(ast.unparse(inner))), "required": required, **nargs, **given}


def _builtin(name: str) -> str:
    return name if name in {"str", "int", "float"} else "str"


def _unwrap_optional(kind: ast.expr) -> ast.expr:
    """`Optional[X]`, `Union[X, None]` and `X | None` give X; a union of several types stays what it is."""
    options = list(_options(kind))
    real = [o for o in options if ast.unparse(o) != "None"]
    return real[0] if len(real) == 1 else kind


def _options(kind: ast.expr) -> Iterator[ast.expr]:
    match kind:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from _options(left)
            yield from _options(right)
        case ast.Subscript(value=head, slice=inner) if ast.unparse(head).split(".")[-1] in {"Optional", "Union"}:
            for part in inner.elts if isinstance(inner, ast.Tuple) else [inner]:
                yield from _options(part)
        case _:
            yield kind
