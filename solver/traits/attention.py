"""Config -> shapes and parameters of one layer's attention, of every kind that the engine serves."""

from __future__ import annotations

from solver.traits.config import Config, config_classes

Parts = dict[str, int]
KV_HEADS = ("num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num", "num_attention_groups")


def is_pure_ssm(config: Config) -> bool:
    """Whether there are recurrent layers alone, without heads of attention."""
    return config.top.get("model_type") in config_classes()["recurrent_alone"]


def heads(config: Config) -> int:
    """Query heads; 0 where nothing attends."""
    return 0 if is_pure_ssm(config) else config.needed("num_attention_heads")


def linear_kind(config: Config) -> str:
    """gdn, mamba1, mamba2, kda, lightning or conv: what the recurrent layers of a config are."""
    if is_pure_ssm(config):
        return "mamba2" if config.value("num_heads") else "mamba1"
    if config.value("linear_attn_config", "linear_num_heads", "short_conv_kernel_size"):
        return "kda"
    if config.value("mamba_num_heads", "mamba_n_heads"):
        return "mamba2"
    if config.value("linear_num_value_heads"):
        return "gdn"
    return "conv" if config.value("conv_L_cache") else "lightning"


def linear_parts(config: Config) -> Parts:
    """All kinds in the same terms: see `linear_shape`."""
    hidden, kind = config.needed("hidden_size"), linear_kind(config)
    k_heads, v_heads, k_dim, v_dim, kernel = linear_shape(config)
    inner, keys = v_heads * v_dim, k_heads * k_dim
    state = (inner + 2 * keys) * kernel + 2 * v_heads
    if kind == "mamba2":
        return {"attn_in": hidden * (2 * inner + 2 * keys + v_heads), "attn_out": inner * hidden, "state": state}
    if kind == "mamba1":
        rank = config.count("time_step_rank")
        steps = inner * (2 * rank + 3 * k_dim)  # what projects to and from the step sizes, and the decay
        return {"attn_in": 2 * hidden * inner, "attn_out": inner * hidden, "state": inner * kernel + steps}
    if kind == "kda":
        full_gate = config.table("linear_attn_config").get("use_full_rank_gate")
        low_rank = hidden * v_dim + v_dim * inner
        gates = low_rank + (hidden * inner if full_gate else low_rank) + hidden * v_heads
        return {"attn_in": hidden * (inner + 2 * keys) + gates, "attn_out": inner * hidden, "state": state}
    if kind == "conv":
        return {"attn_in": 3 * hidden * inner, "attn_out": inner * hidden, "state": inner * kernel}
    if kind == "lightning":
        return {"attn_in": 4 * hidden * inner, "attn_out": inner * hidden, "state": 2 * v_heads}
    state += 2 * hidden * v_heads
    return {"attn_in": hidden * (2 * inner + 2 * keys), "attn_out": inner * hidden, "state": state}


def linear_shape(config: Config) -> tuple[int, int, int, int, int]:
    """(key heads, value heads, key head size, value head size, convolution kernel) of the recurrent layers.

    Mamba2 in these words: key heads are its groups, the key head size its state size; in the first Mamba each channel
    is a value head of size 1. Lightning attention has a state of head size squared and no convolution; a short
    convolution alone (LFM2) has no state beside its window. Read in SGLang 0.5.10 and 0.5.23: configs/nemotron_h.py,
    qwen3_next.py, granitemoehybrid.py, falcon_h1.py, glm5_next.py, bailing_hybrid.py, lfm2.py and mamba.py, which feed
    them into Mamba2StateShape or KimiLinearStateShape.create.
    """
    kind = linear_kind(config)
    if kind == "kda":
        kda = config.table("linear_attn_config")
        heads = kda["num_heads"] if kda else config.needed("linear_num_heads", "num_attention_heads")
        size = kda["head_dim"] if kda else config.integer("linear_head_dim") or head_dim(config)
        kernel = (
            kda["short_conv_kernel_size"] if kda else config.count("linear_conv_kernel_dim", "short_conv_kernel_size")
        )
        return heads, heads, size, size, kernel
    if kind == "mamba2":
        groups = config.count("n_groups", "mamba_n_groups")
        count = config.count("mamba_num_heads", "mamba_n_heads", "num_heads")
        size = config.count("mamba_head_dim", "mamba_d_head", "head_dim")
        state = config.count("ssm_state_size", "mamba_d_state", "state_size")
        return groups, count, state, size, config.count("conv_kernel", "mamba_d_conv")
    if kind == "mamba1":
        inner = config.integer("intermediate_size") or config.count("expand") * config.needed("hidden_size")
        return 0, inner, config.count("state_size"), 1, config.count("conv_kernel")
    if kind == "conv":
        return 1, 1, 0, config.needed("hidden_size"), config.count("conv_L_cache")
    if kind == "lightning":
        size = head_dim(config)
        return 0, config.needed("num_attention_heads"), size, size, 1
    return (
        config.count("linear_num_key_heads"),
        config.count("linear_num_value_heads"),
        config.count("linear_key_head_dim"),
        config.count("linear_value_head_dim"),
        config.count("linear_conv_kernel_dim"),
    )


def head_dim(config: Config) -> int:
    """The config's own (Nemotron-H: `attention_head_dim`), else hidden over heads, as the engine derives it."""
    if is_pure_ssm(config):
        return 0
    said = config.integer("head_dim", "attention_head_dim")
    return said or config.needed("hidden_size") // config.needed("num_attention_heads")


def kv_heads(config: Config) -> int:
    """As in ModelConfig.get_total_num_kv_heads: several spellings, else as many as query heads."""
    count = heads(config)
    blocks = config.array("block_configs")
    if blocks:
        grouped = (block["attention"].get("n_heads_in_group") for block in blocks)
        return next(count // int(size) for size in grouped if size)
    if config.flag("multi_query"):
        return 1
    return config.integer(*KV_HEADS) or count


def is_mla(config: Config) -> bool:
    """Latent attention keeps one compressed vector a token. DeepSeek V4 has no kv_lora_rank: one shared KV head. Small
    DeepSeek-VL2 and the OCR models have the sizes and plain attention, by `use_mla` or by their class."""
    if config.value("use_mla") is False or config.top.get("model_type") in config_classes()["plain_attention"]:
        return False
    return config.value("kv_lora_rank") is not None and config.value("qk_nope_head_dim") is not None


def shares_index(config: Config) -> bool:
    """Whether some sparse layers reuse the tokens that an earlier layer's indexer chose (SGLang 0.5.23,
    arg_groups/model_hook.py, _validate_dsa_tbo_index_sharing: three keys that say so)."""
    pattern, kinds = config.value("index_topk_pattern"), config.array("indexer_types") or ()
    return config.count("index_topk_freq") > 1 or "S" in (pattern or ()) or "shared" in kinds


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
    ratio = ratios[index] if ratios and index < len(ratios) else 0
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
