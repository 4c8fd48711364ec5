"""The case that everything serves: Qwen3.5-397B NVFP4 on 8 RTX PRO 6000, on four releases (docs/architecture.md)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

CASE = (
    "SGLANG_ENABLE_SPEC_V2=1 python -m sglang.launch_server --model-path nvidia/Qwen3.5-397B-A17B-NVFP4 --tp 8 "
    "--quantization modelopt_fp4 --moe-runner-backend flashinfer_cutlass --fp4-gemm-backend flashinfer_cudnn "
    "--enable-mscclpp --speculative-algorithm NEXTN --speculative-num-draft-tokens 2 --speculative-eagle-topk 1 "
    "--reasoning-parser qwen3 --tool-call-parser qwen3_coder --trust-remote-code"
)
RELEASES = ("0.5.9", "0.5.10", "0.5.12", "0.5.23")


@pytest.fixture
def judged(flagwise: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    def run(release: str, extra: str = "", status: int | None = None) -> dict[str, Any]:
        done = flagwise(
            "validate",
            f"{CASE} {extra}",
            "--hardware",
            "8xrtx-pro-6000",
            "--engine-version",
            release,
            "--format",
            "json",
        )
        if status is not None:
            assert done.status == status
        return dict(json.loads(done.out))

    return run


def errors(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {f["rule"]: f for f in result["findings"] if f["severity"] == "error"}


def rules(result: dict[str, Any]) -> set[str]:
    return {f["rule"] for f in result["findings"]}


@pytest.mark.parametrize("release", ["0.5.10", "0.5.12"])
def test_both_errors_are_shown_at_once(judged: Callable[..., Any], release: str) -> None:
    result = judged(release, status=1)
    assert result["verdict"] == "invalid"
    found = errors(result)
    assert set(found) == {"spec-on-hybrid-needs-extra-buffer", "spec-steps-missing"}
    for finding in found.values():
        assert finding["message"]
        assert finding["because"]
        assert finding["sources"]
        assert finding["fixes"]
    assert "--mamba-scheduler-strategy" in found["spec-on-hybrid-needs-extra-buffer"]["flags"]
    assert "--speculative-num-steps" in found["spec-steps-missing"]["flags"]


def test_0_5_9_shows_the_load_error_and_the_lost_radix_cache(judged: Callable[..., Any]) -> None:
    result = judged("0.5.9", status=1)
    found = errors(result)
    assert set(found) == {"spec-steps-missing", "gdn-attention-refused-on-blackwell"}
    load = found["gdn-attention-refused-on-blackwell"]
    assert load["stage"] == "load"
    assert load["fixes"][0]["set"] == {"--attention-backend": "triton"}
    warning = next(f for f in result["findings"] if f["rule"] == "spec-on-hybrid-drops-radix-cache")
    assert warning["severity"] == "warning"
    assert result["resolved"]["disable_radix_cache"]["value"] is True
    assert result["resolved"]["attention_backend"]["value"] == "flashinfer"


def test_0_5_23_shows_the_steps_error_and_the_variable_that_is_not_read(judged: Callable[..., Any]) -> None:
    result = judged("0.5.23", status=1)
    assert set(errors(result)) == {"spec-steps-missing"}
    note = next(f for f in result["findings"] if f["rule"] == "env-not-read")
    assert note["severity"] == "note"
    assert note["env"] == ["SGLANG_ENABLE_SPEC_V2"]


@pytest.mark.parametrize("release", RELEASES)
def test_what_happens_to_the_kv_cache_and_the_draft_is_said(judged: Callable[..., Any], release: str) -> None:
    result = judged(release)
    assert "mtp-draft-stays-bf16" in rules(result)
    # 0.5.9 passes no quantisation config to this model class, so there the declared FP8 cache stays at 16 bits
    kv = "declared-fp8-kv-cache-not-seen" if release == "0.5.9" else "kv-cache-becomes-fp8-at-load"
    assert kv in rules(result)
    assert result["resolved"].get("kv_cache_dtype", {}).get("value") == (None if release == "0.5.9" else "fp8_e4m3")


def test_the_command_with_its_fixes_is_valid(judged: Callable[..., Any]) -> None:
    fixes = "--speculative-num-steps 1 --mamba-scheduler-strategy extra_buffer"
    assert judged("0.5.10", fixes, status=0)["verdict"] == "valid"
    assert judged("0.5.12", fixes, status=0)["verdict"] == "valid"
    assert judged("0.5.9", f"{fixes} --attention-backend triton", status=0)["verdict"] == "valid"
    old = judged("0.5.23", fixes, status=1)
    assert set(errors(old)) == {"renamed-flag"}
    renamed = errors(old)["renamed-flag"]
    assert "--mamba-radix-cache-strategy" in renamed["message"]
    assert renamed["fixes"][0]["set"] == {"--mamba-radix-cache-strategy": "extra_buffer"}
    assert renamed["span"]
    new = fixes.replace("scheduler", "radix-cache")
    assert judged("0.5.23", new, status=0)["verdict"] == "valid"


def test_the_same_request_gives_the_same_bytes(flagwise: Callable[..., Any]) -> None:
    args = ("validate", CASE, "--hardware", "8xrtx-pro-6000", "--engine-version", "0.5.12", "--format", "json")
    assert flagwise(*args).out == flagwise(*args).out


def test_without_a_machine_findings_are_conditional_and_take_one_line(flagwise: Callable[..., Any]) -> None:
    done = flagwise("validate", f"{CASE} --speculative-num-steps 1 --disable-radix-cache", "--engine-version", "0.5.9")
    assert done.status == 0
    assert done.out.startswith("conditional")
    assert sum("give --hardware" in line for line in done.out.splitlines()) <= 1
    strict = flagwise(
        "validate",
        f"{CASE} --speculative-num-steps 1 --disable-radix-cache",
        "--engine-version",
        "0.5.9",
        "--fail-on-unknown",
    )
    assert strict.status == 1


def test_conditional_findings_name_the_machines(flagwise: Callable[..., Any]) -> None:
    done = flagwise(
        "validate",
        f"{CASE} --speculative-num-steps 1 --disable-radix-cache",
        "--engine-version",
        "0.5.9",
        "--format",
        "json",
    )
    found = {f["rule"]: f for f in json.loads(done.out)["findings"]}
    assert any("SM120" in name for name in found["gdn-attention-refused-on-blackwell"]["conditional_on"])
    assert not any("SM90" in name for name in found["gdn-attention-refused-on-blackwell"]["conditional_on"])
