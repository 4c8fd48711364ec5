"""Predicted against measured: the mapping is complete and honest, and the promised figures hold."""

from __future__ import annotations

import fnmatch
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
TOOL = runpy.run_path(str(ROOT / "tools" / "measured.py"))
MAPPING = yaml.safe_load((ROOT / "tests" / "measured" / "groups.yaml").read_text("utf-8"))


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    if not TOOL["FACTS"].is_file():
        pytest.skip(f"measured throughputs are not beside this checkout ({TOOL['FACTS']})")
    return list(TOOL["read_rows"](TOOL["FACTS"]))


@pytest.fixture(scope="module")
def scores(rows: list[dict[str, Any]]) -> list[Any]:
    return list(TOOL["scores"]())


def test_each_mapped_or_left_out_family_says_why() -> None:
    assert all(entry["why"] for entry in (*MAPPING["families"], *MAPPING["left_out"]))


def test_each_family_with_three_rows_a_group_is_mapped_or_left_out(rows: list[dict[str, Any]]) -> None:
    sizes: dict[str, int] = {}
    for row in rows:
        sizes[row["group"]] = sizes.get(row["group"], 0) + 1
    known = [f["family"] for f in (*MAPPING["families"], *MAPPING["left_out"])]
    for row in rows:
        if sizes[row["group"]] >= 3:
            assert any(fnmatch.fnmatch(row["family"], name) for name in known), row["family"]


def test_no_row_that_a_constant_stems_from_is_predicted(scores: list[Any]) -> None:
    calibration = {c["group"] for c in MAPPING["calibration"]}
    assert calibration
    assert not calibration & {s.group.name for s in scores}


def test_rankings_and_times_are_as_good_as_promised(scores: list[Any]) -> None:
    found = TOOL["summary"](scores)
    assert found["groups"] >= 25 and found["families"] >= 8
    assert found["median tau"] >= 0.8
    assert found["median error"] <= 0.10


@pytest.mark.parametrize(
    ("pairs", "tau"),
    [([(1, 1), (2, 2), (3, 3)], 1.0), ([(1, 3), (2, 2), (3, 1)], -1.0), ([(1, 1), (1, 2), (2, 3)], 0.816)],
)
def test_the_ranking_figure_is_tau_b(pairs: list[tuple[float, float]], tau: float) -> None:
    assert TOOL["kendall"](pairs) == pytest.approx(tau, abs=1e-3)
