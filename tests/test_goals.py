"""Goals as data, and what a request may change about them: metrics, guards, bans, a starting command."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from solver.answer import solve
from solver.conflict import Impossible
from solver.context import Options, build
from solver.launch import read_argv
from solver.solve import Solution
from solver.store import Store

MODEL, HARDWARE, RELEASE = "qwen3.5-397b-a17b-nvfp4", "8xrtx-pro-6000", "0.5.12"
METRICS = {
    "min-pcie-roundtrips": ("pcie_roundtrips_per_token", 1),
    "min-latency": ("token_latency_us", 1),
    "max-throughput": ("throughput", -1),
    "max-context": ("kv_tokens", -1),
    "min-gpus": ("gpus_used", 1),
}
"""Goal -> the figure it is about, and whether small is good."""


@pytest.fixture
def ask(flagwise: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    def run(*options: str, pins: tuple[str, ...] = (), status: int = 0, release: str = RELEASE) -> dict[str, Any]:
        done = flagwise(
            "solve", "--model", MODEL, "--hardware", HARDWARE, "--engine-version", release,
            "--format", "json", *options, "--", *pins,
        )  # fmt: skip
        assert done.status == status, (done.err or done.out)[:400]
        return dict(json.loads(done.out))

    return run


def answers(store: Store, hardware: str, model: str, concurrency: int = 1) -> dict[str, Solution]:
    request = {"concurrency": concurrency, "context": 4096, "accept_length": None}
    found = {}
    for goal in METRICS:
        answer = solve(build(store, read_argv([]), Options(model, hardware, RELEASE, request)), goal)
        assert isinstance(answer, Solution)
        found[goal] = answer
    return found


@pytest.mark.parametrize(("hardware", "model"), [(HARDWARE, MODEL), ("8xh200", "qwen3-235b-a22b-fp8")])
def test_no_other_goal_is_better_at_what_a_goal_is_about(store: Store, hardware: str, model: str) -> None:
    found = answers(store, hardware, model)
    for goal, (figure, sign) in METRICS.items():
        if goal == "min-pcie-roundtrips":  # its latency guard may cost it a layout that another goal takes
            continue
        enough = 262_144 if figure == "kv_tokens" else float("inf")  # tokens that the model was made for
        own = sign * min(enough, found[goal].after[figure])
        for other in found.values():
            assert own <= sign * min(enough, other.after[figure]) + 0.035 * abs(own), (goal, figure)


def test_throughput_uses_every_gpu_and_the_smallest_layout_does_not(store: Store) -> None:
    found = answers(store, HARDWARE, MODEL, concurrency=32)
    assert found["max-throughput"].after["idle_gpus"] == 0
    assert found["min-gpus"].after["gpus_used"] == 4  # two would not hold the weights


def test_accuracy_comes_before_speed(ask: Callable[..., dict[str, Any]]) -> None:
    fast, exact = ask("--goal", "min-latency"), ask("--goal", "max-accuracy")
    assert any(f["stage"] == "quality" for f in fast["findings"] if f["severity"] == "warning")
    assert not any(f["stage"] == "quality" for f in exact["findings"] if f["severity"] == "warning")


def test_other_metrics_can_take_the_place_of_the_goals_own(ask: Callable[..., dict[str, Any]]) -> None:
    fewest = ask("--goal", "min-latency", "--minimise", "gpus,latency")
    assert fewest["objective"]["after"]["gpus_used"] == 4
    assert ask("--goal", "min-latency")["objective"]["after"]["gpus_used"] == 8


def test_a_guard_bounds_a_metric(ask: Callable[..., dict[str, Any]]) -> None:
    free = ask("--goal", "min-gpus")["objective"]["after"]
    limit = int(free["token_latency_us"] * 0.97)
    held = ask("--goal", "min-gpus", "--guard", f"latency<={limit}")["objective"]["after"]
    assert held["token_latency_us"] <= limit
    assert held["gpus_used"] > free["gpus_used"]


def test_a_guard_changes_how_much_worse_a_metric_may_be(ask: Callable[..., dict[str, Any]]) -> None:
    tight, wide = (ask("--guard", f"latency={share}%")["objective"]["after"] for share in (1, 60))
    assert wide["pcie_roundtrips_per_token"] < tight["pcie_roundtrips_per_token"]
    assert tight["token_latency_us"] < wide["token_latency_us"]


def test_an_impossible_guard_is_named_alone_and_dropping_it_is_a_way_out(ask: Callable[..., dict[str, Any]]) -> None:
    answer = ask("--guard", "latency<=50", "--ban", "attention_backend=flashinfer", status=1)
    assert [m["text"] for m in answer["conflict"]] == ["guard latency<=50"]
    assert any("drop guard latency<=50" in r["changes"] for r in answer["repairs"])


@pytest.mark.parametrize("ban", ["moe_runner_backend=flashinfer_cutlass", "--speculative-algorithm", "--tp=8"])
def test_what_is_banned_is_not_in_force(ask: Callable[..., dict[str, Any]], ban: str) -> None:
    answer = ask("--ban", ban)
    name, _, value = ban.partition("=")
    values = {w.split("=")[0]: v for w, v in zip(answer["argv"], [*answer["argv"][1:], ""], strict=True)}
    spelled = {"moe_runner_backend": "--moe-runner-backend", "--tp": "--tensor-parallel-size"}.get(name, name)
    assert values.get(spelled) != value if value else spelled not in values


def test_bans_repeat_and_a_pin_against_a_ban_is_a_conflict(ask: Callable[..., dict[str, Any]]) -> None:
    bans = [word for ban in ("attention_backend=flashinfer", "--speculative-algorithm") for word in ("--ban", ban)]
    assert not {"flashinfer", "--speculative-algorithm"} & set(ask(*bans)["argv"])
    pinned = ask("--ban", "--attention-backend=triton", pins=("--attention-backend", "triton"), status=1)
    assert {m["who"] for m in pinned["conflict"]} == {"you"}


BROKEN = (
    "python -m sglang.launch_server --model-path nvidia/Qwen3.5-397B-A17B-NVFP4 --tp 8 --mem-fraction-static 0.8 "
    "--speculative-algorithm NEXTN --mamba-scheduler-strategy no_buffer --max-running-requests 8"
)


def test_of_a_starting_command_only_what_is_wrong_changes(ask: Callable[..., dict[str, Any]]) -> None:
    answer = ask("--keep", BROKEN)
    argv = " ".join(answer["argv"])
    for kept in ("--tensor-parallel-size 8", "--mem-fraction-static 0.8", "--max-running-requests 8", "NEXTN"):
        assert kept in argv
    assert "--mamba-scheduler-strategy extra_buffer" in argv
    reasons = {r["flag"]: r["text"] for r in answer["reasons"]}
    assert reasons["--tensor-parallel-size"] == "as in the starting command"
    assert answer["objective"]["before"]["token_latency_us"] is not None


def test_what_a_starting_command_gives_up_is_no_part_of_a_conflict_nor_added_by_a_repair(
    ask: Callable[..., dict[str, Any]],
) -> None:
    answer = ask("--keep", f"{BROKEN} --disable-radix-cache", "--guard", "latency<=50", status=1)
    assert [m["text"] for m in answer["conflict"]] == ["guard latency<=50"]
    changes = [c for r in answer["repairs"] for c in r["changes"]]
    assert "drop guard latency<=50" in changes
    assert not any("disable-radix-cache" in c for c in changes)


SPECULATING = f"{BROKEN.replace('no_buffer', 'extra_buffer')} --speculative-num-steps 3 --speculative-eagle-topk 1"


def test_a_starting_command_keeps_what_the_goal_likes_less(ask: Callable[..., dict[str, Any]]) -> None:
    start = f"{SPECULATING} --speculative-num-draft-tokens 4 --disable-overlap-schedule --kv-cache-dtype fp8_e5m2"
    answer = ask("--keep", start)
    argv = " ".join(answer["argv"])
    assert all(word in argv for word in ("--disable-overlap-schedule", "fp8_e5m2", "--speculative-num-steps 3"))
    assert all(r["value"] is not None for r in answer["reasons"])


def test_what_cannot_stay_of_a_starting_command_is_named_with_the_rule_against_it(
    ask: Callable[..., dict[str, Any]],
) -> None:
    answer = ask("--keep", f"{SPECULATING} --speculative-num-draft-tokens 4 --disable-radix-cache")
    gone = {r["flag"]: r["text"] for r in answer["reasons"] if r["value"] is None}
    assert gone == {"--disable-radix-cache": "refused by extra-buffer-needs-radix-cache"}


def test_what_means_nothing_alone_leaves_a_starting_command_together(ask: Callable[..., dict[str, Any]]) -> None:
    answer = ask("--keep", f"{SPECULATING} --speculative-num-draft-tokens 4", "--ban", "speculative-algorithm=NEXTN",
                 "--ban", "speculative-algorithm=EAGLE")  # fmt: skip
    assert not [word for word in answer["argv"] if word.startswith("--speculative")]
    gone = {r["flag"]: r["text"] for r in answer["reasons"] if r["value"] is None}
    assert gone["--speculative-num-steps"] == "means nothing without --speculative-algorithm"
    assert "ban" in gone["--speculative-algorithm"]


def test_each_repair_of_a_request_with_wishes_keeps_the_other_wishes(ask: Callable[..., dict[str, Any]]) -> None:
    wishes = ("--ban", "attention_backend=flashinfer", "--guard", "gpus<=4")
    answer = ask(*wishes, pins=("--tp", "8"), status=1)
    assert {m["text"] for m in answer["conflict"]} == {"--tensor-parallel-size 8", "guard gpus<=4"}
    assert answer["repairs"]
    for repair in answer["repairs"]:
        assert "flashinfer" not in repair["argv"]
        assert "drop guard gpus<=4" in repair["changes"] or repair["metrics"]["gpus_used"] <= 4


def test_pins_go_before_the_starting_command(ask: Callable[..., dict[str, Any]]) -> None:
    argv = " ".join(ask("--keep", BROKEN, pins=("--tp", "4"))["argv"])
    assert "--tensor-parallel-size 4" in argv
    assert "--mem-fraction-static 0.8" in argv


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--goal", "min-taxes"), "known are max-accuracy, max-context"),
        (("--minimise", "taxes"), "unknown metric 'taxes'; known are context, gpus"),
        (("--guard", "latency"), "expected METRIC<=NUMBER"),
        (("--guard", "gpus=3%"), "has no such metric, only latency and round-trips; give a bound such as gpus<=NUMBER"),
        (("--ban", "--taxes"), "--taxes is no flag or variable of SGLang 0.5.12"),
        (("--ban", "tp_size", "--", "--tp", "8"), "the request itself gives tp_size"),
    ],
)
def test_a_wrong_wish_is_refused_in_one_line(flagwise: Callable[..., Any], options: tuple[str, ...], said: str) -> None:
    done = flagwise("solve", "--model", MODEL, "--hardware", HARDWARE, "--engine-version", RELEASE, *options)
    assert done.status == 2
    assert said in done.err
    assert done.err.count("\n") == 1


def test_a_conflict_over_memory_names_it(store: Store) -> None:
    context = build(store, read_argv(["--tp", "1"]), Options(MODEL, "1xrtx-pro-6000", RELEASE))
    answer = solve(context, "min-latency")
    assert isinstance(answer, Impossible)
    assert any("larger than the memory" in m.text for m in answer.members)
