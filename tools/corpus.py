"""The corpus of public launches -> how many of them flagwise judges right, by family, and a list of the misses.

usage: python tools/corpus.py [--corpus DIR] [--misses]

A failing case with a command is hit when an unconditional finding has the stated severity and names one of the stated
flags or variables; a finding that depends on something counts only where the case itself does not state it. A log is
hit when the first finding of its diagnosis names one. A good case is hit when it gets no unconditional error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from solver.context import Context, Options, build, check_context
from solver.diagnosis import diagnose
from solver.errors import RequestError
from solver.index import Index
from solver.launch import read_command
from solver.records import Finding
from solver.render.text import table
from solver.store import Store, default_root
from solver.traits.hardware import find

CORPUS = Path(__file__).parent.parent.parent / "shared" / "corpus"
FROM_LOG = "log-only"
"""The case's word for a command that no known release is stated for: only its log is judged."""


class Judged(msgspec.Struct, frozen=True):
    """One verdict on one case. `kind`: fail, good, or log; `found` says what came out instead of a hit."""

    id: str
    family: str
    kind: str
    hit: bool
    fork: bool
    found: str


def rows(folder: Path) -> list[dict[str, Any]]:
    """The cases as they are; empty where the corpus is not there."""
    path = folder / "cases.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def measure(store: Store, folder: Path) -> Iterator[Judged]:
    """Judge every case that has a command, and every log."""
    for row in rows(folder):
        if row["command"] and FROM_LOG not in row["expect"].get("traits", ()):
            findings = check_context(context_of(store, folder, row)).findings
            yield judged(row, row["kind"], *_command_hit(row, findings))
        if row["log"] and row["diagnosis"]:
            yield judged(row, "log", *_log_hit(store, folder, row))


def judged(row: dict[str, Any], kind: str, hit: bool, findings: tuple[Finding, ...]) -> Judged:
    """A verdict with the findings in short."""
    found = "; ".join(_brief(f) for f in findings if f.severity != "note")
    return Judged(row["id"], row["family"], kind, hit, row.get("fork", False), found or "nothing")


def _brief(finding: Finding) -> str:
    depends = "conditional " if finding.conditional_on else ""
    return f"{depends}{finding.severity} {finding.rule} ({' '.join(names(finding))})"


def names(finding: Finding) -> tuple[str, ...]:
    """The flags and variables a finding names."""
    return (*finding.flags, *finding.env)


def _command_hit(row: dict[str, Any], findings: tuple[Finding, ...]) -> tuple[bool, tuple[Finding, ...]]:
    counted = tuple(f for f in findings if not f.after and _counts(row, f))
    if row["kind"] == "good":
        errors = tuple(f for f in counted if f.severity == "error" and not f.conditional_on)
        return not errors, errors
    expect = row["expect"]
    return any(f.severity == expect["severity"] and set(names(f)) & set(expect["about"]) for f in counted), counted


def _counts(row: dict[str, Any], finding: Finding) -> bool:
    """Whether what the finding depends on is open in the case too."""
    return row["model"] is None or not any(name.startswith(("model.", "flag.")) for name in finding.conditional_on)


def _log_hit(store: Store, folder: Path, row: dict[str, Any]) -> tuple[bool, tuple[Finding, ...]]:
    """The log with the command where its release is known; the machine only where GPU and count are stated."""
    stated = row["hardware"]
    machine = f"{stated['count']}x{stated['gpu']}" if stated["gpu"] and stated["count"] else None
    known = FROM_LOG not in row["expect"].get("traits", ())
    command = read_command(row["command"]) if row["command"] and known else None
    text = (folder / row["log"]).read_text("utf-8")
    found = diagnose(store, text, command, Options(hardware=machine, engine_version=release_of(row) if known else None))
    return bool(found.findings) and bool(set(names(found.findings[0])) & set(row["diagnosis"]["about"])), found.findings


# ------------------------------------------------------------------- context


def context_of(store: Store, folder: Path, row: dict[str, Any]) -> Context:
    """The case's command, judged by what the case states and nothing else. Errors: RequestError."""
    model_dir = folder.parent / "models" / row["model_dir"] if row["model_dir"] else None
    model = str(model_dir) if model_dir and model_dir.is_dir() else None
    context = build(store, read_command(row["command"]), Options(model=model, engine_version=release_of(row)))
    return msgspec.structs.replace(
        context, facts=msgspec.structs.replace(context.facts, hardware=machine_of(store.index, row["hardware"]))
    )


def release_of(row: dict[str, Any]) -> str | None:
    """The stated release, else the first one in which the case says that its expectation holds."""
    if row["engine_version"]:
        return str(row["engine_version"])
    for word in row["expect"].get("traits", ()):
        if word.startswith("holds:"):
            return str(word.removeprefix("holds:").split("-")[0])
        if word.startswith("sglang>="):
            return str(word.removeprefix("sglang>="))
    return None


def machine_of(index: Index, stated: dict[str, Any]) -> dict[str, Any]:
    """Hardware traits as far as the case states them."""
    try:
        traits = dict(find(stated["gpu"], index.hardware).traits) if stated["gpu"] else {}
    except RequestError:
        traits = {}
    sm = stated["sm"]
    if sm:
        amd = sm.startswith("gfx")
        number = None if amd else int(sm.replace(".", ""))
        traits |= {"vendor": "amd" if amd else "nvidia", "gfx": sm if amd else None, "sm": number}
    if stated["count"]:
        traits |= {"gpus": stated["count"], "nodes": 1}
    if stated["interconnect"]:
        traits["link"] = stated["interconnect"]
    return traits


# -------------------------------------------------------------------- output


def report(results: list[Judged]) -> str:
    """Hits of cases by family, the sum last; launches of forks stand in a row of their own."""
    groups = {name: [r for r in results if r.family == name] for name in sorted({r.family for r in results})}
    lines = [(name, *(_share(group, kind) for kind in ("fail", "log", "good"))) for name, group in groups.items()]
    lines.append(("all", *(_share(results, kind) for kind in ("fail", "log", "good"))))
    return "\n".join(table(lines, ("family", "failing", "logs", "good")))


def _share(group: list[Judged], kind: str) -> str:
    of_kind = [r for r in group if r.kind == kind and not r.fork]
    return f"{sum(r.hit for r in of_kind)}/{len(of_kind)}" if of_kind else "-"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--misses", action="store_true")
    options = parser.parse_args(argv)
    results = list(measure(Store(default_root()), options.corpus))
    if not results:
        print(f"skipped: no corpus in {options.corpus}")
        return 0
    print(report(results))
    for miss in (r for r in results if options.misses and not r.hit):
        print(f"\n{miss.kind} {miss.id}{' (fork)' if miss.fork else ''}: {miss.family}\n  {miss.found}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
