"""flagwise against the releases' own argument code, on launches of our own with committed verdicts and on given ones.

The verdicts come from tools/differential.py; what still disagrees stands in tests/oracle/disagreements.yaml, each with
its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec
import pytest
import yaml
from conftest import SHARED

from solver.differential import Comparison, Expected, Judge, Recorded
from solver.store import Store

ORACLE = Path(__file__).parent / "oracle"
RELEASES = ("0.5.9", "0.5.10", "0.5.12", "0.5.23")
BETWEEN = ("0.5.15", "0.5.20")
"""Releases with fewer launches, which hold the ranges of rules that were read in others."""
FUNCTIONS = 80
"""So many different functions have to have refused one of our launches."""
AT_LEAST = {"verdict": 0.97, "site": 0.93, "accepted": 0.99, "values": 0.96, "changed": 0.92}


class Disagreement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One launch on which we differ. `what`: verdict, site, or the name of a field."""

    id: str
    what: str
    why: str


@pytest.fixture(scope="module")
def rows() -> list[Recorded]:
    lines = (ORACLE / "launches.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Recorded) for line in lines]


Found = Callable[..., list[Comparison]]


@pytest.fixture(scope="module")
def found(store: Store, rows: list[Recorded]) -> Found:
    """The launches of a release, each checked once: our own, or those that were given."""
    judge = Judge(store, tuple(yaml.safe_load((ORACLE / "fields.yaml").read_text())["fields"]))
    known: dict[tuple[str, str], list[Comparison]] = {}

    def of(release: str, source: str = "own") -> list[Comparison]:
        if (source, release) not in known:
            mine = rows if source == "own" else given_rows()
            known[source, release] = [judge.compare(row) for row in mine if row.release == release]
        return known[source, release]

    return of


@cache
def given_rows() -> list[Recorded]:
    path = SHARED / "oracle" / "expected" / "cases.jsonl"
    if not path.exists():
        pytest.skip("the given launches are not on this machine")
    lines = [msgspec.json.decode(line, type=Expected) for line in path.read_bytes().splitlines()]
    return [r for line in lines for r in line.recorded(str(SHARED / "models")) if r.verdict != "artefact"]


every = pytest.mark.parametrize(
    ("release", "source"),
    [*((r, s) for r in RELEASES for s in ("own", "given")), *((r, "own") for r in BETWEEN)],
)


def share(items: list[Comparison], right: Callable[[Comparison], bool]) -> float:
    return sum(map(right, items)) / len(items)


@pytest.mark.parametrize("release", RELEASES)
def test_there_are_enough_launches(found: Found, release: str) -> None:
    assert len(found(release)) >= 500
    assert 0.1 < share(found(release), lambda c: c.refused) < 0.6


@pytest.mark.parametrize("release", BETWEEN)
def test_there_are_some_launches_of_the_releases_between(found: Found, release: str) -> None:
    assert len(found(release)) >= 75
    assert 0.1 < share(found(release), lambda c: c.refused) < 0.7


@every
def test_same_launches_are_refused(found: Found, release: str, source: str) -> None:
    assert share(found(release, source), lambda c: c.same_verdict) >= AT_LEAST["verdict"]


@every
def test_the_function_that_refused_is_named(found: Found, release: str, source: str) -> None:
    refused = [c for c in found(release, source) if c.refused]
    assert share(refused, lambda c: c.site_named) >= AT_LEAST["site"]


@every
def test_accepted_launches_have_no_error_of_argument_code(found: Found, release: str, source: str) -> None:
    accepted = [c for c in found(release, source) if not c.refused]
    assert share(accepted, lambda c: not c.errors) >= AT_LEAST["accepted"]


@every
def test_effective_values_are_the_engines(found: Found, release: str, source: str) -> None:
    counts: Counter[str] = Counter()
    for comparison in found(release, source):
        for name, _, _, changed in comparison.values:
            right = name not in comparison.wrong
            counts.update(values=1, right=right, changed=changed, changed_right=changed and right)
    assert counts["right"] / counts["values"] >= AT_LEAST["values"]
    assert counts["changed_right"] / counts["changed"] >= AT_LEAST["changed"]


def test_refusals_come_from_many_functions(rows: list[Recorded]) -> None:
    assert len({(r.file, r.symbol) for r in rows if r.verdict == "refuse"}) >= FUNCTIONS


def test_all_releases_of_the_file_are_compared(rows: list[Recorded]) -> None:
    assert {r.release for r in rows} == {*RELEASES, *BETWEEN}


@pytest.mark.parametrize("release", [*RELEASES, *BETWEEN])
def test_every_disagreement_is_listed_and_still_there(rows: list[Recorded], found: Found, release: str) -> None:
    """A new one has to be mended or listed; a mended one has to leave the list."""
    mine = {r.id for r in rows if r.release == release}
    text = (ORACLE / "disagreements.yaml").read_text()
    listed = {(d.id, d.what) for d in msgspec.convert(yaml.safe_load(text) or [], list[Disagreement])}
    assert {pair for pair in listed if pair[0] in mine} == {p for c in found(release) for p in differences(c)}


def test_each_listed_disagreement_is_of_a_recorded_launch_and_has_a_reason(rows: list[Recorded]) -> None:
    listed = msgspec.convert(yaml.safe_load((ORACLE / "disagreements.yaml").read_text()) or [], list[Disagreement])
    assert {d.id for d in listed} <= {r.id for r in rows}
    assert all(len(d.why) > 20 for d in listed)


def differences(comparison: Comparison) -> list[tuple[str, str]]:
    if not comparison.same_verdict:
        return [(comparison.id, "verdict")]
    if comparison.refused and not comparison.site_named:
        return [(comparison.id, "site")]
    return [(comparison.id, name) for name in comparison.wrong]
