"""Regenerates what is derived: the result's JSON schema, and the output shown under each command in README and docs.

usage: python tools/write_docs.py [--check]     (`--check` writes nothing and exits 1 when something is not fresh)

A fenced `console` block holds commands after `$ ` and their output. A line `[...]` in a block stands for what is left
out: the output before and after it has to match.
"""

from __future__ import annotations

import io
import re
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from solver.cli import main as flagwise
from solver.render.data import dumps, json_schema

ROOT = Path(__file__).parent.parent
PAGES = (
    "README.md", "docs/architecture.md", "docs/rule-format.md", "docs/add-a-rule.md", "docs/json.md", "docs/solve.md",
)  # fmt: skip
SCHEMA = ROOT / "docs" / "result.schema.json"
BLOCK = re.compile(r"^```console\n(.*?)^```\n", re.M | re.S)
CUT = "[...]"
KNOWLEDGE_HASH = re.compile(r'"knowledge": "[0-9a-f]+"')
"""Changes with every rule; the pages show `…` instead."""


def output_of(command: str) -> str:
    """What a documented `flagwise …` command prints."""
    words = shlex.split(command.replace("\\\n", " "))
    out = io.StringIO()
    before, sys.argv = sys.argv, words
    try:
        with redirect_stdout(out), redirect_stderr(out):
            flagwise()
    except SystemExit:
        pass
    finally:
        sys.argv = before
    return KNOWLEDGE_HASH.sub('"knowledge": "…"', out.getvalue())


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a block with the output shown under each."""
    parts = re.split(r"^\$ ((?:.*\\\n)*.*)\n", block, flags=re.M)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def refreshed(shown: str, actual: str) -> str:
    """The shown output made true: whole, or cut where it was cut."""
    if CUT not in shown:
        return actual
    head, tail = (part.strip("\n").splitlines() for part in shown.split(f"{CUT}\n", 1))
    lines = actual.rstrip("\n").splitlines()
    kept = [*lines[: len(head)], CUT, *(lines[-len(tail) :] if tail else [])]
    return "\n".join(kept) + "\n"


def fresh_page(text: str) -> str:
    """A page with every command's output as it is now."""

    def block(match: re.Match[str]) -> str:
        body = "".join(f"$ {c}\n{refreshed(shown, output_of(c))}" for c, shown in commands(match[1]))
        return f"```console\n{body}```\n"

    return BLOCK.sub(block, text)


def main(check: bool) -> int:
    wanted = {SCHEMA: dumps(json_schema()) + "\n"}
    wanted |= {path: fresh_page(path.read_text("utf-8")) for name in PAGES if (path := ROOT / name).exists()}
    stale = [p for p, text in wanted.items() if not p.exists() or p.read_text("utf-8") != text]
    for path in stale:
        print(f"{'not fresh' if check else 'written'}: {path.relative_to(ROOT)}")
        if not check:
            path.write_text(wanted[path], "utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
