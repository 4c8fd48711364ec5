"""Tensors of a checkpoint -> what is really stored: GiB by part, parameters, types of scales and of the MTP layers."""

from __future__ import annotations

import re
from typing import Any

from solver.traits.layers import Layer
from solver.traits.quantization import ATTENTION, Quantization, places
from solver.traits.tensors import Tensor, Tensors

Values = dict[str, Any]
GIB = 2**30
LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")
SCALE = re.compile(r"(?:scale|scales|scale_inv|scale_2|zero_point|zeros|g_idx|shape|global_scale)$")
KV_SCALE = re.compile(r"(?:\.|_)(?:[kv]|kv)_scale$|kv_cache_scaling_factor$")
ASIDE = re.compile(r"visi|visual|audio|mm_projector|multi_modal|patch_merge")
TABLES = re.compile(r"(?:embed_tokens|word_embeddings|wte|embeddings|lm_head|^embed|^head)(?:\.\w+)?$")
LONG = {"BF16": "bfloat16", "F16": "float16", "F32": "float32", "F8_E4M3": "fp8", "I8": "int8"}
FOUR_BITS = frozenset({"nvfp4", "mxfp4", "int4"})
PACKED = frozenset({"U8", "I8", "I32"})
"""Types that hold several four-bit weights in one element."""


def stored_traits(tensors: Tensors, layers: list[Layer], quantization: Quantization, computed: Values) -> Values:
    """The traits that headers know better than config.json; `computed` are those of the config.

    `replicated_gib` stays as computed: names do not tell what a rank holds whole.
    """
    sizes = dict.fromkeys(("experts", "attention", "embedding", "mtp", "rest"), 0)
    params = routed = 0
    mtp: dict[str, int] = {}
    for name, tensor in tensors.items():
        part = part_of(name, len(layers))
        sizes[part] += tensor.bytes
        if SCALE.search(name) or part == "mtp":
            if part == "mtp" and not SCALE.search(name) and len(tensor.shape) > 1:
                mtp[tensor.dtype] = mtp.get(tensor.dtype, 0) + tensor.bytes
            continue
        count = elements(name, tensor, quantization)
        params += count
        routed += count if part == "experts" else 0
    gib = {part: round(size / GIB, 2) for part, size in sizes.items()}
    values: Values = {
        "weight_gib": round(sum(sizes.values()) / GIB, 2),
        "expert_gib": gib["experts"],
        "other_gib": round((sizes["attention"] + sizes["embedding"] + sizes["rest"]) / GIB, 2),
        "attention_gib": gib["attention"],
        "embedding_gib": gib["embedding"],
        "mtp_gib": gib["mtp"],
        "total_params_b": round(params / 1e9, 2),
        "kv_scales_calibrated": any(KV_SCALE.search(name) for name in tensors),
    }
    idle = 1 - computed["experts_per_token"] / computed["experts"] if computed["experts_per_token"] else 0.0
    values["active_params_b"] = round((params - routed * idle) / 1e9, 2)
    if computed["mtp_layers"]:
        values["mtp_in_checkpoint"] = bool(mtp)
        if mtp:
            kind = max(mtp, key=lambda dtype: (mtp[dtype], dtype))
            values["mtp_dtype"] = LONG.get(kind, quantization.mtp or quantization.default)
    scales = {t.dtype for name, t in tensors.items() if name.endswith(("weight_scale_inv", "weight_scale", ".scale"))}
    if quantization.scale_format in (None, "float32") and scales == {"F8_E8M0"}:
        values["scale_format"] = "ue8m0"
    return values


def part_of(name: str, layer_count: int) -> str:
    """experts, attention, embedding, mtp or rest."""
    if name.startswith("mtp.") or ".mtp." in name:
        return "mtp"
    layer = LAYER.search(name)
    if ASIDE.search(name):
        return "rest"
    if layer and int(layer[1]) >= layer_count:
        return "mtp"
    if ".experts." in name:
        return "experts"
    if not layer and TABLES.search(name):
        return "embedding"
    if layer and (".self_attn." in name or ".linear_attn." in name or ".attn." in name):
        return "attention"
    parts = {part for _, part in places(name.rpartition(".")[0])}
    if "experts" in parts:
        return "experts"
    return "attention" if parts & ATTENTION else "rest"


def elements(name: str, tensor: Tensor, quantization: Quantization) -> int:
    """Weights in a tensor; several four-bit ones share an element."""
    if tensor.dtype not in PACKED:
        return tensor.elements
    layer = LAYER.search(name)
    index = int(layer[1]) if layer else None
    parts = [part for _, part in places(name.rpartition(".")[0])]
    four = any(quantization.format(index, part) in FOUR_BITS for part in parts) or name.endswith(("_blocks", "_packed"))
    if tensor.dtype == "I32":
        return tensor.elements * (8 if four else 4)
    return tensor.elements * 2 if four else tensor.elements
