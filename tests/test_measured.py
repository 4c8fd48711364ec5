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
LEAST_PREDICTIONS = TOOL["LEAST_PREDICTIONS"]
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
    assert found["median error, families weighing the same"] <= 0.10


def test_whole_launches_from_elsewhere_rank_and_last_as_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    tool = runpy.run_path(str(ROOT / "tools" / "measured_beyond.py"))
    found = tool["scores"]()
    assert len({b.score.group.name for b in found}) == len(found) >= 8
    assert all(len(b.score.group.cases) >= LEAST_PREDICTIONS for b in found)
    figures = tool["summary"](found)
    assert figures["median tau"] >= 0.8
    assert figures["median error, fitted"] <= 0.10
    assert figures["median error, stored"] <= 0.15


def test_no_group_from_elsewhere_is_among_the_measured_facts(rows: list[dict[str, Any]]) -> None:
    beyond = yaml.safe_load((ROOT / "tests" / "measured" / "beyond.yaml").read_text("utf-8"))["groups"]
    threads = {s["url"].removeprefix("https://github.com/") for g in beyond for s in g["sources"]}
    known = {r["source"].replace("#", "/issues/") for r in rows if "@" not in r["source"]}
    assert {t for t in threads if t in known} <= {"SemiAnalysisAI/InferenceX/issues/870"}  # of H200 there, of B200 here


@pytest.mark.parametrize(
    ("pairs", "tau"),
    [([(1, 1), (2, 2), (3, 3)], 1.0), ([(1, 3), (2, 2), (3, 1)], -1.0), ([(1, 1), (1, 2), (2, 3)], 0.816)],
)
def test_the_ranking_figure_is_tau_b(pairs: list[tuple[float, float]], tau: float) -> None:
    assert TOOL["kendall"](pairs) == pytest.approx(tau, abs=1e-3)
