"""What `solve` answers: complete, valid, explained and proven; or a smallest conflict with repairs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from solver.answer import solve
from solver.conflict import Impossible
from solver.context import Options, build
from solver.launch import read_argv
from solver.solve import Solution, errors_in
from solver.store import Store, default_root

RELEASES = ("0.5.9", "0.5.10", "0.5.12", "0.5.23")
MODEL, GOAL = "qwen3.5-397b-a17b-nvfp4", "min-pcie-roundtrips"


@pytest.fixture
def solved(flagwise: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    def run(release: str, *pins: str, hardware: str = "8xrtx-pro-6000", status: int = 0, **more: str) -> dict[str, Any]:
        options = [f"--{k.replace('_', '-')}={v}" for k, v in more.items()]
        done = flagwise(
            "solve", "--goal", GOAL, "--model", MODEL, "--hardware", hardware, "--engine-version", release,
            "--format", "json", *options, "--", *pins,
        )  # fmt: skip
        assert done.status == status, done.err
        return dict(json.loads(done.out))

    return run


def flags(answer: dict[str, Any]) -> dict[str, str]:
    """The emitted flags; switches map to themselves."""
    argv = answer["argv"][3:]
    return {
        word: following if not following.startswith("--") else word
        for word, following in zip(argv, [*argv[1:], "--"], strict=True)
        if word.startswith("--")
    }


@pytest.mark.parametrize("release", RELEASES)
def test_the_answer_speculates_keeps_the_radix_cache_and_works_on_sm120(
    solved: Callable[..., Any], release: str
) -> None:
    answer = solved(release, "--tp", "8")
    given = flags(answer)
    steps = int(given["--speculative-num-steps"])
    assert int(given["--speculative-num-draft-tokens"]) == steps + 1
    assert given["--speculative-eagle-topk"] == "1"
    # up to 0.5.10 the default runs NVFP4 experts on plain CUTLASS kernels, which work on SM120; later ones need a name
    assert given.get("--moe-runner-backend") == (None if release in ("0.5.9", "0.5.10") else "flashinfer_cutlass")
    if release == "0.5.9":
        assert given["--attention-backend"] == "triton"
    if release != "0.5.23":  # there `auto` gives it
        assert given["--mamba-scheduler-strategy"] == "extra_buffer"
    assert not any(f["severity"] == "error" for f in answer["findings"])
    assert answer["proven"] is True
    assert len(answer["alternatives"]) >= 2


@pytest.mark.parametrize("release", RELEASES)
def test_effective_values_keep_overlap_and_prefix_cache(store: Store, release: str) -> None:
    context = build(store, read_argv(["--tp", "8"]), Options(MODEL, "8xrtx-pro-6000", release))
    answer = solve(context, GOAL)
    assert isinstance(answer, Solution)
    assert errors_in(answer.result) == ()
    values = answer.result.outcomes[0].state.spaces["flag"]
    assert values["disable_overlap_schedule"] is False
    assert values["disable_radix_cache"] is False
    assert values["mamba_radix_cache_strategy"] == "extra_buffer"
    assert values["speculative_algorithm"] == "EAGLE"


@pytest.mark.parametrize("release", RELEASES)
def test_every_flag_has_a_reason_and_metrics_are_given_before_and_after(
    solved: Callable[..., Any], release: str
) -> None:
    answer = solved(release, "--tp", "8")
    reasons = {r["flag"] for r in answer["reasons"]}
    assert set(flags(answer)) <= reasons
    assert set(answer["env"]) <= reasons
    assert all(r["text"] for r in answer["reasons"])
    before, after = answer["objective"]["before"], answer["objective"]["after"]
    assert after["token_latency_us"] < before["token_latency_us"]
    assert after["pcie_roundtrips_per_token"] < before["pcie_roundtrips_per_token"]


def test_draft_steps_stay_within_what_was_measured(solved: Callable[..., Any], store: Store) -> None:
    rows = store.index.data["acceptance/qwen3.5-397b"]["rows"]
    steps = int(flags(solved("0.5.10", "--tp", "8"))["--speculative-num-steps"])
    assert steps in {row["steps"] for row in rows}


def test_without_a_pin_it_answers_fits_and_says_that_gpus_stay_idle(
    flagwise: Callable[..., Any], solved: Callable[..., Any]
) -> None:
    answer = solved("0.5.10")
    after = answer["objective"]["after"]
    assert after["kv_tokens"] >= 4096
    text = flagwise("solve", "--model", MODEL, "--hardware", "8xrtx-pro-6000", "--engine-version", "0.5.10")
    if after["idle_gpus"]:
        assert f"{after['idle_gpus']} GPUs stay idle" in text.out


def test_b200_gets_another_answer(solved: Callable[..., Any]) -> None:
    pcie, nvlink = flags(solved("0.5.10", "--tp", "8")), flags(solved("0.5.10", "--tp", "8", hardware="8xb200"))
    assert nvlink["--attention-backend"] == "trtllm_mha"
    assert pcie != nvlink


@pytest.mark.parametrize("release", ["0.5.9", "0.5.10", "0.5.12"])
def test_h100_cannot_run_nvfp4_before_0_5_13_and_is_shown_the_ways_out(
    solved: Callable[..., Any], release: str
) -> None:
    answer = solved(release, "--tp", "8", hardware="8xh100-sxm", status=1)
    assert {m["who"] for m in answer["conflict"]} == {"model", "hardware", "release"}
    assert any(m["rule"] == "nvfp4-needs-blackwell" for m in answer["conflict"])
    changes = [c for r in answer["repairs"] for c in r["changes"]]
    assert "use SGLang 0.5.23" in changes
    assert "serve Qwen/Qwen3.5-397B-A17B-FP8" in changes


def test_h100_runs_it_on_0_5_23(solved: Callable[..., Any]) -> None:
    assert solved("0.5.23", "--tp", "8", hardware="8xh100-sxm")["proven"] is True


WISH = ("--speculative-algorithm", "NEXTN", "--mamba-scheduler-strategy", "no_buffer")


def test_an_impossible_wish_names_who_asked_and_the_repairs_by_cost(solved: Callable[..., Any]) -> None:
    answer = solved("0.5.10", *WISH, status=1)
    asked = [m["text"] for m in answer["conflict"] if m["who"] == "you"]
    assert asked == ["--speculative-algorithm NEXTN", "--mamba-scheduler-strategy no_buffer"]
    assert {m["who"] for m in answer["conflict"]} >= {"you", "model", "release"}
    latencies = [r["metrics"]["token_latency_us"] for r in answer["repairs"]]
    assert len(latencies) >= 3
    assert latencies[0] == min(latencies)
    assert answer["repairs"][0]["changes"] == ["change --mamba-scheduler-strategy from no_buffer to extra_buffer"]


def test_each_repair_is_itself_valid(solved: Callable[..., Any], flagwise: Callable[..., Any]) -> None:
    for repair in solved("0.5.10", *WISH, status=1)["repairs"]:
        env = " ".join(f"{k}={v}" for k, v in repair["env"].items())
        done = flagwise(
            "validate", f"{env} {' '.join(repair['argv'])}", "--hardware", "8xrtx-pro-6000",
            "--engine-version", repair["release"], "--format", "json",
        )  # fmt: skip
        assert done.status == 0, done.out


def test_no_part_of_the_conflict_can_be_left_out(store: Store) -> None:
    for left_out in ((), WISH[:2], WISH[2:]):
        pins = [w for w in WISH if w not in left_out]
        context = build(store, read_argv(pins), Options(MODEL, "8xrtx-pro-6000", "0.5.10"))
        assert isinstance(solve(context, GOAL), Impossible) is (left_out == ())


def test_a_pinned_path_that_nobody_measured_is_kept_but_never_chosen(solved: Callable[..., Any]) -> None:
    assert "--enable-mscclpp" not in flags(solved("0.5.10", "--tp", "8"))
    pinned = solved("0.5.10", "--tp", "8", "--enable-mscclpp")
    assert "--enable-mscclpp" in flags(pinned)
    assert pinned["objective"]["after"]["token_latency_us"] is None


def test_a_model_without_acceptance_rows_speculates_only_when_told(flagwise: Callable[..., Any]) -> None:
    common = (
        "solve",
        "--model",
        "qwen3.5-35b-a3b",
        "--hardware",
        "8xh200",
        "--engine-version",
        "0.5.12",
        "--emit",
        "json",
    )
    answer = json.loads(flagwise(*common).out)
    assert "--speculative-algorithm" not in answer["argv"]
    told = json.loads(flagwise(*common, "--accept-length", "2.5").out)
    assert "--speculative-algorithm" in told["argv"]


def test_the_answer_comes_from_the_rules(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleting a rule, and turning one around, changes the answer accordingly."""
    root = tmp_path / "knowledge"
    shutil.copytree(default_root(), root, ignore=shutil.ignore_patterns("__pycache__", "_compiled"))

    def answer(release: str, pins: list[str]) -> dict[str, Any]:
        context = build(Store(root), read_argv(pins), Options(MODEL, "8xrtx-pro-6000", release))
        found = solve(context, GOAL)
        assert isinstance(found, Solution)
        return found.given

    rules = root / "sglang" / "rules"
    assert answer("0.5.9", ["--tp", "8"])["attention_backend"] == "triton"
    next(rules.rglob("gdn-attention-refused-on-blackwell.yaml")).unlink()
    assert answer("0.5.9", ["--tp", "8"])["attention_backend"] == "flashinfer"

    wish = ["--tp", "8", "--speculative-algorithm", "NEXTN", "--mamba-scheduler-strategy", "no_buffer"]
    rule = next(rules.rglob("spec-on-hybrid-needs-extra-buffer.yaml"))
    rule.write_text(rule.read_text().replace('== "no_buffer"', '== "extra_buffer"'))
    assert answer("0.5.10", wish)["mamba_radix_cache_strategy"] == "no_buffer"


def test_emitted_commands_read_back_to_the_same_launch(flagwise: Callable[..., Any], store: Store) -> None:
    common = ("solve", "--model", MODEL, "--hardware", "8xrtx-pro-6000", "--engine-version", "0.5.10")
    shell, data = flagwise(*common, "--emit", "shell"), json.loads(flagwise(*common, "--emit", "json").out)
    argv = flagwise(*common, "--emit", "argv").out.splitlines()
    assert argv == data["argv"]
    from solver.launch import read_command

    launch = read_command(shell.out)
    assert [w.text for w in launch.words] == data["argv"][3:]
    assert launch.env == data["env"]


def test_what_is_missing_is_named(flagwise: Callable[..., Any]) -> None:
    done = flagwise("solve", "--goal", GOAL, "--engine-version", "0.5.10", "--", "--tp", "8")
    assert done.status == 2
    assert "hardware.sm" in done.err
    assert "--model" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "unknown", [("linear_k_heads", "linear_v_heads"), ("heads",), ("other_gib",), ("quant_method",)]
)
@pytest.mark.parametrize("release", ("0.5.12", "0.5.23"))
def test_what_nobody_knows_of_a_model_refuses_nothing(store: Store, release: str, unknown: tuple[str, ...]) -> None:
    context = build(store, read_argv(["--tp", "4"]), Options(MODEL, "8xrtx-pro-6000", release))
    traits = {k: v for k, v in context.facts.model.items() if k not in unknown}
    context = msgspec.structs.replace(context, facts=msgspec.structs.replace(context.facts, model=traits))
    answer = solve(context, "min-gpus")
    assert isinstance(answer, Solution), answer.members
    assert answer.result.verdict == "conditional"


@pytest.mark.parametrize(
    ("model", "hardware", "context", "said", "way"),
    [
        ("qwen3-32b-awq", "2xrtx-4090", 131072, "context length, which is 40960 at most", "--context 40960"),
        ("qwen3-32b", "1xrtx-4090", 4096, "larger than the memory of the GPUs", "--hardware 4xrtx-4090"),
        ("qwen3-32b", "1xrtx-4090", 65536, "larger than the memory of the GPUs", "--context 40960); use 8 such GPUs"),
        ("qwen3-14b-fp8", "1xrtx-4090", 40960, "memory of 1 x 24 GiB", "--context 5120"),
    ],
)
def test_what_is_too_much_for_model_or_machine_comes_with_what_would_do(
    store: Store, model: str, hardware: str, context: int, said: str, way: str
) -> None:
    request = {"context": context, "concurrency": 1, "accept_length": None}
    found = solve(build(store, read_argv([]), Options(model, hardware, "0.5.20", request)), "min-latency")
    assert isinstance(found, Impossible)
    assert any(said in m.text for m in found.members)
    assert any(way in change for r in found.repairs for change in r.changes)


@pytest.mark.parametrize(
    ("release", "model", "hardware", "way"),
    [
        ("0.5.13", "mimo-v2.5", "4xb300", "give --mm-attention-backend triton_attn"),
        ("0.5.12", "glm-5-nvfp4", "8xrtx-pro-6000", "give SGLANG_ENABLE_JIT_DEEPGEMM=0"),
    ],
)
def test_fixes_of_the_rules_in_a_conflict_are_ways_out(
    store: Store, release: str, model: str, hardware: str, way: str
) -> None:
    found = solve(build(store, read_argv(["--trust-remote-code"]), Options(model, hardware, release)), "min-latency")
    assert isinstance(found, Impossible)
    assert any(way in r.changes for r in found.repairs)
