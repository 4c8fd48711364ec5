"""Memory formulas against hand-computed sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from solver.answer import solve
from solver.conflict import Impossible
from solver.context import Options, build, check_context
from solver.knowledge import load
from solver.launch import read_argv
from solver.memory import (
    compressed_bytes_per_token_per_gpu,
    draft_gib_per_gpu,
    kv_bytes_per_token_per_gpu,
    state_bytes,
    state_bytes_per_request,
    weights_gib_per_gpu,
)
from solver.store import Store

KNOWLEDGE = load(Path(__file__).parents[1] / "knowledge")


def model(name: str) -> dict[str, Any]:
    return KNOWLEDGE.models[name].traits


def test_kv_heads_are_repeated_when_ranks_outnumber_them() -> None:
    hybrid = model("qwen3.5-397b-a17b")
    assert kv_bytes_per_token_per_gpu(hybrid, 1) == 15 * 2 * (256 + 256) * 2
    assert kv_bytes_per_token_per_gpu(hybrid, 8) == kv_bytes_per_token_per_gpu(hybrid, 2) == 15 * 1 * 512 * 2


def test_latent_attention_is_whole_on_every_rank() -> None:
    latent = model("deepseek-v3")
    assert kv_bytes_per_token_per_gpu(latent, 8) == kv_bytes_per_token_per_gpu(latent, 1) == 61 * (512 + 64) * 2
    assert kv_bytes_per_token_per_gpu(model("deepseek-v3.2"), 8, "bf16") == 61 * ((512 + 64) * 2 + 128 + 4)


def test_compressed_tokens_cost_a_fraction_and_their_states() -> None:
    """DeepSeek V4 Pro: 61 layers, 30 press 4 tokens into one and 31 press 128; a tenth is kept for the windows."""
    token = 448 + 2 * 64 + 8
    kept = 0.1 * token * 61
    fours = 30 * (token / 4 + (128 + 4) / 4 + 0.1 * 8 / 128 * 4 * (512 + 128) * 4)
    many = 31 * (token / 128 + 0.1 * 128 / 128 * 2 * 512 * 4)
    cost = compressed_bytes_per_token_per_gpu(model("deepseek-v4-pro"), 0.1, drafting=False)
    assert cost == pytest.approx(kept + fours + many)
    assert compressed_bytes_per_token_per_gpu(model("deepseek-v4-pro"), 0.1, drafting=True) > 1.5 * cost


def test_a_declared_fp8_cache_halves_the_tokens_cost() -> None:
    declared = model("qwen3.5-397b-a17b-nvfp4")
    assert kv_bytes_per_token_per_gpu(declared, 4) * 2 == kv_bytes_per_token_per_gpu(declared, 4, "bf16")


def test_each_draft_token_keeps_a_state() -> None:
    hybrid = model("qwen3.5-397b-a17b")
    slot = 45 * (64 * 128 * 128 * 4 + 3 * (64 * 128 + 2 * 16 * 128) * 2) / 8
    assert state_bytes(hybrid, 8) == slot
    assert state_bytes_per_request(hybrid, 8, 5, draft_tokens=2) == 7 * slot
    assert state_bytes(hybrid, 8, "bfloat16") < slot * 0.52


def test_groups_that_ranks_do_not_divide_are_repeated() -> None:
    mamba = model("nvidia-nemotron-3-super-120b-a12b-nvfp4")
    whole = (mamba["ssm_state_elems"] * 4 + mamba["conv_state_elems"] * 2) * mamba["linear_layers"]
    assert state_bytes(mamba, 8) == whole / 8
    assert state_bytes(mamba, 16) > whole / 16


def test_a_model_without_recurrence_has_no_state() -> None:
    assert state_bytes_per_request(model("qwen3-32b"), 4, 5, draft_tokens=4) == 0


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


def test_attention_dp_divides_the_request_limit_and_the_state_slots(store: Store) -> None:
    """Each rank takes its share of both numbers (SGLang 0.5.14, model_executor, handle_max_mamba_cache)."""

    def states(args: str) -> Any:
        launch = read_argv(["--disable-radix-cache", "--tp", "16", "--nnodes", "4", *args.split()])
        options = Options("qwen3.5-397b-a17b-fp8", "16xgb200", "0.5.14")
        return check_context(build(store, launch, options)).outcomes[0].state.get("estimate", "state_pool_gib")

    layout = "--dp 16 --enable-dp-attention"
    shared = states(f"{layout} --max-running-requests 1024 --max-mamba-cache-size 1024")
    assert shared == states(f"{layout} --max-running-requests 1024")
    assert 8 * shared == pytest.approx(states(f"{layout} --max-running-requests 8192"), rel=0.01)
    assert states(f"{layout} --max-running-requests 3") == states(f"{layout} --max-running-requests 16")


def test_what_is_unknown_of_a_checkpoint_hides_no_lack_of_memory(store: Store) -> None:
    """369 GiB of weights do not fit into twice 96, whatever the format of the cache, which nobody stated, is."""
    options = Options("deepseek-r1-0528-nvfp4", "2xrtx-pro-6000", "0.5.23")
    result = check_context(build(store, read_argv(["--tp", "2", "--quantization", "modelopt_fp4"]), options))
    assert {f.rule for f in result.findings if f.severity == "error" and not f.conditional_on} == {
        "weights-larger-than-the-gpus"
    }
    assert isinstance(solve(build(store, read_argv([]), options), "max-context"), Impossible)
