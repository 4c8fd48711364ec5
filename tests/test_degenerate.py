"""Answers that would be right by the letter and useless: each has a test that it is never given."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from solver.acceptance import measured_steps
from solver.answer import solve
from solver.conflict import Impossible
from solver.constants import read_costs
from solver.context import Options, build
from solver.goals import find_goal, minimised
from solver.launch import read_argv
from solver.solve import Solution
from solver.store import Store, default_root

GOALS = ("min-pcie-roundtrips", "min-latency", "max-throughput", "max-context", "max-accuracy", "min-gpus")
MODEL = "qwen3.5-397b-a17b-nvfp4"


def answer(
    store: Store, goal: str, *pins: str, model: str = MODEL, hardware: str = "8xrtx-pro-6000", **request: Any
) -> Solution | Impossible:
    asked = {"context": 4096, "concurrency": 1, "accept_length": None, **request}
    return solve(build(store, read_argv(list(pins)), Options(model, hardware, "0.5.12", asked)), goal)


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("context", [4096, 1_000_000])
def test_the_kv_pool_serves_a_request_of_the_asked_context(store: Store, goal: str, context: int) -> None:
    found = answer(store, goal, model="qwen3-30b-a3b-fp8", hardware="2xrtx-5090", context=context)
    if context == 4096:
        assert isinstance(found, Solution)
        assert found.after["kv_tokens"] >= context
    else:
        assert isinstance(found, Impossible)
        assert any("fit" in m.text for m in found.members)


@pytest.mark.parametrize("goal", GOALS)
def test_draft_lengths_stay_within_what_was_measured(store: Store, goal: str) -> None:
    measured = measured_steps(MODEL, read_costs(Path(default_root())).acceptance)
    found = answer(store, goal)
    assert isinstance(found, Solution)
    steps = found.result.outcomes[0].state.spaces["flag"]["speculative_num_steps"]
    assert steps is None or steps in measured


def test_a_layout_whose_latency_nobody_knows_is_not_the_fastest(store: Store) -> None:
    levels = {level["id"]: level for level in store.index.data["sglang/levels"]}
    goal = minimised(find_goal(store.index.goals, "safest"), ["latency"], levels)
    found = solve(build(store, read_argv([]), Options("qwen3-8b", "8xh20", "0.5.12")), goal)
    assert isinstance(found, Solution)
    assert found.after["token_latency_us"] is not None


def test_a_draft_length_that_nobody_measured_is_kept_when_pinned_and_its_time_unknown(store: Store) -> None:
    pins = "--speculative-algorithm NEXTN --speculative-num-steps 12 --speculative-eagle-topk 1"
    found = answer(store, "min-latency", *pins.split(), "--speculative-num-draft-tokens", "13")
    assert isinstance(found, Solution)
    assert found.given["speculative_num_steps"] == 12
    assert found.after["token_latency_us"] is None


@pytest.mark.parametrize("goal", GOALS)
def test_idle_gpus_are_mentioned(flagwise: Callable[..., Any], goal: str) -> None:
    common = ("solve", "--goal", goal, "--model", "qwen3-8b", "--hardware", "8xl40s", "--engine-version", "0.5.12")
    idle = json.loads(flagwise(*common, "--format", "json").out)["objective"]["after"]["idle_gpus"]
    said = f"{idle} GPUs stay idle" in flagwise(*common).out
    assert said is (idle > 0)


@pytest.mark.parametrize("goal", GOALS)
def test_a_path_that_nobody_measured_is_never_chosen(store: Store, goal: str) -> None:
    for hardware in ("8xrtx-pro-6000", "8xh20"):  # neither has a measured MSCCL++, H20 no measured link at all
        found = answer(store, goal, model="qwen3-235b-a22b-fp8", hardware=hardware)
        assert isinstance(found, Solution)
        assert "enable_mscclpp" not in found.given
        if hardware == "8xrtx-pro-6000":
            assert found.after["token_latency_us"] is not None


@pytest.mark.parametrize("goal", [*GOALS, "safest"])
@pytest.mark.parametrize("metric", ["latency", "throughput"])
def test_a_path_that_nobody_measured_is_not_the_best_at_a_metric_that_is_asked_for(
    flagwise: Callable[..., Any], goal: str, metric: str
) -> None:
    done = flagwise(
        "solve", "--goal", goal, "--minimise", metric, "--model", MODEL, "--hardware", "8xrtx-pro-6000",
        "--engine-version", "0.5.10", "--emit", "json", "--", "--tp", "8",
    )  # fmt: skip
    answer = json.loads(done.out)
    assert "--enable-mscclpp" not in answer["argv"]
    assert answer["objective"]["after"]["token_latency_us"] is not None


@pytest.mark.parametrize(
    ("pin", "hardware"), [("--enable-mscclpp", "8xrtx-pro-6000"), ("--enable-torch-symm-mem", "8xh20")]
)
def test_a_pinned_path_that_nobody_measured_is_kept_and_its_time_unknown(store: Store, pin: str, hardware: str) -> None:
    found = answer(store, "min-latency", "--tp", "8", *pin.split(), model="qwen3-235b-a22b-fp8", hardware=hardware)
    assert isinstance(found, Solution)
    assert found.after["token_latency_us"] is None


@pytest.mark.parametrize("hardware", ["3xh100-sxm", "6xrtx-pro-6000"])
def test_machines_without_a_power_of_two_are_used_whole_where_that_is_best(store: Store, hardware: str) -> None:
    found = answer(store, "max-throughput", model="qwen3-8b", hardware=hardware, concurrency=256)
    assert isinstance(found, Solution)
    assert found.after["idle_gpus"] == 0


def test_requests_that_were_asked_for_find_room_where_a_layout_has_it(store: Store) -> None:
    for goal in (*GOALS, "safest"):
        found = answer(store, goal, model="qwen3-32b-fp8", hardware="8xh100-sxm", concurrency=32, context=32768)
        assert isinstance(found, Solution)
        requests = found.result.outcomes[0].state.get("estimate", "requests")
        assert requests * (found.given.get("dp_size") or 1) >= 32
        assert dict(zip((lv.title for lv in found.levels), found.costs, strict=True))["requests that find no room"] == 0


@pytest.mark.parametrize("goal", GOALS)
def test_no_pass_yields_more_than_its_drafts_and_one(store: Store, goal: str) -> None:
    found = answer(store, goal, model="glm-4.7-fp8", hardware="8xh200", accept_length=2.5)
    assert isinstance(found, Solution)
    steps = found.result.outcomes[0].state.spaces["flag"]["speculative_num_steps"]
    assert found.after["accepted_tokens"] <= (steps or 0) + 1


def test_points_of_the_trade_off_differ(store: Store) -> None:
    found = answer(store, "min-latency", model="glm-4.7-fp8", hardware="8xh200")
    assert isinstance(found, Solution)
    shapes = [tuple(p.given.values()) for p in found.alternatives]
    assert len(set(shapes)) == len(shapes)
    assert all(p.given["speculative_num_steps"] is None for p in found.alternatives)


def test_a_context_of_millions_is_cut_where_its_table_would_not_fit(store: Store) -> None:
    found = answer(store, "min-latency", model="llama-4-scout-17b-16e-instruct", hardware="8xh100-sxm")
    assert isinstance(found, Solution)
    assert found.given["context_length"] == 1048576
    roomy = answer(store, "min-latency", model="qwen3-32b", hardware="8xh100-sxm")
    assert isinstance(roomy, Solution)
    assert "context_length" not in roomy.given
