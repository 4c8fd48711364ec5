"""Regenerates what is derived: the JSON schema, the rule pages, and the output shown under each command in the docs.

usage: python tools/write_docs.py [--check]     (`--check` writes nothing and exits 1 when something is not fresh)

A fenced `console` block holds commands after `$ ` and their output. A line `[...]` in a block stands for what is left
out: the output before and after it has to match.
"""

from __future__ import annotations

import io
import re
import shlex
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

import rule_pages

from solver.cli import main as flagwise
from solver.compare.lock import json_schema as lock_schema
from solver.gate.output.data import json_schema as gate_schema
from solver.render.data import dumps, json_schema

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    "README.md",
    "docs/architecture.md",
    "docs/rule-format.md",
    "docs/add-a-rule.md",
    "docs/json.md",
    "docs/diagnose.md",
    "docs/evidence.md",
    "docs/gate.md",
    "docs/handoff.md",
    "docs/solve.md",
)
WRITING = ("handoff.md",)
"""Pages whose commands write files, in a folder of their own; the others see the files of the project."""
SCHEMA = ROOT / "docs" / "result.schema.json"
LOCK_SCHEMA = ROOT / "docs" / "lock.schema.json"
GATE_SCHEMA = ROOT / "docs" / "gate" / "report.schema.json"
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
    schemas = {SCHEMA: json_schema, GATE_SCHEMA: gate_schema, LOCK_SCHEMA: lock_schema}
    wanted = {path: dumps(schema()) + "\n" for path, schema in schemas.items()}
    for path in (ROOT / name for name in PAGES if (ROOT / name).exists()):
        with TemporaryDirectory() as folder, chdir(folder if path.name in WRITING else "."):
            wanted[path] = fresh_page(path.read_text("utf-8"))
    wanted |= {ROOT / path: text for path, text in rule_pages.pages().items()}
    stale = [p for p, text in wanted.items() if not p.exists() or p.read_text("utf-8") != text]
    left = [p for p in (ROOT / rule_pages.FOLDER).rglob("*.md") if p not in wanted]
    for path in stale:
        print(f"{'not fresh' if check else 'written'}: {path.relative_to(ROOT)}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path], "utf-8")
    for path in left:
        print(f"{'of no rule' if check else 'removed'}: {path.relative_to(ROOT)}")
        if not check:
            path.unlink()
    return int(check and bool(stale or left))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
