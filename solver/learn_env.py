"""Files of one release -> the environment variables it reads, with type and default as read.

Three ways of reading are known: descriptors of `Envs` in sglang/srt/environ.py, the `get_*_env_var` helpers, and plain
`os.environ` / `os.getenv`. A descriptor tells most, so it wins; among other reads the commonest (type, default) does.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from solver.learn_evaluate import Evaluator
from solver.learn_source import Module, Package
from solver.learn_values import Defined, Dotted, Made, Unknown, plain

ENVIRON = "sglang.srt.environ"
_FOLDERS = ("sglang/srt/", "sglang/kernels/", "sglang/jit_kernel/", "sglang/cli/", "sglang/launch_server.py")
_LEFT_OUT = re.compile(r"/(tests?|benchmarks?)/|/(test|bench)_[^/]*\.py$|/debug_utils/(comparator|schedule_simulator)/")
_TYPES = {"EnvBool": "bool", "EnvInt": "int", "EnvFloat": "float", "EnvTuple": "list", "EnvJSON": "json"}
_HELPERS = {f"get_{kind}_env_var": kind for kind in ("bool", "int", "float", "str")}
_TRUE, _FALSE = {"1", "true", "yes", "y", "on"}, {"0", "false", "no", "n", "off", ""}
_INSTEAD = re.compile(r"--[a-z0-9][\w-]*(?:[= ][a-z_]+\b(?= instead| or ))?(?:=[\w-]+)?|SGLANG_\w+")
_GETTERS = {"os.getenv", "os.environ.get", "environ.get", "getenv"}
_HOLDERS = {"os.environ", "environ"}
_WARNS = {"logger.warning", "warnings.warn", "logger.warning_once"}
_READS = re.compile(r"\benviron\.get\(|\benviron\[|\bin os\.environ|getenv\(|_env_var\(")
_NAME = re.compile(r"[A-Z][A-Z0-9_]+")


class Read(msgspec.Struct, frozen=True):
    """One environment variable of one release (an `EnvForm` without its range)."""

    name: str
    type: str = "str"
    default: Any = None
    computed: bool = False
    deprecated: str | None = None


def read_env(package: Package) -> tuple[Read, ...]:
    """All variables of the release, by name."""
    found: dict[str, Read] = {}
    own: dict[str, Read] = {}
    module = package.module(ENVIRON)
    if module is not None:
        advice = {r.name: r for r in _retired(module)}
        own = {r.name: r for r in _descriptors(module)}
        retired = {n: msgspec.structs.replace(own[n], deprecated=r.deprecated) for n, r in advice.items() if n in own}
        found = {**advice, **own, **retired}
    reads: dict[str, Counter[Read]] = {}
    for path in sorted(package.names):
        if path.startswith(_FOLDERS) and path.endswith(".py") and not _LEFT_OUT.search(path):
            for read in _plain_reads(package, path):
                reads.setdefault(read.name, Counter())[read] += 1
    for name, seen in reads.items():
        usual = max(seen.items(), key=_weight)[0]
        held = found.get(name)
        if held is None:
            found[name] = usual
        elif name not in own:
            found[name] = msgspec.structs.replace(usual, deprecated=held.deprecated)
    return tuple(found[n] for n in sorted(found))


def _weight(counted: tuple[Read, int]) -> tuple[int, bool, bool]:
    read, times = counted
    return times, read.default is not None, read.deprecated is None


def _descriptors(module: Module) -> Iterator[Read]:
    """`NAME = EnvInt(3)` in the body of `Envs`; an alias class also names the old variable that it still reads."""
    node = module.bindings.get("Envs")
    if not isinstance(node, ast.ClassDef):
        return
    scope = Evaluator(module)
    for statement in node.body:
        if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)):
            continue
        name, made = ast.unparse(statement.targets[0]), scope.value(statement.value)
        if not (isinstance(made, Made) and isinstance(made.callee, Defined) and made.callee.name.startswith("Env")):
            continue
        kind = _TYPES.get(made.callee.name.removesuffix("WithAlias"), "str")
        given = made.args[0] if made.args else made.kwargs.get("default")
        default = given if isinstance(given, Unknown) else plain(given)
        unknown = isinstance(default, Unknown)
        yield Read(name, kind, None if unknown else default, unknown)
        if isinstance(old := made.kwargs.get("deprecated_name"), str):
            yield Read(old, kind, deprecated=name)


def _retired(module: Module) -> Iterator[Read]:
    """Variables that environ.py itself only warns about or moves to a new name."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=ast.Name(id="_print_deprecated_env" | "_warn_deprecated_env_to_cli_flag" as helper)):
                given = _by_parameter(node, module.bindings.get(helper))
                old = given.get("old_name", given.get("env_name"))
                new = given.get("new_name", given.get("suggestion"))
                if isinstance(old, ast.Constant):
                    yield Read(str(old.value), deprecated=_instead(new) if new is not None else "nothing")
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict() as table) if "deprecated" in name.lower():
                yield from _table(table)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Dict() as table) if "deprecated" in name.lower():
                yield from _table(table)


def _by_parameter(call: ast.Call, helper: ast.stmt | None) -> dict[str, ast.expr]:
    """Arguments by the helper's own parameter names: their order differs between releases."""
    names = [a.arg for a in helper.args.args] if isinstance(helper, ast.FunctionDef) else []
    return {**dict(zip(names, call.args, strict=False)), **{k.arg: k.value for k in call.keywords if k.arg}}


def _table(table: ast.Dict) -> Iterator[Read]:
    for key, value in zip(table.keys, table.values, strict=True):
        if isinstance(key, ast.Constant):
            yield Read(str(key.value), deprecated=_instead(value))


def _instead(node: ast.AST, besides: str = "") -> str:
    """The first other variable or flag named in the release's own advice, or `nothing`."""
    texts = [str(n.value) for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return next((m for t in texts for m in _INSTEAD.findall(t) if m != besides), "nothing")


def _plain_reads(package: Package, path: str) -> Iterator[Read]:
    if not _READS.search(package.text(path)):
        return
    module = package.module(path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    if module is None:
        return
    scope, parents = Evaluator(module), dict[ast.AST, ast.AST]()
    waiting: list[ast.AST] = [module.tree]
    while waiting:
        node = waiting.pop()
        read = _reading(node, scope, parents)
        if read is not None and _NAME.fullmatch(read.name):
            yield msgspec.structs.replace(read, deprecated=_notice(node, read.name, parents))
        children = list(ast.iter_child_nodes(node))
        parents.update(dict.fromkeys(children, node))
        waiting.extend(reversed(children))


def _notice(node: ast.AST, name: str, parents: dict[ast.AST, ast.AST]) -> str | None:
    """`if os.getenv("OLD") is not None: logger.warning(…)` and nothing else: the release only says that OLD is gone."""
    test = node if isinstance(node, ast.Compare) else parents.get(node)
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot | ast.In)):
        return None
    branch = parents.get(test)
    if not (isinstance(branch, ast.If) and branch.test is test):
        return None
    said = [s.value for s in branch.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
    warns = all(_dotted(c.func) in _WARNS for c in said) and len(said) == len(branch.body)
    return _instead(ast.Module([ast.Expr(c) for c in said], []), besides=name) if warns else None


def _reading(node: ast.AST, scope: Evaluator, parents: dict[ast.AST, ast.AST]) -> Read | None:
    """A read of one variable whose name is known, or None."""
    match node:
        case ast.Call(func=ast.Name(id=helper) | ast.Attribute(attr=helper), args=[name, *rest]) if helper in _HELPERS:
            given = rest[0] if rest else next((k.value for k in node.keywords if k.arg == "default"), None)
            absent: Any = {"bool": False, "int": 0}.get(_HELPERS[helper])
            default = absent if given is None else scope.value(given)
            return _read(scope.value(name), _HELPERS[helper], default)
        case ast.Call(func=func, args=[name, *rest]) if _dotted(func) in _GETTERS:
            default = scope.value(rest[0]) if rest else None
            return _read(scope.value(name), _cast(node, parents), default)
        case ast.Subscript(value=holder, slice=name, ctx=ast.Load()) if _dotted(holder) in _HOLDERS:
            return _read(scope.value(name), _cast(node, parents), None)
        case ast.Compare(left=name, ops=[ast.In() | ast.NotIn()], comparators=[holder]) if _dotted(holder) in _HOLDERS:
            return _read(scope.value(name), "str", None)
    return None


def _dotted(node: ast.expr) -> str:
    """`a.b.c` of a plain chain of names; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _read(name: Any, kind: str, default: Any) -> Read | None:
    if not isinstance(name, str):
        return None
    value = default if isinstance(default, Unknown) else plain(default)
    if isinstance(value, Unknown | Dotted):
        return Read(name, kind, None, True)
    return Read(name, kind, _converted(kind, value))


def _converted(kind: str, value: Any) -> Any:
    """A textual default as the type it is read as ("0" read as a bool is false)."""
    if value is None:
        return False if kind == "bool" else None
    try:
        if kind == "bool":
            return value if isinstance(value, bool) else str(value).strip().lower() in _TRUE
        return {"int": int, "float": float}[kind](value) if kind in {"int", "float"} else str(value)
    except ValueError:
        return value


def _cast(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    """`int(os.getenv(…))` is an int; a comparison with "1" or ("true", "1"), also after `.lower()`, makes a bool."""
    above = parents.get(node)
    while isinstance(above, ast.Attribute) and above.attr in {"lower", "strip", "upper"}:
        node, above = parents[above], parents.get(parents[above])
    if isinstance(above, ast.Call) and isinstance(above.func, ast.Name) and above.func.id in {"int", "float"}:
        return above.func.id
    if isinstance(above, ast.Compare) and above.left is node and len(above.comparators) == 1:
        texts = [c.value for c in ast.walk(above.comparators[0]) if isinstance(c, ast.Constant)]
        words = {t.lower() for t in texts if isinstance(t, str)}
        return "bool" if words and words <= _TRUE | _FALSE and words & {"0", "1", "true", "false"} else "str"
    return "str"
