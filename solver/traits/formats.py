"""Layers and their quantisation -> traits of the formats that a checkpoint's weights are stored in."""

from __future__ import annotations

from typing import Any

import msgspec

from solver.traits.config import Config
from solver.traits.layers import Layer, mtp_count
from solver.traits.quantization import ATTENTION, Quantization

Values = dict[str, Any]
FP4 = frozenset({"nvfp4", "mxfp4"})
WEIGHED = dict.fromkeys(("attn_in", "replicated_in", "attn_out"), "attention")
WEIGHED |= {part: part for part in ("indexer", "mlp", "shared", "experts")}
"""Part of a layer that quantisation can change -> its name in `part_formats`."""


def formats(config: Config, layers: list[Layer], quantization: Quantization) -> Values:
    used = {(part, quantization.format(i, part)) for i, layer in enumerate(layers) for part in layer.parts}
    matter = {form for part, form in used if part not in ("norm", "router", "state")}
    packed = matter - {"bf16", "fp16", "fp32"}
    values: Values = {
        "quant_method": quantization.method,
        "quant_method_written": quantization.written_method,
        "quant_algo": quantization.algo,
        "quant_format": next(iter(packed)) if len(packed) == 1 else "mixed" if packed else next(iter(matter)),
        "scale_format": quantization.scale_format,
        "quant_block": quantization.block,
        "quant_group_size": quantization.group_size,
        **{f"quant_{name}": value for name, value in msgspec.structs.asdict(quantization.packing).items()},
        "part_formats": part_formats(layers, quantization),
        "kv_cache_quant": quantization.kv_cache,
        "kv_scales_calibrated": quantization.kv_cache is not None,
        "mtp_dtype": None,
        "mtp_in_checkpoint": None,
    }
    if mtp_count(config):
        values["mtp_dtype"] = long_name(quantization.mtp or quantization.default)
    if quantization.lists_known:
        dense = {form for part, form in used if part != "experts"} | {quantization.head}
        values["dense_fp4_layers"] = bool(dense & FP4)
        values["attention_quantized"] = any(form in packed for part, form in used if part in ATTENTION)
    else:
        del values["mtp_dtype"], values["part_formats"]
    return values


def part_formats(layers: list[Layer], quantization: Quantization) -> dict[str, str]:
    """Part of the model -> format of its weights; the commonest first where layers differ (`nvfp4, bf16`)."""
    counted: dict[str, dict[str, int]] = {}
    for index, layer in enumerate(layers):
        for part in layer.parts:
            if part in WEIGHED:
                kinds = counted.setdefault(WEIGHED[part], {})
                form = quantization.format(index, part)
                kinds[form] = kinds.get(form, 0) + 1
    said = {part: ", ".join(sorted(kinds, key=lambda form: (-kinds[form], form))) for part, kinds in counted.items()}
    return said | {"head": quantization.head}


def long_name(form: str) -> str:
    return {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}.get(form, form)
