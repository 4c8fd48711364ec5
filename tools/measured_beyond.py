"""tests/measured/beyond.yaml in; for each group the ranking and errors of what `estimate` says of its launches out.

    python tools/measured_beyond.py [--rows]

Unlike in tools/measured.py nobody maps a row by hand: each is a command that the rules resolve. Rankings and `stored`
errors use the stored constants; for `fitted` errors the overhead per layer is fitted on the first row of a group and
the others are predicted.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml
from measured import Case, Group, Row, Score, predict, score

from solver.constants import Costs, read_costs
from solver.context import Options, build, check_context
from solver.launch import read_argv
from solver.store import Store

ROOT = Path(__file__).resolve().parent.parent
GROUPS = ROOT / "tests" / "measured" / "beyond.yaml"
MODEL = "--model-path=checkpoint"


class Beyond(NamedTuple):
    """The score of a group, and the relative errors of all its rows with the stored constants."""

    score: Score
    stored: list[float]


def case_of(store: Store, group: Row, row: dict[str, Any]) -> Case:
    """One row as the layout that its command resolves to. Errors: RequestError for a command that cannot be read."""
    words = shlex.split(group["args"].format(**row))
    context = group["prompt"] + group["output"] // 2  # while it answers, a request holds half of its answer
    request = {"concurrency": row["concurrency"], "context": context}
    options = Options(group["model"], group["hardware"], group["release"], request)
    judged = build(store, read_argv([MODEL, *words], env={}), options)
    figure = judged.estimates["token_latency_us"]
    arguments = figure.arguments(check_context(judged).outcomes[0].state)
    lengths = {"prompt": group["prompt"], "output": group["output"]}
    setting = msgspec.structs.replace(figure.formula.setting(arguments), **lengths)
    accepted = figure.formula.accepted(setting.draft_steps)
    facts = judged.facts
    name = f"tp {row['tp']} ep {row.get('ep', 1)} concurrency {row['concurrency']}"
    accept = accepted.value if accepted else None
    return Case(name, dict(facts.model), dict(facts.hardware), group["release"], setting, accept, microseconds(row))


def microseconds(row: dict[str, Any]) -> float:
    """The measured time between two tokens of one request."""
    if "ms" in row:
        return 1e3 * float(row["ms"])
    if "user" in row:
        return 1e6 / float(row["user"])
    return float(row["concurrency"] * 1e6 / (row["tokens_s"] * row["tp"]))


def groups_of(store: Store) -> Iterator[Group]:
    for group in yaml.safe_load(GROUPS.read_text("utf-8"))["groups"]:
        rows = [dict(zip(group["columns"], row, strict=True)) for row in group["rows"]]
        family = group["id"].rsplit("-", 1)[0]
        yield Group(group["id"], family, [case_of(store, group, row) for row in rows])


def scores() -> list[Beyond]:
    """Every group with its score."""
    costs = read_costs(ROOT / "knowledge")
    return [Beyond(score(group, costs), stored(group, costs)) for group in groups_of(Store(ROOT / "knowledge"))]


def stored(group: Group, costs: Costs) -> list[float]:
    return [predict(case, costs) / case.us - 1 for case in group.cases]


def summary(found: list[Beyond]) -> dict[str, float]:
    return {
        "groups": len(found),
        "rows": sum(len(b.stored) for b in found),
        "median tau": statistics.median(b.score.tau for b in found),
        "median error, fitted": statistics.median(abs(e) for b in found for e in b.score.errors),
        "median error, stored": statistics.median(abs(e) for b in found for e in b.stored),
    }


def lines(found: list[Beyond], rows: bool) -> Iterator[str]:
    for b in found:
        fitted, plain = (statistics.median(map(abs, errors)) for errors in (b.score.errors, b.stored))
        yield f"{b.score.group.name:30} tau {b.score.tau:5.2f}  median error fitted {fitted:6.1%}  stored {plain:6.1%}"
        for case, error in zip(b.score.group.cases, b.stored, strict=True) if rows else ():
            used = f"{case.setting.kernel} {case.setting.attention} {case.setting.allreduce}"
            yield f"    {case.id:32} {case.us / 1e3:6.2f} ms {error:+5.0%}  {used}"
    yield ", ".join(f"{name} {value:.3g}" for name, value in summary(found).items())


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", action="store_true", help="one line a row")
    print("\n".join(lines(scores(), parser.parse_args(argv).rows)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
