"""Model and hardware traits, constants and one layout in; transfer steps and time per generated token out.

The formulas stand in docs/cost-model.md (DESIGN section 6). `prepare` gathers what does not change between layouts, so
that a table of some hundred of them costs milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from solver.acceptance import Acceptance
from solver.collectives import CENTRAL, HIGH, LOW, Collectives, Pick, collect, find_link
from solver.constants import Costs, LayerCost, layer_cost
from solver.traffic import Traffic, context_bytes, draft_bytes, pass_bytes, read_traffic

ALL_REDUCES_PER_LAYER = 2  # after attention and after the MLP
ALL_REDUCES_PER_PASS = 1  # the vocabulary-parallel embedding; a trace of 60 layers shows 121
ALL_REDUCES_PER_DRAFT = 3
LAYERS_PER_DRAFT = 2  # one layer of the model plus the draft's own projection and head
ACTIVATION_BYTES = 2
UNIT_STEPS = "transfer steps per token"
UNIT_TIME = "us per token"

AllReduce = Literal["nccl", "custom", "mscclpp", "symm_mem", "fusion", "pcie_oneshot"]
Accepted = float | Acceptance | None


class Setting(msgspec.Struct, frozen=True):
    """One layout. `dp` counts whole replicas that share the requests; `kernel` is the MoE runner in force."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    draft_steps: int = 0
    draft_tokens: int = 0
    allreduce: AllReduce = "nccl"
    overlap: bool = True
    cuda_graph: bool = True
    concurrency: int = 1
    context: int = 4096
    kv_dtype_bytes: float = 2.0
    kernel: str = ""


class Estimate(msgspec.Struct, frozen=True):
    """An estimate with its range and inputs. `known` is false where a measured constant in `missing` does not exist;
    the value is then null, or a bound when only the acceptance is missing."""

    value: float | None
    low: float | None
    high: float | None
    unit: str
    inputs: dict[str, Any]
    known: bool = True
    missing: tuple[str, ...] = ()


class Prepared(msgspec.Struct, frozen=True):
    """One model on one machine under one release."""

    traffic: Traffic
    collectives: Collectives
    bandwidth: float  # bytes per us of one GPU, nominal; 0 when not known
    costs: Costs
    sm: int | None
    missing: tuple[str, ...]


def prepare(
    model: Mapping[str, Any], hardware: Mapping[str, Any], costs: Costs, release: str | None = None
) -> Prepared:
    """Fix model, machine and release (none: the newest forms hold)."""
    traffic = read_traffic(model)
    gpu, kind, sm = hardware.get("gpu"), hardware.get("link"), hardware.get("sm")
    link = find_link(costs.links, gpu, kind)
    bandwidth = hardware.get("bandwidth_gbs")
    missing = traffic.missing + (() if bandwidth else ("hardware.bandwidth_gbs",))
    kind = kind or (link.link if link else None)
    return Prepared(
        traffic=traffic,
        collectives=collect(link, costs.algorithms, kind, sm, release),
        bandwidth=(bandwidth or 0.0) * 1e3,
        costs=costs,
        sm=sm,
        missing=missing,
    )


def round_trips_per_token(
    model: Mapping[str, Any], hardware: Mapping[str, Any], setting: Setting, costs: Costs, accept: Accepted = None
) -> Estimate:
    """Sequential inter-GPU transfer steps per generated token."""
    return round_trips(prepare(model, hardware, costs), setting, accept)


def token_latency_us(
    model: Mapping[str, Any], hardware: Mapping[str, Any], setting: Setting, costs: Costs, accept: Accepted = None
) -> Estimate:
    """Time between two tokens of one request in us, prefill left out."""
    return token_latency(prepare(model, hardware, costs), setting, accept)


def tokens_per_pass(setting: Setting) -> int:
    """Tokens of one request that the target model verifies at once."""
    return max(setting.draft_tokens, setting.draft_steps + 1) if setting.draft_steps else 1


def requests_per_replica(setting: Setting) -> int:
    """Requests in a batch of the busiest replica."""
    return -(-setting.concurrency // setting.dp)


def accepted_range(setting: Setting, accept: Accepted) -> tuple[float, float, float, bool]:
    """Accepted tokens (pessimistic, central, optimistic) and whether they are known.

    Without a row a pass still yields one token and at most all of its drafts: a bound, whose value is the cautious end.
    """
    if not setting.draft_steps:
        return 1.0, 1.0, 1.0, True
    if isinstance(accept, Acceptance):
        return accept.low, accept.value, accept.high, True
    if accept is None:
        return 1.0, 1.0, setting.draft_steps + 1.0, False
    return accept, accept, accept, True


def round_trips(prepared: Prepared, setting: Setting, accept: Accepted = None) -> Estimate:
    """Transfer steps of a pass and its drafts over the accepted tokens; exact but for the acceptance."""
    traffic, tp, drafts = prepared.traffic, setting.tp, setting.draft_steps
    requests = requests_per_replica(setting)
    row = traffic.hidden * ACTIVATION_BYTES * requests
    per_pass = ALL_REDUCES_PER_LAYER * traffic.layers + ALL_REDUCES_PER_PASS
    steps = draft_steps = 0
    path = draft_path = "none"
    if tp > 1:
        size = row * tokens_per_pass(setting)
        used = prepared.collectives.path(setting.allreduce, tp, size, setting.cuda_graph)
        steps, path = used.transfer_steps(tp, size), used.id
        used = prepared.collectives.path(setting.allreduce, tp, row, setting.cuda_graph)
        draft_steps, draft_path = used.transfer_steps(tp, row), used.id
    total = per_pass * steps + setting.pp - 1 + drafts * ALL_REDUCES_PER_DRAFT * draft_steps
    worst, central, best, known = accepted_range(setting, accept)
    missing = tuple(name for name in traffic.missing if name in ("model.layers", "model.hidden"))
    inputs = {
        "all_reduces": per_pass if tp > 1 else 0,
        "steps_per_all_reduce": steps,
        "path": path,
        "draft_path": draft_path if drafts else "none",
        "pipeline_boundaries": setting.pp - 1,
        "draft_transfer_steps": drafts * ALL_REDUCES_PER_DRAFT * draft_steps,
        "accepted": central,
    }
    if missing:
        return Estimate(None, None, None, UNIT_STEPS, inputs, False, missing)
    gap = () if known or not total else ("acceptance",)
    return Estimate(total / central, total / best, total / worst, UNIT_STEPS, inputs, not gap, gap)


class _Parts(msgspec.Struct):
    """Terms of one layout that carry no range, and what could not be found."""

    pass_load: float
    draft_load: float
    size: float
    draft_size: float
    path: str
    draft_path: str
    layer: LayerCost | None
    missing: list[str]


def token_latency(prepared: Prepared, setting: Setting, accept: Accepted = None) -> Estimate:
    """(pass + draft steps + host) / accepted tokens, in us per token of one request."""
    parts = _gather(prepared, setting)
    worst, central, best, known = accepted_range(setting, accept)
    inputs = {
        "pass_bytes_per_gpu": parts.pass_load,
        "draft_bytes_per_gpu": parts.draft_load,
        "all_reduce_bytes": parts.size,
        "path": parts.path,
        "accepted": central,
        "bandwidth_gbs": prepared.bandwidth / 1e3,
    }
    if parts.missing:
        return Estimate(None, None, None, UNIT_TIME, inputs, False, tuple(parts.missing))
    low, mid, high = (_step_us(prepared, setting, parts, pick) for pick in (LOW, CENTRAL, HIGH))
    inputs["step_us"] = mid
    gap = () if known else ("acceptance",)
    return Estimate(mid / central, low / best, high / worst, UNIT_TIME, inputs, known, gap)


def _gather(prepared: Prepared, setting: Setting) -> _Parts:
    traffic, tp = prepared.traffic, setting.tp
    requests, verified = requests_per_replica(setting), tokens_per_pass(setting)
    tokens = requests * verified
    load = pass_bytes(traffic, tokens, tp, setting.ep)
    load += context_bytes(traffic, requests, setting.context, verified, tp, setting.kv_dtype_bytes)
    row = traffic.hidden * ACTIVATION_BYTES * requests
    path = _path(prepared, setting, row * verified)
    draft_path = _path(prepared, setting, row) if setting.draft_steps else "none"
    layer = layer_cost(prepared.costs.layers, setting.kernel, prepared.sm)
    drafts = draft_bytes(traffic, requests, tp, setting.ep) if setting.draft_steps else 0.0
    missing = list(_gaps(prepared, setting, {path, draft_path}, layer))
    return _Parts(load, drafts, row * verified, row, path, draft_path, layer, missing)


def _path(prepared: Prepared, setting: Setting, size: float) -> str:
    if setting.tp == 1:
        return "none"
    return prepared.collectives.path(setting.allreduce, setting.tp, size, setting.cuda_graph).id


def _gaps(prepared: Prepared, setting: Setting, paths: set[str], layer: LayerCost | None) -> list[str]:
    """Constants that the time needs and nobody measured."""
    gaps = list(prepared.missing)
    lines = prepared.collectives.lines
    gaps += [
        f"all-reduce {p} on {setting.tp} GPUs" for p in sorted(paths) if p != "none" and (p, setting.tp) not in lines
    ]
    if setting.pp > 1 and prepared.collectives.hop is None:
        gaps.append("send between pipeline stages")
    if layer is None:
        gaps.append(f"t_layer of {setting.kernel or 'the default kernels'} on SM{prepared.sm}")
    if not setting.cuda_graph:
        gaps.append("t_layer without CUDA graphs")
    if setting.draft_steps and not prepared.traffic.draft_known:
        gaps.append("draft weights")
    if not setting.overlap and "host_step_us" not in prepared.costs.constants:
        gaps.append("host time per step")
    return gaps


def _step_us(prepared: Prepared, setting: Setting, parts: _Parts, pick: Pick) -> float:
    """One target pass with its draft steps. Low time goes with high bandwidth."""
    constants, lines, layers = prepared.costs.constants, prepared.collectives.lines, prepared.traffic.layers
    assert parts.layer is not None  # _gaps has named it otherwise
    t_layer = parts.layer.at(pick)
    factor = constants["bandwidth_factor"]
    speed = prepared.bandwidth * (factor.high, factor.value, factor.low)[pick]
    time = parts.pass_load / speed + layers * t_layer
    if setting.tp > 1:
        line = lines[parts.path, setting.tp][pick]
        time += (ALL_REDUCES_PER_LAYER * layers + ALL_REDUCES_PER_PASS) * line.at(parts.size)
    if setting.pp > 1 and prepared.collectives.hop:
        time += (setting.pp - 1) * prepared.collectives.hop[pick].at(parts.size)
    if setting.draft_steps:
        draft = parts.draft_load / speed + LAYERS_PER_DRAFT * t_layer + constants["draft_host_us"].at(pick)
        if setting.tp > 1:
            draft += ALL_REDUCES_PER_DRAFT * lines[parts.draft_path, setting.tp][pick].at(parts.draft_size)
        time += setting.draft_steps * draft
    return time if setting.overlap else time + constants["host_step_us"].at(pick)
