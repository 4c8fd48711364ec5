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

from solver.learn_evaluate import Evaluator
from solver.learn_fields import MISSING, Field, annotated, declared_fields, named
from solver.learn_source import Package
from solver.learn_values import Defined, Dotted, Unknown, plain

SERVER_ARGS = "sglang.srt.server_args"
_NOTHING = "nothing"
_VALUELESS = {"store_true", "store_false", "store_const", "BooleanOptionalAction"}
_RETIRED = re.compile(r"^\W*(deprecated|removed|note: \S+ is deprecated)", re.IGNORECASE)
_INSTEAD = re.compile(r"--[a-z0-9][\w{},-]*(?:=[\w-]+)?|SGLANG_\w+=?\w*")


class Registered(msgspec.Struct, frozen=True):
    """One registered argument of one release.

    `topic` is the namespace of its field, where the release names one; `unread` the keys whose value could not be read.
    """

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
    hidden: bool = False
    topic: str | None = None
    unread: tuple[str, ...] = ()


def read_flags(package: Package) -> tuple[Registered, ...]:
    """All arguments in the order in which the release registers them."""
    module = package.module(SERVER_ARGS)
    if module is None:
        raise ValueError(f"{package.where}: no sglang/srt/server_args.py; is this a wheel of SGLang?")
    record = next(s for s in module.tree.body if isinstance(s, ast.ClassDef) and s.name == "ServerArgs")
    fields = {f.name: f for f in declared_fields(module, record)}
    defaults = {n: None if f.default is MISSING else f.default for n, f in fields.items()}
    scope = Evaluator(
        module, {"ServerArgs": defaults, "parser": Dotted("parser")}, {"_declared_default": lambda name: defaults[name]}
    )
    body = next(s.body for s in record.body if isinstance(s, ast.FunctionDef) and s.name == "add_cli_args")
    found: list[Registered] = []
    for kwargs in _registrations(body, scope, fields):
        topic = fields[kwargs["dest"]].topic if kwargs["dest"] in fields else None
        found.append(_registered(kwargs, topic))
    return tuple(found)


def _registrations(body: list[ast.stmt], scope: Evaluator, fields: dict[str, Field]) -> Iterator[dict[str, Any]]:
    """Argument dictionaries of each registration, in order; loops over known values are unrolled."""
    for statement in body:
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="add_argument")) as call):
                yield named(_spellings(call, scope), _keywords(call, scope))
            case ast.Expr(value=ast.Call(func=ast.Name(id="add_cli_args_from_dataclass"))):
                yield from (k for f in fields.values() if (k := annotated(f)) is not None)
            case ast.Expr(value=ast.Call(args=[ast.Name(id="parser")]) as call):
                yield from _followed(call, scope, fields)
            case ast.For(target=ast.Name(id=name), iter=items, body=inner):
                for item in scope.members(scope.value(items)):
                    scope.local[name] = item
                    yield from _registrations(inner, scope, fields)
            case ast.If(test=test, body=then, orelse=other):
                yield from _registrations(then if scope.known(scope.value(test)) else other, scope, fields)
            case _:
                scope.step(statement)


def _followed(call: ast.Call, scope: Evaluator, fields: dict[str, Field]) -> Iterator[dict[str, Any]]:
    """Registrations of a helper that is handed the parser."""
    helper = scope.value(call.func)
    if not (isinstance(helper, Defined) and isinstance(helper.node, ast.FunctionDef)):
        raise ValueError(f"{scope.module.path}:{call.lineno}: cannot follow {ast.unparse(call)}")
    names = {helper.node.args.args[0].arg: Dotted("parser"), "ServerArgs": scope.local.get("ServerArgs")}
    yield from _registrations(helper.node.body, Evaluator(helper.module, names, scope.special), fields)


def _spellings(call: ast.Call, scope: Evaluator) -> list[str]:
    names = [scope.value(a) for a in call.args]
    if not names or not all(isinstance(n, str) for n in names):
        raise ValueError(f"{scope.module.path}:{call.lineno}: cannot read the spellings of {ast.unparse(call)[:80]}")
    return names


def _keywords(call: ast.Call, scope: Evaluator) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for keyword in call.keywords:
        value = scope.value(keyword.value)
        found.update(value if keyword.arg is None else {keyword.arg: value})
    return found


def _registered(kwargs: dict[str, Any], topic: str | None) -> Registered:
    """Arguments of `add_argument` -> record, with what the action class fills in by itself."""
    action, own = _action(kwargs.get("action"))
    merged = {**own, **kwargs}
    takes_none = action in _VALUELESS or merged.get("nargs") == 0
    default = plain(merged.get("default"))
    if default is None and action in {"store_true", "store_false"} and "default" not in kwargs:
        default = action == "store_false"
    const = merged.get("const_value", merged.get("const"))
    return Registered(
        spellings=kwargs["names"],
        dest=kwargs["dest"],
        type="flag" if takes_none else _type(merged.get("type")),
        nargs=None if takes_none else merged.get("nargs"),
        choices=_choices(merged.get("choices")),
        default=None if isinstance(default, Unknown) else default,
        const={"store_true": True, "store_false": False}.get(action, plain(const)),
        required=bool(kwargs.get("required")),
        action=action,
        deprecated=_replacement(kwargs, action),
        refused=kwargs.get("error_message") is not None,
        computed=isinstance(default, Unknown),
        hidden=kwargs.get("help") == Dotted("argparse.SUPPRESS"),
        topic=topic,
        unread=tuple(k for k in ("type", "nargs", "choices", "const_value") if _is_unknown(merged.get(k))),
    )


def _is_unknown(value: Any) -> bool:
    return isinstance(value, Unknown) or (isinstance(value, list | tuple | set) and any(map(_is_unknown, value)))


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
    if value is None or _is_unknown(value):
        return None
    return tuple(sorted(map(plain, value), key=str) if isinstance(value, set | frozenset) else map(plain, value))


def _replacement(kwargs: dict[str, Any], action: str) -> str | None:
    """What to write instead of a retired argument: a spelling, a variable, or `nothing`. None: it is not retired."""
    if isinstance(kwargs.get("new_flag"), str):
        return str(kwargs["new_flag"])
    texts = [t for t in (kwargs.get("error_message"), kwargs.get("help")) if isinstance(t, str)]
    if not action.startswith("Deprecated") and not any(_RETIRED.match(t) for t in texts):
        return None
    named = [m.rstrip(",-") for t in texts for m in _INSTEAD.findall(t) if m not in kwargs["names"]]
    return named[0] if named else _NOTHING
