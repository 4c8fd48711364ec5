"""Traits of real checkpoints held against facts that others put down, and parameter counts against model cards.

What differs is listed with the key of the file that explains it; a difference that goes away must leave the list.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solver.knowledge import load
from solver.traits.config import Config, read_config
from solver.traits.folder import open_folder
from solver.traits.model import read_checkpoint, traits_of
from solver.traits.weights import vision_params
from tests.conftest import ROOT, SHARED

MODELS = SHARED / "models"
FACTS = SHARED / "facts" / "models.jsonl"
real = pytest.mark.skipif(not FACTS.is_file(), reason="needs the shared folder beside the repository")

#: Trait as the facts call it -> ours, where one value stands in both.
PLAIN = {
    **{
        name: name
        for name in (
            "architecture", "model_type", "text_model_type", "layers", "hidden", "heads", "kv_heads", "head_dim",
            "intermediate", "experts", "experts_per_token", "shared_experts", "shared_intermediate",
            "moe_intermediate", "moe_layers", "vocab", "max_context", "linear_layers", "full_attention_layers",
            "mtp_layers", "multimodal", "dtype", "tie_embeddings",
        )
    },
    "first_k_dense": "first_dense_layers",
}  # fmt: skip
#: (part of the hub id, fact) -> the key that explains another value.
EXPLAINED = {
    ("MiniMax-M3", "intermediate"): "dense_intermediate_size is the dense layers' width, intermediate_size an expert's",
    ("Llama-4", "intermediate"): "intermediate_size_mlp is the dense layers' width, intermediate_size an expert's",
    ("DeepSeek-V4-Flash-NVFP4", "mtp_dtype"): "ignore says what is not NVFP4; expert_dtype makes experts MXFP4",
    ("DeepSeek-V4-Pro-NVFP4", "mtp_dtype"): "ignore says what is not NVFP4; expert_dtype makes experts MXFP4",
    ("DeepSeek-V4", "mla"): "no kv_lora_rank: one shared key-value head (num_key_value_heads 1), see sparse_attention",
    ("DeepSeek-V4", "sliding_window"): "sliding_window is the local part of compress_ratios' layers, not a layer kind",
    ("MiMo-7B-Base", "sliding_window"): "use_sliding_window is false",
    ("Llama-4-Scout", "total_params_b"): "this copy of config.json has no vision_config, so the tower is not counted",
}


def facts() -> Iterator[tuple[Path, dict[str, Any]]]:
    known = {fact["hf_id"]: fact for fact in map(json.loads, FACTS.read_text(encoding="utf-8").splitlines())}
    for folder in sorted(MODELS.iterdir()):
        fact = known.get(folder.name.replace("--", "/", 1))
        if fact is not None:
            yield folder, fact


def explained(hub_id: str, fact: str) -> tuple[str, str] | None:
    return next((key for key in EXPLAINED if key[0] in hub_id and key[1] == fact), None)


@real
def test_every_real_checkpoint_is_read() -> None:
    folders = sorted(MODELS.iterdir())
    assert len(folders) >= 86
    for folder in folders:
        assert read_checkpoint(folder)["weight_gib"] > 0, folder.name


def differences(folder: Path, fact: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    config = read_config(open_folder(folder))
    traits = traits_of(config)
    for name, ours in PLAIN.items():
        if fact.get(name) is not None and traits.get(ours) != fact[name]:
            yield name, fact[name], traits.get(ours)
    yield from wordy(fact, traits)
    for name in ("total_params_b", "active_params_b"):
        if fact.get(name) is not None and not counts(config, traits[name], fact[name]):
            yield name, fact[name], traits[name]


def wordy(fact: dict[str, Any], traits: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Facts that are texts or objects with one of our traits in them."""
    kind = (fact.get("linear_attention") or "").lower()
    if kind and not kind.startswith(traits["linear_attention"] or "-"):
        yield "linear_attention", kind, traits["linear_attention"]
    state = fact.get("linear_state") or {}
    ours = {"num_k_heads": "linear_k_heads", "num_v_heads": "linear_v_heads", "conv_kernel": "conv_kernel"}
    ours |= {"ssm_state_elems_per_layer": "ssm_state_elems", "conv_state_elems_per_layer": "conv_state_elems"}
    yield from ((k, state[k], traits[v]) for k, v in ours.items() if state.get(k) not in (None, traits[v]))
    window = (fact.get("sliding_window") or {}).get("window")
    if window not in (None, traits["sliding_window"]):
        yield "sliding_window", window, traits["sliding_window"]
    if fact.get("mla") and not traits["mla"]:
        yield "mla", fact["mla"], traits["mla"]
    index = (fact.get("sparse_attention") or {}).get("index_head_dim")
    if index not in (None, traits["index_head_dim"]) or bool(fact.get("sparse_attention")) > bool(
        traits["sparse_attention"]
    ):
        yield "sparse_attention", fact["sparse_attention"], traits["sparse_attention"]
    if str(fact.get("mtp_dtype")).startswith("left unquantised") and traits.get("mtp_dtype") != "bfloat16":
        yield "mtp_dtype", fact["mtp_dtype"], traits.get("mtp_dtype")
    yield from quantisation(fact.get("quant") or {}, traits)


def quantisation(quant: dict[str, Any], traits: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for name, ours in (("algo", "quant_algo"), ("block", "quant_block"), ("scale_fmt", "scale_format")):
        if quant.get(name) not in (None, traits[ours]):
            yield name, quant[name], traits[ours]
    if quant.get("kv_cache") and traits["kv_cache_quant"] != "fp8":
        yield "kv_cache", quant["kv_cache"], traits["kv_cache_quant"]


def counts(config: Config, ours: float, stated: float) -> bool:
    """Within 1%, or what a name rounds: some count embeddings and vision tower, some do not."""
    table = config.needed("vocab_size") * config.needed("hidden_size") / 1e9
    without = ours - 2 * table - vision_params(config) / 1e9
    digits = str(int(stated)) if stated == int(stated) else ""
    rounded = 0.5 * 10 ** (len(digits) - len(digits.rstrip("0"))) if digits else 0.05
    slack = max(0.01 * stated, rounded)
    return without - slack <= stated <= ours + slack


@real
def test_real_checkpoints_agree_with_the_facts_or_the_difference_is_explained() -> None:
    used, wrong, seen = set(), [], 0
    for folder, fact in facts():
        seen += 1
        for name, stated, ours in differences(folder, fact):
            key = explained(fact["hf_id"], name)
            used.add(key)
            if key is None:
                wrong.append(f"{fact['hf_id']}: {name} is {ours}, stated {stated}")
    assert not wrong
    assert seen >= 78 and used == EXPLAINED.keys()


#: The index of Llama-3.1-8B-Instruct with `total_parameters` and `total_size`.
LLAMA_8B_INDEX = (
    "https://huggingface.co/ISTA-DASLab/lossless-lm-dev/commit/9543aaf22b03c52cbabeb08110e8bccdaba30d0f.diff"
)
#: Both Mixtral models in one table, 8x22B as version 0.3, which has the shape of 0.1.
MIXTRAL_WEIGHTS = (
    "https://github.com/mistralai/platform-docs-public/blob/0bdc04e778f78c7e7e92e32e6e3949d5bd333688"
    "/docs/getting-started/models/weights.md"
)
#: Catalogue id -> billions of parameters as its card, paper or index states them, in all and active where they count
#: the same.
STATED = {
    "qwen3-8b": (8.2, None, "https://huggingface.co/Qwen/Qwen3-8B"),
    "qwen3-32b": (32.8, None, "https://huggingface.co/Qwen/Qwen3-32B"),
    "qwen3-30b-a3b": (30.5, None, "https://huggingface.co/Qwen/Qwen3-30B-A3B"),
    "qwen3-235b-a22b": (235, 22, "https://huggingface.co/Qwen/Qwen3-235B-A22B"),
    "qwen3-coder-480b-a35b-instruct": (480, None, "https://huggingface.co/Qwen/Qwen3-Coder-480B-A35B-Instruct"),
    "qwen3.5-397b-a17b": (397, None, "https://huggingface.co/Qwen/Qwen3.5-397B-A17B"),
    "deepseek-v3": (671, None, "https://github.com/deepseek-ai/DeepSeek-V3/blob/06dbd30b096f8e1dd9d4faadd532d52610fb347f/README.md"),
    "gpt-oss-120b": (116.83, None, "https://arxiv.org/abs/2508.10925"),
    "gpt-oss-20b": (20.91, None, "https://arxiv.org/abs/2508.10925"),
    "meta-llama-3.1-8b": (8.03, 8.03, LLAMA_8B_INDEX),
    "meta-llama-3.1-70b": (70, 70, "https://github.com/meta-llama/llama-models/blob/1b28708fc46501a449e03d8d618340a052d9ba07/models/llama3_1/MODEL_CARD.md"),
    "mixtral-8x7b-v0.1": (46.7, 12.9, MIXTRAL_WEIGHTS),
    "mixtral-8x22b-v0.1": (140.6, 39.1, MIXTRAL_WEIGHTS),
    "glm-4.5": (355, None, "https://github.com/zai-org/GLM-4.5/blob/08158da0b5cb63e7e9da9529482cc5d30e2a7437/README.md"),
    # stated for MiniMax-M2, whose shape M2.5 has
    "minimax-m2.5": (230, None, "https://github.com/sgl-project/sgl-cookbook/blob/16e650231adbdfdac72917bff504198510b57cad/docs/autoregressive/MiniMax/MiniMax-M2.md"),
    "nvidia-nemotron-3-nano-30b-a3b-bf16": (31.6, 3.6, "https://github.com/NVIDIA-NeMo/Nemotron/blob/20a06ac3bc1acd4bd867796c5e071f8b8e9e6189/docs/nemotron/nano3/README.md"),
    "llama-4-maverick-17b-128e-instruct": (400, 17, "https://github.com/meta-llama/llama-models/blob/038acb9fe1e1ddc5cf1b3989fb07b311a0ffcae4/models/llama4/MODEL_CARD.md"),
}  # fmt: skip
CATALOGUE = load(ROOT / "knowledge").models


@pytest.mark.parametrize("name", STATED)
def test_parameters_are_within_one_percent_of_the_stated_ones(name: str) -> None:
    total, active, _ = STATED[name]
    traits = CATALOGUE[name].traits
    assert traits["total_params_b"] == pytest.approx(total, rel=0.01)
    if active is not None:
        assert traits["active_params_b"] == pytest.approx(active, rel=0.015)


#: Catalogue id -> bytes of the checkpoint's tensors, and where they stand: `total_size` of the safetensors index, for
#: gpt-oss the sum over the headers, for Qwen3 the listed sizes of the five shards.
INDEX_TOTALS = {
    "meta-llama-3.1-8b": (16_060_522_496, LLAMA_8B_INDEX),
    # the index of a fine-tune of the same shape
    "meta-llama-3.1-70b": (
        141_107_412_992,
        "https://huggingface.co/Model-SafeTensors/L3.1-70B-Euryale-v2.2/commit/31d6c2423b83bf0801e5208196dbe3f990bc8f45",
    ),
    "qwen3-8b": (16_380_000_000, "https://huggingface.co/Qwen/Qwen3-8B/tree/main"),
    "gpt-oss-120b": (65_248_815_744, "https://github.com/alvarobartt/hf-mem/issues/60"),
}


@pytest.mark.parametrize("name", INDEX_TOTALS)
def test_weight_bytes_are_within_two_percent_of_the_index(name: str) -> None:
    total, _ = INDEX_TOTALS[name]
    assert CATALOGUE[name].traits["weight_gib"] * 2**30 == pytest.approx(total, rel=0.02)
