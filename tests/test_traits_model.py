"""Checkpoint configs in, traits out; the configs here are written for the tests, with the real ones' shapes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from solver.errors import RequestError
from solver.knowledge import load
from solver.release import Assumed
from solver.store import Store
from solver.traits.find import find_model
from solver.traits.model import catalogue_id, read_checkpoint
from solver.traits.overrides import overridden

KNOWLEDGE = Path(__file__).parents[1] / "knowledge"
LAYERS = 60
HYBRID: dict[str, Any] = {
    "architectures": ["Qwen3_5MoeForConditionalGeneration"],
    "model_type": "qwen3_5_moe",
    "vision_config": {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "spatial_merge_size": 2},
    "text_config": {
        "model_type": "qwen3_5_moe_text",
        "hidden_size": 4096,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 32,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "attn_output_gate": True,
        "full_attention_interval": 4,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 64,
        "num_experts": 512,
        "num_experts_per_tok": 10,
        "moe_intermediate_size": 1024,
        "shared_expert_intermediate_size": 1024,
        "mtp_num_hidden_layers": 1,
        "vocab_size": 248320,
        "max_position_embeddings": 262144,
        "dtype": "bfloat16",
    },
}
DENSE: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}
NVFP4 = {
    "quant_method": "modelopt",
    "quant_algo": "NVFP4",
    "config_groups": {
        "group_0": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}, "targets": ["Linear"]}
    },
    "kv_cache_scheme": {"num_bits": 8, "type": "float"},
    "ignore": ["lm_head", "*.mlp.shared_expert.*", "mtp*", "mtp.layers.0*", "model.visual*"]
    + [f"model.language_model.layers.{i}.{'self_attn' if i % 4 == 3 else 'linear_attn'}*" for i in range(LAYERS)],
}


def checkpoint(folder: Path, config: Any, **files: Any) -> Path:
    (folder / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def test_a_hybrid_model_has_its_layers_states_and_parameters(tmp_path: Path) -> None:
    traits = read_checkpoint(checkpoint(tmp_path, HYBRID))
    assert (traits["linear_attention"], traits["linear_layers"], traits["full_attention_layers"]) == ("gdn", 45, 15)
    assert traits["ssm_state_elems"] == 64 * 128 * 128
    assert traits["conv_state_elems"] == 3 * (64 * 128 + 2 * 16 * 128)
    assert traits["total_params_b"] == pytest.approx(397, rel=0.01)
    assert traits["multimodal"] and traits["mtp_dtype"] == "bfloat16" and traits["quant_method"] is None


def test_a_missing_key_takes_the_config_class_default(tmp_path: Path) -> None:
    text = {k: v for k, v in HYBRID["text_config"].items() if k not in ("num_key_value_heads", "linear_num_key_heads")}
    traits = read_checkpoint(checkpoint(tmp_path, HYBRID | {"text_config": text}))
    assert (traits["kv_heads"], traits["linear_k_heads"], traits["tie_embeddings"]) == (2, 16, False)


def test_the_text_part_of_a_thinker_is_the_language_model(tmp_path: Path) -> None:
    """Qwen3-Omni nests twice: its thinker has a text part beside its encoders."""
    omni = {"architectures": ["Qwen3OmniMoeForConditionalGeneration"], "thinker_config": HYBRID}
    traits = read_checkpoint(checkpoint(tmp_path, omni))
    assert (traits["layers"], traits["hidden"]) == (LAYERS, 4096)
    assert traits["multimodal"] and traits["text_model_type"] == HYBRID["text_config"]["model_type"]


def test_what_cannot_be_known_is_absent(tmp_path: Path) -> None:
    traits = read_checkpoint(checkpoint(tmp_path, DENSE))
    assert "tool_parser" not in traits and "hub_id" not in traits
    assert traits["experts"] is None and traits["linear_attention"] is None


def test_modelopt_with_exclude_lists_leaves_attention_and_mtp_in_bf16(tmp_path: Path) -> None:
    traits = read_checkpoint(checkpoint(tmp_path, HYBRID | {"quantization_config": NVFP4}))
    assert [traits[k] for k in ("quant_method", "quant_format", "kv_cache_quant")] == ["modelopt_fp4", "nvfp4", "fp8"]
    assert traits["mtp_dtype"] == "bfloat16" and not traits["attention_quantized"] and not traits["dense_fp4_layers"]
    assert traits["expert_gib"] == pytest.approx(720 * 4.5 / 16, rel=0.001)


def test_hf_quant_config_counts_only_if_config_json_is_silent(tmp_path: Path) -> None:
    section = {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}
    traits = read_checkpoint(checkpoint(tmp_path, DENSE, hf_quant_config={"quantization": section}))
    assert (traits["quant_method"], traits["kv_cache_quant"]) == ("modelopt_fp8", "fp8")
    own = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
    traits = read_checkpoint(checkpoint(tmp_path, DENSE | own, hf_quant_config={"quantization": section}))
    assert (traits["quant_method"], traits["kv_cache_quant"], traits["quant_block"]) == ("fp8", None, [128, 128])


@pytest.mark.parametrize(
    ("quantized", "method"),
    [({"model.layers.0.mlp.up_proj": {"quant_algo": "NVFP4"}}, "modelopt_mixed"), ({}, "w4afp8")],
)
def test_mixed_precision_is_named_by_its_layers(tmp_path: Path, quantized: dict[str, Any], method: str) -> None:
    section = {"quant_algo": "MIXED_PRECISION", "quantized_layers": quantized, "exclude_modules": []}
    traits = read_checkpoint(checkpoint(tmp_path, DENSE, hf_quant_config={"quantization": section}))
    assert traits["quant_method"] == method


def test_an_absent_exclude_list_makes_formats_unknown(tmp_path: Path) -> None:
    config = DENSE | {"num_nextn_predict_layers": 1}
    traits = read_checkpoint(checkpoint(tmp_path, config, hf_quant_config={"quantization": {"quant_algo": "NVFP4"}}))
    assert not {"mtp_dtype", "dense_fp4_layers", "attention_quantized"} & traits.keys()


def test_infinity_in_a_config_is_read(tmp_path: Path) -> None:
    text = json.dumps(DENSE)[:-1] + ', "time_step_limit": [0.0, Infinity]}'
    assert read_checkpoint(checkpoint(tmp_path, text))["layers"] == 32


@pytest.mark.parametrize(
    ("quantization", "form"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "int4"),
        ({"quant_method": "gptq", "bits": 8, "group_size": 128}, "int8"),
        ({"quant_method": "awq", "bits": 4}, "int4"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        ({"quant_method": "w8a8_int8"}, "int8"),
        ({"quant_method": "mxfp8"}, "mxfp8"),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4", "group_size": 32}}}, "mxfp4"),
        ({"quant_method": "quark", "global_quant_config": {"weight": [{"dtype": "fp8_e4m3"}]}}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "W4A8_NVFP4_FP8_SOMETHING_NEW"}, "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
    ],
)
def test_methods_and_algorithms_give_the_format(tmp_path: Path, quantization: Any, form: str) -> None:
    traits = read_checkpoint(checkpoint(tmp_path, DENSE | {"quantization_config": quantization}))
    assert traits["quant_format"] == form
    assert traits["part_formats"]["mlp"] == form and traits["part_formats"]["head"] == "bf16"


def test_groups_that_name_modules_give_parts_their_own_format(tmp_path: Path) -> None:
    groups = {
        "experts": {"targets": ["re:.*mlp.experts.*"], "weights": {"num_bits": 4, "type": "int"}},
        "rest": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float"}},
    }
    mixed = {"quant_method": "compressed-tensors", "config_groups": groups, "ignore": ["lm_head"]}
    parts = read_checkpoint(checkpoint(tmp_path, HYBRID | {"quantization_config": mixed}))["part_formats"]
    assert (parts["experts"], parts["attention"], parts["shared"]) == ("int4", "fp8", "fp8")


@pytest.mark.parametrize(
    ("entry", "seen"),
    [
        ({"bits": 4, "group_size": 64}, ("unnamed", None)),
        ({}, ("unnamed", None)),
        ({"quant_method": "FP8"}, ("fp8", "FP8")),
        ({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}, ("modelopt", "modelopt")),
        ({"quant_algo": "FP8"}, ("modelopt_fp8", None)),
        (None, (None, None)),
    ],
)
def test_the_method_is_what_the_engine_makes_of_the_entry(tmp_path: Path, entry: Any, seen: tuple[Any, Any]) -> None:
    traits = read_checkpoint(checkpoint(tmp_path, DENSE | {"quantization_config": entry}))
    assert (traits["quant_method"], traits["quant_method_written"]) == seen


@pytest.mark.parametrize(("model_type", "method"), [("qwen3_5_moe", None), ("kimi_k25", "fp8")])
def test_an_entry_in_the_language_part_counts_where_the_class_lifts_it(
    tmp_path: Path, model_type: str, method: str | None
) -> None:
    text = HYBRID["text_config"] | {"quantization_config": {"quant_method": "fp8"}}
    traits = read_checkpoint(checkpoint(tmp_path, HYBRID | {"model_type": model_type, "text_config": text}))
    assert (traits["quant_method"], traits["quant_format"]) == (method, "fp8")


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"bits": 4, "sym": True, "desc_act": False}, (4, True, False, None, None)),
        ({"bits": 3, "sym": "yes", "is_marlin_format": True}, (3, None, None, None, "marlin")),
        ({"w_bit": 4, "zero_point": True, "checkpoint_format": "gptq_v2"}, (None, None, None, True, "gptq_v2")),
    ],
)
def test_what_kernels_are_chosen_by_is_kept_as_written(tmp_path: Path, entry: Any, expected: tuple[Any, ...]) -> None:
    traits = read_checkpoint(checkpoint(tmp_path, DENSE | {"quantization_config": {"quant_method": "gptq"} | entry}))
    names = ("quant_bits", "quant_symmetric", "quant_act_order", "quant_zero_point", "quant_layout")
    assert tuple(traits[name] for name in names) == expected


def test_sizes_that_a_class_writes_for_each_layer_are_read_by_the_largest(tmp_path: Path) -> None:
    per_layer = {"num_experts": 16, "moe_topk": [4] * 32, "moe_intermediate_size": [512] * 31 + [768]}
    traits = read_checkpoint(checkpoint(tmp_path, DENSE | per_layer | {"num_shared_expert": [1] * 32}))
    wanted = {"experts": 16, "experts_per_token": 4, "moe_intermediate": 768, "shared_experts": 1}
    assert {name: traits[name] for name in wanted} == wanted


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_an_unquantised_checkpoint_loads_in_16_bits(tmp_path: Path, dtype: str) -> None:
    half = read_checkpoint(checkpoint(tmp_path, DENSE))["weight_gib"]
    assert read_checkpoint(checkpoint(tmp_path, DENSE | {"torch_dtype": dtype}))["weight_gib"] == half


def test_experts_stand_between_the_first_and_the_last_layer_that_ernie_names(tmp_path: Path) -> None:
    ernie = {"moe_num_experts": 64, "moe_k": 6, "moe_layer_start_index": 2, "moe_layer_end_index": 29}
    traits = read_checkpoint(checkpoint(tmp_path, DENSE | ernie))
    assert (traits["first_dense_layers"], traits["moe_layers"], traits["experts_per_token"]) == (2, 28, 6)


MAMBA = {"mamba_n_heads": 48, "mamba_d_head": 64, "mamba_d_state": 128, "mamba_n_groups": 1, "mamba_d_conv": 4}


@pytest.mark.parametrize(
    ("keys", "kind", "counts", "state", "conv"),
    [
        ({"layer_types": ["mamba"] * 28 + ["full"] * 4} | MAMBA, "mamba2", (28, 4), 48 * 64 * 128, 3 * (48 * 64 + 256)),
        ({"model_type": "falcon_h1"} | MAMBA, "mamba2", (32, 32), 48 * 64 * 128, 3 * (48 * 64 + 256)),
        ({"layer_group_size": 8}, "lightning", (28, 4), 32 * 128 * 128, 0),
        ({"layer_group_size": 4, "short_conv_kernel_size": 4}, "kda", (24, 8), 32 * 128 * 128, 3 * 3 * 32 * 128),
        ({"layer_types": ["conv", "full_attention"] * 16, "conv_L_cache": 3}, "conv", (16, 16), 0, 2 * 4096),
        ({"model_type": "mamba", "state_size": 16, "conv_kernel": 4}, "mamba1", (32, 0), 14336 * 16, 3 * 14336),
        (
            {"model_type": "mamba2", "num_heads": 128, "head_dim": 64, "state_size": 128, "n_groups": 8}
            | {"conv_kernel": 4},
            "mamba2", (32, 0), 128 * 64 * 128, 3 * (128 * 64 + 2 * 8 * 128),
        ),
        ({"model_type": "granitemoehybrid"} | MAMBA, "mamba2", (32, 0), 48 * 64 * 128, 3 * (48 * 64 + 256)),
        (
            {"layer_types": ["linear_attention", "full_attention"] * 16, "linear_num_heads": 64, "linear_head_dim": 128}
            | {"linear_conv_kernel_dim": 4},
            "kda", (16, 16), 64 * 128 * 128, 3 * 3 * 64 * 128,
        ),
    ],
)  # fmt: skip
def test_recurrent_layers_of_other_families(
    tmp_path: Path, keys: Any, kind: str, counts: tuple[int, int], state: int, conv: int
) -> None:
    traits = read_checkpoint(checkpoint(tmp_path, DENSE | keys))
    assert (traits["linear_attention"], traits["linear_layers"], traits["full_attention_layers"]) == (kind, *counts)
    assert (traits["ssm_state_elems"], traits["conv_state_elems"]) == (state, conv)


def test_rope_factor_stretches_the_context_as_the_engine_does(tmp_path: Path) -> None:
    plain = {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}
    assert read_checkpoint(checkpoint(tmp_path, DENSE | plain))["max_context"] == 4 * 131072
    llama = {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}
    assert read_checkpoint(checkpoint(tmp_path, DENSE | llama))["max_context"] == 131072


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ('{"hidden_size": 4096,', "broken JSON at line 1"),
        ("[]", "must hold a JSON object"),
        (DENSE | {"num_hidden_layers": "32"}, "num_hidden_layers must be a whole number"),
        (DENSE | {"layer_types": "full"}, "layer_types must be a list"),
        ({"text_config": 3}, "text_config must be an object"),
        (DENSE | {"quantization_config": "fp8"}, "quantization_config must be an object"),
        ({"model_type": "clip"}, "no num_hidden_layers"),
    ],
)
def test_a_bad_config_is_one_clear_line(tmp_path: Path, config: Any, said: str) -> None:
    with pytest.raises(RequestError, match=said) as caught:
        read_checkpoint(checkpoint(tmp_path, config))
    assert "\n" not in str(caught.value)


def test_a_missing_directory_and_a_missing_file_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no such directory"):
        read_checkpoint(tmp_path / "nothing")
    with pytest.raises(RequestError, match=r"no config\.json"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize(
    "name", ["qwen3.5-397b-a17b-nvfp4", "nvidia/Qwen3.5-397B-A17B-NVFP4", "/models/Qwen3.5-397B-A17B-NVFP4/",
             "/hub/models--nvidia--Qwen3.5-397B-A17B-NVFP4/snapshots/0123abc"]
)  # fmt: skip
def test_the_catalogue_names_a_model_by_id_hub_id_and_path(store: Store, name: str) -> None:
    assert find_model(store.index, None, name, [])[1]["id"] == "qwen3.5-397b-a17b-nvfp4"


def test_a_model_that_nobody_described_says_so(store: Store, tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, DENSE)
    described = [find_model(store.index, None, name, [])[1]["described"] for name in (str(folder), "qwen3-8b", "a/b")]
    assert described == [True, True, False]


def test_an_unknown_model_gets_near_names(store: Store) -> None:
    with pytest.raises(RequestError, match=r"near are .*qwen3\.5-397b-a17b"):
        find_model(store.index, "Qwen/Qwen3.5-397B-A17", None, [])


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("unsloth/Qwen3-32B-unsloth-bnb-4bit", "qwen3-32b"),
        ("RedHatAI/Qwen3-32B-quantized.w4a16", "qwen3-32b"),
        ("amd/Qwen3.5-397B-A17B-MXFP4-AttnFP8-V2", "qwen3.5-397b-a17b"),
        ("amd/DeepSeek-R1-0528-MXFP4-v2", "deepseek-r1"),
        ("/models/kimi_k2_instruct_w4afp8/", "kimi-k2-instruct"),
        ("/hub/models--org--GLM-5-AWQ/snapshots/0123abc", "glm-5"),
    ],
)
def test_another_format_of_a_known_model_has_its_shape_and_no_format(store: Store, name: str, family: str) -> None:
    notes: list[Assumed] = []
    found, traits = find_model(store.index, None, name, notes)
    assert (found, traits["family"]) == (name, family)
    assert traits["architecture"] and traits["layers"] and traits["mtp_in_checkpoint"] is None
    known = {f"model.{trait}" for trait in traits} - {"model.mtp_in_checkpoint", "model.id"}
    assert not known & {trait for trait, form in store.index.traits.items() if form.of == "format"}
    assert [(note.what, family in note.why) for note in notes] == [("model", True)]


@pytest.mark.parametrize(
    "name",
    [
        "Qwen/Qwen3-33B-FP8",  # another size
        "Qwen/Qwen3.9-397B-A17B-FP8",  # another generation
        "Qwen/Qwen3-32B-Thinking-FP8",  # another tuning
        "Qwen/Qwen3-32B-v2-FP8",  # `v2` before the format belongs to the model
        "someone/FP8",
        "/models/Qwen3-32B-FP8-dynamic/drafts/eagle",  # the folder around it is not the model
    ],
)
def test_a_name_that_is_no_known_model_and_format_words_says_nothing(store: Store, name: str) -> None:
    assert find_model(store.index, None, name, []) == (name, {"mtp_in_checkpoint": None, "described": False})


def test_a_trait_in_which_the_formats_of_a_model_differ_stays_unknown(store: Store) -> None:
    """Two checkpoints of MiniMax M3 name different architectures."""
    traits = find_model(store.index, None, "someone/MiniMax-M3-AWQ", [])[1]
    assert traits["layers"] == 60 and "architecture" not in traits


def test_a_directory_that_is_named_like_an_entry_gets_its_family(store: Store, tmp_path: Path) -> None:
    """Repairs and acceptance rows need the family; another architecture under the same name gets none of it."""
    folder = tmp_path / "Qwen--Qwen3-8B"
    folder.mkdir()
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 12288,
        "vocab_size": 151936,
        "num_hidden_layers": 36,
        "hidden_size": 4096,
    }
    (folder / "config.json").write_text(json.dumps(config))
    assert find_model(store.index, str(folder), None, [])[1]["family"] == "qwen3-8b"
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["Other"]}))
    assert "family" not in find_model(store.index, str(folder), None, [])[1]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 99, "vocab_size": 50257},
            {"layers": 12, "hidden": 768, "max_context": 99, "total_params_b": 0.12},
        ),
        (
            {"model_type": "dbrx", "d_model": 64, "n_heads": 8, "n_layers": 4, "max_seq_len": 32, "vocab_size": 9,
             "attn_config": {"kv_n_heads": 2}, "ffn_config": {"moe_num_experts": 16, "moe_top_k": 4}},
            {"kv_heads": 2, "experts": 16, "experts_per_token": 4, "max_context": 32},
        ),
        ({"model_type": "llava", "text_config": {"model_type": "llama"}}, {"layers": 32, "hidden": 4096}),
        ({"model_type": "gemma2", "sliding_window": 9}, {"layers": 26, "sliding_layers": 13, "tie_embeddings": True}),
        ({"model_type": "gemma2", "sliding_window": None}, {"sliding_layers": 0}),
        ({"model_type": "mistral", "num_key_value_heads": None}, {"kv_heads": 32}),
        ({"model_type": "exaone4", "sliding_window": 64, "sliding_window_pattern": "LLLG"}, {"sliding_layers": 24}),
        ({"model_type": "olmo3", "architectures": ["Olmo3ForCausalLM"]}, {"architecture": "Olmo2ForCausalLM"}),
        (
            {"model_type": "llama", "vision_config": {"num_hidden_layers": 27, "hidden_size": 1152}},
            {"vision_layers": 27, "vision_hidden": 1152, "vision_part": True},
        ),
        ({"model_type": "llama", "audio_config": {}}, {"multimodal": True, "vision_part": False}),
        (
            {"model_type": "longcat_flash", "num_layers": 28, "ffn_hidden_size": 12288, "expert_ffn_hidden_size": 2048,
             "n_routed_experts": 512, "moe_topk": 12},
            {"layers": 28, "intermediate": 12288, "moe_intermediate": 2048},
        ),
    ],
)  # fmt: skip
def test_the_config_class_names_and_fills_in(tmp_path: Path, config: dict[str, Any], expected: dict[str, Any]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    read = read_checkpoint(tmp_path)
    assert {name: read[name] for name in expected} == expected


OVERRIDES = '{"max_position_embeddings": 131072, "architectures": ["Other"]}'


def test_overrides_change_a_directory_and_an_entry_alike(store: Store, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(DENSE))
    for name in (str(tmp_path), "qwen3-8b"):
        traits = find_model(store.index, name, None, [])[1]
        changed = overridden(store.index, name, traits, OVERRIDES)
        assert (changed["max_context"], changed["architecture"]) == (131072, "Other")
        assert changed["hidden"] == traits["hidden"]
        assert overridden(store.index, name, traits, "no JSON") is traits


def test_what_rests_on_an_overridden_shape_is_unknown_without_the_config(store: Store) -> None:
    traits = find_model(store.index, "qwen3-8b", None, [])[1]
    changed = overridden(store.index, "qwen3-8b", traits, '{"num_hidden_layers": 4}')
    assert not {"layers", "weight_gib"} & set(changed)
    assert changed["hidden"] == traits["hidden"]


CHECKPOINTS = Path(os.environ.get("FLAGWISE_CHECKPOINTS") or Path(__file__).parents[2] / "shared" / "models")


@pytest.mark.skipif(
    not CHECKPOINTS.is_dir(), reason=f"needs real <owner>--<name>/config.json below {CHECKPOINTS.name}/"
)
def test_the_catalogue_is_fresh() -> None:
    """Every checkpoint of the directory gives what its entry says, parsers aside (those come from pages)."""
    models = load(KNOWLEDGE).models
    for folder in sorted(CHECKPOINTS.iterdir()):
        read = read_checkpoint(folder)
        entry = models[catalogue_id(folder.name.replace("--", "/", 1))].traits
        read = {k: v for k, v in read.items() if k != "id" and "parser" not in k}
        assert read == {k: entry.get(k, "absent") for k in read}, folder.name


def test_every_catalogue_entry_states_known_traits_with_sources() -> None:
    knowledge = load(KNOWLEDGE)
    assert len(knowledge.models) >= 25
    for entry in knowledge.models.values():
        assert {f"model.{name}" for name in entry.traits} <= knowledge.traits.keys(), entry.id
        assert entry.sources and entry.family and entry.id == catalogue_id(entry.hub_ids[0])


def test_the_names_of_layer_types_are_kept_once_each(tmp_path: Path) -> None:
    config = {**DENSE, "layer_types": ["sliding_attention", "full_attention"] * 16}
    assert read_checkpoint(checkpoint(tmp_path, config))["layer_types"] == ["full_attention", "sliding_attention"]
    assert read_checkpoint(checkpoint(tmp_path, DENSE))["layer_types"] is None
