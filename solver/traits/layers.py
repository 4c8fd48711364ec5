"""Config -> what each layer is made of: kinds of attention and feed-forward, and parameters per part."""

from __future__ import annotations

from typing import Any

import msgspec

from solver.traits.attention import Parts, attention_parts, is_pure_ssm, linear_parts
from solver.traits.config import Config

NEMOTRON_BLOCKS = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}
SHARED_WIDTH = (
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "shared_intermediate_size",
    "share_expert_dim",
)
PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "experts_per_token", "moe_topk", "moe_k")
LAYERS_AT_MOST = 2000
RECURRENT = {"linear_attention", "mamba", "mamba2", "conv", "kda"}
SLIDING = {"sliding_attention", "chunked_attention"}


class Layer(msgspec.Struct, frozen=True):
    """What one layer is made of, and its parameters by part.

    `attention`: full, sliding, linear, parallel (full and linear at once) or none; `feed`: dense, moe, both or none.
    Parts: attn_in (projections before attention), replicated_in (those that every GPU holds whole), attn_out (the one
    after), indexer (sparse attention's own), state (convolution and decay), mlp, shared, experts, router, norm.
    """

    attention: str
    feed: str
    parts: Parts


def layers_of(config: Config) -> list[Layer]:
    """The decoder layers in order, without the MTP layers."""
    return [build(config, *kind, index) for index, kind in enumerate(kinds(config))]


def mtp_layers_of(config: Config) -> list[Layer]:
    """The multi-token-prediction layers: a decoder layer each with full attention, behind a 2 hidden -> hidden mix."""
    count = mtp_count(config)
    if not count:
        return []
    feed = "moe" if experts(config) else "dense"
    one = build(config, "full", feed, -1)
    hidden = config.needed("hidden_size")
    return [Layer(one.attention, one.feed, one.parts | {"mix": 2 * hidden * hidden})] * count


def mtp_count(config: Config) -> int:
    count = config.count("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
    if not 0 <= count <= LAYERS_AT_MOST:
        raise config.wrong_type("num_nextn_predict_layers", f"from 0 to {LAYERS_AT_MOST}", count)
    return count


def experts(config: Config) -> int:
    """Routed experts a layer; 0 for a dense model (Gemma 4 writes null with `enable_moe_block` false)."""
    return config.size("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts") or 0


def kinds(config: Config) -> list[tuple[str, str]]:
    """(attention, feed-forward) of every layer."""
    blocks = nemotron_blocks(config)
    if blocks:
        attention = {"mamba": "linear", "attention": "full"}
        feed = {"moe": "moe", "mlp": "dense"}
        return [(attention.get(block, "none"), feed.get(block, "none")) for block in blocks]
    if config.value("block_configs"):
        return [searched_block(block) for block in config.array("block_configs") or []]
    count = config.needed("num_hidden_layers", "n_layer", "n_layers")
    if not 0 < count <= LAYERS_AT_MOST:
        raise config.wrong_type("num_hidden_layers", f"from 1 to {LAYERS_AT_MOST}", count)
    if is_pure_ssm(config):
        return [("linear", "none")] * count
    return list(zip(attention_kinds(config, count), feed_kinds(config, count), strict=True))


def nemotron_blocks(config: Config) -> list[str]:
    """Nemotron-H names one block a layer, as a list or as a pattern of letters."""
    named = config.array("layers_block_type")
    if named and config.value("mamba_num_heads"):
        return [str(block) for block in named]
    return [NEMOTRON_BLOCKS.get(letter, "none") for letter in config.string("hybrid_override_pattern") or ""]


def searched_block(block: Any) -> tuple[str, str]:
    """A layer of a searched architecture (nemotron-nas): attention or feed-forward may be left out."""
    attention, feed = block["attention"], block["ffn"]
    gone = attention.get("no_op") or attention.get("replace_with_linear")
    return ("none" if gone else "full"), ("none" if feed.get("no_op") else "dense")


def attention_kinds(config: Config, count: int) -> list[str]:
    named = config.array("layer_types")
    if named:
        known = dict.fromkeys(RECURRENT, "linear") | dict.fromkeys(SLIDING, "sliding")
        return [known.get(str(name), "full") for name in named[:count]]
    kda = set(config.table("linear_attn_config").get("kda_layers") or ())
    if kda:  # counted from 1
        return ["linear" if index + 1 in kda else "full" for index in range(count)]
    pattern = config.array("hybrid_layer_pattern")
    if pattern:
        return ["sliding" if mark == 1 else "full" for mark in pattern[:count]]
    interval = config.integer("full_attention_interval")
    if interval and config.integer("linear_num_value_heads", "linear_num_heads"):
        return ["full" if (index + 1) % interval == 0 else "linear" for index in range(count)]
    group = config.value("layer_group_size")
    if group not in (None, 1):  # Ling: one layer of full attention after each group, or a mark per layer
        marks = group if isinstance(group, list) else [int((index + 1) % group != 0) for index in range(count)]
        return ["linear" if mark == 1 else "full" for mark in marks[:count]]
    if config.top.get("model_type") == "falcon_h1":
        return ["parallel"] * count
    if config.top.get("model_type") == "granitemoehybrid":  # what the class makes of no list
        return ["linear"] * count
    types = config.array("attn_type_list")
    if types:
        return ["full" if mark == 1 else "linear" for mark in types[:count]]
    if config.integer("attention_chunk_size") and config.top.get("model_type") == "llama4":
        return ["full" if (index + 1) % 4 == 0 else "sliding" for index in range(count)]
    return window_kinds(config, count)


def window_kinds(config: Config, count: int) -> list[str]:
    """Every n-th layer full and the others sliding (Gemma 2 and 3, Cohere 2), or a pattern of letters (EXAONE 4)."""
    every = config.value("sliding_window_pattern")
    if every and config.value("sliding_window"):
        letters = every if isinstance(every, str) else "L" * (every - 1) + "G"
        return ["sliding" if letters[index % len(letters)] == "L" else "full" for index in range(count)]
    return ["full"] * count


def feed_kinds(config: Config, count: int) -> list[str]:
    if not experts(config):
        return ["dense"] * count
    if config.value("enable_moe_block") is not None:  # Gemma 4 runs a dense MLP beside the experts
        return ["both" if config.flag("enable_moe_block") else "dense"] * count
    return ["moe" if is_moe else "dense" for is_moe in moe_marks(config, count)]


def moe_marks(config: Config, count: int) -> list[bool]:
    """Which layers are mixtures of experts: five ways in which configs say it."""
    named = config.array("mlp_layer_types")
    if named:
        return [name != "dense" for name in named[:count]]  # sparse, moe, hash_moe
    frequency = config.value("moe_layer_freq")
    if isinstance(frequency, list):
        return [bool(mark) for mark in frequency[:count]]
    dense = {int(index) for index in config.array("mlp_only_layers") or ()}
    first = config.size("first_k_dense_replace", "moe_layer_start_index") or 0
    last = config.size("moe_layer_end_index")
    last = count if last is None or last < 0 else last
    step = config.integer("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval") or 1
    return [first <= index <= last and index not in dense and (index + 1) % step == 0 for index in range(count)]


def build(config: Config, attention: str, feed: str, index: int) -> Layer:
    parts: Parts = {"norm": 2 * config.needed("hidden_size")}
    if attention in ("linear", "parallel"):
        parts |= linear_parts(config)
    if attention not in ("linear", "none"):
        for part, params in attention_parts(config, "full" if attention == "parallel" else attention, index).items():
            parts[part] = parts.get(part, 0) + params
    if feed in ("dense", "both"):
        parts["mlp"] = matrices(config) * config.needed("hidden_size") * dense_width(config, index)
    if feed in ("moe", "both"):
        parts |= expert_parts(config)
    return Layer(attention, feed, parts)


def matrices(config: Config) -> int:
    """Gated MLPs have three matrices; Nemotron-H's squared ReLU and the plain MLPs of older classes have two."""
    return 2 if config.string("mlp_hidden_act") == "relu2" or config.flag("plain_mlp") else 3


def dense_width(config: Config, index: int) -> int:
    blocks = config.array("block_configs")
    if blocks:  # rounded up to 256, as in the model's own code
        wanted = int(2 * blocks[index]["ffn"]["ffn_mult"] * config.needed("hidden_size") / 3)
        return -(-wanted // 256) * 256
    width = config.size("intermediate_size_mlp", "dense_intermediate_size", "intermediate_size")
    return width or 4 * config.needed("hidden_size")  # GPT-2's own rule, for classes without the key


def expert_width(config: Config) -> int:
    return config.size("moe_intermediate_size", "intermediate_size") or 0


def shared_width(config: Config) -> int:
    """Width of all shared experts of a layer together."""
    if config.top.get("model_type") == "llama4":
        return config.count("intermediate_size")
    width = config.integer(*SHARED_WIDTH)
    return width if width is not None else shared_count(config) * expert_width(config)


def shared_count(config: Config) -> int:
    return config.size("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert") or 0


def expert_parts(config: Config) -> Parts:
    hidden, count = config.needed("hidden_size"), experts(config)
    latent = config.integer("moe_latent_size", "routed_expert_hidden_size")
    shared = matrices(config) * hidden * shared_width(config)
    if latent:  # experts live in a narrower space, with one projection in and one out
        shared += 2 * hidden * latent
    parts = {"experts": count * matrices(config) * (latent or hidden) * expert_width(config), "router": hidden * count}
    return parts | ({"shared": shared} if shared else {})
