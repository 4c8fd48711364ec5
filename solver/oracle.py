"""A rule example and the engine's recorded verdict -> whether they agree (used by the tests and the recipes)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from solver.records import Example, Rule

DECIDED = ("parse", "resolve", "config")
"""The stages that argument code decides."""


def example_key(example: Example) -> str:
    """A short name of a launch that changes when anything in it does."""
    said: list[object] = [example.release, example.model, example.hardware, example.args, sorted(example.env.items())]
    if example.traits:  # stated, so no launch that can be run; launches without keep the name that they had
        said.append(sorted(example.traits.items()))
    plain = msgspec.json.encode(said)
    return hashlib.blake2b(plain, digest_size=6).hexdigest()


def refused(row: Mapping[str, Any]) -> bool:
    """Whether the engine did not start the launch (`exit0`: it printed its help)."""
    return str(row["verdict"]).startswith("reject") or row["verdict"] == "exit0"


def disagreement(rule: Rule, fails: bool, example: Example, row: Mapping[str, Any]) -> str | None:
    """Why a rule's example contradicts the engine's verdict, or None."""
    if rule.severity != "error":
        return None
    stopped = refused(row)
    symbols = {s.symbol for s in rule.sources if s.symbol}
    if fails and not stopped:
        return f"{rule.id}: the engine accepts the failing example at {example.release} ({example.args})"
    if not fails and stopped and row.get("in") in symbols and len(symbols) == 1 and not rule.problem:
        return f"{rule.id}: the engine refuses the passing example at {example.release} in {row['in']} ({example.args})"
    return None
