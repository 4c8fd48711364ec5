"""Given flags of a release -> argv and shell text of the launch, in the release's own spellings."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from solver.records import FlagForm

DEFAULT_PREFIX = ("python", "-m", "sglang.launch_server")
FIRST = ("model_path", "tp_size", "pp_size", "dp_size", "ep_size")
"""Flags that a reader looks for first; the rest follows by name."""


def argv_of(
    given: Mapping[str, Any], flags: Mapping[str, FlagForm], prefix: tuple[str, ...] = DEFAULT_PREFIX
) -> tuple[str, ...]:
    """The full argv of a launch."""
    words: list[str] = [*prefix]
    for name in ordered(given):
        words += flag_words(flags[name], given[name])
    return tuple(words)


def ordered(given: Mapping[str, Any]) -> list[str]:
    """Flag ids in the order in which they are written."""
    first = [n for n in FIRST if n in given]
    return first + sorted(n for n in given if n not in FIRST)


def flag_words(form: FlagForm, value: Any) -> list[str]:
    """One flag as argv words; nothing for a switch that is off."""
    name = next((s for s in form.spellings if s.startswith("--") and not s.startswith("--no-")), form.spellings[0])
    if form.action == "BooleanOptionalAction":
        return [name if value else f"--no-{name.removeprefix('--')}"]
    if form.type == "flag":
        return [name] if value == form.const else []
    if isinstance(value, list | tuple):
        return [name, *map(text_of, value)]
    return [name, text_of(value)]


def text_of(value: Any) -> str:
    """A value as one argument."""
    if isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"))
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def shell_of(argv: tuple[str, ...], env: Mapping[str, str]) -> str:
    """One shell command, continued over lines at each flag."""
    head: list[str] = [f"{name}={shlex.quote(value)}" for name, value in sorted(env.items())]
    lines: list[list[str]] = [head]
    for word in argv:
        if word.startswith("--") and len(lines[-1]) > 0:
            lines.append([])
        lines[-1].append(shlex.quote(word))
    return " \\\n  ".join(" ".join(line) for line in lines if line)
