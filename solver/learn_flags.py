"""Modules of one release -> every argument it registers, as `Registered` (a `FlagForm` without its range of releases).

Two layouts are read. Up to 0.5.13 `ServerArgs.add_cli_args` registers each argument by hand; from 0.5.14 on most are
annotated fields, first of `ServerArgs` itself, from 0.5.20 of the classes handed to `collect_input_fields`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from solver.learn_source import Module, Package
from solver.learn_values import Defined, Dotted, Evaluator, Made, Member, Unknown

SERVER_ARGS = "sglang.srt.server_args"
_MISSING = object()
_NOTHING = "nothing"
_RETIRED = re.compile(r"^\W*(deprecated|removed|note: \S+ is deprecated)", re.IGNORECASE)
_INSTEAD = re.compile(r"--[a-z0-9][\w{},-]*(?:=[\w-]+)?|SGLANG_\w+=?\w*")


class Registered(msgspec.Struct, frozen=True):
    """One registered argument of one release. `topic` is the namespace of its field, where the release names one."""

    spellings: tuple[str, ...]
    dest: str
    type: str = "str"
    nargs: str | int | None = None
    choices: tuple[Any, ...] | None = None
    default: Any = None
    const: Any = None
    required: bool = False
    action: str = "store"
    deprecated: str | None = None
    refused: bool = False
    computed: bool = False
    topic: str | None = None


class _Field(msgspec.Struct, frozen=True):
    """One field of the argument record: its annotation, its default, the namespace and module it is declared in."""

    name: str
    annotation: ast.expr
    default: Any
    topic: str | None
    module: Module


def read_flags(package: Package) -> tuple[Registered, ...]:
    """All arguments in the order in which the release registers them."""
    module = package.module(SERVER_ARGS)
    if module is None:
        raise ValueError(f"{package.where}: no sglang/srt/server_args.py; is this a wheel of SGLang?")
    record = next(s for s in module.tree.body if isinstance(s, ast.ClassDef) and s.name == "ServerArgs")
    fields = {f.name: f for f in _fields(module, record)}
    defaults = {n: None if f.default is _MISSING else f.default for n, f in fields.items()}
    scope = Evaluator(
        module, {"ServerArgs": defaults, "parser": Dotted("parser")}, {"_declared_default": lambda name: defaults[name]}
    )
    body = next(s.body for s in record.body if isinstance(s, ast.FunctionDef) and s.name == "add_cli_args")
    found: list[Registered] = []
    for kwargs in _registrations(body, scope, fields):
        topic = fields[kwargs["dest"]].topic if kwargs["dest"] in fields else None
        found.append(_registered(kwargs, topic))
    return tuple(found)


def _registrations(body: list[ast.stmt], scope: Evaluator, fields: dict[str, _Field]) -> Iterator[dict[str, Any]]:
    """Argument dictionaries of each registration, in order; loops over known values are unrolled."""
    for statement in body:
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="add_argument")) as call):
                yield _named([scope.value(a) for a in call.args], _keywords(call, scope))
            case ast.Expr(value=ast.Call(func=ast.Name(id="add_cli_args_from_dataclass"))):
                yield from (k for f in fields.values() if (k := _annotated(f)) is not None)
            case ast.For(target=ast.Name(id=name), iter=items, body=inner):
                for item in scope.members(scope.value(items)):
                    scope.local[name] = item
                    yield from _registrations(inner, scope, fields)
            case ast.If(test=test, body=then, orelse=other):
                yield from _registrations(then if scope.known(scope.value(test)) else other, scope, fields)
            case _:
                scope.step(statement)


def _keywords(call: ast.Call, scope: Evaluator) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for keyword in call.keywords:
        value = scope.value(keyword.value)
        found.update(value if keyword.arg is None else {keyword.arg: value})
    return found


def _named(names: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """argparse's own rule: the destination is the first long option without its dashes."""
    long = next((n for n in names if n.startswith("--")), names[0])
    return {"names": tuple(names), "dest": long.lstrip("-").replace("-", "_"), **kwargs}


def _fields(module: Module, record: ast.ClassDef) -> Iterator[_Field]:
    """Fields of `ServerArgs` and, in the newer layout, of the namespace classes it is assembled from, in field order."""
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


def _declared(module: Module, node: ast.ClassDef) -> Iterator[_Field]:
    scope = Evaluator(module)
    path = next((s.value for s in node.body if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == "_NS_PATH"), None)
    topic = None if path is None else str(scope.value(path))
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            default = _MISSING if statement.value is None else _field_default(scope.value(statement.value))
            marked = topic or _marker(statement.annotation, scope)
            yield _Field(statement.target.id, statement.annotation, default, marked, module)


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


def _annotated(field: _Field) -> dict[str, Any] | None:
    """What `add_cli_args_from_dataclass` would register for `name: A[type, "help" | Arg(…)] = default`, or None."""
    node = field.annotation
    if not (isinstance(node, ast.Subscript) and ast.unparse(node.value) in {"A", "Annotated"} and isinstance(node.slice, ast.Tuple)):
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
    if field.default is not _MISSING:
        kwargs["default"] = field.default
    if arg.get("action") is not None:
        return _named(names, {**kwargs, "action": arg["action"], **(arg.get("action_kwargs") or {})})
    return _named(names, {**kwargs, **_by_type(kind, arg, scope, field.default is _MISSING)})


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


def _registered(kwargs: dict[str, Any], topic: str | None) -> Registered:
    """Arguments of `add_argument` -> record, with what the action class fills in by itself."""
    action, own = _action(kwargs.get("action"))
    merged = {**own, **kwargs}
    takes_none = action in {"store_true", "store_false", "store_const", "BooleanOptionalAction"} or merged.get("nargs") == 0
    default = plain(merged.get("default"))
    if default is None and action in {"store_true", "store_false"} and "default" not in kwargs:
        default = action == "store_false"
    const = {"store_true": True, "store_false": False}.get(action, plain(merged.get("const_value", merged.get("const"))))
    return Registered(
        spellings=kwargs["names"],
        dest=kwargs["dest"],
        type="flag" if takes_none else _type(merged.get("type")),
        nargs=None if takes_none else merged.get("nargs"),
        choices=_choices(merged.get("choices")),
        default=None if isinstance(default, Unknown) else default,
        const=const,
        required=bool(kwargs.get("required")),
        action=action,
        deprecated=_replacement(kwargs, action),
        refused=kwargs.get("error_message") is not None,
        computed=isinstance(default, Unknown),
        topic=topic,
    )


def _action(action: Any) -> tuple[str, dict[str, Any]]:
    """Name of the action, and the defaults of its class's own constructor."""
    if action is None or isinstance(action, str):
        return action or "store", {}
    name = action.name.split(".")[-1]
    if not (isinstance(action, Defined) and isinstance(action.node, ast.ClassDef)):
        return name, {}
    made = next((s for s in action.node.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)
    if made is None:
        return name, {}
    values = made.args.defaults
    named = made.args.args[len(made.args.args) - len(values) :] if values else []
    scope = Evaluator(action.module)
    return name, {a.arg: scope.value(v) for a, v in zip(named, values, strict=True)}


def _type(value: Any) -> str:
    if value is None:
        return "str"
    name = value.name.split(".")[-1] if isinstance(value, Dotted | Defined) else "str"
    return "json" if name == "loads" else name


def _choices(value: Any) -> tuple[Any, ...] | None:
    if value is None or isinstance(value, Unknown):
        return None
    return tuple(sorted(map(plain, value), key=str) if isinstance(value, set | frozenset) else map(plain, value))


def _replacement(kwargs: dict[str, Any], action: str) -> str | None:
    """What to write instead of a retired argument: a spelling, an environment variable, or `nothing`. None: not retired."""
    if isinstance(kwargs.get("new_flag"), str):
        return str(kwargs["new_flag"])
    texts = [t for t in (kwargs.get("error_message"), kwargs.get("help")) if isinstance(t, str)]
    if not action.startswith("Deprecated") and not any(_RETIRED.match(t) for t in texts):
        return None
    named = [m.rstrip(",-") for t in texts for m in _INSTEAD.findall(t) if m not in kwargs["names"]]
    return named[0] if named else _NOTHING


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
