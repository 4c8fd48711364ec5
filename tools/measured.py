"""Measured throughputs and tests/measured/groups.yaml in; for each group the ranking and errors of predictions out.

    python tools/measured.py [--facts MEASURED.jsonl] [--rows] [--overheads]

Rankings use the stored constants. For the errors the overhead per layer is fitted on the first row of a group and the
others are predicted. Where the source prints how many requests ran at once on average, that is the batch. Rows that
any constant stems from are never predicted; `--overheads` prints what each of them leaves for the overhead per layer.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from solver.acceptance import accepted_tokens
from solver.constants import Costs, LayerCost, read_costs
from solver.cost import Setting, prepare, token_latency
from solver.store import Store
from solver.traits.find import find_hardware

ROOT = Path(__file__).resolve().parent.parent
FACTS = ROOT.parent / "shared" / "facts" / "measured.jsonl"
MAPPING = ROOT / "tests" / "measured" / "groups.yaml"
SHORT_CONTEXT = 512
"""Tokens that a request of a "no context" row holds on average: its own prompt and answer."""
LEAST_PREDICTIONS = 3

Row = dict[str, Any]


class Case(NamedTuple):
    """One measured row as a launch: `us` is the measured time per token of one request."""

    id: str
    model: dict[str, Any]
    hardware: dict[str, Any]
    release: str
    setting: Setting
    accept: float | None
    us: float


class Group(NamedTuple):
    name: str
    family: str
    cases: list[Case]


class Score(NamedTuple):
    """What is said of a group: Kendall's tau-b of the ranking, and the relative errors after the fit."""

    group: Group
    tau: float
    errors: list[float]


def read_rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def groups_of(rows: list[Row], mapping: Row, store: Store, costs: Costs) -> list[Group]:
    """Every group of a mapped family whose rows have at least three different predictions."""
    calibration = {c["group"] for c in mapping["calibration"]}
    groups = [g for g in mapped(rows, mapping, store, costs) if g.name not in calibration]
    return [g for g in groups if len({predict(c, costs) for c in g.cases}) >= LEAST_PREDICTIONS]


def mapped(rows: list[Row], mapping: Row, store: Store, costs: Costs) -> list[Group]:
    """Every group of a mapped family, without the rows that it excludes."""
    families = {f["family"]: f for f in mapping["families"]}
    found: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for row in rows:
        family = families.get(row["family"])
        if family and not any(_excludes(e, row) for e in family.get("exclude", ())):
            found[row["group"], row["family"]].append(case_of(row, family, mapping, store, costs))
    return [Group(name, family, sorted(cases, key=lambda c: c.id)) for (name, family), cases in found.items()]


def _excludes(rule: Row, row: Row) -> bool:
    return bool(row["engine"] == rule.get("engine") or rule.get("flag") in row["flags"])


def case_of(row: Row, family: Row, mapping: Row, store: Store, costs: Costs) -> Case:
    """A row as a layout. Errors: KeyError for a flag that the mapping does not know."""
    fields = {**_lengths(row, family), **family["setting"]}
    for flag, value in row["flags"].items():
        how = mapping["flags"][flag]
        if "field" in how:
            fields[how["field"]] = value
        elif "values" in how:
            fields |= how["values"][value]
    fields |= {k: family.get("names", {}).get(fields.get(k), fields.get(k, "")) for k in ("kernel", "attention")}
    setting = Setting(**fields, concurrency=round(mapping["held"].get(row["id"], row["concurrency"])))
    traits = mapping["models"][family["model"]]["traits"] if family["model"] in mapping["models"] else None
    model = traits or {"id": family["model"], **store.index.models[family["model"]].traits}
    us = 1e3 * row["tpot_ms"] if row.get("tpot_ms") else row["concurrency"] * 1e6 / row["decode_tok_s"]
    accept = row["accept_length"]
    if setting.draft_steps and not accept:
        known = accepted_tokens(family.get("accept_as", model["id"]), setting.draft_steps, costs.acceptance)
        accept = known.value if known else None
    hardware = find_hardware(store.index, family["hardware"])
    return Case(row["id"], {**model, **family.get("mtp", {})}, hardware, family["release"], setting, accept, us)


def _lengths(row: Row, family: Row) -> dict[str, Any]:
    """Random lengths are even between 1 and the stated ones (bench_serving, range ratio 0); a request holds its prompt
    and, weighted by time, two thirds of its answer."""
    if not family.get("random_lengths"):
        return {"context": row["context"] + SHORT_CONTEXT} if row["context"] is not None else {}
    prompt, output = (int(n) // 2 for n in re.findall(r"(?:in|out)=(\d+)", row["group"]))
    return {"prompt": prompt, "output": output, "context": prompt + output * 2 // 3}


def predict(case: Case, costs: Costs) -> float:
    """Time per token in us."""
    found = token_latency(prepare(case.model, case.hardware, costs, case.release), case.setting, case.accept)
    if found.value is None:
        raise ValueError(f"{case.id}: {', '.join(found.missing)}")
    return found.value


def fitted(case: Case, costs: Costs) -> Costs:
    """Constants with the one overhead per layer, never below zero, that brings this row nearest to what it measured."""

    def fixed(value: float) -> Costs:
        return msgspec.structs.replace(costs, layers=(LayerCost(value, value, value, ()),))

    at_zero, at_one = predict(case, fixed(0.0)), predict(case, fixed(1.0))
    return fixed(max(0.0, (case.us - at_zero) / (at_one - at_zero)))


def score(group: Group, costs: Costs) -> Score:
    first, *others = group.cases
    tuned = fitted(first, costs)
    pairs = [(predict(c, costs), c.us) for c in group.cases]
    return Score(group, kendall(pairs), [predict(c, tuned) / c.us - 1 for c in others])


def kendall(pairs: list[tuple[float, float]]) -> float:
    """Tau-b: concordant less discordant pairs over all that are not tied in either."""
    signs = [(_sign(a[0] - b[0]), _sign(a[1] - b[1])) for a, b in combinations(pairs, 2)]
    left, right = sum(s[0] != 0 for s in signs), sum(s[1] != 0 for s in signs)
    return sum(a * b for a, b in signs) / (left * right) ** 0.5 if left and right else 0.0


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def overheads(facts: Path = FACTS) -> Iterator[str]:
    """What each calibration row leaves for the overhead per layer beside the expert kernel's own."""
    costs = read_costs(ROOT / "knowledge")
    mapping = yaml.safe_load(MAPPING.read_text("utf-8"))
    constants = {c["group"]: c["constants"] for c in mapping["calibration"]}
    for group in mapped(read_rows(facts), mapping, Store(ROOT / "knowledge"), costs):
        for case in group.cases if group.name in constants else ():
            setting, layer = case.setting, fitted(case, costs).layers[0].value
            what = f"{setting.kernel} draft {setting.draft_steps} concurrency {setting.concurrency}"
            yield f"{case.id}  {layer:6.1f} us a layer  {what}  ({constants[group.name]})"


def scores(facts: Path = FACTS) -> list[Score]:
    """Every counted group with its score."""
    costs = read_costs(ROOT / "knowledge")
    mapping = yaml.safe_load(MAPPING.read_text("utf-8"))
    groups = groups_of(read_rows(facts), mapping, Store(ROOT / "knowledge"), costs)
    return [score(group, costs) for group in groups]


def summary(found: list[Score]) -> dict[str, float]:
    """The figures that the project promises."""
    errors = [abs(e) for s in found for e in s.errors]
    families: dict[str, list[float]] = defaultdict(list)
    for s in found:
        families[s.group.family] += [abs(e) for e in s.errors]
    return {
        "groups": len(found),
        "families": len({s.group.family for s in found}),
        "rows": sum(len(s.group.cases) for s in found),
        "median tau": statistics.median(s.tau for s in found),
        "median error": statistics.median(errors),
        "mean error": statistics.fmean(errors),
        "median error, families weighing the same": statistics.median(map(statistics.median, families.values())),
        "largest error": max(errors),
    }


def lines(found: list[Score], rows: bool) -> Iterator[str]:
    """A table by family, and with `rows` by group."""
    for family in dict.fromkeys(s.group.family for s in found):
        mine = [s for s in found if s.group.family == family]
        if rows:
            for s in mine:
                others = " ".join(f"{e:+.0%}" for e in s.errors)
                yield f"    {s.group.name:60} tau {s.tau:5.2f}  first {s.group.cases[0].id}, others {others}"
        errors = sorted(abs(e) for s in mine for e in s.errors)
        taus = statistics.median(s.tau for s in mine)
        yield f"{family:40} {len(mine):3} groups  median tau {taus:5.2f}  median error {statistics.median(errors):6.1%}"
    yield ", ".join(f"{name} {value:.3g}" for name, value in summary(found).items())


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=Path, default=FACTS)
    parser.add_argument("--rows", action="store_true", help="one line a group")
    parser.add_argument("--overheads", action="store_true", help="what the calibration rows leave over")
    options = parser.parse_args(argv)
    if not options.facts.is_file():
        print(f"expected measured throughputs (JSON lines) at {options.facts}; give --facts", file=sys.stderr)
        return 2
    found = overheads(options.facts) if options.overheads else lines(scores(options.facts), options.rows)
    print("\n".join(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
