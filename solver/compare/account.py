"""A judged launch -> `Account`: what it says, what is in force, what is found, what it costs, what that rests on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from solver.check import Result, Verdict
from solver.compiled import Program
from solver.context import Context
from solver.facts import TRAIT_SPACES
from solver.pipeline import plain
from solver.records import Examples, Finding, Rule, Severity
from solver.solve import metrics_of
from solver.store import Store


class Brief(msgspec.Struct, frozen=True):
    """A finding in short. `flags` are canonical ids, as spellings change between releases."""

    rule: str
    severity: Severity
    title: str
    message: str
    flags: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    conditional_on: tuple[str, ...] = ()
    after: str | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes it the same finding in another launch."""
        return (self.rule, self.flags, self.env)


class Account(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was true of a launch when it was judged.

    `flags`: what the command gives; `effective`: the value of every flag of the release at the end of the engine's
    resolution; `traits` of model, hardware and software; all under dotted names, so that no mapping of them looks like
    a configuration file. `rules`: id -> fingerprint
    of each rule that fired, wrote a value or is the reason of a flag; `metrics` are estimates (docs/cost-model.md).
    """

    knowledge: str
    release: str
    model: str | None
    hardware: str | None
    verdict: Verdict
    flags: dict[str, Any]
    env: dict[str, str]
    effective: dict[str, Any]
    findings: tuple[Brief, ...]
    rules: dict[str, str]
    traits: dict[str, Any]
    metrics: dict[str, Any]


def account_of(context: Context, result: Result, reasons: Iterable[str] = ()) -> Account:
    """The account of a launch, as plain as one that was read from a file.

    `reasons` name what its flags are there for; a rule among them mattered although it has nothing to say any more.
    """
    facts = context.facts
    account = Account(
        knowledge=context.index.hash,
        release=context.release,
        model=context.model_name,
        hardware=context.hardware_name,
        verdict=result.verdict,
        flags=_dotted("flag", facts.given),
        env=dict(sorted(facts.env.items())),
        effective=_effective(result),
        findings=tuple(_brief(finding, context.resolver.program) for finding in result.findings),
        rules=_rules(context.store, result, reasons),
        traits={k: v for space in TRAIT_SPACES for k, v in _dotted(space, getattr(facts, space)).items()},
        metrics=metrics_of(context, result),
    )
    return msgspec.json.decode(msgspec.json.encode(account), type=Account)


def _dotted(space: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{space}.{name}": value for name, value in sorted(values.items())}


def _brief(finding: Finding, program: Program) -> Brief:
    said = {name: getattr(finding, name) for name in Brief.__struct_fields__}
    return Brief(**{**said, "flags": tuple(program.options.spellings.get(name, name) for name in finding.flags)})


def _effective(result: Result) -> dict[str, Any]:
    """Every flag's value, or the values that it has on the machines that an unknown one could be."""
    ends = [outcome.state.spaces["flag"] for outcome in result.outcomes]
    found: dict[str, Any] = {}
    for name in ends[0]:
        values: list[Any] = []
        for end in ends:
            if (value := plain(end.get(name))) not in values:
                values.append(value)
        found[name] = values[0] if len(values) == 1 else {"one_of": values}
    return _dotted("flag", found)


def _rules(store: Store, result: Result, reasons: Iterable[str]) -> dict[str, str]:
    """The rules that mattered and their fingerprints."""
    names = {*reasons, *(finding.rule for finding in result.findings)}
    names |= {write.rule for outcome in result.outcomes for write in outcome.writes}
    rules = {name: store.rule(name) for name in sorted(names)}
    return {name: fingerprint(rule) for name, rule in rules.items() if rule is not None}


def fingerprint(rule: Rule) -> str:
    """Changes with whatever a rule says or does; not with its sources and examples."""
    bare = msgspec.structs.replace(rule, sources=(), checked="", examples=Examples())
    return blake2b(msgspec.json.encode(bare), digest_size=8).hexdigest()
