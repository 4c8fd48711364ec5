"""A job -> a systemd service unit.

In a unit `%` begins a specifier and, in a command, `$` a variable; both are doubled. Backslashes and quotes are read
after systemd.syntax(7): quoted stretches stand side by side in one word, escapes hold in both kinds of quotes.
"""

from __future__ import annotations

import re

from solver.handoff.job import Job
from solver.handoff.shell_text import warnings

_SAFE = re.compile(r"[\w@+=:,./-]+", re.ASCII)
_STRETCH = re.compile(r"[^'\\\n\t\r]+|['\\\n\t\r]+")
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def systemd(job: Job) -> str:
    """The unit. `/usr/bin/env` finds the interpreter, since systemd wants a program by its path."""
    argv = ("/usr/bin/env", *job.argv("python3"))
    lines = [
        f"# {job.title}",
        "# Adapt: User= (else root); ExecStart=, where the engine is in an environment of its own:",
        "# then its bin/python stands there instead of `/usr/bin/env python3`.",
        *warnings(job),
        "[Unit]",
        "Description=SGLang server",
        "Wants=network-online.target",
        "After=network-online.target",
        "",
        "[Service]",
        *(f"Environment={quoted(f'{name}={value}')}" for name, value in job.env.items()),
        f"ExecStart={command(argv)}",
        "Restart=on-failure",
        "RestartSec=10",
        "LimitMEMLOCK=infinity",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return "\n".join(lines)


def command(argv: tuple[str, ...]) -> str:
    """Arguments as the value of ExecStart, continued over lines at each flag."""
    lines: list[list[str]] = [[]]
    for word in argv:
        if word.startswith("--") and lines[-1]:
            lines.append([])
        lines[-1].append(quoted(word.replace("$", "$$")))
    return " \\\n  ".join(map(" ".join, lines))


def quoted(text: str) -> str:
    """One word of a unit's value, with specifiers switched off."""
    text = text.replace("%", "%%")
    if _SAFE.fullmatch(text):
        return text
    return "".join(_stretch(part) for part in _STRETCH.findall(text)) or '""'


def _stretch(text: str) -> str:
    if text[0] not in "'\\\n\t\r":
        return f"'{text}'"
    return '"' + "".join(_ESCAPES.get(char, char) for char in text) + '"'
