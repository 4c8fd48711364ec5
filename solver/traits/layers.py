"""Config -> what each layer is made of: kinds of attention and feed-forward, and parameters per part."""

from __future__ import annotations

from typing import Any

import msgspec

from solver.traits.config import Config

Parts = dict[str, int]
NEMOTRON_BLOCKS = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}
SLIDING = {"sliding_attention", "chunked_attention"}


class Layer(msgspec.Struct, frozen=True):
    """`attention`: full, sliding, linear or none; `feed`: dense, moe, both or none; `parts`: parameters by part.

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
    return config.count("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")


def experts(config: Config) -> int:
    """Routed experts a layer; 0 for a dense model (Gemma 4 writes null with `enable_moe_block` false)."""
    return config.count("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")


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
        known = {"linear_attention": "linear"} | dict.fromkeys(SLIDING, "sliding")
        return [known.get(str(name), "full") for name in named[:count]]
    kda = set(config.table("linear_attn_config").get("kda_layers") or ())
    if kda:  # counted from 1
        return ["linear" if index + 1 in kda else "full" for index in range(count)]
    pattern = config.array("hybrid_layer_pattern")
    if pattern:
        return ["sliding" if mark == 1 else "full" for mark in pattern[:count]]
    interval = config.integer("full_attention_interval")
    if interval and config.integer("linear_num_value_heads"):
        return ["full" if (index + 1) % interval == 0 else "linear" for index in range(count)]
    types = config.array("attn_type_list")
    if types:
        return ["full" if mark == 1 else "linear" for mark in types[:count]]
    if config.integer("attention_chunk_size") and config.top.get("model_type") == "llama4":
        return ["full" if (index + 1) % 4 == 0 else "sliding" for index in range(count)]
    return ["full"] * count


def feed_kinds(config: Config, count: int) -> list[str]:
    if not experts(config):
        return ["dense"] * count
    if config.value("enable_moe_block") is not None:  # Gemma 4 runs a dense MLP beside the experts
        return ["both" if config.flag("enable_moe_block") else "dense"] * count
    return ["moe" if is_moe else "dense" for is_moe in moe_marks(config, count)]


def moe_marks(config: Config, count: int) -> list[bool]:
    """Which layers are mixtures of experts: four ways in which configs say it."""
    named = config.array("mlp_layer_types")
    if named:
        return [name == "sparse" for name in named[:count]]
    frequency = config.value("moe_layer_freq")
    if isinstance(frequency, list):
        return [bool(mark) for mark in frequency[:count]]
    dense = {int(index) for index in config.array("mlp_only_layers") or ()}
    first = config.count("first_k_dense_replace")
    step = config.integer("decoder_sparse_step", "interleave_moe_layer_step") or 1
    return [index >= first and index not in dense and (index + 1) % step == 0 for index in range(count)]


def build(config: Config, attention: str, feed: str, index: int) -> Layer:
    parts: Parts = {"norm": 2 * config.needed("hidden_size")}
    if attention == "linear":
        parts |= linear_parts(config)
    elif attention != "none":
        parts |= attention_parts(config, attention, index)
    if feed in ("dense", "both"):
        parts["mlp"] = matrices(config) * config.needed("hidden_size") * dense_width(config, index)
    if feed in ("moe", "both"):
        parts |= expert_parts(config)
    return Layer(attention, feed, parts)


def matrices(config: Config) -> int:
    """Gated MLPs have three matrices; Nemotron-H's squared ReLU has no gate and two."""
    return 2 if config.string("mlp_hidden_act") == "relu2" else 3


def dense_width(config: Config, index: int) -> int:
    blocks = config.array("block_configs")
    if blocks:  # rounded up to 256, as in the model's own code
        wanted = int(2 * blocks[index]["ffn"]["ffn_mult"] * config.needed("hidden_size") / 3)
        return -(-wanted // 256) * 256
    return config.count("intermediate_size_mlp", "dense_intermediate_size", "intermediate_size")


def expert_width(config: Config) -> int:
    return config.count("moe_intermediate_size", "intermediate_size")


def shared_width(config: Config) -> int:
    """Width of all shared experts of a layer together."""
    if config.top.get("model_type") == "llama4":
        return config.count("intermediate_size")
    width = config.integer(
        "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size", "share_expert_dim"
    )
    return width if width is not None else shared_count(config) * expert_width(config)


def shared_count(config: Config) -> int:
    return config.count("n_shared_experts", "num_shared_experts")


def expert_parts(config: Config) -> Parts:
    hidden, count = config.needed("hidden_size"), experts(config)
    latent = config.integer("moe_latent_size", "routed_expert_hidden_size")
    shared = matrices(config) * hidden * shared_width(config)
    if latent:  # experts live in a narrower space, with one projection in and one out
        shared += 2 * hidden * latent
    parts = {"experts": count * matrices(config) * (latent or hidden) * expert_width(config), "router": hidden * count}
    return parts | ({"shared": shared} if shared else {})


def linear_parts(config: Config) -> Parts:
    """Gated DeltaNet, Mamba2 and KDA in the same terms: see `linear_shape`."""
    hidden = config.needed("hidden_size")
    k_heads, v_heads, k_dim, v_dim, kernel = linear_shape(config)
    inner, keys = v_heads * v_dim, k_heads * k_dim
    state = (inner + 2 * keys) * kernel + 2 * v_heads
    if config.value("mamba_num_heads"):
        return {"attn_in": hidden * (2 * inner + 2 * keys + v_heads), "attn_out": inner * hidden, "state": state}
    if config.value("linear_attn_config"):
        full_gate = config.table("linear_attn_config").get("use_full_rank_gate")
        low_rank = hidden * v_dim + v_dim * inner
        gates = low_rank + (hidden * inner if full_gate else low_rank) + hidden * v_heads
        return {"attn_in": hidden * (inner + 2 * keys) + gates, "attn_out": inner * hidden, "state": state}
    return {"attn_in": hidden * (2 * inner + 2 * keys), "attn_out": inner * hidden, "state": state + 2 * hidden * v_heads}


def linear_shape(config: Config) -> tuple[int, int, int, int, int]:
    """(key heads, value heads, key head size, value head size, convolution kernel) of the recurrent layers.

    Mamba2 in these words: key heads are its groups, the key head size its state size (SGLang 0.5.10,
    configs/nemotron_h.py and configs/qwen3_next.py feed both into Mamba2StateShape.create).
    """
    kda = config.table("linear_attn_config")
    if kda:
        heads, size = kda["num_heads"], kda["head_dim"]
        return heads, heads, size, size, kda["short_conv_kernel_size"]
    if config.value("mamba_num_heads"):
        groups = config.count("n_groups", "mamba_n_groups")
        heads, size = config.count("mamba_num_heads"), config.count("mamba_head_dim")
        return groups, heads, config.count("ssm_state_size"), size, config.count("conv_kernel", "mamba_d_conv")
    return (
        config.count("linear_num_key_heads"),
        config.count("linear_num_value_heads"),
        config.count("linear_key_head_dim"),
        config.count("linear_value_head_dim"),
        config.count("linear_conv_kernel_dim"),
    )


def head_dim(config: Config) -> int:
    """The config's own (Nemotron-H: `attention_head_dim`), else hidden over heads, as the engine derives it."""
    return config.integer("head_dim", "attention_head_dim") or config.needed("hidden_size") // config.needed("num_attention_heads")


def kv_heads(config: Config) -> int:
    """As in ModelConfig.get_total_num_kv_heads: several spellings, else as many as query heads."""
    heads = config.needed("num_attention_heads")
    blocks = config.array("block_configs")
    if blocks:
        return next(heads // b["attention"]["n_heads_in_group"] for b in blocks if b["attention"].get("n_heads_in_group"))
    if config.flag("multi_query"):
        return 1
    return config.integer("num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num", "num_attention_groups") or heads


def is_mla(config: Config) -> bool:
    """Latent attention keeps one compressed vector a token. DeepSeek V4 has no kv_lora_rank: one shared KV head."""
    return config.value("kv_lora_rank") is not None and config.value("qk_nope_head_dim") is not None


def attention_parts(config: Config, kind: str, index: int) -> Parts:
    if is_mla(config):
        return latent_parts(config, index)
    if config.value("o_lora_rank"):
        return compressed_parts(config, index)
    hidden, heads = config.needed("hidden_size"), config.needed("num_attention_heads")
    size, groups, v_size = attention_shape(config, kind)
    query = heads * size * (2 if config.flag("attn_output_gate") else 1)
    value = 0 if kind == "full" and config.flag("attention_k_eq_v") else groups * v_size
    return {"attn_in": hidden * (query + groups * size + value), "attn_out": heads * v_size * hidden}


def attention_shape(config: Config, kind: str) -> tuple[int, int, int]:
    """(head size, KV heads, value head size) of full or of sliding layers, which differ in Gemma 4 and MiMo V2."""
    size, groups = head_dim(config), kv_heads(config)
    v_size = config.integer("v_head_dim") or size
    if kind == "sliding":
        size = config.integer("swa_head_dim") or size
        groups = config.integer("swa_num_key_value_heads") or groups
        return size, groups, config.integer("swa_v_head_dim") or v_size
    wide = config.integer("global_head_dim")
    if wide:
        return wide, config.integer("num_global_key_value_heads") or groups, wide
    return size, groups, v_size


def latent_parts(config: Config, index: int) -> Parts:
    """Multi-head latent attention (DeepSeek V2 and its heirs), with the lightning indexer where there is one."""
    hidden, heads = config.needed("hidden_size"), config.needed("num_attention_heads")
    rank, rope, nope = config.count("kv_lora_rank"), config.count("qk_rope_head_dim"), config.count("qk_nope_head_dim")
    value, query = config.count("v_head_dim"), config.count("q_lora_rank")
    wide = (query or hidden) * heads * (nope + rope)
    gate = hidden * heads * value if config.flag("mla_use_output_gate") else 0
    parts = {
        "attn_in": wide + rank * heads * (nope + value) + gate,
        "replicated_in": hidden * (query + rank + rope),
        "attn_out": heads * value * hidden,
    }
    own = config.array("indexer_types")
    if config.value("index_topk") and (not own or index < 0 or own[index] == "full"):
        size, count = config.count("index_head_dim"), config.count("index_n_heads")
        parts["indexer"] = query * count * size + hidden * (size + count)
    return parts


def compressed_parts(config: Config, index: int) -> Parts:
    """DeepSeek V4: one shared key-value head, a low-rank grouped output, and compressors that summarise old tokens."""
    hidden, heads, size = config.needed("hidden_size"), config.needed("num_attention_heads"), head_dim(config)
    query, out = config.count("q_lora_rank"), config.count("o_lora_rank")
    ratios = config.array("compress_ratios") or []
    ratio = ratios[index] if index < len(ratios) else 0
    compressor = 2 * hidden * size * (2 if ratio == 4 else 1) if ratio else 0
    parts = {
        "attn_in": query * heads * size,
        "replicated_in": hidden * (query + size) + compressor,
        "attn_out": heads * size * out + config.count("o_groups") * out * hidden,
    }
    if ratio == 4:
        wide, count = config.count("index_head_dim"), config.count("index_n_heads")
        parts["indexer"] = query * count * wide + hidden * count + 4 * hidden * wide
    return parts
