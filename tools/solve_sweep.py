"""Hundreds of solve problems -> what is wrong with any answer, and the launches for the releases' own argument code.

usage: python tools/solve_sweep.py solve [--count N] [--seed N] [--again FILE] [--only TEXT] --out ANSWERS.jsonl
       python tools/solve_sweep.py launches ANSWERS.jsonl --models DIR > LAUNCHES.jsonl      # what an oracle can judge
       python tools/differential.py run --harness … --envs … --models … --in LAUNCHES.jsonl --out VERDICTS.jsonl
       python tools/solve_sweep.py keep ANSWERS.jsonl VERDICTS.jsonl    # into tests/oracle/solved.jsonl

A problem is a model, a machine, a release, a goal and pins. Of an answer it is checked: no error of our own check, room
for everything by our own estimate, the costs of each level against an evaluation of the launch by itself. Of a refusal:
each way out solves, and none of its parts does.
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from independent import rechecked

from solver.answer import solve
from solver.conflict import Impossible
from solver.context import Context, Options, build
from solver.handoff.command import argv_of
from solver.launch import read_argv
from solver.solve import Solution, errors_in, problem_of
from solver.solving import with_model_path
from solver.store import Store, default_root
from solver.traits.find import find_hardware

KEPT = Path("tests/oracle/solved.jsonl")
RELEASES = ("0.5.9", "0.5.10", "0.5.12", "0.5.23")
MACHINES = (
    "8xrtx-pro-6000", "4xrtx-pro-6000", "2xrtx-pro-6000", "8xb200", "4xb200", "8xb300", "8xh200", "8xh100-sxm",
    "4xh100-sxm", "1xh100-sxm", "4xgb200", "8xa100-sxm-80g", "4xl40s", "8xh20", "2xrtx-5090", "8xrtx-4090",
)  # fmt: skip
PINS = (
    "", "", "", "--tp 8", "--tp 4", "--tp 2", "--tp 4 --pp-size 2", "--disable-radix-cache", "--page-size 64",
    "--attention-backend triton", "--attention-backend flashinfer", "--kv-cache-dtype fp8_e4m3", "--tp 3",
    "--dp-size 2", "--speculative-algorithm NEXTN", "--speculative-algorithm NEXTN --tp 8",
    "--max-running-requests 16", "--mem-fraction-static 0.8", "--disable-cuda-graph", "--chunked-prefill-size 4096",
    "--tp 8 --ep-size 8", "--enable-mixed-chunk",
    "--speculative-algorithm NEXTN --mamba-scheduler-strategy no_buffer", "--moe-runner-backend triton",
)  # fmt: skip
"""Pins as people give them; some cannot be kept everywhere."""


ROOMY = 0.85
"""Share of problems whose machine holds the weights; the rest is taken as it comes."""


SHAPE = {"architecture", "layers", "weight_gib"}
"""What an entry has to state for its model to be asked about."""


class Question(NamedTuple):
    """One problem."""

    id: str
    release: str
    model: str
    hardware: str
    goal: str
    pins: str
    concurrency: int


def questions(store: Store, count: int, seed: int) -> Iterator[Question]:
    """The same ones for the same seed: models, machines, releases and goals in turn, pins by chance."""
    dice = random.Random(seed)
    models = sorted(m.id for m in store.index.models.values() if m.hub_ids and m.traits.keys() >= SHAPE)
    dice.shuffle(models)
    goals = sorted(store.index.goals)
    for number in range(count):
        model = store.index.models[models[number % len(models)]]
        roomy = [m for m in MACHINES if _holds(store, m, model.traits.get("weight_gib") or 0.0)]
        yield Question(
            id=f"s{seed}-{number:04}",
            release=RELEASES[number % len(RELEASES)],
            model=model.id,
            hardware=dice.choice(roomy if roomy and dice.random() < ROOMY else MACHINES),
            goal=goals[(number // 2) % len(goals)],
            pins=dice.choice(PINS),
            concurrency=dice.choice((1, 1, 8, 64)),
        )


def asked_before(path: Path) -> Iterator[Question]:
    """The problems of an answers file."""
    return (Question(*(row.get(name, "") for name in Question._fields)) for row in read(path))


def _holds(store: Store, machine: str, weight_gib: float) -> bool:
    traits = find_hardware(store.index, machine)
    return bool(traits["memory_gib"] * traits["gpus"] * 0.75 > weight_gib)


def context_of(store: Store, question: Question, pins: list[str] | None = None) -> Context:
    words = shlex.split(question.pins) if pins is None else pins
    request = {"context": 4096, "concurrency": question.concurrency, "accept_length": None}
    options = Options(question.model, question.hardware, question.release, request)
    return with_model_path(build(store, read_argv(words), options), question.model)


def answered(store: Store, question: Question) -> dict[str, Any]:
    """One line of the answers file; `wrong` lists what no answer may have."""
    context = context_of(store, question)
    row: dict[str, Any] = {**question._asdict(), "env": {}}
    if any(p.refuses and p.flag != "model_path" for p in context.problems):
        return row | {"outcome": "unreadable"}
    answer = solve(context, question.goal)
    if isinstance(answer, Impossible):
        wrong = list(wrong_refusal(context, question, answer))
        conflict = [m.rule or m.text for m in answer.members]
        return row | {"outcome": "impossible", "conflict": conflict, "repairs": len(answer.repairs), "wrong": wrong}
    argv = argv_of(answer.given, context.resolver.program.flags)[3:]
    words = [w for i, w in enumerate(argv) if w != "--model-path" and (i == 0 or argv[i - 1] != "--model-path")]
    wrong = list(wrong_answer(context, question, answer))
    return row | {"outcome": "solved", "args": shlex.join(words), "env": answer.env, "wrong": wrong}


def wrong_answer(context: Context, question: Question, answer: Solution) -> Iterator[str]:
    """Errors, lack of memory, costs that the launch itself does not have, lack of proof."""
    if errors_in(answer.result):
        yield f"errors {errors_in(answer.result)}"
    state = answer.result.outcomes[0].state
    short, requests = state.get("estimate", "short"), state.get("estimate", "requests")
    if short in ("weights", "kv cache", "draft") or (isinstance(requests, int) and requests < 1):
        yield f"lacks memory for {short}"
    if not answer.proven:
        yield "not proven"
    problem = problem_of(context, question.goal)
    chosen = sum(c.name in answer.given or c.name in answer.env for c in problem.choices)
    for level, ours, theirs in zip(answer.levels, answer.costs, rechecked(problem, answer.facts, chosen), strict=True):
        spare = abs(ours) * (level.slack or 0.0) + max(1e-6, abs(ours) * 1e-6)
        if theirs is not None and theirs > ours + spare and level.title != "flags":
            yield f"{level.title}: {theirs:g}, not {ours:g}"


def wrong_refusal(context: Context, question: Question, answer: Impossible) -> Iterator[str]:
    """A way out that does not lead out, or of which a part would do."""
    if not answer.members:
        yield "no conflict is named"
    for repair in answer.repairs:
        if repair.release != context.release or repair.model != context.model_name:
            continue  # another release or checkpoint is one step
        dropped = [k for k, v in context.facts.given.items() if repair.given.get(k, ...) != v]
        for size in range(1, len(dropped)):
            for part in combinations(dropped, size):
                if solves(context, question, set(part)):
                    yield f"of {repair.changes} a part does: {part}"


def solves(context: Context, question: Question, without: set[str]) -> bool:
    given = {k: v for k, v in context.facts.given.items() if k not in without}
    trial = msgspec.structs.replace(context, facts=msgspec.structs.replace(context.facts, given=given))
    return isinstance(solve(trial, question.goal), Solution)


def launches(store: Store, answers: Path, models: Path) -> Iterator[str]:
    """The answers whose checkpoint has a folder (org--name), in the words of tools/differential.py."""
    for row in read(answers):
        hubs = store.index.models[row["model"]].hub_ids
        if row["outcome"] == "solved" and any((models / h.replace("/", "--")).is_dir() for h in hubs):
            yield json.dumps({k: row[k] for k in ("id", "release", "model", "hardware", "args", "env")})


def kept(answers: Path, verdicts: Path) -> int:
    """Answers with the releases' verdicts into the committed file; the number that a release refused."""
    said = {r["id"]: r for r in read(verdicts)}
    rows = []
    for row in read(answers):
        verdict = said.get(row["id"], {})
        row |= {"verdict": verdict["verdict"], **({"in": verdict["in"]} if "in" in verdict else {})} if verdict else {}
        rows.append(json.dumps({k: v for k, v in row.items() if v not in ({}, [], "")}, sort_keys=True))
    KEPT.write_text("\n".join(rows) + "\n", encoding="utf-8")
    print(Counter((json.loads(r)["outcome"], json.loads(r).get("verdict")) for r in rows))
    return sum("refuse" in str(json.loads(r).get("verdict")) for r in rows)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    solving = verbs.add_parser("solve")
    solving.add_argument("--count", type=int, default=400)
    solving.add_argument("--seed", type=int, default=1)
    solving.add_argument("--again", type=Path, help="the problems of this answers file instead")
    solving.add_argument("--only", default="", help="problems whose id contains this")
    solving.add_argument("--out", type=Path, required=True)
    listing = verbs.add_parser("launches")
    listing.add_argument("answers", type=Path)
    listing.add_argument("--models", type=Path, required=True)
    keeping = verbs.add_parser("keep")
    keeping.add_argument("answers", type=Path)
    keeping.add_argument("verdicts", type=Path)
    options = parser.parse_args()
    if options.verb == "keep":
        return int(kept(options.answers, options.verdicts) > 0)
    store = Store(default_root())
    if options.verb == "launches":
        print("\n".join(launches(store, options.answers, options.models)))
        return 0
    wrong = 0
    with options.out.open("w", encoding="utf-8") as out:
        drawn = questions(store, options.count, options.seed)
        for question in asked_before(options.again) if options.again else drawn:
            if options.only in question.id:
                row = answered(store, question)
                wrong += bool(row.get("wrong"))
                out.write(json.dumps(row, sort_keys=True) + "\n")
                out.flush()
                if row.get("wrong"):
                    print(question, row["wrong"], file=sys.stderr)
    print(f"{wrong} answers are wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
