"""A service of a compose file -> its command, as compose would start it.

`entrypoint` comes before `command`; a text is split as a shell splits it. `$NAME` and `${NAME…}` are replaced by
compose from `.env` and the shell it runs in, not from the service's own variables; `$$` is a dollar for the container.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from solver.expansion import resolve
from solver.gate.arguments import Argument, arguments_of, substituted
from solver.gate.nodes import Node, get, scalars
from solver.gate.scalars import scalar_text
from solver.gate.scope import Scope, narrowed, with_env
from solver.gate.text import Builder, Text
from solver.shell import Piece
from solver.wrappers import Env

ReadBeside = Callable[[str], str | None]
_LINE_ENDS = re.compile(r"\\.|['\"\n]", re.DOTALL)
_REFERENCE = re.compile(r"\$(?:(\$)|([A-Za-z_]\w*)|\{([^{}]*)\})", re.ASCII)


def command_of(node: Node, source: Text, scope: Scope, read_beside: ReadBeside) -> tuple[list[Argument], Scope] | None:
    """The whole command of a service and what its process gets; None for a mapping that starts nothing."""
    entry, command = get(node, "entrypoint"), get(node, "command")
    if entry is None and command is None:
        return None
    outside = read_env_text(read_beside(".env") or "")

    def expand(text: Text) -> Text:
        return substituted(text, _REFERENCE, lambda match: _value(match, outside))

    def expand_shell(text: Text) -> Text:
        return _on_one_line(substituted(text, _REFERENCE, lambda match: _escaped(match) or _value(match, outside)))

    arguments: list[Argument] = []
    for value in (entry, command):
        items = scalars(value)
        if items is not None:
            arguments += arguments_of(items, source, expand)
        elif value is not None and value.kind == "scalar":
            arguments.append(Argument(value, expand_shell(scalar_text(value, source)), raw=True))
    return arguments, _environment(node, source, narrowed(scope, node), outside, read_beside)


def _on_one_line(text: Text) -> Text:
    """The text with its line ends as blanks: they end no command here, as they would in a shell."""
    builder = Builder(text)
    at, quote = 0, ""
    for match in _LINE_ENDS.finditer(text.text):
        sign = match[0]
        if sign in ("'", '"'):
            quote = sign if not quote else "" if quote == sign else quote
        elif sign == "\n" and not quote:
            builder.take(at, match.start())
            builder.replace(match.start(), match.end(), " ")
            at = match.end()
    builder.take(at, len(text.text))
    return builder.finish()


def _environment(node: Node, source: Text, scope: Scope, outside: Env, read_beside: ReadBeside) -> Scope:
    """Variables of `env_file` and `environment`; the latter win."""
    env: Env = {}
    for path in _env_files(get(node, "env_file")):
        text = read_beside(path)
        env.update(read_env_text(text) if text is not None else {})
    scope = with_env(msgspec.structs.replace(scope, env=env), get(node, "environment"), source)
    known = {name: _interpolated(name, value, outside) for name, value in scope.env.items()}
    return msgspec.structs.replace(scope, env=known)


def _interpolated(name: str, value: str | None, outside: Env) -> str | None:
    """A variable's value with compose's references replaced; a bare name is handed on from outside."""
    if value is None:
        return outside.get(name)
    parts: list[str] = []
    at = 0
    for match in _REFERENCE.finditer(value):
        known = _value(match, outside)
        if known is None:
            return None
        parts += [value[at : match.start()], known]
        at = match.end()
    return "".join([*parts, value[at:]])


def _escaped(match: re.Match[str]) -> str | None:
    """`$$` in a text that is split as a shell splits it, where a dollar means nothing else."""
    if not match[1]:
        return None
    return "$" if match.string.count("'", 0, match.start()) % 2 else "\\$"


def _value(match: re.Match[str], outside: Env) -> str | None:
    """What a reference stands for; None where only running compose would tell."""
    if match[1]:
        return "$"
    inner = match[2] or match[3]
    value = resolve(Piece("variable", inner, match[0], 0, True), dict(outside))
    return value if isinstance(value, str) else None


def _env_files(node: Node | None) -> list[str]:
    """Paths of `env_file`: a text, a list of texts, or a list of {path}."""
    if node is None:
        return []
    nodes = [node] if node.kind == "scalar" else node.value if node.kind == "list" else []
    paths = [get(item, "path") if item.kind == "map" else item for item in nodes]
    return [item.value for item in paths if item is not None and item.kind == "scalar"]


def read_env_text(text: str) -> Env:
    """`NAME=value` lines, with comments and quotes; values that refer to others are not known."""
    env: Env = {}
    for line in text.splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        name, value = name.strip(), value.strip()
        if not equals or name.startswith("#"):
            continue
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            literal, value = value[0] == "'", value[1:-1]
        else:
            literal, value = False, re.sub(r"\s#.*", "", value)
        env[name] = value if literal or "$" not in value else None
    return env
