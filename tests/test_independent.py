"""Small real problems: both engines and an enumeration through the pipeline, written without either, agree."""

from __future__ import annotations

import random
import sys
from math import prod
from pathlib import Path
from typing import Any

import pytest

from solver.choices import choices_of
from solver.context import Context, Options, build
from solver.engines import csp, optimum, sat
from solver.goals import find_goal
from solver.launch import read_argv
from solver.solve import Problem, problem_of
from solver.store import Store

sys.path.append(str(Path(__file__).resolve().parent.parent / "tools"))
from independent import best, size  # a tool, not a module of the package

RELEASES = ("0.5.9", "0.5.10", "0.5.12", "0.5.23")
PLACES = (
    ("qwen3.5-397b-a17b-nvfp4", "8xrtx-pro-6000"),
    ("qwen3-235b-a22b-fp8", "8xh100-sxm"),
    ("deepseek-r1", "8xb200"),
    ("qwen3-32b", "4xl40s"),
    ("gpt-oss-120b", "4xh100-sxm"),
    ("qwen3.5-35b-a3b", "2xrtx-5090"),
)
GOALS = ("min-pcie-roundtrips", "min-latency", "max-throughput", "max-context", "max-accuracy", "min-gpus")
SETTINGS = 160
"""Most settings of a small problem."""
CHUNKS = 12
EACH = 18


def problem(store: Store, seed: int) -> Problem:
    """A problem with as many levers, by chance, as give a small number of settings."""
    dice = random.Random(seed)
    model, hardware = dice.choice(PLACES)
    request = {"context": 4096, "concurrency": dice.choice((1, 16)), "accept_length": dice.choice((None, 2.5))}
    options = Options(model, hardware, RELEASES[seed % 4], request)
    context: Context = build(store, read_argv(dice.choice(([], ["--tp", "2"], ["--tp", "4"]))), options)
    goal = find_goal(store.index.goals, GOALS[seed % len(GOALS)])
    levers = list(goal["levers"])
    dice.shuffle(levers)
    few: list[str] = []
    for lever in levers:
        if prod(len(c.values) for c in choices_of(context, (*few, lever))[0]) <= SETTINGS:
            few.append(lever)
    return problem_of(context, {**goal, "levers": tuple(few)})


def plain(made: Problem, answer: Any) -> Any:
    return None if answer is None else ({n: answer[0][n] for n in made.model.base}, pytest.approx(tuple(answer[1])))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_engines_and_an_independent_enumeration_agree(store: Store, chunk: int) -> None:
    for seed in range(chunk * EACH, (chunk + 1) * EACH):
        made = problem(store, seed)
        found = best(made)
        expected = None if found is None else ({k: found[0][k] for k in made.model.base}, found[1])
        if made.model.fixed_violations:
            assert expected is None, seed
            continue
        with sat.SatEngine(made.model) as engine:
            assert expected == plain(made, optimum.optimise(engine)), seed
        assert expected == plain(made, csp.optimise(made.model)), seed


def test_the_small_problems_are_many_and_various(store: Store) -> None:
    assert CHUNKS * EACH >= 200
    sizes = [size(problem(store, seed)) for seed in range(24)]
    assert sum(s > 10 for s in sizes) > 12
