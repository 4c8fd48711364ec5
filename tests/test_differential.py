"""flagwise against the releases' own argument code, on launches of our own whose verdicts are committed.

The verdicts come from tools/differential.py; what still disagrees stands in tests/oracle/disagreements.yaml with its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import yaml

from solver.differential import Comparison, Recorded, compare
from solver.store import Store

ORACLE = Path(__file__).parent / "oracle"
RELEASES = ("0.5.9", "0.5.10", "0.5.12", "0.5.23")
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


@pytest.fixture(scope="module")
def found(store: Store, rows: list[Recorded]) -> dict[str, list[Comparison]]:
    """Each launch checked once, by release."""
    fields = tuple(yaml.safe_load((ORACLE / "fields.yaml").read_text())["fields"])
    result: dict[str, list[Comparison]] = {release: [] for release in RELEASES}
    for row in rows:
        result[row.release].append(compare(store, row, fields))
    return result


def share(items: list[Comparison], right: Callable[[Comparison], bool]) -> float:
    return sum(map(right, items)) / len(items)


@pytest.mark.parametrize("release", RELEASES)
def test_there_are_enough_launches(found: dict[str, list[Comparison]], release: str) -> None:
    assert len(found[release]) >= 500
    assert 0.1 < share(found[release], lambda c: c.refused) < 0.6


@pytest.mark.parametrize("release", RELEASES)
def test_same_launches_are_refused(found: dict[str, list[Comparison]], release: str) -> None:
    assert share(found[release], lambda c: c.same_verdict) >= AT_LEAST["verdict"]


@pytest.mark.parametrize("release", RELEASES)
def test_the_function_that_refused_is_named(found: dict[str, list[Comparison]], release: str) -> None:
    refused = [c for c in found[release] if c.refused]
    assert share(refused, lambda c: c.site_named) >= AT_LEAST["site"]


@pytest.mark.parametrize("release", RELEASES)
def test_accepted_launches_have_no_error_of_argument_code(found: dict[str, list[Comparison]], release: str) -> None:
    accepted = [c for c in found[release] if not c.refused]
    assert share(accepted, lambda c: not c.errors) >= AT_LEAST["accepted"]


@pytest.mark.parametrize("release", RELEASES)
def test_effective_values_are_the_engines(found: dict[str, list[Comparison]], release: str) -> None:
    counts: Counter[str] = Counter()
    for comparison in found[release]:
        for name, _, _, changed in comparison.values:
            right = name not in comparison.wrong
            counts.update(values=1, right=right, changed=changed, changed_right=changed and right)
    assert counts["right"] / counts["values"] >= AT_LEAST["values"]
    assert counts["changed_right"] / counts["changed"] >= AT_LEAST["changed"]


def test_refusals_come_from_many_functions(rows: list[Recorded]) -> None:
    assert len({(r.file, r.symbol) for r in rows if r.verdict == "refuse"}) >= FUNCTIONS


def test_every_disagreement_is_listed_and_still_there(found: dict[str, list[Comparison]]) -> None:
    """A new one has to be mended or listed; a mended one has to leave the list."""
    listed = msgspec.convert(yaml.safe_load((ORACLE / "disagreements.yaml").read_text()) or [], list[Disagreement])
    assert {(d.id, d.what) for d in listed} == {pair for items in found.values() for c in items for pair in differences(c)}
    assert all(d.why for d in listed)


def differences(comparison: Comparison) -> list[tuple[str, str]]:
    if not comparison.same_verdict:
        return [(comparison.id, "verdict")]
    if comparison.refused and not comparison.site_named:
        return [(comparison.id, "site")]
    return [(comparison.id, name) for name in comparison.wrong]
