"""The verbs and their options as data: one table for the quick reader, the full command line and its help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from solver import diagnose, inspection, verbs
from solver.compare import diff
from solver.gate import FORMS, gate
from solver.handoff import FORMS as EMITTED


class Option(NamedTuple):
    """One option: `kind` is str, int, float or bool (a switch). `many`: given again, it adds another value.

    `bare`: what it says without a value; one that follows as a word of its own is a list of names.
    """

    name: str
    kind: type
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    least: float | None = None
    many: bool = False
    bare: str | None = None

    @property
    def key(self) -> str:
        return self.name.lstrip("-").replace("-", "_")


class Verb(NamedTuple):
    """One verb: what runs it, its options, and what its free arguments are called (None: it takes none).

    `names_flags`: a dashed word that is no option of the verb names a flag of the engine.
    """

    run: Callable[[dict[str, Any]], int]
    options: tuple[Option, ...] = ()
    arguments: str | None = None
    names_flags: bool = False


def _solve(values: dict[str, Any]) -> int:
    """Complete a partial request into a full valid flag set; what the command says is kept."""
    from solver.solving import solve

    return solve(values)


MODEL = Option("--model", str, None, "catalogue id, hub id or checkpoint directory")
HARDWARE = Option("--hardware", str, None, "such as 8xrtx-pro-6000, a file (nvidia-smi output or YAML), or auto")
ENGINE = Option("--engine-version", str, None, "the SGLang release, such as 0.5.10")
FORMAT = Option("--format", str, "text", "form of the result", ("text", "json"))
CONTEXT = Option("--context", int, 4096, "tokens that one request must be able to hold", least=1)
CONCURRENCY = Option("--concurrency", int, 1, "requests served at the same time", least=1)
ACCEPT = Option("--accept-length", float, None, "accepted tokens per pass, where no measured row applies", least=1)
PERF = Option("--perf", str, None, "take the time per token from this estimator", ("flagwise", "aiconfigurator"))
BATCH = Option("--batch", str, None, "JSON lines: one launch each")
JUDGED_BY = (MODEL, HARDWARE, ENGINE)
LAUNCH = "[COMMAND | - | -- ARGV…]"

VERBS: dict[str, Verb] = {
    "validate": Verb(
        verbs.validate,
        (
            *JUDGED_BY, FORMAT,
            Option("--fail-on", str, "error", "least severity that fails", ("error", "warning", "note")),
            Option("--fail-on-unknown", bool, False, "findings that depend on unknown facts fail too"),
            Option("--require-context", bool, False, "refuse to judge when something had to be assumed"),
            Option("--lock", str, None, "a file of `solve --lock`: what has changed since it was written"),
            BATCH, CONTEXT, CONCURRENCY,
        ),
        LAUNCH,
    ),
    "solve": Verb(
        _solve,
        (
            Option("--goal", str, "min-pcie-roundtrips", "id of the goal"),
            Option("--minimise", str, (), "metrics, in order, in place of the goal's own", many=True),
            Option("--guard", str, (), "METRIC<=N, METRIC>=N, or METRIC=SHARE% worse than its best", many=True),
            Option("--ban", str, (), "FLAG never given, or FLAG=VALUE never in force", many=True),
            Option("--keep", str, None, "a starting command of which as little as possible changes"),
            *JUDGED_BY, FORMAT,
            Option("--emit", str, None, "print the solution alone", EMITTED),
            Option("--lock", str, None, "write the solution and what it rests on to this file"),
            Option("--overwrite", bool, False, "with --lock and --front-svg: replace a file that is there"),
            Option("--why", str, (), "FLAG: why the answer has it so", many=True),
            Option("--why-not", str, (), "FLAG[=VALUE]: what would have to give for it, and its cost", many=True),
            Option("--top", int, None, "the so many best answers that differ in something that matters", least=1),
            Option("--front", str, None, "[METRIC,METRIC]: what no other launch beats in both", bare="trades"),
            Option("--front-svg", str, None, "draw the front into this file"),
            CONTEXT, CONCURRENCY, ACCEPT, PERF,
        ),
        LAUNCH,
    ),
    "estimate": Verb(verbs.estimate, (*JUDGED_BY, FORMAT, BATCH, CONTEXT, CONCURRENCY, ACCEPT, PERF), LAUNCH),
    "diff": Verb(diff, (*JUDGED_BY, FORMAT, CONTEXT, CONCURRENCY, ACCEPT), "A B"),
    "explain": Verb(verbs.explain, (ENGINE,), "RULE|FLAG|GOAL", names_flags=True),
    "graph": Verb(
        verbs.graph,
        (
            Option("--around", str, None, "only what is near this flag"),
            *JUDGED_BY,
            Option("--format", str, "dot", "form of the picture", ("svg", "dot", "mermaid", "json")),
            Option("--output", str, None, "write to this new file"),
        ),
        LAUNCH,
    ),
    "launch": Verb(verbs.launch, (*JUDGED_BY, Option("--force", bool, False, "start in spite of errors")), "-- ARGV…"),
    "diagnose": Verb(diagnose.diagnose, (*JUDGED_BY, FORMAT), "LOG|- [COMMAND]"),
    "gate": Verb(
        gate,
        (
            *JUDGED_BY,
            Option("--format", str, "text", "form of the result", FORMS),
            Option("--output", str, (), "FORMAT=FILE: write the result to a file too; may be repeated", many=True),
            Option("--show", str, "warning", "least severity shown", ("error", "warning", "note")),
            Option("--fail-on", str, None, "least severity that fails (else as configured, else error)",
                   ("error", "warning", "note")),
            Option("--fail-on-unknown", bool, False, "findings that depend on unknown facts fail too"),
            Option("--baseline", str, None, "file of known findings: only others fail"),
            Option("--write-baseline", bool, False, "write the findings of this run into the baseline"),
            Option("--fix", bool, False, "mend what can be mended without changing what is in force"),
            Option("--unsafe", bool, False, "with --fix: make the best repair of the rest too"),
            Option("--diff", bool, False, "show what --fix would change, and change nothing"),
            Option("--jobs", int, 1, "processes; more pay where machines are not stated or files are many", least=1),
            Option("--config", str, None, "configuration file (else the nearest flagwise.toml or pyproject.toml)"),
        ),
        "[PATH… | -]",
    ),
    "inspect model": Verb(inspection.inspect_model, (FORMAT,), "DIR|ID"),
    "inspect hardware": Verb(inspection.inspect_hardware, (FORMAT,), "[ID|FILE|auto]"),
    "knowledge lint": Verb(verbs.knowledge_lint, (), "[TEXT]"),
    "knowledge learn": Verb(
        verbs.knowledge_learn,
        (
            Option("--wheel", str, None, "a wheel or an unpacked one"),
            Option("--write", str, None, "add what was learned to this catalogue folder"),
            Option("--help-text", str, None, "captured --help output of a fork or private build"),
            Option("--name", str, None, "what that fork is called in --engine-version"),
            Option("--base", str, None, "the release that the fork rests on (else the most alike)"),
        ),
        "sglang==X|WHEEL…",
    ),
    "knowledge coverage": Verb(
        verbs.knowledge_coverage,
        (
            Option("--release", str, None, "the release whose argument code is looked at"),
            Option("--wheel", str, None, "its wheel, packed or unpacked (else it is downloaded)"),
            FORMAT,
        ),
    ),
    "version": Verb(verbs.version),
}  # fmt: skip
