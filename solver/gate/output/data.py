"""A report -> the data of `gate --format json`: launches with their context, findings with their places."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from solver import __version__
from solver.compiled import Program
from solver.gate.output import Programs
from solver.gate.report import Checked, Report, Reported, Where
from solver.launch import Launch
from solver.render.data import FindingData, dumps, finding_data

SCHEMA = "flagwise-gate/1"


class ContextData(msgspec.Struct, frozen=True):
    """What a launch was judged by; null where it is not known. `release_from`: given, image, installed, assumed."""

    release: str | None
    release_from: str | None
    model: str | None
    hardware: str | None
    gpus: int | None
    image: str | None


class LaunchData(msgspec.Struct, frozen=True):
    """One launch. `env`: null for a variable of unknown value. `verdict` is null where `error` says why."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    span: tuple[int, int]
    kind: str
    argv: tuple[str, ...]
    env: dict[str, str | None]
    context: ContextData
    verdict: Literal["valid", "conditional", "invalid"] | None
    error: str | None = None


class GateFinding(FindingData, frozen=True, kw_only=True):
    """One finding at its place; `launch` is the index of its launch. `span` counts bytes of the file.

    `state`: new, or known from the baseline. `suppressed`: why its rule is switched off. `fails`: it fails the run.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    launch: int | None
    fingerprint: str
    state: Literal["new", "known"]
    suppressed: str | None
    fails: bool


class TroubleData(msgspec.Struct, frozen=True):
    """A file that could not be looked at, whole or in part."""

    file: str
    problem: str


class GateData(msgspec.Struct, frozen=True):
    """What `gate --format json` prints."""

    schema: str
    flagwise: str
    knowledge: str
    files: int
    launches: tuple[LaunchData, ...]
    findings: tuple[GateFinding, ...]
    troubles: tuple[TroubleData, ...]
    gone: tuple[str, ...]


def output(report: Report, shown: list[Reported], knowledge: str, on_unknown: bool, programs: Programs) -> str:
    """The report as JSON text."""
    data = GateData(
        SCHEMA,
        __version__,
        knowledge,
        report.files,
        tuple(map(launch_data, report.launches)),
        tuple(_finding(item, programs(item.launch), on_unknown) for item in shown),
        tuple(TroubleData(t.file, t.problem) for t in report.troubles),
        tuple(f"{mark} {what}" for mark, what in report.gone),
    )
    return dumps(msgspec.to_builtins(data))


def json_schema() -> dict[str, Any]:
    """The JSON schema of `GateData`."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(GateData)}


def launch_data(checked: Checked) -> LaunchData:
    """One launch."""
    verdict, hints = checked.verdict, checked.hints
    return LaunchData(
        **_place(checked.where),
        kind=checked.kind,
        argv=argv_of(checked.launch),
        env=checked.launch.env,
        context=ContextData(
            verdict.release if verdict else None,
            verdict.release_from if verdict else None,
            verdict.model if verdict else None,
            verdict.hardware if verdict else None,
            verdict.gpus if verdict else hints.gpus,
            hints.image,
        ),
        verdict=verdict.outcome if verdict else None,
        error=checked.refused or None,
    )


def argv_of(launch: Launch) -> tuple[str, ...]:
    """The engine's own command, without what wraps it."""
    words = tuple(word.text for word in launch.words)
    if launch.entry == "serve":
        return (*launch.prefix[-2:], *words)
    begin = len(launch.prefix) - 2
    while begin > 0 and launch.prefix[begin].startswith("-"):
        begin -= 1  # options of the interpreter
    named = launch.prefix[max(begin, 0) :]
    return (
        *(named if named[-1:] and "launch_server" in named[-1] else ("python", "-m", "sglang.launch_server")),
        *words,
    )


def _finding(item: Reported, program: Program | None, on_unknown: bool) -> GateFinding:
    plain = finding_data(item.finding, program)  # type: ignore[arg-type]  # without fixes it is not looked at
    return GateFinding(
        **{
            **{name: getattr(plain, name) for name in FindingData.__struct_fields__},
            **_place(item.where),
            "launch": item.launch,
            "fingerprint": item.fingerprint,
            "state": item.state,
            "suppressed": item.suppressed,
            "fails": item.fails(on_unknown),
        }
    )


def _place(where: Where) -> dict[str, Any]:
    return {
        "file": where.file, "line": where.line, "column": where.column, "end_line": where.end_line,
        "end_column": where.end_column, "span": (where.start, where.end),
    }  # fmt: skip
