"""A mapping of a Kubernetes manifest that says what a container runs -> its command, as the kubelet would start it.

`command` replaces the image's entry point, `args` follow; `$(NAME)` in them and in values of `env` stands for a
variable of the container set before, `$$` for one dollar. A reference that names nothing known stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from solver.gate.arguments import Argument, arguments_of, substituted
from solver.gate.nodes import Node, get, scalars, text_at
from solver.gate.scalars import scalar_text
from solver.gate.scope import Scope, narrowed, with_env
from solver.gate.text import Text

REFERENCE = re.compile(r"\$(?:(\$)|\(([A-Za-z_.-][\w.-]*)\))", re.ASCII)
KEYS = ("entryPoint", "entrypoint", "command", "args")
ENV_KEYS = ("env", "environment")


def command_of(node: Node, source: Text, scope: Scope) -> tuple[list[Argument], Scope] | None:
    """The whole command of a container and its scope; None for a mapping that starts nothing."""
    fields = node.fields
    parts = [fields[key][1] for key in KEYS if key in fields]
    if not parts:
        return None
    inner = narrowed(scope, node)
    for key in ENV_KEYS:
        if key in fields:
            inner = with_env(inner, fields[key][1], source)
    inner = _with_values(inner)

    def expand(text: Text) -> Text:
        return substituted(text, REFERENCE, lambda match: value_of(match, inner))

    arguments: list[Argument] = []
    module = text_at(node, "module")  # an editor's launch settings start `python -m MODULE ARGS`
    if module and get(node, "command") is None:
        arguments += module_of(node, source)
    for value in parts:
        items = scalars(value)
        if items is not None:
            arguments += arguments_of(items, source, expand)
        elif value is not None and value.kind == "scalar":
            arguments.append(Argument(value, expand(scalar_text(value, source)), raw=True))
    return arguments, inner


def module_of(node: Node, source: Text) -> list[Argument]:
    """`python -m` and the module that a mapping names."""
    module = get(node, "module")
    assert module is not None
    return [*(Argument(None, Text(word, ())) for word in ("python", "-m")), *arguments_of([module], source)]


def value_of(match: re.Match[str], scope: Scope) -> str | None:
    """What a reference stands for; None where its value is not known."""
    if match[1]:
        return "$"
    return scope.env.get(match[2])


def _with_values(scope: Scope) -> Scope:
    """The variables with the references in their values resolved, in order."""
    if not any(value and "$" in value for value in scope.env.values()):
        return scope
    env = dict(scope.env)
    for name, value in env.items():
        if value is None or "$" not in value:
            continue
        parts: Sequence[str | None] = [
            ("$" if m[1] else env.get(m[2])) if m else text
            for text in re.split(r"(\$\$|\$\([A-Za-z_.-][\w.-]*\))", value)
            for m in [REFERENCE.fullmatch(text)]
        ]
        env[name] = None if None in parts else "".join(part or "" for part in parts)
    return msgspec.structs.replace(scope, env=env)
