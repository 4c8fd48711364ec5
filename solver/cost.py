"""Model and hardware traits, constants and one layout in; transfer steps and time per generated token out.

The formulas stand in docs/cost-model.md (DESIGN section 6). `prepare` gathers what does not change between layouts, so
that a table of some hundred of them costs milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from solver.acceptance import Acceptance
from solver.collectives import CENTRAL, collect, find_link, find_stand_in
from solver.constants import Costs
from solver.kernels import Operation
from solver.layout import AllReduce, Setting, cache_format
from solver.passes import PICKS, Call, Clock, Prepared, calls_of, draft_calls, gather
from solver.traffic import read_traffic

__all__ = ["AllReduce", "Estimate", "Prepared", "Setting", "prepare", "round_trips", "token_latency"]

UNIT_STEPS = "transfer steps per token"
UNIT_TIME = "us per token"
UNIT_RATE = "tokens per second"

Accepted = float | Acceptance | None


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


def prepare(
    model: Mapping[str, Any], hardware: Mapping[str, Any], costs: Costs, release: str | None = None
) -> Prepared:
    """Fix model, machine and release (none: the newest forms hold)."""
    traffic = read_traffic(model)
    gpu, kind, sm = hardware.get("gpu"), hardware.get("link"), hardware.get("sm")
    link = find_link(costs.links, gpu, kind)
    stand_in = find_stand_in(costs.stand_ins, costs.links, gpu, kind)
    bandwidth = hardware.get("bandwidth_gbs")
    missing = traffic.missing + (() if bandwidth else ("hardware.bandwidth_gbs",))
    kind = kind or (link.link if link else None)
    return Prepared(
        traffic=traffic,
        collectives=collect(link, costs.algorithms, kind, sm, release, stand_in),
        bandwidth=(bandwidth or 0.0) * 1e3,
        costs=costs,
        gpu=gpu,
        sm=sm,
        release=release,
        missing=missing,
    )


def token_latency_us(
    model: Mapping[str, Any], hardware: Mapping[str, Any], setting: Setting, costs: Costs, accept: Accepted = None
) -> Estimate:
    """Time between two tokens of one request in us, prefill left out."""
    return token_latency(prepare(model, hardware, costs), setting, accept)


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
    calls = calls_of(prepared, setting, setting.verified)
    drafts = draft_calls(prepared, setting) if setting.draft_steps else ()
    draft_steps = setting.draft_steps * sum(c.count * c.steps for c in drafts)
    total = sum(c.count * c.steps for c in calls) + setting.pp - 1 + draft_steps
    worst, central, best, known = accepted_range(setting, accept)
    missing = tuple(name for name in prepared.traffic.missing if name in ("model.layers", "model.hidden"))
    inputs = {
        "collectives": sum(c.count for c in calls),
        "steps_per_collective": max((c.steps for c in calls), default=0),
        "path": _paths(calls),
        "draft_path": _paths(drafts),
        "pipeline_boundaries": setting.pp - 1,
        "draft_transfer_steps": draft_steps,
        "accepted": central,
    }
    if missing:
        return Estimate(None, None, None, UNIT_STEPS, inputs, False, missing)
    gap = () if known or not total else ("acceptance",)
    return Estimate(total / central, total / best, total / worst, UNIT_STEPS, inputs, not gap, gap)


def _paths(calls: tuple[Call, ...]) -> str:
    return ", ".join(dict.fromkeys(c.path for c in calls)) or "none"


def token_latency(prepared: Prepared, setting: Setting, accept: Accepted = None) -> Estimate:
    """(pass + draft steps + host) / accepted tokens, in us per token of one request."""
    parts = gather(prepared, setting)
    worst, central, best, known = accepted_range(setting, accept)
    inputs = {
        "pass_bytes_per_gpu": parts.experts.load + parts.dense.load + parts.cache.load + parts.streamed,
        "draft_bytes_per_gpu": parts.draft[0].load + parts.draft[1].load if setting.draft_steps else 0.0,
        "collective_bytes": max((c.size for c in parts.calls), default=0),
        "path": _paths(parts.calls),
        "accepted": central,
        "bandwidth_gbs": prepared.bandwidth / 1e3,
    }
    if stand_ins := "; ".join((*_link_stand_in(prepared, parts.calls, setting), *_stand_ins(prepared, setting))):
        inputs["stand_ins"] = stand_ins
    if parts.missing:
        return Estimate(None, None, None, UNIT_TIME, inputs, False, tuple(parts.missing))
    low, mid, high = (Clock(prepared, setting, parts, pick) for pick in PICKS)
    inputs["step_us"] = mid.step()
    gap = () if known else ("acceptance",)
    times = (mid.token(central), low.token(best), high.token(worst))
    return Estimate(*times, UNIT_TIME, inputs, known, gap)


def _link_stand_in(prepared: Prepared, calls: tuple[Call, ...], setting: Setting) -> Iterator[str]:
    """The link that is reckoned with in place of one that nobody measured, where GPUs talk to each other at all."""
    collectives = prepared.collectives
    unmeasured = setting.pp > 1 and collectives.borrowed and not calls
    if unmeasured or any((call.path, call.gpus) in collectives.borrowed for call in calls):
        yield f"links as {collectives.like}"


def _stand_ins(prepared: Prepared, setting: Setting) -> Iterator[str]:
    """The kernels that nobody measured here, each with what is reckoned in its place."""
    traffic = prepared.traffic
    used: list[tuple[Operation, str, str]] = [("dense", "", traffic.dense_format)]
    if traffic.experts:
        used.append(("experts", setting.kernel, traffic.expert_format))
    if traffic.cache_layers:
        used.append(("latent" if traffic.mla else "attention", setting.attention, cache_format(setting)))
    for op, name, form in used:
        line = prepared.kernel(op, name, form)
        what = " ".join(part for part in (op, name, form) if part)
        if line is None:
            yield f"{what} by its bytes"
        elif line.kernel not in ("", name) or line.format not in ("", form):
            yield f"{what} as {' '.join(part for part in (line.kernel, line.format) if part)}"


def token_us(prepared: Prepared, setting: Setting, accept: Accepted = None) -> float | None:
    """The central value of `token_latency`, None where it is not known: what a search asks for hundreds of times."""
    _, central, _, known = accepted_range(setting, accept)
    parts = gather(prepared, setting)
    return Clock(prepared, setting, parts, CENTRAL).token(central) if known and not parts.missing else None


def throughput(prepared: Prepared, setting: Setting, accept: Accepted = None) -> Estimate:
    """Tokens a second of all requests together: concurrency over the time between two tokens of one."""
    time = token_latency(prepared, setting, accept)

    def rate(us: float | None) -> float | None:
        return None if us is None else setting.concurrency * 1e6 / us

    return msgspec.structs.replace(
        time, value=rate(time.value), low=rate(time.high), high=rate(time.low), unit=UNIT_RATE
    )
