"""Model traits in; bytes that one GPU reads in a forward pass or a draft step out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

GIB = 2.0**30
WEIGHT_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "nvfp4": 0.5625, "mxfp4": 0.53125, "int4": 0.53125}
BF16 = 2.0
STATE_BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0}


class Traffic(msgspec.Struct, frozen=True):
    """What one model moves per pass, in bytes of the whole model before it is spread over GPUs.

    `shared`: read in full by the tensor-parallel group together; `replicated`: read in full by each GPU;
    `kv_heads`: KV shards stop at this many GPUs (1 for latent attention); `kv_elements`: per token of context.
    """

    hidden: int
    layers: int
    experts: int
    active: int
    expert_bytes: float
    shared: float
    replicated: float
    kv_projection: float
    kv_heads: int
    kv_elements: float
    state_bytes: float
    draft_expert_bytes: float
    draft_shared: float
    draft_known: bool
    missing: tuple[str, ...]


def read_traffic(model: Mapping[str, Any]) -> Traffic:
    """Collect the constants; traits that are needed and absent are named in `missing` (prefixed `model.`)."""
    needed = ("layers", "hidden", "vocab", "other_gib")
    missing = tuple(f"model.{name}" for name in needed if model.get(name) is None)
    layers, hidden, vocab = (int(model.get(name) or 0) for name in ("layers", "hidden", "vocab"))
    experts, active = int(model.get("experts") or 0), int(model.get("experts_per_token") or 0)
    head = vocab * hidden * BF16
    table = 0.0 if model.get("tie_embeddings") else head  # an untied embedding is looked up, not read
    router = float((model.get("moe_layers") or 0) * experts * hidden) * BF16
    latent = layers * hidden * ((model.get("kv_lora_rank") or 0) + (model.get("qk_rope_head_dim") or 0)) * BF16
    kv_projection, kv_heads = _kv_projection(model)
    other = (model.get("other_gib") or 0.0) * GIB - table
    replicated = router + latent
    mtp = (model.get("mtp_gib") or 0.0) * GIB / max(1, model.get("mtp_layers") or 1)
    draft_experts = min(mtp, _layer_expert_bytes(model))
    return Traffic(
        hidden=hidden,
        layers=layers,
        experts=experts,
        active=active,
        expert_bytes=(model.get("expert_gib") or 0.0) * GIB,
        shared=max(0.0, other - replicated - kv_projection),
        replicated=replicated,
        kv_projection=kv_projection,
        kv_heads=kv_heads,
        kv_elements=_kv_elements(model),
        state_bytes=_state_bytes(model),
        draft_expert_bytes=draft_experts,
        draft_shared=mtp - draft_experts + head,
        draft_known=bool(model.get("mtp_layers")) and model.get("mtp_gib") is not None,
        missing=missing,
    )


def _attention_layers(model: Mapping[str, Any]) -> int:
    full = model.get("full_attention_layers")
    return int(full if full is not None else (model.get("layers") or 0))


def _kv_projection(model: Mapping[str, Any]) -> tuple[float, int]:
    """K and V projections are split over at most `kv_heads` GPUs and copied beyond; latent attention has none."""
    if model.get("mla"):
        return 0.0, 1
    heads, width = int(model.get("kv_heads") or 1), int(model.get("head_dim") or 0)
    return 2.0 * _attention_layers(model) * heads * width * int(model.get("hidden") or 0) * BF16, heads


def _kv_elements(model: Mapping[str, Any]) -> float:
    if model.get("mla"):
        width = (model.get("kv_lora_rank") or 0) + (model.get("qk_rope_head_dim") or 0)
        return float(_attention_layers(model) * width)
    width = (model.get("head_dim") or 0) + (model.get("v_head_dim") or model.get("head_dim") or 0)
    return float(_attention_layers(model) * (model.get("kv_heads") or 1) * width)


def _state_bytes(model: Mapping[str, Any]) -> float:
    """Recurrent state of one request over all linear layers."""
    ssm = (model.get("ssm_state_elems") or 0) * STATE_BYTES.get(str(model.get("ssm_dtype")), 4.0)
    return float((model.get("linear_layers") or 0) * (ssm + (model.get("conv_state_elems") or 0) * BF16))


def _layer_expert_bytes(model: Mapping[str, Any]) -> float:
    """Routed experts of one draft layer, in the format the checkpoint keeps the draft in."""
    width = model.get("moe_intermediate") or 0
    kind = str(model.get("mtp_dtype") or "bfloat16")
    each = 3 * (model.get("hidden") or 0) * width * WEIGHT_BYTES.get(kind, BF16)
    return float((model.get("experts") or 0) * each)


def touched_share(experts: int, active: int, tokens: float) -> float:
    """Share of the experts that at least one of `tokens` tokens is routed to, with even routing."""
    return 1.0 - (1.0 - active / experts) ** tokens if experts else 0.0


def expert_share(traffic: Traffic, tokens: float, tp: int, ep: int) -> float:
    """Share of all expert bytes that the busiest GPU reads.

    Tensor parallelism splits every expert, so the load is even. Whole experts on `ep` ranks meet by chance: the busiest
    of them is taken one Gumbel-like excess sqrt(2 m ln ep) above the mean of m experts, at most all it holds.
    """
    share = touched_share(traffic.experts, traffic.active, tokens)
    if ep <= 1 or not share:
        return share / tp
    mean = traffic.experts * share / ep
    busiest = min(traffic.experts / ep, mean + math.sqrt(2.0 * mean * math.log(ep)))
    return busiest / traffic.experts * ep / tp


def pass_bytes(traffic: Traffic, tokens: float, tp: int, ep: int) -> float:
    """Weight bytes the busiest GPU of each pipeline stage reads for one pass, summed over the stages."""
    experts = traffic.expert_bytes * expert_share(traffic, tokens, tp, ep) if traffic.experts else 0.0
    kv = traffic.kv_projection / min(tp, traffic.kv_heads)
    return experts + traffic.shared / tp + traffic.replicated + kv


def draft_bytes(traffic: Traffic, tokens: float, tp: int, ep: int) -> float:
    """Weight bytes of one draft step: the draft layer and the output head."""
    experts = traffic.draft_expert_bytes * expert_share(traffic, tokens, tp, ep) if traffic.draft_expert_bytes else 0.0
    return experts + traffic.draft_shared / tp


def context_bytes(traffic: Traffic, requests: float, context: int, tokens: int, tp: int, kv_bytes: float) -> float:
    """KV read at a context length, and recurrent state read once and written once per token of a request."""
    kv = requests * context * traffic.kv_elements * kv_bytes / min(tp, traffic.kv_heads)
    return kv + requests * traffic.state_bytes * (1 + tokens) / tp
