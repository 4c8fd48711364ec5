"""A checkpoint's quantisation entry -> the method that the engine sees in it, and what its checks read beside that."""

from __future__ import annotations

from typing import Any

import msgspec

from solver.traits.config import Config, Json, config_classes

UNNAMED = "unnamed"
"""The method of an entry that names none, which the engine reads as an empty text."""
FLAGS = ("sym", "desc_act", "zero_point")


class Packing(msgspec.Struct, frozen=True):
    """What GPTQ and AWQ say of their weights, which kernels are chosen by; None is what the entry leaves out."""

    bits: int | None = None
    symmetric: bool | None = None
    act_order: bool | None = None
    zero_point: bool | None = None
    layout: str | None = None


def packing_of(written: Json) -> Packing:
    """Values of other types than expected count as left out."""
    bits, layout = written.get("bits"), written.get("checkpoint_format")
    sym, order, zero = (value if isinstance(value, bool) else None for value in map(written.get, FLAGS))
    layout = "marlin" if written.get("is_marlin_format") else layout if isinstance(layout, str) else None
    return Packing(bits if isinstance(bits, int) else None, sym, order, zero, layout)


def written_method(config: Config) -> str | None:
    """`quant_method` as config.json has it, where the engine looks."""
    return config.quantization.get("quant_method") if config.quantization and seen(config) else None


def seen(config: Config) -> bool:
    """Whether the engine's model configuration has the entry: it looks at the top, to which it copies what the language
    part has, unless it then reads the file again by a class of its own (SGLang 0.5.9, utils/hf_transformers_utils.py,
    get_config; 0.5.23, utils/hf_transformers/config.py, HfModelConfigParser.parse)."""
    if config.text is config.top or config.quantization is not config.text.get("quantization_config"):
        return True
    return config.top.get("model_type") not in config_classes()["hides_text_quantization"]


def method_of(config: Config, written: Json) -> str | None:
    """The quantisation method as the engine derives it, before any flag; `UNNAMED` for an entry without one.

    A method other than `modelopt` is taken as written, in lower case. Otherwise it follows from `quant_algo` (SGLang
    0.5.15 to 0.5.23, ModelConfig._parse_modelopt_quant_config). Releases differ, and rules then ask `quant_algo` and
    the release: MIXED_PRECISION is w4afp8 in 0.5.9, and up to 0.5.14 everywhere but in Nemotron-H; 0.5.9 keeps a
    written `modelopt`; up to 0.5.17 whatever has FP8 in it is modelopt_fp8, later FP8 alone.
    """
    if config.quantization is None:
        return by_algorithm_name(written)
    if not seen(config):
        return None
    said = written.get("quant_method")
    if said is not None and said != "modelopt":
        return str(said).lower()
    return by_algorithm_name(written) or said or UNNAMED


def by_algorithm_name(written: Json) -> str | None:
    """The method that a `quant_algo` of ModelOpt stands for; none for those that the engine does not read."""
    algo = str(written.get("quant_algo") or "")
    if algo == "MIXED_PRECISION":
        quantized = (written.get("quantized_layers") or {}).values()
        has_fp4 = any(isinstance(item, dict) and "NVFP4" in str(item.get("quant_algo")).upper() for item in quantized)
        return "modelopt_mixed" if has_fp4 else "w4afp8"
    if "FP4" in algo:
        return "modelopt_fp4"
    if algo == "MXFP8":
        return "mxfp8"
    return "modelopt_fp8" if "FP8" in algo else None


def modelopt_section(found: Json | None) -> Json | None:
    """hf_quant_config.json nests its content under `quantization`; newer exports write it flat."""
    if found is None:
        return None
    section = found.get("quantization", found)
    return section if isinstance(section, dict) else None


def scale_format(written: Json, form: str) -> str | None:
    """`scale_fmt` as written; FP8 checkpoints without one hold float32 scales."""
    said: str | None = written.get("scale_fmt")
    return said or ("float32" if form == "fp8" else None)


def group_size(written: Json) -> int | None:
    groups = [group.get("weights") or {} for group in (written.get("config_groups") or {}).values()]
    listed = [item for item in (written.get("quantized_layers") or {}).values() if isinstance(item, dict)]
    for place in (written, *groups, *listed[:1]):
        if isinstance(place.get("group_size"), int):
            found: int = place["group_size"]
            return found
    return None


def kv_cache(written: Json) -> str | None:
    """`fp8` if the checkpoint declares an FP8 KV cache, by modelopt's name or by a scheme."""
    said = first(written, "kv_cache_quant_algo", "kv_cache_scheme")
    if isinstance(said, dict):
        said = {8: "FP8", 4: "NVFP4"}.get(said.get("num_bits", 0)) if said.get("type") == "float" else None
    return {"FP8": "fp8", "NVFP4": "fp4"}.get(str(said))


def first(table: Json, *keys: str) -> Any:
    return next((table[key] for key in keys if table.get(key) is not None), None)
