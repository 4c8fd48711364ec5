"""Rules against the recorded verdicts of the releases' own argument code (made by `make oracle`, committed)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solver.knowledge import load
from solver.lint import run_example
from solver.oracle import DECIDED, disagreement, example_key, refused
from solver.records import Example, Rule
from solver.store import Store, default_root

VERDICTS = Path(__file__).parent / "oracle" / "verdicts.jsonl"
RUN = ("0.5.9", "0.5.10", "0.5.12", "0.5.23")
"""The releases whose own code can be run."""
AT_LEAST = 500
"""Verdicts that have to be there: a test over an empty file would show nothing."""


@pytest.fixture(scope="module")
def verdicts() -> dict[str, dict[str, Any]]:
    """Verdicts by example; where the environment decided (a draft that cannot be fetched) there is none."""
    rows = (json.loads(line) for line in VERDICTS.read_text().splitlines())
    return {row["id"]: row for row in rows if row["verdict"] != "artefact"}


def examples() -> Iterator[tuple[Rule, bool, Example]]:
    for rule in load(default_root()).rules.values():
        if rule.stage in DECIDED and not rule.withdrawn:
            yield from ((rule, True, e) for e in rule.examples.fail)
            yield from ((rule, False, e) for e in rule.examples.pass_)


def test_there_are_enough_verdicts_and_each_belongs_to_an_example(verdicts: dict[str, dict[str, Any]]) -> None:
    keys = {example_key(e) for _, _, e in examples()}
    assert len(verdicts) >= AT_LEAST
    assert set(verdicts) <= keys, "stale verdicts: run `make oracle`"


def test_every_rule_confirmed_by_the_oracle_has_a_verdict(verdicts: dict[str, dict[str, Any]]) -> None:
    """A rule of status `oracle` whose examples were never run, or have changed since, is not confirmed."""
    confirmed: dict[str, bool] = {}
    for rule, _, example in examples():
        if rule.status == "oracle":
            confirmed[rule.id] = confirmed.get(rule.id, False) or example_key(example) in verdicts
    assert [rule for rule, run in confirmed.items() if not run] == []


def test_no_rule_contradicts_the_engine(verdicts: dict[str, dict[str, Any]]) -> None:
    found = [
        text
        for rule, fails, example in examples()
        if (row := verdicts.get(example_key(example))) and (text := disagreement(rule, fails, example, row))
    ]
    assert found == []


def test_verdict_and_values_agree_on_every_example(store: Store, verdicts: dict[str, dict[str, Any]]) -> None:
    """The whole check, not one rule: refused or not, and the effective value of every field the engine changed."""
    wrong: list[str] = []
    values = compared = 0
    seen: set[str] = set()
    for rule, _, example in examples():
        row = verdicts.get(key := example_key(example))
        if row is None or key in seen:
            continue
        seen.add(key)
        _, result, context = run_example(store, example)
        errors = [f for f in result.findings if f.severity == "error" and f.stage in DECIDED and not f.conditional_on]
        if bool([f for f in errors if not f.after]) is not refused(row):
            wrong.append(f"{rule.id} at {example.release}: {example.args} (engine: {row['verdict']} in {row['in']})")
        elif not refused(row):
            same, all_of_them = agreeing(context, result, row["changed"])
            values, compared = values + same, compared + all_of_them
    assert wrong == []
    assert compared > 2000
    assert values / compared > 0.96


FIELDS = (
    "attention_backend", "page_size", "kv_cache_dtype", "moe_runner_backend", "speculative_moe_runner_backend",
    "speculative_algorithm", "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens",
    "mamba_radix_cache_strategy", "disable_radix_cache", "disable_overlap_schedule", "enable_mixed_chunk",
    "chunked_prefill_size", "max_running_requests", "sampling_backend", "grammar_backend", "fp4_gemm_runner_backend",
    "fp8_gemm_runner_backend", "schedule_conservativeness",
)  # fmt: skip


def agreeing(context: Any, result: Any, changed: dict[str, Any]) -> tuple[int, int]:
    """How many of the fields that the engine changed have the same effective value here, and how many there are."""
    flags = context.resolver.program.flags
    final = result.outcomes[0].state.spaces["flag"]
    loaded = {w.name: w.before for w in reversed(result.outcomes[0].writes) if stage_of(context, w.rule) not in DECIDED}
    pairs = [(i, changed[f.dest or i]) for i in FIELDS if (f := flags.get(i)) and (f.dest or i) in changed]
    return sum(loaded.get(name, final[name]) == value for name, value in pairs), len(pairs)


def stage_of(context: Any, rule_id: str) -> str:
    return next(r.stage for r in context.resolver.program.rules if r.id == rule_id)
