"""Whether a launch fits: the known cases of the design, and what public logs say of the pools."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import yaml

from solver.fitting import Settings, fits, fitting_tp
from solver.knowledge import load
from solver.memory import kv_bytes_per_token_per_gpu
from solver.traits.hardware import hardware_of
from tests.conftest import ROOT, Run

KNOWLEDGE = load(ROOT / "knowledge")
FIGURES = yaml.safe_load((ROOT / "tests" / "kv_capacity.yaml").read_text(encoding="utf-8"))


def model(name: str) -> dict[str, Any]:
    return KNOWLEDGE.models[name].traits


def machine(name: str) -> dict[str, Any]:
    return hardware_of(name, KNOWLEDGE.hardware).traits


@pytest.mark.parametrize(
    ("name", "tp", "fitting"),
    [
        ("qwen3.5-397b-a17b", 8, False),
        ("qwen3.5-397b-a17b-fp8", 8, True),
        ("qwen3.5-397b-a17b-nvfp4", 8, True),
        ("qwen3.5-397b-a17b-nvfp4", 4, True),
        ("qwen3.5-397b-a17b-nvfp4", 2, False),
    ],
)
def test_which_formats_fit_on_96_gib_cards(name: str, tp: int, fitting: bool) -> None:
    assert fits(model(name), machine(f"{tp}xrtx-pro-6000"), Settings(tp=tp)).fits is fitting


def test_bf16_weights_alone_take_97_percent_of_eight_cards() -> None:
    big = model("qwen3.5-397b-a17b")
    share = (big["expert_gib"] + big["other_gib"]) / (8 * 97887 / 1024)
    assert share == pytest.approx(0.97, abs=0.01)
    assert fits(big, machine("8xrtx-pro-6000"), Settings(tp=8)).short == "weights"


def test_sliding_layers_free_memory_for_full_ones() -> None:
    mixed, box = model("gpt-oss-120b"), machine("2xh100-sxm")
    small = fits(mixed, box, Settings(tp=2, swa_full_tokens_ratio=0.1)).kv_tokens
    assert small > fits(mixed, box, Settings(tp=2, swa_full_tokens_ratio=1.0)).kv_tokens * 1.5


def test_states_bound_the_requests_before_tokens_do() -> None:
    hybrid, box = model("qwen3.5-397b-a17b-nvfp4"), machine("4xrtx-pro-6000")
    tight = Settings(tp=4, max_running_requests=64, draft_tokens=4, slots_per_request=5, mem_fraction_static=0.85)
    sized = fits(hybrid, box, tight)
    assert sized.short == "recurrent states" and sized.requests < 64
    loose = msgspec.structs.replace(tight, radix_cache=False, slots_per_request=1)
    assert fits(hybrid, box, loose).requests == 64


def test_explicit_slots_are_taken() -> None:
    sized = fits(model("qwen3.5-397b-a17b-nvfp4"), machine("8xb200"), Settings(tp=8, max_mamba_cache_size=40))
    assert sized.state_slots == 40 and sized.requests == 13


def test_context_longer_than_the_pool_does_not_fit() -> None:
    sized = fits(model("meta-llama-3.1-8b"), machine("rtx-4090"), Settings(context=131072))
    assert not sized.fits and sized.short == "kv cache"


def test_a_counted_draft_takes_weights_and_cache_from_the_pool() -> None:
    hybrid, box = model("qwen3.5-397b-a17b-nvfp4"), machine("8xrtx-pro-6000")
    late = Settings(tp=8, draft_tokens=4)
    early = msgspec.structs.replace(late, draft_counted=True)
    assert fits(hybrid, box, early).kv_tokens < fits(hybrid, box, late).kv_tokens
    assert fits(model("qwen3-8b"), box, early).kv_tokens == fits(model("qwen3-8b"), box, late).kv_tokens


def test_states_of_drafts_come_off_the_top_or_out_of_the_states_share() -> None:
    hybrid, box = model("qwen3.5-397b-a17b-nvfp4"), machine("8xrtx-pro-6000")
    many = Settings(tp=8, draft_tokens=4, spec_requests=1000, slots_per_request=5)
    assert fits(hybrid, box, many).short == "recurrent states"  # all thousand are reserved for
    joint = fits(hybrid, box, msgspec.structs.replace(many, joint_states=True))
    assert joint.fits and joint.state_pool_gib == pytest.approx(joint.kv_pool_gib * 0.9, rel=0.02)


def test_the_size_from_which_it_fits_is_the_least() -> None:
    big, box = model("qwen3.5-397b-a17b"), machine("8xrtx-pro-6000")
    assert fitting_tp(big, box, Settings(tp=8)) == 16
    assert fitting_tp(model("qwen3.5-397b-a17b-nvfp4"), box, Settings(tp=2)) == 4
    assert fitting_tp(model("deepseek-v3"), machine("8xl4"), Settings(tp=8)) == 64


@pytest.mark.parametrize(
    ("flags", "slots"),
    [
        ("--mamba-scheduler-strategy no_buffer", 3),
        ("--mamba-scheduler-strategy extra_buffer", 5),
        ("--mamba-scheduler-strategy extra_buffer --disable-overlap-schedule", 4),
        ("--disable-radix-cache", 1),
    ],
)
def test_state_slots_follow_strategy_cache_and_overlap(flagwise: Callable[..., Run], flags: str, slots: int) -> None:
    where = ("--model", "qwen3.5-397b-a17b-nvfp4", "--hardware", "8xrtx-pro-6000", "--engine-version", "0.5.10")
    run = flagwise("estimate", *where, "--format", "json", "--", "--tp", "8", *flags.split())
    assert json.loads(run.out)["memory"]["inputs"]["slots_per_request"] == slots


def test_there_are_enough_public_figures() -> None:
    assert len({(f["model"], f["source"]) for f in FIGURES["cells"] + FIGURES["pools"]}) >= 10


@pytest.mark.parametrize("figure", FIGURES["cells"], ids=lambda f: f"{f['model']}, {f['tokens']} tokens")
def test_a_token_costs_what_public_logs_say(figure: dict[str, Any]) -> None:
    """Size of a pool over its tokens; logs print GiB with two digits."""
    traits = model(figure["model"])
    if figure.get("layers") == "sliding":
        traits = traits | {"full_attention_layers": 0}
    size = figure["tokens"] * kv_bytes_per_token_per_gpu(traits, figure["tp"], figure["kv_dtype"]) / 2**30
    assert size == pytest.approx(figure["gib"], rel=0.005)


@pytest.mark.parametrize("figure", FIGURES["pools"], ids=lambda f: f"{f['model']} on {f['hardware']}")
def test_pools_hold_the_tokens_that_public_logs_say(figure: dict[str, Any]) -> None:
    sized = fits(model(figure["model"]), machine(figure["hardware"]), Settings(**figure["settings"]))
    assert sized.kv_tokens == pytest.approx(figure["tokens"], rel=0.15)
    if "weights_gib" in figure:
        assert sized.weights_gib == pytest.approx(figure["weights_gib"], rel=0.05)
