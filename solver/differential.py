"""A launch and the verdict that the release's own argument code gave on it -> where flagwise says something else."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from solver.check import Result, check
from solver.compiled import Program
from solver.context import Context, Lookup, Options, build
from solver.decisions import Resolver
from solver.launch import read_argv
from solver.oracle import DECIDED
from solver.records import Finding
from solver.store import Store

TOLERANCE = {"mem_fraction_static": 0.01}
"""Fields whose engine value is a formula of measured memory: equal within this."""


class Recorded(msgspec.Struct, frozen=True, omit_defaults=True, rename={"symbol": "in"}):
    """One launch of ours with the engine's answer. `resolved`: the compared fields that end as something not given."""

    id: str
    release: str
    model: str
    hardware: str
    args: str
    verdict: str
    env: dict[str, str] = {}
    file: str | None = None
    symbol: str | None = None
    resolved: dict[str, Any] = {}


class Expected(msgspec.Struct, frozen=True):
    """One launch with the verdicts of several releases, as `oracle/expected/cases.jsonl` keeps them."""

    id: str
    model_dir: str
    hardware: str
    args: tuple[str, ...]
    expect: dict[str, dict[str, Any]]
    env: dict[str, str] = {}

    def recorded(self, models: str) -> Iterator[Recorded]:
        """One row for each release that decided it. `models`: the folder of the checkpoints."""
        for release, answer in self.expect.items():
            site = answer.get("site") or {}
            yield Recorded(
                self.id,
                release,
                f"{models}/{self.model_dir}",
                self.hardware,
                shlex.join(self.args),
                answer["verdict"],
                self.env,
                site.get("file"),
                site.get("symbol"),
                answer.get("resolved") or {},
            )


class Comparison(msgspec.Struct, frozen=True):
    """How one launch compares. `values`: (field, engine's, ours, whether the engine changed it)."""

    id: str
    refused: bool
    errors: tuple[Finding, ...]
    same_verdict: bool
    site_named: bool
    values: tuple[tuple[str, Any, Any, bool], ...]
    wrong: tuple[str, ...]
    """Fields whose value differs."""


class Judge:
    """Compares launches by the rules of the stages that argument code decides, which use no estimates."""

    def __init__(self, store: Store, fields: tuple[str, ...]) -> None:
        self.store, self.fields = store, fields
        self._lookup = Lookup(store.index)
        self._resolvers: dict[str, Resolver] = {}

    def compare(self, row: Recorded) -> Comparison:
        """Check the launch and hold the answer against the recorded one."""
        launch = read_argv(["python", "-m", "sglang.launch_server", *shlex.split(row.args)], env=row.env)
        context = build(self.store, launch, Options(row.model, row.hardware, row.release), self._lookup)
        decided = self._decided(context.resolver.program)
        return comparison_of(row, msgspec.structs.replace(context, resolver=decided), self.fields)

    def _decided(self, program: Program) -> Resolver:
        if program.release not in self._resolvers:
            rules = tuple(r for r in program.rules if r.stage in DECIDED)
            resolver = self._resolvers[program.release] = Resolver(
                msgspec.structs.replace(program, rules=rules, screening=None)
            )
            resolver.more_follow = True
        return self._resolvers[program.release]


def comparison_of(row: Recorded, context: Context, fields: tuple[str, ...]) -> Comparison:
    """How the answer to a launch compares with the recorded one."""
    result = check(context.store, context.resolver, context.facts, {}, context.problems)
    errors = tuple(f for f in result.findings if f.severity == "error" and not f.conditional_on and not f.after)
    refused = row.verdict != "accept"
    values = () if refused else tuple(_values(context, result, row.resolved, fields))
    return Comparison(
        row.id,
        refused,
        errors,
        bool(errors) is refused,
        refused and _names_site(row, errors),
        values,
        tuple(name for name, engine, ours, _ in values if not _equal(name, engine, ours)),
    )


def _names_site(row: Recorded, errors: tuple[Finding, ...]) -> bool:
    """Whether an error cites the function that raised; a refusal by the parser only has to be one of ours too."""
    if row.verdict == "refuse-parse":
        return any(f.stage == "parse" for f in errors)
    return any(s.symbol == row.symbol for f in errors for s in f.sources)


def _values(
    context: Context, result: Result, resolved: Mapping[str, Any], fields: tuple[str, ...]
) -> list[tuple[str, Any, Any, bool]]:
    program = context.resolver.program
    named = {form.dest or flag_id: flag_id for flag_id, form in program.flags.items() if not form.into}
    flags = result.outcomes[0].state.spaces["flag"]
    found = []
    for field in fields:
        flag_id = named.get(field)
        if flag_id is None:
            continue
        given = context.facts.given.get(flag_id, program.flags[flag_id].default)
        engine = resolved.get(field, given)
        found.append((field, engine, flags.get(flag_id), field in resolved and engine != given))
    return found


def _equal(name: str, engine: Any, ours: Any) -> bool:
    if name in TOLERANCE and isinstance(engine, int | float) and isinstance(ours, int | float):
        return bool(abs(engine - ours) <= TOLERANCE[name])
    return bool(engine == ours)
