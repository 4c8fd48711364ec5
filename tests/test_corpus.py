"""The level reached on the corpus of public launches that lies beside the checkout (tools/corpus.py measures it)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import ROOT, SHARED

from solver.context import check_context
from solver.store import Store

sys.path.insert(0, str(ROOT / "tools"))

import corpus  # a tool, not part of the package

FOLDER = SHARED / "corpus"
AT_LEAST = {"fail": 0.92, "log": 0.97, "good": 0.98}
"""Share of hits by kind of case; it only goes up."""

AFTER_ARGUMENTS = ("load", "capture", "run", "quality", "host")

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the corpus is not beside this checkout")


@pytest.fixture(scope="module")
def results(store: Store) -> list[corpus.Judged]:
    return [r for r in corpus.measure(store, FOLDER) if not r.fork]


@pytest.mark.parametrize("kind", sorted(AT_LEAST))
def test_the_level_reached_is_kept(results: list[corpus.Judged], kind: str) -> None:
    of_kind = [r for r in results if r.kind == kind]
    missed = {r.id: r.found for r in of_kind if not r.hit}
    assert len(of_kind) - len(missed) >= AT_LEAST[kind] * len(of_kind), missed


def test_no_field_rule_contradicts_a_launch_that_works(store: Store) -> None:
    """What happens after the arguments (load, capture, run, quality, host) is never an error on a good case."""
    contradicted = {}
    for row in corpus.rows(FOLDER):
        if row["kind"] == "good":
            findings = check_context(corpus.context_of(store, FOLDER, row)).findings
            errors = [f.rule for f in findings if f.severity == "error" and not f.conditional_on and not f.after]
            found = [name for name in errors if (rule := store.rule(name)) and rule.stage in AFTER_ARGUMENTS]
            contradicted |= {row["id"]: found} if found else {}
    assert contradicted == {}


def test_a_corpus_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert corpus.main(["--corpus", str(tmp_path)]) == 0
    assert "skipped" in capsys.readouterr().out
