"""Directory of a checkpoint -> model traits: shape, recurrent state, quantisation and bytes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from solver.errors import RequestError
from solver.traits.attention import (
    attention_shape,
    head_dim,
    heads,
    is_mla,
    kv_heads,
    linear_kind,
    linear_shape,
    shares_index,
)
from solver.traits.config import Config, config_classes, read_config
from solver.traits.folder import open_folder
from solver.traits.formats import formats
from solver.traits.layers import (
    PER_TOKEN,
    Layer,
    expert_width,
    experts,
    layers_of,
    mtp_count,
    mtp_layers_of,
    shared_count,
    shared_width,
)
from solver.traits.misfit import BROKEN, misfit
from solver.traits.quantization import Quantization, quantization_of
from solver.traits.stored import stored_traits
from solver.traits.tensors import read_tensors
from solver.traits.weights import vision_tower, weigh

Values = dict[str, Any]
CONTEXT = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")


def read_checkpoint(directory: Path) -> Values:
    """Trait name without `model.` -> value. Null is a known absence; a name that is missing is unknown.

    Reads config.json, hf_quant_config.json, and of weights in safetensors the headers, which go before what shapes
    give; code named by `auto_map` is never run. Errors: RequestError with one line for a missing directory, a missing
    or broken file, and values of the wrong type.
    """
    _, read, stored = examine(directory)
    return read | stored


def examine(directory: Path) -> tuple[Config, Values, Values]:
    """The config, the traits that it gives, and those of the headers, which go before."""
    folder = open_folder(directory)
    config = read_config(folder)
    traits = {**traits_of(config), "id": folder.name}
    if folder.hub_id:
        traits["hub_id"] = folder.hub_id
    tensors = read_tensors(folder)
    return config, traits, stored_traits(tensors, *parsed(config), traits) if tensors else {}


def traits_of(config: Config) -> Values:
    """The same from a configuration in memory, without weights."""
    try:
        return assembled(config, *parsed(config))
    except RequestError:
        raise
    except BROKEN:
        raise misfit(config, lambda changed: assembled(changed, *parsed(changed))) from None


def parsed(config: Config) -> tuple[list[Layer], Quantization]:
    layers = layers_of(config)
    if not layers:
        raise config.wrong_type("num_hidden_layers", "at least 1", 0)
    return layers, quantization_of(config, len(layers))


def assembled(config: Config, layers: list[Layer], quantization: Quantization) -> Values:
    return {
        **identity(config),
        **shape(config, layers),
        **mixture(config, layers),
        **recurrent(config, layers),
        **formats(config, layers, quantization),
        **sizes(config, layers, quantization),
        **config.parsers,
    }


def identity(config: Config) -> Values:
    names = config.array("architectures") or config.top.get("architectures")
    named = config.top.get("architectures") or names
    known = {"id": config.path.name, "model_type": config.top.get("model_type")}
    classes = config_classes()
    first = named[0] if isinstance(named, list) and named else None
    if not config.top.get("architectures"):
        first = classes["architectures"].get(known["model_type"], first)
    if first is not None:
        known["architecture"] = classes["renamed_architectures"].get(str(first), str(first))
    return known | {
        "text_model_type": config.text.get("model_type") if config.text is not config.top else None,
        "multimodal": config.text is not config.top or "vision_config" in config.top or "audio_config" in config.top,
        **vision_tower(config),
        "encoder_decoder": config.flag("is_encoder_decoder"),
        "own_code": "AutoConfig" in config.table("auto_map"),
        "dtype": config.string("dtype", "torch_dtype"),
        "tie_embeddings": config.flag("tie_word_embeddings"),
    }


def shape(config: Config, layers: list[Layer]) -> Values:
    kinds = [layer.attention for layer in layers]
    latent = is_mla(config)
    sliding = kinds.count("sliding")
    swa = attention_shape(config, "sliding") if sliding else (None, None, None)
    full = (
        (head_dim(config), kv_heads(config), config.integer("v_head_dim"))
        if latent
        else attention_shape(config, "full")
    )
    return {
        "layers": len(layers),
        "hidden": config.needed("hidden_size"),
        "heads": heads(config),
        "kv_heads": kv_heads(config),
        "head_dim": head_dim(config),
        "v_head_dim": full[2] or head_dim(config),
        "full_head_dim": full[0],
        "full_kv_heads": full[1],
        "full_attention_layers": kinds.count("full") + kinds.count("parallel"),
        "sliding_layers": sliding,
        "swa_head_dim": swa[0],
        "swa_kv_heads": swa[1],
        "swa_v_head_dim": swa[2],
        "sliding_window": window(config) if sliding else None,
        "layer_types": sorted({str(name) for name in config.array("layer_types") or ()}) or None,
        "mla": latent,
        **{key: config.integer(key) for key in ("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim")},
        "sparse_attention": sparse_attention(config),
        "fused_qkv": config.value("attention_projection_layout") == "fused_qkv",
        **compressed(config, len(layers)),
        "index_head_dim": config.integer("index_head_dim"),
        "index_topk": config.integer("index_topk"),
        "index_shared": shares_index(config),
        "intermediate": config.size("intermediate_size_mlp", "dense_intermediate_size", "intermediate_size"),
        "vocab": config.needed("vocab_size"),
        "max_context": context(config),
        "mtp_layers": mtp_count(config),
    }


def window(config: Config) -> int | None:
    return config.integer("sliding_window", "sliding_window_size", "attention_chunk_size")


def sparse_attention(config: Config) -> str | None:
    """`dsa` (DeepSeek V3.2's indexer and its heirs), `csa` (V4's compressed tokens), `block` (MiniMax M3), or none."""
    if config.value("compress_ratios"):
        return "csa"
    if config.value("index_topk"):
        return "dsa"
    return "block" if config.table("sparse_attention_config").get("use_sparse_attention") else None


def compressed(config: Config, count: int) -> Values:
    """Layers of DeepSeek V4 by how many tokens they press into one, and the window that they keep as it is."""
    ratios = [ratio for ratio in (config.array("compress_ratios") or ())[:count] if ratio]
    if not ratios:
        return {"compressed_layers": None, "compress_window": None}
    return {
        "compressed_layers": {str(r): ratios.count(r) for r in sorted(set(ratios))},
        "compress_window": window(config),
    }


def context(config: Config) -> int:
    """Longest context in tokens, as the engine derives it: a rope factor counts unless the original length stands
    beside it or the type is llama3 (SGLang 0.5.10, utils/hf_transformers_utils.py, get_context_length)."""
    rope = config.table("rope_scaling", "rope_parameters")
    factor = rope.get("factor") or 1
    if "original_max_position_embeddings" in rope or rope.get("rope_type") == "llama3":
        factor = 1
    return int(factor * (config.integer(*CONTEXT) or 2048))


def mixture(config: Config, layers: list[Layer]) -> Values:
    count = experts(config)
    moe = [layer.feed in ("moe", "both") for layer in layers]
    if not count or not any(moe):
        names = ("experts", "experts_per_token", "shared_experts", "shared_intermediate", "moe_intermediate")
        return dict.fromkeys(names) | {"first_dense_layers": len(layers), "moe_layers": 0}
    shared = shared_width(config)
    per_token = config.size(*PER_TOKEN)
    return {
        "experts": count,
        "experts_per_token": per_token,
        "shared_experts": shared_count(config) or (1 if shared else 0),
        "shared_intermediate": shared,
        "moe_intermediate": expert_width(config),
        "first_dense_layers": moe.index(True) if layers[0].attention != "none" and not is_nemotron(config) else 0,
        "moe_layers": sum(moe),
    }


def is_nemotron(config: Config) -> bool:
    return bool(config.value("mamba_num_heads"))


def recurrent(config: Config, layers: list[Layer]) -> Values:
    """Sizes of the recurrent state in elements per layer over all tensor-parallel ranks.

    State: value heads x value head size x key head size. Convolution: (kernel - 1) x (value width + 2 key widths)
    (SGLang 0.5.10, configs/mamba_utils.py, Mamba2StateShape.create). The engine keeps the first in float32
    unless the config's `mamba_ssm_dtype` or a flag says otherwise, the second in bfloat16.
    """
    count = sum(layer.attention in ("linear", "parallel") for layer in layers)
    if not count:
        names = ("k_heads", "v_heads", "k_head_dim", "v_head_dim")
        empty = dict.fromkeys([f"linear_{name}" for name in names] + ["linear_attention", "conv_kernel", "ssm_dtype"])
        return empty | {"linear_layers": 0, "ssm_state_elems": 0, "conv_state_elems": 0}
    k_heads, v_heads, k_dim, v_dim, kernel = linear_shape(config)
    return {
        "linear_attention": linear_kind(config),
        "linear_layers": count,
        "linear_k_heads": k_heads,
        "linear_v_heads": v_heads,
        "linear_k_head_dim": k_dim,
        "linear_v_head_dim": v_dim,
        "conv_kernel": kernel,
        "ssm_dtype": config.string("mamba_ssm_dtype") or "float32",
        "ssm_state_elems": v_heads * v_dim * k_dim,
        "conv_state_elems": max(kernel - 1, 0) * (v_heads * v_dim + 2 * k_heads * k_dim),
    }


def sizes(config: Config, layers: list[Layer], quantization: Quantization) -> Values:
    """GiB by part (2^30 bytes) and billions of parameters, all computed from shapes and formats."""
    weights = weigh(config, layers, mtp_layers_of(config), quantization)
    return {
        "total_params_b": round(weights.params / 1e9, 2),
        "active_params_b": round(weights.active_params / 1e9, 2),
        "weight_gib": round(weights.experts + weights.other + weights.mtp, 2),
        "expert_gib": round(weights.experts, 2),
        "other_gib": round(weights.other, 2),
        "attention_gib": round(weights.attention, 2),
        "embedding_gib": round(weights.embedding, 2),
        "replicated_gib": round(weights.replicated, 2),
        "mtp_gib": round(weights.mtp, 2),
    }


CANONICAL = re.compile(r"[^a-z0-9.]+")


def catalogue_id(hub_id: str) -> str:
    """Id of a checkpoint in the catalogue: its name on the hub without the owner, lower case, hyphenated."""
    return CANONICAL.sub("-", hub_id.rstrip("/").rpartition("/")[2].lower()).strip("-")
