"""Both engines give the same optimum, and brute force agrees, on generated problems and on real ones."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from solver.constraints import Ban, Definition, Lazy, Level, Model, Variable, cost, evaluate, violated
from solver.context import Options, build
from solver.engines import csp, optimum, sat
from solver.launch import read_argv
from solver.solve import problem_of
from solver.store import Store

SEEDS = range(250)


def generated(seed: int) -> Model:
    """A small random model: choices, tables, junctions, lazy values, bans and three kinds of levels."""
    dice = random.Random(seed)
    variables: dict[str, Variable] = {}
    definitions: dict[str, Definition] = {}
    base = [f"b{i}" for i in range(dice.randint(2, 5))]
    for name in base:
        variables[name] = Variable(name, (None, *range(1, dice.randint(2, 4))))
    for number in range(dice.randint(1, 8)):
        define(dice, f"d{number}", variables, definitions)
    booleans = [n for n in definitions if variables[n].domain in ((False, True), (True, False))]
    numbers = [n for n in definitions if n not in booleans]
    bans: list[Ban] = [Ban(n, n) for n in booleans if dice.random() < 0.4]
    if dice.random() < 0.5:
        pair = (base[0], base[1])
        bans.append(Ban(Lazy(pair, lambda v: v[pair[0]] == 1 and v[pair[1]] is None), "lazy"))
    levels = [Level("counted", tuple(dice.sample(booleans, dice.randint(1, len(booleans)))))] if booleans else []
    levels.append(Level("constant", constant=2.0))
    for name in numbers:
        amount = Lazy((name, base[0]), lambda v, n=name: v[n] + (v[base[0]] or 0))  # type: ignore[misc]  # bound per loop
        levels.append(Level(name, amounts=(amount,), slack=dice.choice([None, 0.1, 1.0])))
        if booleans and dice.random() < 0.5:  # something is decided between two looks at the same inputs
            levels.append(Level(f"between {name}", tuple(dice.sample(booleans, 1))))
            less = Lazy(amount.inputs, lambda v, a=amount: -a.run(v))  # type: ignore[misc]
            levels.append(Level(f"most {name}", amounts=(less,), slack=dice.choice([None, 0.5]), maximised=True))
            levels.append(Level(f"again {name}", amounts=(amount,)))
    return Model(variables, tuple(base), definitions, tuple(bans), tuple(levels), {})


def define(dice: random.Random, name: str, variables: dict[str, Variable], definitions: dict[str, Definition]) -> None:
    names = list(variables)
    booleans = [n for n in names if variables[n].domain in ((False, True), (True, False))]
    if len(booleans) >= 2 and dice.random() < 0.5:
        pair = tuple(dice.sample(booleans, 2))
        negated = tuple(dice.random() < 0.5 for _ in pair)
        definitions[name] = Definition(name, pair, {}, dice.choice(["and", "or"]), negated)
        variables[name] = Variable(name, (False, True))
        return
    inputs = tuple(dice.sample(names, min(len(names), dice.randint(1, 3))))
    truth = dice.random() < 0.6
    rows = {
        combo: dice.random() < 0.4 if truth else dice.choice([1.0, 2.5, 3.0, 7.0])
        for combo in itertools.product(*(variables[i].domain for i in inputs))
    }
    domain = tuple(dict.fromkeys(rows.values()))
    if len(domain) > 1:
        definitions[name] = Definition(name, inputs, rows)
        variables[name] = Variable(name, domain)


def brute_force(model: Model) -> Any:
    """The optimum by looking at every assignment, written without any engine."""
    found = []
    for combo in itertools.product(*(model.variables[n].domain for n in model.base)):
        values = evaluate(model, dict(zip(model.base, combo, strict=True)))
        if not violated(model, values):
            found.append(values)
    costs = []
    for level in model.levels:
        if not found:
            return None
        best = min(cost(level, v) for v in found)
        costs.append(best)
        allowed = best + abs(best) * (level.slack or 0)
        found = [v for v in found if cost(level, v) <= allowed + 1e-6]
    return ({n: found[0][n] for n in model.base}, tuple(costs)) if found else None


def plain(model: Model, answer: Any) -> Any:
    return None if answer is None else ({n: answer[0][n] for n in model.base}, tuple(answer[1]))


@pytest.mark.parametrize("seed", SEEDS)
def test_engines_and_brute_force_agree(seed: int) -> None:
    model = generated(seed)
    with sat.SatEngine(model) as engine:
        by_sat = plain(model, optimum.optimise(engine))
    assert by_sat == plain(model, csp.optimise(model)) == brute_force(model)


def test_some_generated_problems_have_no_solution() -> None:
    """The comparison above would be weak if every problem had an answer."""
    answers = [brute_force(generated(seed)) for seed in SEEDS]
    assert 10 < sum(a is None for a in answers) < len(answers) - 50


REAL = [
    (
        "0.5.9",
        "8xrtx-pro-6000",
        "--tp 8 --speculative-num-steps 3 --speculative-eagle-topk 1 --moe-runner-backend flashinfer_cutlass",
    ),
    ("0.5.10", "8xrtx-pro-6000", "--tp 8 --speculative-num-steps 3 --moe-runner-backend flashinfer_cutlass"),
    ("0.5.12", "8xb200", "--tp 8 --attention-backend triton --moe-runner-backend flashinfer_trtllm"),
    ("0.5.23", "8xh100-sxm", "--tp 8 --attention-backend fa3 --moe-runner-backend marlin"),
]
"""Problems of the real case with so many pins that enumeration can finish."""
PINNED = "--reasoning-parser qwen3 --tool-call-parser qwen3_coder --quantization modelopt_fp4 --pp 1 "


@pytest.mark.parametrize(("release", "hardware", "pins"), REAL)
def test_engines_agree_on_real_problems(
    store: Store, release: str, hardware: str, pins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = read_argv((PINNED + pins).split())
    context = build(store, launch, Options("qwen3.5-397b-a17b-nvfp4", hardware, release))
    goal = dict(store.index.goals["min-pcie-roundtrips"])
    kept = {
        "speculative_algorithm", "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens",
        "env.SGLANG_ENABLE_SPEC_V2", "mamba_radix_cache_strategy", "attention_backend", "enable_mscclpp",
    }  # fmt: skip
    goal["levers"] = [name for name in goal["levers"] if name in kept]
    monkeypatch.setattr("solver.solve.find_goal", lambda goals, name: goal)
    model = problem_of(context, "min-pcie-roundtrips").model
    with sat.SatEngine(model) as engine:
        by_sat = plain(model, optimum.optimise(engine))
    assert by_sat is not None
    assert by_sat == plain(model, csp.optimise(model))


def test_the_enumeration_refuses_what_it_cannot_finish() -> None:
    names = [f"b{i}" for i in range(20)]
    model = Model({n: Variable(n, (0, 1, 2)) for n in names}, tuple(names), {}, (), (), {})
    with pytest.raises(ValueError, match="too many"):
        csp.optimise(model)
