"""Model and hardware traits and a layout -> GiB per GPU: weights, KV cache, recurrent states, and whether it fits.

Traits come without their namespace (`layers`, `memory_mib`). All functions are pure, and all figures are estimates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

Values = Mapping[str, Any]
GIB = 2**30
BYTES = {"bf16": 2.0, "bfloat16": 2.0, "fp16": 2.0, "float16": 2.0, "fp32": 4.0, "float32": 4.0, "fp8": 1.0}
BYTES |= {"fp8_e4m3": 1.0, "fp8_e5m2": 1.0, "fp4_e2m1": 0.5 + 1 / 16, "fp4": 0.5 + 1 / 16}
#: Block formats: a one-byte scale for each 16 (FP4) or 32 (MXFP8) values.
BYTES |= {"nvfp4": 0.5 + 1 / 16, "fp4_mx_block16": 0.5 + 1 / 16, "mxfp8": 1 + 1 / 32}
#: What a rank holds before its weights count: the CUDA context, and from two GPUs on NCCL and its buffers. The second
#: figure is solved from a public log (Qwen3-235B-A22B-FP8 on 4x H100, mem fraction 0.93: 367,404 tokens;
#: https://github.com/vllm-project/vllm/issues/21348), which gives 2.6; the first is an estimate.
OVERHEAD_GIB = (1.0, 2.5)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The flags that decide memory, with the engine's defaults. `draft_tokens` 0 means no speculation.

    `kv_dtype` auto takes what the checkpoint declares, as the loader does; `max_running_requests` counts per attention
    replica; `context` is the tokens that one request must be able to hold.
    """

    tp: int = 1
    pp: int = 1
    ep: int = 1
    attention_dp: int = 1
    mem_fraction_static: float = 0.88
    kv_dtype: str = "auto"
    ssm_dtype: str | None = None
    context: int = 4096
    max_running_requests: int = 1
    draft_tokens: int = 0
    mtp_draft: bool = True
    strategy: str = "no_buffer"
    radix_cache: bool = True
    overlap: bool = True
    mamba_full_memory_ratio: float = 0.9
    max_mamba_cache_size: int | None = None
    swa_full_tokens_ratio: float = 0.8


class Memory(msgspec.Struct, frozen=True):
    """What one GPU holds, in GiB, and what that serves. `fits` is the verdict, `short` says what is too large."""

    fits: bool
    short: str | None
    have_gib: float
    need_gib: float
    static_gib: float
    weights_gib: float
    draft_gib: float
    kv_pool_gib: float
    state_pool_gib: float
    kv_tokens: int
    state_slots: int
    requests: int


def weights_gib_per_gpu(model: Values, tp: int, pp: int = 1, ep: int = 1, attention_dp: int = 1) -> float:
    """GiB of target weights on the fullest GPU.

    Experts are split over the tensor-parallel group whether by expert (`ep`) or by width; attention over
    tp / attention_dp ranks; router, norms, latent down-projections and indexer are whole on each. Embeddings are split
    by vocabulary, except that DP attention keeps the input table whole (SGLang 0.5.10, models/deepseek_v2.py).
    A pipeline stage holds its share of the layers and at most one of the two tables. Key-value projections that are
    repeated because there are more ranks than KV heads are not counted (Qwen3.5-397B at tp 8: 0.05 GiB).
    """
    count = model.get("experts") or 1
    share = -(-count // ep) / count / (tp // ep or 1)
    split = tp // attention_dp or 1
    embedding, attention, whole = model["embedding_gib"], model["attention_gib"], model["replicated_gib"]
    rest = model["other_gib"] - embedding - attention - whole
    layers = model["expert_gib"] * share + attention / split + rest / tp + whole
    tables = embedding if pp == 1 else embedding / 2
    repeated = embedding / 2 if attention_dp > 1 and not model.get("tie_embeddings") else 0.0
    return float(layers / pp + (tables - repeated) / tp + repeated)


def kv_bytes_per_token_per_gpu(model: Values, tp: int, kv_dtype: str = "auto", pp: int = 1) -> float:
    """Bytes of KV cache that one token costs on one GPU; `tp` is the attention's (tp / attention_dp).

    Attention with heads: layers x max(1, kv heads / tp) x (key size + value size) x bytes, over full-attention layers
    and, in models with windows, sliding layers. Latent attention: layers x (rank + rope) on every rank, and per sparse
    layer one FP8 index key with a float32 scale per 128 (SGLang 0.5.10, model_runner_kv_cache_mixin.py,
    get_cell_size_per_token). Recurrent layers cost nothing here. For DeepSeek V4 (sparse_attention csa), whose cache
    holds compressed tokens, the result is an upper bound.
    """
    width = BYTES[resolved_kv_dtype(model, kv_dtype)]
    full, sliding = layer_bytes(model, tp, width)
    full_layers, sliding_layers = stage(model["full_attention_layers"], pp), stage(model.get("sliding_layers") or 0, pp)
    return full * full_layers + sliding * sliding_layers


def resolved_kv_dtype(model: Values, kv_dtype: str) -> str:
    """`auto` becomes FP8 where the checkpoint declares it, else the weights' own 16-bit type."""
    if kv_dtype != "auto":
        return kv_dtype
    return "fp8_e4m3" if model.get("kv_cache_quant") == "fp8" else "bf16"


def layer_bytes(model: Values, tp: int, width: float) -> tuple[float, float]:
    """Bytes a token of one full and of one sliding layer on one rank."""
    if model.get("mla"):
        index = model.get("index_head_dim") or 0
        return (model["kv_lora_rank"] + model["qk_rope_head_dim"]) * width + index + index // 128 * 4, 0.0
    heads = max(1, model["full_kv_heads"] // tp)
    full = heads * (model["full_head_dim"] + model["v_head_dim"]) * width
    if not model.get("sliding_layers"):
        return full, 0.0
    heads = max(1, model["swa_kv_heads"] // tp)
    return full, heads * (model["swa_head_dim"] + model["swa_v_head_dim"]) * width


def stage(layers: int, pp: int) -> int:
    """Layers on the fullest pipeline stage."""
    return -(-layers // pp)


def state_bytes(model: Values, tp: int, ssm_dtype: str | None = None, pp: int = 1) -> float:
    """Bytes of one recurrent state slot on one GPU: all linear layers' states and convolution windows.

    State: (value heads / tp) x value size x key size in `ssm_dtype`; convolution: (kernel - 1) x (value width + 2 key
    widths) / tp in bfloat16, with the key groups raised to tp where tp does not divide them (SGLang 0.5.10,
    configs/mamba_utils.py, Mamba2StateShape.create and BaseLinearStateParams.mamba_cache_per_req).
    """
    layers = stage(model.get("linear_layers") or 0, pp)
    if not layers:
        return 0.0
    groups = model["linear_k_heads"] if model["linear_k_heads"] % tp == 0 else tp
    width = model["linear_v_heads"] * model["linear_v_head_dim"] + 2 * groups * model["linear_k_head_dim"]
    conv = (model["conv_kernel"] - 1) * width / tp * BYTES["bf16"]
    state = model["ssm_state_elems"] / tp * BYTES[ssm_dtype or model.get("ssm_dtype") or "float32"]
    return float(layers * (conv + state))


def slots_per_request(strategy: str, radix_cache: bool = True, overlap: bool = True) -> int:
    """State slots that one running request takes from the pool.

    1 without the radix cache, else 3; `extra_buffer` adds a pair to alternate between when overlap scheduling is on,
    and one without (SGLang 0.5.10, model_runner_kv_cache_mixin.py, _calculate_mamba_ratio).
    """
    if not radix_cache:
        return 1
    extra = (2 if overlap else 1) if strategy.startswith("extra_buffer") else 0
    return 3 + extra


def state_bytes_per_request(
    model: Values,
    tp: int,
    draft_tokens: int = 0,
    strategy: str = "no_buffer",
    radix_cache: bool = True,
    overlap: bool = True,
    ssm_dtype: str | None = None,
    pp: int = 1,
) -> float:
    """Bytes of recurrent state per running request on one GPU.

    Slots of the pool, and with speculation one intermediate state per draft token, which verification
    keeps until it knows how many were accepted (SGLang 0.5.10, mem_cache/memory_pool.py, MambaPool).
    """
    slots = slots_per_request(strategy, radix_cache, overlap) + draft_tokens
    return slots * state_bytes(model, tp, ssm_dtype, pp)


def draft_gib_per_gpu(model: Values, tp: int, kv_tokens: int = 0, kv_dtype: str = "auto") -> float:
    """GiB of the checkpoint's own MTP draft on one GPU: its weights over tp, and its KV cache for `kv_tokens`.

    Embedding and head are shared with the target. The draft loads after the pools are sized, so it lives
    in what `mem_fraction_static` leaves free.
    """
    layers = model.get("mtp_layers") or 0
    if not layers:
        return 0.0
    per_token = layer_bytes(model, tp, BYTES[resolved_kv_dtype(model, kv_dtype)])[0] * layers
    return float(model["mtp_gib"] / tp + kv_tokens * per_token / GIB)


def fits(model: Values, hardware: Values, settings: Settings) -> Memory:
    """Size the pools as the engine does and say whether one request of `context` tokens, beside the states of
    `max_running_requests`, finds room.

    static = memory before loading x mem_fraction_static; what the weights leave of it is divided between recurrent
    states and KV cache (SGLang 0.5.10, profile_max_num_token and handle_max_mamba_cache).
    """
    have = memory_before_loading(hardware, settings)
    split = settings.tp // settings.attention_dp or 1
    weights = weights_gib_per_gpu(model, settings.tp, settings.pp, settings.ep, settings.attention_dp)
    static = have * settings.mem_fraction_static
    slots, state_pool, rest = divide_pool(model, settings, split, static - weights)
    cell = kv_bytes_per_token_per_gpu(model, split, settings.kv_dtype, settings.pp)
    tokens = max(0, int(rest * GIB / pool_cell(model, settings, split, cell))) if cell else 0
    drafts = settings.draft_tokens > 0 and settings.mtp_draft
    draft = draft_gib_per_gpu(model, settings.tp, tokens, settings.kv_dtype) if drafts else 0.0
    sizes = Sizes(have, static, weights, draft, max(rest, 0.0), state_pool, tokens, slots)
    return verdict(model, settings, split, sizes)


class Sizes(msgspec.Struct, frozen=True):
    """The sizes that `verdict` judges, GiB but for tokens and slots."""

    have: float
    static: float
    weights: float
    draft: float
    kv_pool: float
    state_pool: float
    tokens: int
    slots: int


def memory_before_loading(hardware: Values, settings: Settings) -> float:
    """GiB that a rank sees free before it loads weights."""
    overhead = OVERHEAD_GIB[0 if settings.tp * settings.pp == 1 else 1]
    total = hardware.get("memory_mib") or hardware["memory_gib"] * 1024
    return float(max(0.0, total / 1024 - overhead))


def divide_pool(model: Values, settings: Settings, split: int, rest: float) -> tuple[int, float, float]:
    """(state slots, GiB of states, GiB left for the KV cache) from what the weights leave.

    Intermediate states of speculation come off first; the slots are given by a flag, or by the request limit when the
    radix cache is off, or by the ratio of state to KV memory.
    """
    per_slot = state_bytes(model, split, settings.ssm_dtype, settings.pp) / GIB
    if not per_slot:
        return 0, 0.0, rest
    intermediate = per_slot * settings.max_running_requests * settings.draft_tokens
    left = rest - intermediate
    ratio = settings.mamba_full_memory_ratio
    if settings.max_mamba_cache_size is not None:
        slots = settings.max_mamba_cache_size
    elif not settings.radix_cache:
        slots = settings.max_running_requests
    else:
        slots = max(0, int(left * ratio / (1 + ratio) / per_slot))
    return slots, slots * per_slot + intermediate, left - slots * per_slot


def pool_cell(model: Values, settings: Settings, split: int, cell: float) -> float:
    """Bytes per token of full attention once sliding layers keep only `swa_full_tokens_ratio` of the tokens
    (SGLang 0.5.10, _resolve_hybrid_swa_tokens)."""
    if not model.get("sliding_layers"):
        return cell
    width = BYTES[resolved_kv_dtype(model, settings.kv_dtype)]
    sliding = layer_bytes(model, split, width)[1] * stage(model["sliding_layers"], settings.pp)
    return cell - sliding * (1 - settings.swa_full_tokens_ratio)


def verdict(model: Values, settings: Settings, split: int, sizes: Sizes) -> Memory:
    cell = kv_bytes_per_token_per_gpu(model, split, settings.kv_dtype, settings.pp)
    per_slot = state_bytes(model, split, settings.ssm_dtype, settings.pp)
    per_request = slots_per_request(settings.strategy, settings.radix_cache, settings.overlap)
    wanted = settings.max_running_requests * (per_request + settings.draft_tokens) * per_slot / GIB
    by_state = sizes.slots // per_request if per_slot else None
    by_tokens = sizes.tokens // settings.context if settings.context else 0
    return Memory(
        fits=(short := shortage(settings, sizes, by_state)) is None,
        short=short,
        have_gib=round(sizes.have, 2),
        need_gib=round(sizes.weights + sizes.draft + wanted + cell * settings.context / GIB, 2),
        static_gib=round(sizes.static, 2),
        weights_gib=round(sizes.weights, 2),
        draft_gib=round(sizes.draft, 2),
        kv_pool_gib=round(sizes.kv_pool, 2),
        state_pool_gib=round(sizes.state_pool, 2),
        kv_tokens=sizes.tokens,
        state_slots=sizes.slots,
        requests=by_tokens if by_state is None else min(by_tokens, by_state),
    )


def shortage(settings: Settings, sizes: Sizes, by_state: int | None) -> str | None:
    """What does not fit, the first in the order in which the engine would notice."""
    if sizes.weights >= sizes.static:
        return "weights"
    if by_state is not None and by_state < settings.max_running_requests:
        return "recurrent states"
    if sizes.tokens < settings.context:
        return "kv cache"
    return "draft" if sizes.draft > sizes.have - sizes.static else None
