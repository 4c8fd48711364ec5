"""Memory formulas against hand-computed sizes, one public log, and the known cases of the design."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from solver.knowledge import load
from solver.memory import (
    Settings,
    draft_gib_per_gpu,
    fits,
    kv_bytes_per_token_per_gpu,
    slots_per_request,
    state_bytes,
    state_bytes_per_request,
    weights_gib_per_gpu,
)
from solver.traits.hardware import hardware_of

KNOWLEDGE = load(Path(__file__).parents[1] / "knowledge")


def model(name: str) -> dict[str, Any]:
    return KNOWLEDGE.models[name].traits


def machine(name: str) -> dict[str, Any]:
    return hardware_of(name, KNOWLEDGE.hardware).traits


@pytest.mark.parametrize(
    ("name", "tp", "fitting"),
    [
        ("qwen3.5-397b-a17b", 8, False),
        ("qwen3.5-397b-a17b-fp8", 8, True),
        ("qwen3.5-397b-a17b-nvfp4", 8, True),
        ("qwen3.5-397b-a17b-nvfp4", 4, True),
        ("qwen3.5-397b-a17b-nvfp4", 2, False),
    ],
)
def test_which_formats_fit_on_96_gib_cards(name: str, tp: int, fitting: bool) -> None:
    assert fits(model(name), machine(f"{tp}xrtx-pro-6000"), Settings(tp=tp)).fits is fitting


def test_bf16_weights_alone_take_97_percent_of_eight_cards() -> None:
    big = model("qwen3.5-397b-a17b")
    share = (big["expert_gib"] + big["other_gib"]) / (8 * 97887 / 1024)
    assert share == pytest.approx(0.97, abs=0.01)
    assert fits(big, machine("8xrtx-pro-6000"), Settings(tp=8)).short == "weights"


def test_kv_size_agrees_with_a_public_log() -> None:
    """vllm-project/vllm#21348: 367,404 tokens took 8.23 GB each for keys and values on each of 4 H100."""
    moe = model("qwen3-235b-a22b-fp8")
    assert 367404 * kv_bytes_per_token_per_gpu(moe, 4) / 2**30 == pytest.approx(2 * 8.23, rel=0.002)
    sized = fits(moe, machine("4xh100-sxm"), Settings(tp=4, mem_fraction_static=0.93))
    assert sized.kv_tokens == pytest.approx(367404, rel=0.05)


def test_kv_heads_are_repeated_when_ranks_outnumber_them() -> None:
    hybrid = model("qwen3.5-397b-a17b")
    assert kv_bytes_per_token_per_gpu(hybrid, 1) == 15 * 2 * (256 + 256) * 2
    assert kv_bytes_per_token_per_gpu(hybrid, 8) == kv_bytes_per_token_per_gpu(hybrid, 2) == 15 * 1 * 512 * 2


def test_latent_attention_is_whole_on_every_rank() -> None:
    latent = model("deepseek-v3")
    assert kv_bytes_per_token_per_gpu(latent, 8) == kv_bytes_per_token_per_gpu(latent, 1) == 61 * (512 + 64) * 2
    assert kv_bytes_per_token_per_gpu(model("deepseek-v3.2"), 8, "bf16") == 61 * ((512 + 64) * 2 + 128 + 4)


def test_a_declared_fp8_cache_halves_the_tokens_cost() -> None:
    declared = model("qwen3.5-397b-a17b-nvfp4")
    assert kv_bytes_per_token_per_gpu(declared, 4) * 2 == kv_bytes_per_token_per_gpu(declared, 4, "bf16")


def test_sliding_layers_free_memory_for_full_ones() -> None:
    mixed, box = model("gpt-oss-120b"), machine("2xh100-sxm")
    small = fits(mixed, box, Settings(tp=2, swa_full_tokens_ratio=0.1)).kv_tokens
    assert small > fits(mixed, box, Settings(tp=2, swa_full_tokens_ratio=1.0)).kv_tokens * 1.5


def test_state_slots_follow_strategy_cache_and_overlap() -> None:
    assert slots_per_request("no_buffer") == 3
    assert slots_per_request("extra_buffer") == 5
    assert slots_per_request("extra_buffer", overlap=False) == 4
    assert slots_per_request("extra_buffer", radix_cache=False) == 1


def test_each_draft_token_keeps_a_state() -> None:
    hybrid = model("qwen3.5-397b-a17b")
    slot = 45 * (64 * 128 * 128 * 4 + 3 * (64 * 128 + 2 * 16 * 128) * 2) / 8
    assert state_bytes(hybrid, 8) == slot
    assert state_bytes_per_request(hybrid, 8, draft_tokens=2, strategy="extra_buffer") == 7 * slot
    assert state_bytes_per_request(hybrid, 8, radix_cache=False) == slot
    assert state_bytes(hybrid, 8, "bfloat16") < slot * 0.52


def test_groups_that_ranks_do_not_divide_are_repeated() -> None:
    mamba = model("nvidia-nemotron-3-super-120b-a12b-nvfp4")
    whole = (mamba["ssm_state_elems"] * 4 + mamba["conv_state_elems"] * 2) * mamba["linear_layers"]
    assert state_bytes(mamba, 8) == whole / 8
    assert state_bytes(mamba, 16) > whole / 16


def test_a_model_without_recurrence_has_no_state() -> None:
    assert state_bytes_per_request(model("qwen3-32b"), 4, draft_tokens=4) == 0


def test_weights_are_split_over_ranks_and_stages() -> None:
    big = model("deepseek-r1")
    eight, sixteen = weights_gib_per_gpu(big, 8), weights_gib_per_gpu(big, 16)
    assert (big["expert_gib"] + big["other_gib"]) / 8 < eight < (big["expert_gib"] + big["other_gib"]) / 8 * 1.05
    assert sixteen < eight and weights_gib_per_gpu(big, 8, pp=2) < eight * 0.52
    assert weights_gib_per_gpu(big, 8, ep=8) == pytest.approx(eight)
    assert weights_gib_per_gpu(big, 8, attention_dp=8) > eight * 1.05


def test_the_draft_costs_its_weights_and_its_cache() -> None:
    nvfp4 = model("qwen3.5-397b-a17b-nvfp4")
    assert draft_gib_per_gpu(nvfp4, 8) == pytest.approx(nvfp4["mtp_gib"] / 8)
    assert draft_gib_per_gpu(nvfp4, 8, kv_tokens=2**20) > draft_gib_per_gpu(nvfp4, 8)
    assert draft_gib_per_gpu(model("qwen3-32b"), 8) == 0


def test_states_bound_the_requests_before_tokens_do() -> None:
    hybrid, box = model("qwen3.5-397b-a17b-nvfp4"), machine("4xrtx-pro-6000")
    tight = Settings(tp=4, max_running_requests=64, draft_tokens=4, strategy="extra_buffer", mem_fraction_static=0.85)
    sized = fits(hybrid, box, tight)
    assert sized.short == "recurrent states" and sized.requests < 64
    loose = Settings(tp=4, max_running_requests=64, draft_tokens=4, radix_cache=False, mem_fraction_static=0.85)
    assert fits(hybrid, box, loose).requests == 64


def test_explicit_slots_are_taken() -> None:
    sized = fits(model("qwen3.5-397b-a17b-nvfp4"), machine("8xb200"), Settings(tp=8, max_mamba_cache_size=40))
    assert sized.state_slots == 40 and sized.requests == 13


def test_context_longer_than_the_pool_does_not_fit() -> None:
    sized = fits(model("meta-llama-3.1-8b"), machine("rtx-4090"), Settings(context=131072))
    assert not sized.fits and sized.short == "kv cache"
