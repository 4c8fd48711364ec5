"""Model traits in; bytes that one GPU reads in a forward pass or a draft step out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from solver.kernels import Work

GIB = 2.0**30
WEIGHT_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp8_tensor": 1.0}
WEIGHT_BYTES |= {"nvfp4": 0.5625, "mxfp4": 0.53125, "int4": 0.53125}
BF16 = 2.0
STATE_BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0}


class Traffic(msgspec.Struct, frozen=True):
    """What one model moves per pass, in bytes of the whole model before it is spread over GPUs.

    `attention`: split over the ranks of one attention replica; `shared`: over the whole tensor-parallel group;
    `replicated`: read in full by each GPU; `kv_heads`: KV shards stop at this many GPUs (1 for latent attention);
    `kv_elements`: per token of context, `window_elements`: per token of the last `window` ones in sliding layers.
    `query_elements` and `output_elements`: of all heads of one layer and token, as the cache is asked.
    `index_topk`: keys that sparse attention picks for a token (0: no indexer); `index_bytes`: of a token of context in
    all layers' indexers, each of which a GPU keeps in full: one byte an element and a four-byte scale for 128.
    `expert_format`, `dense_format`: names of weight formats, as in knowledge/sglang/kernels.yaml.
    """

    hidden: int
    layers: int
    experts: int
    active: int
    moe_layers: int
    expert_bytes: float
    expert_format: str
    dense_format: str
    attention: float
    shared: float
    replicated: float
    kv_projection: float
    kv_heads: int
    kv_elements: float
    window_elements: float
    window: int
    mla: bool
    cache_layers: int
    index_topk: int
    index_bytes: float
    query_elements: float
    output_elements: float
    state_bytes: float
    draft_expert_bytes: float
    draft_shared: float
    draft_known: bool
    missing: tuple[str, ...]


class Asked(NamedTuple):
    """What a pass asks of the cache: requests of one replica with so many tokens each at a context length, the `ranks`
    of the replica, and how many of them `share` the cache of a request."""

    requests: float
    tokens: int
    context: int
    ranks: int
    kv_bytes: float
    share: int = 1
    sparse: bool = False


def read_traffic(model: Mapping[str, Any]) -> Traffic:
    """Collect the constants; traits that are needed and absent are named in `missing` (prefixed `model.`)."""
    needed = ("layers", "hidden", "vocab", "other_gib")
    missing = tuple(f"model.{name}" for name in needed if model.get(name) is None)
    layers, hidden, vocab = (int(model.get(name) or 0) for name in ("layers", "hidden", "vocab"))
    experts, active = int(model.get("experts") or 0), int(model.get("experts_per_token") or 0)
    heads = float(model.get("heads") or 0)
    head = vocab * hidden * BF16
    table = 0.0 if model.get("tie_embeddings") else head  # an untied embedding is looked up, not read
    router = float((model.get("moe_layers") or 0) * experts * hidden) * BF16
    latent = layers * hidden * _latent_width(model) * BF16
    kv_projection, kv_heads = _kv_projection(model)
    other = (model.get("other_gib") or 0.0) * GIB - table
    replicated = router + latent
    split = max(0.0, other - replicated - kv_projection)
    attention = min(split, max(0.0, (model.get("attention_gib") or 0.0) * GIB - latent - kv_projection))
    mtp = (model.get("mtp_gib") or 0.0) * GIB / max(1, model.get("mtp_layers") or 1)
    draft_experts = min(mtp, _layer_expert_bytes(model))
    return Traffic(
        hidden=hidden,
        layers=layers,
        experts=experts,
        active=active,
        moe_layers=int(model.get("moe_layers") or 0),
        expert_bytes=(model.get("expert_gib") or 0.0) * GIB,
        expert_format=_expert_format(model),
        dense_format=_dense_format(model),
        attention=attention,
        shared=split - attention,
        replicated=replicated,
        kv_projection=kv_projection,
        kv_heads=kv_heads,
        kv_elements=_kv_elements(model),
        window_elements=_window_elements(model),
        window=int(model.get("sliding_window") or 0),
        mla=bool(model.get("mla")),
        cache_layers=_attention_layers(model),
        index_topk=int(model.get("index_topk") or 0),
        index_bytes=_attention_layers(model) * (model.get("index_head_dim") or 0) * (1 + 4 / 128),
        query_elements=heads * (_latent_width(model) or model.get("head_dim") or 0),
        output_elements=heads * (model.get("kv_lora_rank") or model.get("v_head_dim") or model.get("head_dim") or 0),
        state_bytes=_state_bytes(model),
        draft_expert_bytes=draft_experts,
        draft_shared=mtp - draft_experts + head,
        draft_known=bool(model.get("mtp_layers")) and model.get("mtp_gib") is not None,
        missing=missing,
    )


def _expert_format(model: Mapping[str, Any]) -> str:
    """The format whose bytes a weight come nearest to what the routed experts weigh."""
    sizes = (model.get("moe_layers"), model.get("experts"), model.get("hidden"), model.get("moe_intermediate"))
    if not all(sizes) or not model.get("expert_gib"):
        return ""
    each = model["expert_gib"] * GIB / math.prod((3, *(s for s in sizes if s)))
    named = str(model.get("quant_format"))
    near = min(abs(b / each - 1) for b in WEIGHT_BYTES.values())
    names = [n for n, b in WEIGHT_BYTES.items() if abs(b / each - 1) <= near + 0.1]
    return named if named in names else names[0]


def _dense_format(model: Mapping[str, Any]) -> str:
    """Attention weights stand for all dense ones; FP8 without blocks has one scale a tensor."""
    form = str(model.get("quant_format") or "bf16")
    if not model.get("attention_quantized") or form not in WEIGHT_BYTES:
        return "bf16"
    return "fp8_tensor" if form == "fp8" and not model.get("quant_block") else form


def _attention_layers(model: Mapping[str, Any]) -> int:
    full = model.get("full_attention_layers")
    return int(full if full is not None else (model.get("layers") or 0))


def _kv_projection(model: Mapping[str, Any]) -> tuple[float, int]:
    """K and V projections are split over at most `kv_heads` GPUs and copied beyond; latent attention has none."""
    if model.get("mla"):
        return 0.0, 1
    heads, width = int(model.get("kv_heads") or 1), int(model.get("head_dim") or 0)
    return 2.0 * _attention_layers(model) * heads * width * int(model.get("hidden") or 0) * BF16, heads


def _latent_width(model: Mapping[str, Any]) -> int:
    return (model.get("kv_lora_rank") or 0) + (model.get("qk_rope_head_dim") or 0) if model.get("mla") else 0


def _kv_elements(model: Mapping[str, Any]) -> float:
    if model.get("mla"):
        return float(_attention_layers(model) * _latent_width(model))
    width = (model.get("head_dim") or 0) + (model.get("v_head_dim") or model.get("head_dim") or 0)
    return float(_attention_layers(model) * (model.get("kv_heads") or 1) * width)


def _window_elements(model: Mapping[str, Any]) -> float:
    """Sliding layers keep keys and values of a window only."""
    width = (model.get("swa_head_dim") or 0) + (model.get("swa_v_head_dim") or 0)
    return float((model.get("sliding_layers") or 0) * (model.get("swa_kv_heads") or 0) * width)


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
    return touched_experts(traffic, tokens, ep) / traffic.experts * ep / tp if traffic.experts else 0.0


def touched_experts(traffic: Traffic, tokens: float, ep: int) -> float:
    """Experts of one layer, or their slices, that the busiest GPU reads."""
    touched = traffic.experts * touched_share(traffic.experts, traffic.active, tokens)
    if ep <= 1 or not touched:
        return touched
    mean = touched / ep
    return min(traffic.experts / ep, mean + math.sqrt(2.0 * mean * math.log(ep)))


def expert_work(traffic: Traffic, tokens: float, tp: int, ep: int) -> Work:
    """Routed experts of all layers on the busiest GPU of each pipeline stage."""
    if not traffic.experts:
        return Work()
    gflop = 2e-9 * traffic.expert_bytes / WEIGHT_BYTES[traffic.expert_format] if traffic.expert_format else 0.0
    return Work(
        load=traffic.expert_bytes * expert_share(traffic, tokens, tp, ep),
        items=traffic.moe_layers * touched_experts(traffic, tokens, ep),
        gflop=gflop * tokens * traffic.active / traffic.experts / tp,
    )


def dense_work(traffic: Traffic, tokens: float, tp: int, attention_tp: int) -> Work:
    """Everything but routed experts: attention over its own ranks, the rest over the tensor-parallel group."""
    kv = traffic.kv_projection / min(attention_tp, traffic.kv_heads)
    load = traffic.attention / attention_tp + traffic.shared / tp + traffic.replicated + kv
    width = WEIGHT_BYTES.get(traffic.dense_format, 1.0)
    return Work(load=load, gflop=2e-9 * tokens * load / width)


def draft_work(traffic: Traffic, tokens: float, tp: int, ep: int) -> tuple[Work, Work]:
    """Experts, and everything else with the output head, of one draft step."""
    load = traffic.draft_expert_bytes * expert_share(traffic, tokens, tp, ep) if traffic.draft_expert_bytes else 0.0
    items = touched_experts(traffic, tokens, ep) if traffic.draft_expert_bytes else 0.0
    return Work(load=load, items=items), Work(load=traffic.draft_shared / tp)


def cache_work(traffic: Traffic, asked: Asked) -> Work:
    """Keys and values that one GPU reads.

    Each of the tokens that a request brings is held against every key by every head. Sharing the cache of a request
    leaves the arithmetic as it is: a rank has fewer keys, and the heads of all that it shares with. Sparse attention
    reads for each token the keys that its indexer picked.
    """
    elements = (traffic.query_elements + traffic.output_elements) * traffic.cache_layers
    keys, passes = asked.context, 1
    if asked.sparse and traffic.index_topk:
        keys, passes = min(asked.context, traffic.index_topk), asked.tokens
    window = min(asked.context, traffic.window or asked.context) * traffic.window_elements
    load = asked.requests * (keys * passes * traffic.kv_elements + window) * asked.kv_bytes
    return Work(
        load=load / min(asked.ranks, traffic.kv_heads) / asked.share,
        gflop=2e-9 * asked.requests * asked.tokens * keys * elements / asked.ranks,
    )


def index_load(traffic: Traffic, asked: Asked) -> float:
    """Bytes of the indexer's keys that one GPU reads to pick those of sparse attention."""
    return asked.requests * asked.context * traffic.index_bytes / asked.share if asked.sparse else 0.0


def state_traffic(traffic: Traffic, requests: float, tokens: int, tp: int) -> float:
    """Recurrent state read once and written once per token of a request."""
    return requests * traffic.state_bytes * (1 + tokens) / tp
