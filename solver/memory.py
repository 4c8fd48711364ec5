"""Model traits and a layout -> sizes on one GPU: weights, KV cache a token, recurrent state a request, the draft.

Traits come without their namespace (`layers`, `memory_mib`). All functions are pure, and all figures are estimates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Values = Mapping[str, Any]
GIB = 2**30
BYTES = {"bf16": 2.0, "bfloat16": 2.0, "fp16": 2.0, "float16": 2.0, "fp32": 4.0, "float32": 4.0, "fp8": 1.0}
BYTES |= {"fp8_e4m3": 1.0, "fp8_e5m2": 1.0, "fp4_e2m1": 0.5 + 1 / 16, "fp4": 0.5 + 1 / 16}
#: Block formats: a one-byte scale for each 16 (FP4) or 32 (MXFP8) values.
BYTES |= {"nvfp4": 0.5 + 1 / 16, "fp4_mx_block16": 0.5 + 1 / 16, "mxfp8": 1 + 1 / 32}


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
    get_cell_size_per_token). Recurrent layers cost nothing here.
    """
    width = BYTES[resolved_kv_dtype(model, kv_dtype)]
    full, sliding = layer_bytes(model, tp, width)
    full_layers, sliding_layers = stage(model["full_attention_layers"], pp), stage(model.get("sliding_layers") or 0, pp)
    return full * full_layers + sliding * sliding_layers


def compressed_bytes_per_token_per_gpu(model: Values, window_share: float, drafting: bool, pp: int = 1) -> float:
    """Bytes that one token costs where layers keep compressed tokens (DeepSeek V4), on every rank.

    A token is (key size - rope) in FP8, rope in BF16 and 8 bytes of scales. Each layer keeps `window_share` of the
    tokens as they are; a layer of ratio r one in r of all, and a ring of float32 states that are not yet pressed (8
    or 128 of them a window, twice as many when drafting). Layers of ratio 4 have the indexer's key in the same way
    (SGLang 0.5.14, pool_configurator.py, DSV4PoolConfigurator).
    """
    head, rope, index = model["full_head_dim"], model["qk_rope_head_dim"], model["index_head_dim"]
    token = head - rope + 2 * rope + 8
    total = window_share * token * model["layers"]
    for name, count in model["compressed_layers"].items():
        ratio = int(name)
        overlap = 2 if ratio == 4 else 1
        ring = overlap * ratio * (2 if drafting else 1) / model["compress_window"]
        states = 2 * overlap * 4 * (head + (index if ratio == 4 else 0))
        keys = (token + (index + index // 128 * 4 if ratio == 4 else 0)) / ratio
        total += count * (keys + window_share * ring * states)
    return float(total / pp * (1 + (1 / model["layers"] if drafting else 0)))


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


def state_bytes_per_request(
    model: Values, tp: int, slots: int, draft_tokens: int = 0, ssm_dtype: str | None = None, pp: int = 1
) -> float:
    """Bytes of recurrent state per running request on one GPU.

    `slots` of the pool, and with speculation one intermediate state per draft token, which verification
    keeps until it knows how many were accepted (SGLang 0.5.10, mem_cache/memory_pool.py, MambaPool).
    """
    return (slots + draft_tokens) * state_bytes(model, tp, ssm_dtype, pp)


def draft_gib_per_gpu(model: Values, tp: int, kv_tokens: int = 0, kv_dtype: str = "auto") -> float:
    """GiB of the checkpoint's own MTP draft on one GPU: its weights over tp, and its KV cache for `kv_tokens`.

    Embedding and head are shared with the target.
    """
    layers = model.get("mtp_layers") or 0
    if not layers:
        return 0.0
    per_token = layer_bytes(model, tp, BYTES[resolved_kv_dtype(model, kv_dtype)])[0] * layers
    return float(model["mtp_gib"] / tp + kv_tokens * per_token / GIB)
