"""The cost model: exact step counts, honest gaps, and rankings held against measured throughputs where those lie."""

from __future__ import annotations

import json
import runpy
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver.acceptance import accepted_tokens, find_family, measured_steps
from solver.collectives import Line, in_range
from solver.constants import Costs, LayerCost, read_costs
from solver.cost import Estimate, Setting, prepare, round_trips, token_latency, token_latency_us
from solver.traffic import Asked, cache_work, expert_share, index_load, read_traffic, touched_share

ROOT = Path(__file__).resolve().parent.parent
FACTS = ROOT.parent / "shared" / "facts"
COSTS = read_costs(ROOT / "knowledge")
GIB = 2.0**30

PRO6000 = {"gpu": "rtx-pro-6000", "link": "pcie", "sm": 120, "bandwidth_gbs": 1792}
H200 = {"gpu": "h200-sxm", "link": "nvlink", "sm": 90, "bandwidth_gbs": 4800}
B200 = {"gpu": "b200-sxm", "link": "nvlink", "sm": 100, "bandwidth_gbs": 7700}


def qwen35(expert_bytes: float) -> dict[str, Any]:
    """Qwen3.5-397B-A17B: 45 Gated DeltaNet and 15 attention layers; all but the routed experts in BF16."""
    attention = 4096 * 32 * 256 * 2 + 2 * 4096 * 512 + 8192 * 4096
    delta = 4096 * (2 * 2048 + 2 * 8192) + 4096 * 128 + 8192 * 4096
    expert = 3 * 4096 * 1024
    other = 15 * attention + 45 * delta + 60 * (expert + 512 * 4096) + 2 * 248320 * 4096
    draft = 512 * expert + attention + expert + 2 * 4096 * 4096
    return {
        "id": "qwen3.5-397b-a17b-nvfp4",
        "hub_id": "nvidia/Qwen3.5-397B-A17B-NVFP4",
        "layers": 60,
        "hidden": 4096,
        "vocab": 248320,
        "experts": 512,
        "experts_per_token": 10,
        "moe_intermediate": 1024,
        "moe_layers": 60,
        "kv_heads": 2,
        "head_dim": 256,
        "full_attention_layers": 15,
        "linear_layers": 45,
        "ssm_state_elems": 1048576,
        "conv_state_elems": 36864,
        "ssm_dtype": "float32",
        "mla": False,
        "tie_embeddings": False,
        "mtp_layers": 1,
        "mtp_dtype": "bfloat16",
        "expert_gib": 60 * 512 * expert * expert_bytes / GIB,
        "other_gib": 2 * other / GIB,
        "mtp_gib": 2 * draft / GIB,
    }


QWEN_NVFP4 = qwen35(0.5625)
QWEN_BF16 = qwen35(2.0)
GLM5_NVFP4 = {
    "hub_id": "nvidia/GLM-5-NVFP4",
    "layers": 78,
    "hidden": 6144,
    "vocab": 154880,
    "experts": 256,
    "experts_per_token": 8,
    "moe_intermediate": 2048,
    "moe_layers": 75,
    "mla": True,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "tie_embeddings": False,
    "expert_gib": 75 * 256 * 3 * 6144 * 2048 * 0.5625 / GIB,
    "other_gib": 34.3,
}
DEEPSEEK_R1 = {
    "hub_id": "deepseek-ai/DeepSeek-R1-0528",
    "layers": 61,
    "hidden": 7168,
    "vocab": 129280,
    "experts": 256,
    "experts_per_token": 8,
    "moe_intermediate": 2048,
    "moe_layers": 58,
    "mla": True,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "tie_embeddings": False,
    "expert_gib": 58 * 256 * 3 * 7168 * 2048 / GIB,
    "other_gib": 17.8,
}
QWEN3_235B = {
    "hub_id": "Qwen/Qwen3-235B-A22B-Instruct-2507",
    "layers": 94,
    "hidden": 4096,
    "vocab": 151936,
    "experts": 128,
    "experts_per_token": 8,
    "moe_intermediate": 1536,
    "moe_layers": 94,
    "kv_heads": 4,
    "head_dim": 128,
    "tie_embeddings": False,
    "expert_gib": 94 * 128 * 3 * 4096 * 1536 * 2 / GIB,
    "other_gib": 2 * (94 * (4096 * 64 * 128 * 2 + 2 * 4096 * 512 + 128 * 4096) + 2 * 151936 * 4096) / GIB,
}


def steps(setting: Setting, accept: float | None = None) -> Estimate:
    return round_trips(prepare(QWEN_NVFP4, PRO6000, COSTS), setting, accept)


def test_one_gpu_has_no_round_trips() -> None:
    assert steps(Setting()).value == 0
    assert steps(Setting(draft_steps=3), accept=3.0).value == 0


def test_a_pass_has_two_all_reduces_a_layer_and_one() -> None:
    found = steps(Setting(tp=8))
    assert found.inputs["collectives"] == 121  # as a trace of this model shows
    assert found.value == 121 * 14


def test_a_pipeline_boundary_is_one_step() -> None:
    assert steps(Setting(tp=1, pp=4)).value == 3
    assert steps(Setting(tp=2, pp=4)).value == 121 * 2 + 3


def test_a_draft_step_adds_three_all_reduces() -> None:
    found = steps(Setting(tp=4, draft_steps=2), accept=2.5)
    assert found.value == pytest.approx((121 * 6 + 2 * 3 * 6) / 2.5)


def test_custom_all_reduce_without_nvlink_is_nccl_beyond_two_gpus() -> None:
    assert steps(Setting(tp=8, allreduce="custom")) == steps(Setting(tp=8, allreduce="nccl"))
    assert steps(Setting(tp=2, allreduce="custom")).value == 121


def test_one_shot_turns_two_shot_with_the_message_size() -> None:
    small, large = (Setting(tp=8, allreduce="custom", concurrency=n) for n in (1, 64))
    assert round_trips(prepare(QWEN_BF16, H200, COSTS), small).value == 121
    assert round_trips(prepare(QWEN_BF16, H200, COSTS), large).value == 242


def test_mscclpp_needs_graphs_and_its_gpu_counts() -> None:
    assert steps(Setting(tp=8, allreduce="mscclpp")).value == 121
    assert steps(Setting(tp=8, allreduce="mscclpp", cuda_graph=False)).value == 121 * 14
    four = Setting(tp=4, allreduce="mscclpp")
    assert round_trips(prepare(QWEN_NVFP4, PRO6000, COSTS, "0.5.10"), four).value == 121 * 6
    assert round_trips(prepare(QWEN_NVFP4, PRO6000, COSTS, "0.5.23"), four).value == 121


@pytest.mark.parametrize("allreduce", ["mscclpp", "symm_mem", "fusion"])
def test_a_path_without_measured_rows_has_unknown_latency(allreduce: Any) -> None:
    prepared = prepare(QWEN_BF16, {**H200, "gpu": "h20"}, COSTS)
    found = token_latency(prepared, Setting(tp=8, allreduce=allreduce))
    assert (found.value, found.known) == (None, False)
    assert found.missing == (f"all-reduce {allreduce} on 8 GPUs",)


def test_mscclpp_over_pcie_is_unknown_for_speed_but_not_for_steps() -> None:
    setting = Setting(tp=8, allreduce="mscclpp")
    assert steps(setting).known
    assert not token_latency_us(QWEN_NVFP4, PRO6000, setting, COSTS).known


def test_missing_traits_are_named() -> None:
    found = token_latency_us({"layers": 60}, {"gpu": "rtx-pro-6000"}, Setting(), COSTS)
    assert {"model.hidden", "model.vocab", "model.other_gib", "hardware.bandwidth_gbs"} <= set(found.missing)


def test_speculation_without_an_acceptance_row_is_a_bound() -> None:
    found = steps(Setting(tp=4, draft_steps=3))
    assert (found.known, found.missing) == (False, ("acceptance",))
    assert found.value is not None and found.low is not None
    assert found.value == found.high == pytest.approx(4 * found.low)


def test_draft_tokens_never_fall_below_the_chain() -> None:
    assert Setting(draft_steps=4, draft_tokens=3).verified == 5
    assert Setting(draft_tokens=3).verified == 1


def test_acceptance_prefers_the_same_engine_then_the_lowest() -> None:
    found = accepted_tokens(QWEN_NVFP4, 3, COSTS.acceptance, "NEXTN")
    assert found is not None
    assert (found.value, found.low, found.high) == (3.12, 3.03, 3.39)


def test_acceptance_is_not_extrapolated() -> None:
    assert accepted_tokens(QWEN_NVFP4, 9, COSTS.acceptance) is None
    assert accepted_tokens("some/Unmeasured-7B", 1, COSTS.acceptance) is None
    assert measured_steps(QWEN_NVFP4, COSTS.acceptance) == tuple(range(1, 9))


def test_acceptance_of_a_predictable_prompt_only_widens_the_range() -> None:
    found = accepted_tokens("zai-org/GLM-5.1-FP8", 3, COSTS.acceptance)
    assert found is not None
    assert (found.value, found.high) == (2.63, 3.4)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("zai-org/GLM-5-FP8", "glm-5"),
        ("zai-org/GLM-5.2", "glm-5.2"),
        ("nvidia/DeepSeek-V3.1-NVFP4", None),
        ("deepseek-ai/DeepSeek-V4-Pro-0813", "deepseek-v4-pro-0813"),
    ],
)
def test_a_family_is_found_by_whole_words(name: str, family: str | None) -> None:
    found = find_family(name, COSTS.acceptance)
    assert (found.id if found else None) == family


def test_more_tokens_touch_more_experts() -> None:
    assert touched_share(512, 10, 1) == pytest.approx(10 / 512)
    assert touched_share(512, 10, 6) > 5 * touched_share(512, 10, 1)


def test_whole_experts_load_the_busiest_gpu_more() -> None:
    prepared = prepare(QWEN_NVFP4, PRO6000, COSTS)
    assert expert_share(prepared.traffic, 1, 8, 8) > expert_share(prepared.traffic, 1, 8, 1)
    assert expert_share(prepared.traffic, 1e6, 8, 8) == pytest.approx(1 / 8)


def test_an_open_range_holds_the_newest_release() -> None:
    assert in_range(">=0.5.12", None)
    assert not in_range("<0.5.12", None)
    assert in_range(">=0.5.10,<0.5.14", "0.5.10.post1")


def test_replicas_share_requests_but_not_the_work_of_one() -> None:
    one = token_latency_us(QWEN_NVFP4, PRO6000, Setting(tp=4), COSTS)
    assert token_latency_us(QWEN_NVFP4, PRO6000, Setting(tp=4, dp=2), COSTS).value == one.value
    assert token_latency_us(QWEN_NVFP4, PRO6000, Setting(tp=4, dp=2, concurrency=2), COSTS).value == one.value


def test_no_overlap_shows_the_host_time() -> None:
    with_overlap, without = (
        token_latency_us(QWEN_NVFP4, PRO6000, Setting(tp=4, overlap=o), COSTS) for o in (True, False)
    )
    assert with_overlap.value is not None and without.value is not None
    assert without.value - with_overlap.value == pytest.approx(COSTS.constants["host_step_us"].value)


def test_eager_passes_are_unknown() -> None:
    found = token_latency_us(QWEN_NVFP4, PRO6000, Setting(tp=4, cuda_graph=False), COSTS)
    assert found.missing == ("t_layer without CUDA graphs",)


def latency(setting: Setting, model: dict[str, Any] = DEEPSEEK_R1, hardware: dict[str, Any] = B200) -> Estimate:
    return token_latency(prepare(model, hardware, COSTS, "0.5.14"), setting)


def test_attention_replicas_gather_and_scatter_instead_of_reducing() -> None:
    found = round_trips(prepare(DEEPSEEK_R1, B200, COSTS), Setting(tp=8, ep=8, attention_dp=8, concurrency=64))
    assert found.inputs["path"] == "all_gather, reduce_scatter"
    assert found.value == 61 * 2 * 7  # each half a ring


def test_attention_replicas_pay_off_when_latent_caches_are_read_by_many() -> None:
    one, many = (Setting(tp=8, ep=8, attention_dp=n, concurrency=512, context=32768) for n in (1, 8))
    replicated, split = latency(one).value, latency(many).value
    assert replicated is not None and split is not None
    assert split < replicated


def test_the_expert_exchange_has_measured_times_on_eight_gpus_only() -> None:
    eight = latency(Setting(tp=8, ep=8, attention_dp=8, a2a="deepep", concurrency=64))
    assert eight.known and "deepep" in eight.inputs["path"]
    assert latency(Setting(tp=4, ep=4, attention_dp=4, a2a="deepep")).missing == ("deepep exchange on 4 GPUs",)


def test_a_shared_cache_is_read_faster_and_costs_collectives() -> None:
    short, shared = (latency(Setting(tp=8, dcp=n, context=1024), hardware=PRO6000).value for n in (1, 8))
    long, split = (latency(Setting(tp=8, dcp=n, context=500_000), hardware=PRO6000).value for n in (1, 8))
    assert short is not None and shared is not None and long is not None and split is not None
    assert short < shared
    assert split < long


def test_one_shot_over_pcie_gives_way_to_nccl_where_their_measured_lines_cross() -> None:
    collectives = prepare(QWEN_NVFP4, PRO6000, COSTS).collectives
    sizes = [2**n for n in range(10, 24)]
    paths = [collectives.path("pcie_oneshot", 8, size, True).id for size in sizes]
    assert paths == sorted(paths, reverse=True)  # one switch, from the small end on
    assert set(paths) == {"pcie_oneshot", "nccl"}


def test_prompts_of_other_requests_delay_a_token() -> None:
    alone = Setting(tp=8, concurrency=1, prompt=1000, output=500)
    busy = msgspec.structs.replace(alone, concurrency=64)
    quiet = msgspec.structs.replace(busy, prompt=0, output=0)
    assert latency(alone).value == latency(msgspec.structs.replace(alone, prompt=0)).value
    assert (latency(busy).value or 0) > (latency(quiet).value or 0)


def test_an_unmeasured_kernel_never_looks_faster_than_the_measured_ones() -> None:
    unnamed = latency(Setting(tp=8, kernel="nobody_measured_this"), QWEN_NVFP4, PRO6000).value
    assert unnamed is not None
    for kernel in ("flashinfer_cutlass", "b12x"):
        assert unnamed >= (latency(Setting(tp=8, kernel=kernel), QWEN_NVFP4, PRO6000).value or 0)


def test_what_stands_in_for_an_unmeasured_kernel_is_told() -> None:
    named = latency(Setting(tp=8, kernel="nobody_measured_this", attention="flashinfer"), QWEN_NVFP4, PRO6000).inputs
    assert "experts nobody_measured_this nvfp4 as flashinfer_cutlass nvfp4" in named["stand_ins"]
    measured = latency(Setting(tp=8, kernel="flashinfer_cutlass", attention="flashinfer"), QWEN_NVFP4, PRO6000).inputs
    assert "experts" not in measured.get("stand_ins", "")


def test_weight_formats_are_told_from_the_bytes_of_the_experts() -> None:
    found = [read_traffic(model) for model in (QWEN_NVFP4, QWEN_BF16, DEEPSEEK_R1)]
    assert [t.expert_format for t in found] == ["nvfp4", "bf16", "fp8"]


def test_sliding_layers_read_their_window_only() -> None:
    model = {**QWEN3_235B, "full_attention_layers": 24, "sliding_layers": 70, "sliding_window": 512}
    model |= {"swa_kv_heads": 4, "swa_head_dim": 128, "swa_v_head_dim": 128}
    traffic = read_traffic(model)
    growth = cache_work(traffic, Asked(1, 1, 9000, 1, 2.0)).load - cache_work(traffic, Asked(1, 1, 8000, 1, 2.0)).load
    assert growth == 1000 * 24 * 2 * 4 * 128 * 2


def test_sharing_the_cache_of_a_request_spares_reads_and_no_arithmetic() -> None:
    traffic = read_traffic({**DEEPSEEK_R1, "heads": 128})
    alone, shared = (cache_work(traffic, Asked(4, 1, 8000, 8, 2.0, share=dcp)) for dcp in (1, 8))
    assert shared.load == alone.load / 8
    assert shared.gflop == alone.gflop > 0


def test_sparse_attention_reads_what_its_indexer_picked_and_the_indexer_every_key() -> None:
    traffic = read_traffic({**DEEPSEEK_R1, "heads": 128, "index_topk": 2048, "index_head_dim": 128})
    short, long, drafting = (
        Asked(2, tokens, context, 8, 1.0, sparse=True) for tokens, context in ((1, 4096), (1, 65536), (4, 65536))
    )
    assert cache_work(traffic, short) == cache_work(traffic, long)
    assert cache_work(traffic, drafting).load == 4 * cache_work(traffic, long).load
    assert index_load(traffic, long) == 16 * index_load(traffic, short) == 2 * 65536 * 61 * 132
    dense = long._replace(sparse=False)
    assert cache_work(traffic, dense).load == 32 * cache_work(traffic, long).load
    assert index_load(traffic, dense) == 0


def test_large_messages_cost_what_was_measured_of_them() -> None:
    line = Line(10.0, 100.0, beyond=((0.262144, 36.2144), (1.0, 50.0), (4.0, 80.0)))
    assert [line.at(mb * 1e6) for mb in (0.1, 1.0, 2.5, 4.0, 7.0)] == [20.0, 50.0, 65.0, 80.0, 110.0]


def test_link_files_are_what_the_tool_writes(tmp_path: Path) -> None:
    if not FACTS.is_dir():
        pytest.skip(f"measured collectives are not beside this checkout ({FACTS})")
    tool = runpy.run_path(str(ROOT / "tools" / "fit_links.py"))
    assert tool["main"]([str(FACTS / "allreduce.jsonl"), str(tmp_path)]) == 0
    for path in tmp_path.glob("*.yaml"):
        assert path.read_text("utf-8") == (ROOT / "knowledge" / "links" / path.name).read_text("utf-8")


@given(
    tp=st.sampled_from([1, 2, 4, 8]),
    pp=st.sampled_from([1, 2, 4]),
    draft=st.integers(0, 5),
    accept=st.floats(1.0, 6.0),
    overlap=st.booleans(),
    concurrency=st.integers(1, 64),
)
def test_the_range_holds_the_value(
    tp: int, pp: int, draft: int, accept: float, overlap: bool, concurrency: int
) -> None:
    setting = Setting(tp=tp, pp=pp, draft_steps=draft, overlap=overlap, concurrency=concurrency)
    for metric in (round_trips, token_latency):
        found = metric(prepare(QWEN_NVFP4, PRO6000, COSTS), setting, accept)
        assert found.known
        assert found.value is not None and found.low is not None and found.high is not None
        assert found.low <= found.value <= found.high


# Measured groups: the first row fixes t_layer, the rest is predicted.
# A case is (fact id, model, hardware, setting, accepted tokens).
Case = tuple[str, dict[str, Any], dict[str, Any], Setting, float | None]
NCCL4 = Setting(tp=4, context=512, kernel="flashinfer_cutlass")
SHOT4 = msgspec.structs.replace(NCCL4, allreduce="pcie_oneshot")
B12X4 = msgspec.structs.replace(SHOT4, kernel="b12x")
SPEC4 = msgspec.structs.replace(B12X4, draft_steps=4)
SPEC_V1 = msgspec.structs.replace(NCCL4, draft_steps=4, overlap=False)
TP8 = Setting(tp=8, context=1500, allreduce="custom")
LONG8 = msgspec.structs.replace(TP8, context=8500)
GROUPS: dict[str, list[Case]] = {
    "0.5.9, with and without MTP": [
        ("m00267", QWEN_NVFP4, PRO6000, NCCL4, None),
        ("m00241", QWEN_NVFP4, PRO6000, SPEC_V1, 3.39),
    ],
    "NCCL and one-shot": [
        ("m00428", QWEN_NVFP4, PRO6000, SHOT4, None),
        ("m00442", QWEN_NVFP4, PRO6000, SHOT4, None),
        ("m00429", QWEN_NVFP4, PRO6000, NCCL4, None),
        ("m00444", QWEN_NVFP4, PRO6000, NCCL4, None),
    ],
    "NCCL and one-shot, cross-check": [
        ("m00446", QWEN_NVFP4, PRO6000, NCCL4, None),
        ("m00447", QWEN_NVFP4, PRO6000, SHOT4, None),
    ],
    "b12x, with and without MTP": [
        ("m00318", QWEN_NVFP4, PRO6000, B12X4, None),
        ("m00296", QWEN_NVFP4, PRO6000, SPEC4, 3.39),
    ],
    "GLM-5 on eight": [
        ("m00450", GLM5_NVFP4, PRO6000, Setting(tp=8, context=512), None),
        ("m00451", GLM5_NVFP4, PRO6000, Setting(tp=8, context=512, allreduce="pcie_oneshot"), None),
    ],
    "DeepSeek-R1 by context": [
        ("m02167", DEEPSEEK_R1, B200, TP8, None),
        ("m02173", DEEPSEEK_R1, B200, LONG8, None),
    ],
    "Qwen3-235B by context": [
        ("m02331", QWEN3_235B, B200, TP8, None),
        ("m02337", QWEN3_235B, B200, LONG8, None),
    ],
}
ALONE: list[Case] = [("m02329", QWEN_BF16, H200, msgspec.structs.replace(TP8, draft_steps=3), 3.12)]


def measured_us() -> dict[str, float]:
    """Time per token by fact id: the inter-token time where stated, else the inverse throughput."""
    if not FACTS.is_dir():
        pytest.skip(f"measured throughputs are not beside this checkout ({FACTS})")
    with (FACTS / "measured.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return {
        r["id"]: 1e3 * r["tpot_ms"] if r.get("tpot_ms") else 1e6 / r["decode_tok_s"] for r in rows if r["decode_tok_s"]
    }


def predict(case: Case, costs: Costs) -> float:
    _, model, hardware, setting, accept = case
    found = token_latency(prepare(model, hardware, costs, "0.5.10"), setting, accept).value
    assert found is not None
    return found


def fit_layer(case: Case, measured: float) -> Costs:
    """Constants with the one overhead that makes the first row of a group exact."""

    def fixed(value: float) -> Costs:
        return msgspec.structs.replace(COSTS, layers=(LayerCost(value, value, value, ()),))

    at_zero, at_one = predict(case, fixed(0.0)), predict(case, fixed(1.0))
    return fixed((measured - at_zero) / (at_one - at_zero))


def kendall(pairs: list[tuple[float, float]]) -> float:
    signs = [(a[0] - b[0]) * (a[1] - b[1]) for a, b in combinations(pairs, 2)]
    ordered = [1 if s > 0 else -1 for s in signs if s]
    return sum(ordered) / len(ordered)


def test_groups_are_predicted_from_their_first_row() -> None:
    """Mean error at most 5%, no row off by more than 15%."""
    measured = measured_us()
    errors = []
    for cases in GROUPS.values():
        costs = fit_layer(cases[0], measured[cases[0][0]])
        errors += [predict(case, costs) / measured[case[0]] - 1 for case in cases[1:]]
    assert sum(map(abs, errors)) / len(errors) < 0.05, errors
    assert max(map(abs, errors)) < 0.15, errors


def test_stored_constants_rank_all_measured_rows() -> None:
    """The constants alone order launches of five checkpoints on three GPUs."""
    measured = measured_us()
    cases = [case for cases in GROUPS.values() for case in cases] + ALONE
    pairs = [(predict(case, COSTS), measured[case[0]]) for case in cases]
    assert kendall(pairs) > 0.8


def test_measured_values_lie_in_the_predicted_range() -> None:
    measured = measured_us()
    for name, model, hardware, setting, accept in [c for cases in GROUPS.values() for c in cases] + ALONE:
        found = token_latency(prepare(model, hardware, COSTS, "0.5.10"), setting, accept)
        assert found.low is not None and found.high is not None
        assert found.low * 0.9 < measured[name] < found.high * 1.1, (name, found, measured[name])


@pytest.mark.parametrize(
    ("machine", "like"),
    [
        ({"gpu": "l20", "link": "pcie", "sm": 89, "bandwidth_gbs": 864}, "l40s-pcie"),
        ({"gpu": "rtx-3090", "link": "pcie", "sm": 86, "bandwidth_gbs": 936}, "l40s-pcie"),
        ({"gpu": "h20", "link": "nvlink", "sm": 90, "bandwidth_gbs": 4000}, "a100-sxm-nvlink"),
        ({"gpu": "mi300x", "link": "xgmi", "sm": None, "bandwidth_gbs": 5300}, "a100-sxm-nvlink"),
    ],
)
def test_what_stands_in_for_an_unmeasured_link_is_told_and_widens_the_range(machine: dict[str, Any], like: str) -> None:
    found = latency(Setting(tp=8), QWEN_NVFP4, machine)
    assert f"links as {like}" in found.inputs["stand_ins"]
    assert found.value and found.low and found.high
    assert found.low < found.value < found.high
    assert "links" not in latency(Setting(tp=1), QWEN_NVFP4, machine).inputs.get("stand_ins", "")


def test_a_path_that_is_asked_for_has_no_stand_in() -> None:
    machine = {"gpu": "h20", "link": "nvlink", "sm": 90, "bandwidth_gbs": 4000}
    assert latency(Setting(tp=8, allreduce="mscclpp"), QWEN_NVFP4, machine).missing == ("all-reduce mscclpp on 8 GPUs",)


def test_cards_without_peer_access_pay_for_the_way_over_host_memory() -> None:
    card = {"gpu": "rtx-4090", "link": "pcie", "sm": 89, "bandwidth_gbs": 1008}
    peer = latency(Setting(tp=2), QWEN_NVFP4, {**card, "gpu": "rtx-6000-ada"}).value
    assert (latency(Setting(tp=2), QWEN_NVFP4, card).value or 0) > (peer or 0)
