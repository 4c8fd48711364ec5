"""Hundreds of solve problems: what the releases' own argument code said to the answers, and whether that is fresh."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from solver.store import Store

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))
from solve_sweep import RELEASES, Question, answered  # noqa: E402  # a tool, not a module of the package

ROWS = [json.loads(line) for line in (ROOT / "tests" / "oracle" / "solved.jsonl").read_text("utf-8").splitlines()]
SAMPLE = ROWS[:: max(1, len(ROWS) // 24)]


def test_the_problems_are_many_and_various(store: Store) -> None:
    assert len(ROWS) >= 300
    assert len({r["model"] for r in ROWS}) >= 40
    assert len({r["hardware"] for r in ROWS}) >= 12
    assert {r["release"] for r in ROWS} == set(RELEASES)
    assert {r["goal"] for r in ROWS} == set(store.index.goals)


def test_every_answer_is_accepted_by_the_release_itself() -> None:
    asked = [r for r in ROWS if r["outcome"] == "solved" and "verdict" in r]
    assert len(asked) >= 150
    assert [r["id"] for r in asked if r["verdict"] != "accept"] == []


def test_no_answer_was_wrong_by_our_own_measure() -> None:
    assert [r["id"] for r in ROWS if r.get("wrong")] == []


def test_each_refusal_names_a_conflict() -> None:
    assert all(r["conflict"] for r in ROWS if r["outcome"] == "impossible")


@pytest.mark.parametrize("row", SAMPLE, ids=lambda r: r["id"])
def test_the_recorded_answer_is_still_the_answer(store: Store, row: dict[str, Any]) -> None:
    """If this fails, run tools/solve_sweep.py and tools/differential.py again (docs/solve.md)."""
    question = Question(*(row.get(name, "") for name in Question._fields))
    fresh = answered(store, question)
    assert (fresh["outcome"], fresh.get("args", "")) == (row["outcome"], row.get("args", ""))
    assert not fresh.get("wrong")
