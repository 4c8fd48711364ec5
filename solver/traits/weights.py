"""Layers and their formats -> GiB of weights by part, and parameter counts."""

from __future__ import annotations

from typing import Any

import msgspec

from solver.traits.config import Config
from solver.traits.layers import PER_TOKEN, Layer, experts
from solver.traits.quantization import ATTENTION, Quantization

GIB = 2**30
REPLICATED = frozenset({"router", "norm", "indexer", "replicated_in"})


class Weights(msgspec.Struct, frozen=True):
    """GiB of the checkpoint's weights; `other` holds `attention`, `embedding` and `replicated` and the rest.

    `experts` are the routed experts without those of the MTP layers; `replicated` is what each GPU of a tensor-parallel
    group holds whole (latent down-projections, indexer, router, norms). Parameters are counted without the MTP layers.
    """

    experts: float
    attention: float
    embedding: float
    replicated: float
    other: float
    mtp: float
    params: int
    active_params: int


def weigh(config: Config, layers: list[Layer], mtp: list[Layer], quantization: Quantization) -> Weights:
    """Sum shapes times bits. Embeddings, vision tower, router and recurrent parameters are never quantised."""
    plain = quantization.bits("bf16")
    sums = dict.fromkeys(("experts", "attention", "replicated", "rest"), 0.0)
    for index, layer in enumerate(layers):
        for part, params in layer.parts.items():
            sums[group(part)] += params * quantization.bits(quantization.format(index, part))
    table = config.needed("vocab_size") * config.needed("hidden_size")
    tied = config.flag("tie_word_embeddings")
    embedding = table * plain + (0 if tied else table * quantization.bits(quantization.head))
    vision = vision_params(config)
    other = sums["attention"] + sums["replicated"] + sums["rest"] + embedding + vision * plain
    total = sum(sum(layer.parts.values()) for layer in layers) + table * (1 if tied else 2) + vision
    routed = sum(layer.parts.get("experts", 0) for layer in layers)
    share = config.size(*PER_TOKEN) or 0
    return Weights(
        experts=gib(sums["experts"]),
        attention=gib(sums["attention"]),
        embedding=gib(embedding),
        replicated=gib(sums["replicated"]),
        other=gib(other),
        mtp=gib(sum(mtp_bits(layer, quantization, plain) for layer in mtp)),
        params=total,
        active_params=total - routed + (routed * share // experts(config) if routed else 0),
    )


def group(part: str) -> str:
    if part == "experts":
        return "experts"
    if part in REPLICATED:
        return "replicated"
    return "attention" if part in ATTENTION or part == "state" else "rest"


def gib(bits: float) -> float:
    return bits / 8 / GIB


def mtp_bits(layer: Layer, quantization: Quantization, plain: float) -> float:
    """The mixing projection, router and norms stay unquantised in every checkpoint that ships MTP layers."""
    bits = quantization.bits(quantization.mtp or "bf16")
    return sum(n * (plain if part in ("mix", "router", "norm") else bits) for part, n in layer.parts.items())


def vision_params(config: Config) -> int:
    """A vision transformer's parameters: attention and MLP of each block, and the merger into the language model.

    Where the tower has an `embed_dim` of its own (Qwen2-VL), its `hidden_size` is the width that it gives out."""
    vision = config.top.get("vision_config")
    if not isinstance(vision, dict):
        return 0
    width = vision.get("embed_dim") or vision.get("hidden_size") or vision.get("vt_hidden_size") or 0
    depth = vision.get("depth") or vision.get("num_hidden_layers") or vision.get("vt_num_hidden_layers") or 0
    ratio = vision.get("mlp_ratio") or 4
    inner = vision.get("intermediate_size") or vision.get("vt_intermediate_size") or ratio * width
    merge = vision.get("spatial_merge_size") or 2
    merged = width * merge * merge
    into = config.needed("hidden_size")
    mergers = 1 + len(vision.get("deepstack_visual_indexes") or ())
    return int(depth * (4 * width * width + 2 * width * inner) + mergers * (merged * merged + merged * into))


def vision_tower(config: Config) -> dict[str, Any]:
    """Layers and width of the vision part as the engine asks for them: by `num_hidden_layers` and `hidden_size` alone.

    Null where the config has no such key, as in Qwen's classes, which call the layers `depth`; the engine then takes
    figures of its own (SGLang 0.5.10, server_args.py, adjust_mem_fraction_for_vlm). Where there is no such part, as in
    audio models and in those that keep it further down (Qwen's omni models), it leaves all as it is.
    """
    vision = config.top.get("vision_config")
    part = vision if isinstance(vision, dict) else {}
    return {
        "vision_layers": part.get("num_hidden_layers") or part.get("vt_num_hidden_layers"),
        "vision_hidden": part.get("hidden_size") or part.get("vt_hidden_size"),
        "vision_part": isinstance(vision, dict),
    }
