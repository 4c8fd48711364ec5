"""Config -> how the checkpoint is quantised: the method that the engine sees, and each layer part's format."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from solver.traits.config import Config, Json
from solver.traits.method import (
    Packing,
    first,
    group_size,
    kv_cache,
    method_of,
    modelopt_section,
    packing_of,
    scale_format,
    written_method,
)

#: Bits a weight with its scales, as loaded: NVFP4 has an FP8 scale per 16, MXFP4 and MXFP8 one byte per 32, and float32
#: is cast to 16 bits (SGLang 0.5.9 and 0.5.23, configs/model_config.py, _get_and_verify_dtype).
BITS = {"fp32": 16.0, "bf16": 16.0, "fp16": 16.0, "fp8": 8.0, "int8": 8.0, "nvfp4": 4.5, "mxfp4": 4.25, "mxfp8": 8.25}
ALGORITHMS = {
    "NVFP4": "nvfp4",
    "W4A16_NVFP4": "nvfp4",
    "NVFP4_AWQ": "nvfp4",
    "FP8": "fp8",
    "FP8_PB_WO": "fp8",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8",
    "MXFP8": "mxfp8",
    "W4A8_MXFP4_FP8": "mxfp4",
    "W4A16_AWQ": "int4",
    "W4A8_AWQ": "int4",
    "INT8_SQ": "int8",
}
ATTENTION = frozenset({"attn_in", "replicated_in", "attn_out"})
EVERY_PART = ATTENTION | {"indexer", "mlp", "shared", "experts", "mix"}
#: Modules whose names appear in exclude lists though no linear layer of the decoder is meant.
ASIDE = re.compile(r"visi|visual|norm|bias|mm_projector|multi_modal|patch_merge|embed|conv1d|weights_proj|A_log|dt_")


class Quantization(msgspec.Struct, frozen=True):
    """`default` is the format of what no list names; `formats` has the exceptions per (layer or None for all, part)."""

    method: str | None = None
    written_method: str | None = None
    algo: str | None = None
    default: str = "bf16"
    formats: dict[tuple[int | None, str], str] = {}
    mtp: str | None = None
    head: str = "bf16"
    scale_format: str | None = None
    block: list[int] | None = None
    group_size: int | None = None
    kv_cache: str | None = None
    packing: Packing = Packing()
    lists_known: bool = True

    def format(self, layer: int | None, part: str) -> str:
        if part in ("state", "router", "norm"):
            return "bf16"
        return self.formats.get((layer, part)) or self.formats.get((None, part)) or self.default

    def bits(self, form: str) -> float:
        """Bits a weight in this format, scales included."""
        if form == "int4":
            return 4 + 16 / (self.group_size or 128)
        if form == "fp8" and self.block:
            return 8 + 32 / (self.block[0] * self.block[1])
        return BITS[form]


def quantization_of(config: Config, layer_count: int) -> Quantization:
    """The checkpoint's quantisation, from config.json or, if it says nothing, hf_quant_config.json."""
    written = config.quantization or modelopt_section(config.modelopt)
    plain = plain_format(config)
    if not written:
        return Quantization(method=method_of(config, {}), default=plain)
    algo = written.get("quant_algo")
    form = main_format(written)
    excluded = excluded_modules(written)
    formats = dict(positive_formats(written))
    named_only = formats and algo == "MIXED_PRECISION" and written.get("quant_method") != "fp8"
    default = plain if named_only else form
    if written.get("quant_method") == "mxfp4":  # only the experts are packed, whatever the list says
        formats[None, "experts"], default = "mxfp4", plain
    if config.string("expert_dtype") == "fp4":  # DeepSeek V4; a list may still name a layer's experts NVFP4
        formats[None, "experts"] = "mxfp4"
    formats |= {key: plain for name in excluded for key in places(name)}
    return Quantization(
        method=method_of(config, written),
        written_method=written_method(config),
        algo=algo,
        default=default,
        formats=formats,
        mtp=mtp_format(excluded, formats, default, plain, layer_count),
        head=formats.get((None, "head"), plain),
        scale_format=scale_format(written, form),
        block=written.get("weight_block_size"),
        group_size=group_size(written),
        kv_cache=kv_cache(written),
        packing=packing_of(written),
        lists_known=config.modelopt is None or bool(excluded or formats) or "exclude_modules" in written,
    )


def excluded_modules(written: Json) -> list[str]:
    """Names or patterns of modules left out, from the keys that the method's own loader reads.

    DeepSeek V4 with NVFP4 experts is an FP8 checkpoint that also carries modelopt's `ignore`: there it says what is not
    NVFP4, and those layers are FP8 (SGLang 0.5.23, layers/quantization/fp8.py, Fp8Config.from_config does not read it).
    """
    keys = ["modules_to_not_convert", "ignored_layers", "exclude"]
    if written.get("quant_method") != "fp8":
        keys = ["exclude_modules", "ignore", *keys]
    return [str(name) for name in first(written, *keys) or ()]


def plain_format(config: Config) -> str:
    """What an unquantised weight is stored in."""
    stored = config.string("dtype", "torch_dtype") or "bfloat16"
    return {"float16": "fp16", "float32": "fp32"}.get(stored.removeprefix("torch."), "bf16")


def main_format(written: Json) -> str:
    """The format of a linear layer that no list names."""
    algo = written.get("quant_algo")
    if algo is not None and (form := by_algorithm(str(algo))):
        return form
    method = str(written.get("quant_method") or "")
    groups = written.get("config_groups") or {}
    if method == "compressed-tensors" or (algo is None and groups):
        general = [group for group in groups.values() if set(group.get("targets") or ()) & {"Linear", "FusedMoE"}]
        return group_format(next(iter(general or groups.values()), {}))
    if method == "quark":
        return quark_format(written.get("global_quant_config") or {})
    for form in ("mxfp8", "nvfp4", "mxfp4", "fp8"):
        if form in method:
            return form
    if method.startswith(("gptq", "awq", "auto-round", "bitsandbytes", "moe_wna16")) or "int8" in method:
        eight = written.get("bits", written.get("w_bit")) == 8 or written.get("load_in_8bit") or "int8" in method
        return "int8" if eight else "int4"
    return "bf16"


def by_algorithm(algo: str) -> str | None:
    """The format of a quant_algo; a name that is not listed is read by what it contains."""
    if algo in ALGORITHMS:
        return ALGORITHMS[algo]
    parts = (
        ("NVFP4", "nvfp4"),
        ("MXFP4", "mxfp4"),
        ("MXFP8", "mxfp8"),
        ("FP8", "fp8"),
        ("AWQ", "int4"),
        ("INT8", "int8"),
    )
    return next((form for part, form in parts if part in algo), None)


def quark_format(general: Json) -> str:
    """AMD's exporter names the weights' type, possibly of several steps, the first of which is the stored one."""
    weight = general.get("weight") or {}
    if isinstance(weight, list):
        weight = weight[0] if weight else {}
    kind = str(weight.get("dtype"))
    if kind == "fp4":
        return "nvfp4" if weight.get("group_size") == 16 else "mxfp4"
    return "fp8" if kind.startswith("fp8") else kind if kind in BITS else "bf16"


def group_format(group: Json) -> str:
    """compressed-tensors describes weights by bits, type and the type of their scales."""
    weights = group.get("weights") or {}
    bits, kind = weights.get("num_bits"), weights.get("type")
    if kind == "float" and bits == 4:
        return "nvfp4" if weights.get("group_size") == 16 else "mxfp4"
    if kind == "float" and bits == 8:
        return "fp8"
    return "int4" if bits == 4 else "int8" if bits == 8 else "bf16"


def positive_formats(written: Json) -> dict[tuple[int | None, str], str]:
    """Formats of the layers that a mixed checkpoint names one by one. One expert stands for all of its layer."""
    found: dict[tuple[int | None, str], str] = {}
    for name, said in (written.get("quantized_layers") or {}).items():
        if ".experts." in name and ".experts.0." not in name:
            continue
        form = by_algorithm(str(said.get("quant_algo"))) if isinstance(said, dict) else None
        if form:
            found.update(dict.fromkeys(places(name), form))
    for group in (written.get("config_groups") or {}).values():
        for target in group.get("targets") or () if written.get("quant_method") == "compressed-tensors" else ():
            found.update(dict.fromkeys(places(str(target)), group_format(group)))
    return found


def places(name: str) -> list[tuple[int | None, str]]:
    """The (layer, part) pairs that a module name or pattern stands for.

    Names of all families are read by their last telling word: `model.layers.3.self_attn*` is the attention of layer 3,
    `*.mlp.shared_expert.*` the shared expert of every layer, `model.layers.61*` all of layer 61, `lm_head` the head.
    """
    prefix, mark, tail = name.removeprefix("re:").replace("\\.", ".").partition("layers.")
    digits = tail[: len(tail) - len(tail.lstrip("0123456789"))]
    if not digits:
        return [(None, part) for part in parts_named("", prefix + mark + tail)]
    return [(int(digits), part) for part in parts_named(prefix, tail[len(digits) :])]


@lru_cache(maxsize=4096)
def parts_named(prefix: str, rest: str) -> frozenset[str]:
    """Parts that a name means: `rest` stands after a layer number, or is the whole name if there is no number."""
    if "lm_head" in rest or rest == "head":
        return frozenset({"head"})
    if ASIDE.search(prefix) or ASIDE.search(rest) or prefix.startswith("mtp") or rest.startswith("mtp"):
        return frozenset()
    rest = rest.strip(".*")
    if not rest:
        return EVERY_PART if prefix else frozenset()
    if "index" in rest:
        return frozenset({"indexer"})
    if rest.endswith("shared_expert_gate"):
        return frozenset()
    if "shared_expert" in rest or "share_expert" in rest:
        return frozenset({"shared"})
    if "experts" in rest:
        return frozenset({"experts"})
    if rest.endswith(("gate", "router")):
        return frozenset()
    if rest.endswith(("o_proj", "out_proj", "wo_a", "wo_b")):
        return frozenset({"attn_out"})
    if rest.endswith(("kv_a_proj_with_mqa", "q_a_proj")):
        return frozenset({"replicated_in"})
    if re.search(r"(in_proj\w*|[qkv]\w*_proj|wq_b)$", rest):
        return frozenset({"attn_in"})
    if "attn" in rest:
        return ATTENTION
    return frozenset({"mlp"}) if "mlp" in rest or "ffn" in rest else frozenset()


def mtp_format(
    excluded: list[str], formats: dict[tuple[int | None, str], str], default: str, plain: str, layer_count: int
) -> str:
    """Format of the MTP layers: plain where a list leaves them out, by `mtp…` or by a layer number past the last."""
    for name in excluded:
        number = name.rstrip("*.").rpartition("layers.")[2]
        if name.startswith("mtp") or ".mtp" in name or (number.isdigit() and int(number) >= layer_count):
            return plain
    return formats.get((layer_count, "experts")) or formats.get((None, "experts")) or default
