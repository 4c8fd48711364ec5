"""One layout of one model on one machine in; its collectives and the time of a pass, a draft step or a prompt out.

A pass is work (bytes, experts, arithmetic) on the busiest GPU, collectives on the critical path, and overhead per
layer. The formulas stand in docs/cost-model.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from solver.collectives import CENTRAL, HIGH, LOW, Collectives, Pick
from solver.constants import Costs, LayerCost, layer_cost
from solver.kernels import Kernel, Operation, Work, find_kernel, time_us
from solver.layout import Setting, cache_format
from solver.traffic import Asked, Traffic, cache_work, dense_work, draft_work, expert_work, index_load, state_traffic

ALL_REDUCES_PER_LAYER = 2  # after attention and after the MLP
ALL_REDUCES_PER_PASS = 1  # the vocabulary-parallel embedding; a trace of 60 layers shows 121
ALL_REDUCES_PER_DRAFT = 3
LAYERS_PER_DRAFT = 2  # one layer of the model plus the draft's own projection and head
ACTIVATION_BYTES = 2
GATHERS = ("all_gather", "reduce_scatter")
EXCHANGE_STEPS = 2  # dispatch and combine, each one direct write to every peer


class Prepared(msgspec.Struct, frozen=True):
    """One model on one machine under one release."""

    traffic: Traffic
    collectives: Collectives
    bandwidth: float  # bytes per us of one GPU, nominal; 0 when not known
    costs: Costs
    gpu: str | None
    sm: int | None
    release: str | None
    missing: tuple[str, ...]
    found: dict[tuple[str, str, str], Kernel | None] = {}
    """Kernel lines already looked for."""

    def kernel(self, op: Operation, name: str, form: str) -> Kernel | None:
        """The measured line of a kernel here."""
        key = (op, name, form)
        if key not in self.found:
            self.found[key] = find_kernel(self.costs.kernels, op, name, form, self.gpu, self.sm, self.release)
        return self.found[key]


class Call(msgspec.Struct, frozen=True):
    """So many equal collectives of one pass. `path`: what carries them; `size`: bytes of one."""

    count: int
    path: str
    gpus: int
    size: float
    steps: int


def calls_of(prepared: Prepared, setting: Setting, tokens: int) -> tuple[Call, ...]:
    """The collectives of a pass in which each request brings `tokens` tokens, pipeline sends left out."""
    layers = prepared.traffic.layers
    row = prepared.traffic.hidden * ACTIVATION_BYTES * tokens
    every, local = row * setting.requests, row * setting.rank_requests
    context = _context_calls(prepared, setting, tokens * setting.rank_requests)
    if setting.attention_dp <= 1 and setting.a2a == "none":
        count = ALL_REDUCES_PER_LAYER * layers + ALL_REDUCES_PER_PASS
        return (*_reduce(prepared, setting, count, every), *context)
    exchanged = prepared.traffic.moe_layers if setting.a2a != "none" else 0
    calls = [*context, *_reduce(prepared, setting, layers + ALL_REDUCES_PER_PASS, local, setting.attention_tp)]
    calls += _spread(prepared, setting, layers - exchanged, every)
    if exchanged:
        calls.append(Call(exchanged, setting.a2a, setting.ep, local * prepared.traffic.active, EXCHANGE_STEPS))
    return tuple(calls)


def _context_calls(prepared: Prepared, setting: Setting, tokens: int) -> Iterator[Call]:
    """With the KV cache of a request spread over ranks: queries to all of them, partial outputs back."""
    if setting.dcp > 1:
        traffic = prepared.traffic
        share = tokens * setting.dcp / setting.attention_tp * ACTIVATION_BYTES
        widths = zip(GATHERS, (traffic.query_elements, traffic.output_elements), strict=True)
        for name, elements in widths:
            used = prepared.collectives.algorithms[name]
            steps = used.transfer_steps(setting.dcp, 0)
            yield Call(traffic.cache_layers, name, setting.dcp, share * elements, steps)


def draft_calls(prepared: Prepared, setting: Setting) -> tuple[Call, ...]:
    """The collectives of one draft step."""
    row = prepared.traffic.hidden * ACTIVATION_BYTES
    if setting.attention_dp <= 1:
        return tuple(_reduce(prepared, setting, ALL_REDUCES_PER_DRAFT, row * setting.requests))
    local = _reduce(prepared, setting, ALL_REDUCES_PER_DRAFT - 1, row * setting.rank_requests, setting.attention_tp)
    return (*local, *_spread(prepared, setting, 1, row * setting.requests))


def _reduce(prepared: Prepared, setting: Setting, count: int, size: float, gpus: int | None = None) -> Iterator[Call]:
    gpus = setting.tp if gpus is None else gpus
    if gpus > 1:
        used = prepared.collectives.path(setting.allreduce, gpus, size, setting.cuda_graph)
        yield Call(count, used.id, gpus, size, used.transfer_steps(gpus, size))


def _spread(prepared: Prepared, setting: Setting, count: int, size: float) -> Iterator[Call]:
    """Rows of all attention replicas to every rank before the experts, and the sums back; one replica reduces them."""
    if setting.attention_dp <= 1:
        yield from _reduce(prepared, setting, count, size)
    elif count:
        for name in GATHERS:
            used = prepared.collectives.algorithms[name]
            yield Call(count, used.id, setting.tp, size, used.transfer_steps(setting.tp, size))


class Parts(msgspec.Struct):
    """Terms of one layout before a range is picked, and what could not be found."""

    experts: Work
    dense: Work
    cache: Work
    streamed: float  # bytes of recurrent states and of the indexer's keys
    calls: tuple[Call, ...]
    draft: tuple[Work, Work]
    draft_calls: tuple[Call, ...]
    overhead: LayerCost | None
    missing: list[str]


def gather(prepared: Prepared, setting: Setting) -> Parts:
    """Everything that the time of one step is made of."""
    traffic, requests = prepared.traffic, setting.rank_requests
    tokens = setting.requests * setting.verified
    asked = Asked(
        requests,
        setting.verified,
        setting.context,
        setting.attention_tp,
        setting.kv_dtype_bytes,
        setting.dcp,
        setting.sparse,
    )
    parts = Parts(
        experts=expert_work(traffic, tokens, setting.tp, setting.ep),
        dense=dense_work(traffic, tokens, setting.tp, setting.attention_tp),
        cache=cache_work(traffic, asked),
        streamed=state_traffic(traffic, requests, setting.verified, setting.attention_tp) + index_load(traffic, asked),
        calls=calls_of(prepared, setting, setting.verified),
        draft=draft_work(traffic, setting.requests, setting.tp, setting.ep),
        draft_calls=draft_calls(prepared, setting) if setting.draft_steps else (),
        overhead=layer_cost(prepared.costs.layers, prepared.sm),
        missing=[],
    )
    parts.missing += _gaps(prepared, setting, parts)
    return parts


def _gaps(prepared: Prepared, setting: Setting, parts: Parts) -> Iterator[str]:
    """Constants that the time needs and nobody measured."""
    yield from prepared.missing
    for path, gpus in sorted({(c.path, c.gpus) for c in (*parts.calls, *parts.draft_calls)}):
        if path == setting.a2a:
            if gpus != EXCHANGE_GPUS or prepared.kernel("a2a", path, "") is None:
                yield f"{path} exchange on {gpus} GPUs"
        elif (path, gpus) not in prepared.collectives.lines:
            yield f"{'all-reduce ' if path not in GATHERS else ''}{path} on {gpus} GPUs"
    if setting.pp > 1 and prepared.collectives.hop is None:
        yield "send between pipeline stages"
    if parts.overhead is None:
        yield f"t_layer on SM{prepared.sm}"
    if not setting.cuda_graph:
        yield "t_layer without CUDA graphs"
    if setting.draft_steps and not prepared.traffic.draft_known:
        yield "draft weights"
    if not setting.overlap and "host_step_us" not in prepared.costs.constants:
        yield "host time per step"


EXCHANGE_GPUS = 8
"""The sweeps of the expert exchange ran on one node of eight."""


class Clock:
    """Times of one layout at one end of the range, in us."""

    def __init__(self, prepared: Prepared, setting: Setting, parts: Parts, pick: Pick) -> None:
        self.prepared, self.setting, self.parts, self.pick = prepared, setting, parts, pick
        constant = prepared.costs.constants["bandwidth_factor"]
        self.factor = (constant.low, constant.value, constant.high)
        self.cache_format = cache_format(setting)

    def work(self, op: Operation, name: str, form: str, work: Work) -> float:
        line = self.prepared.kernel(op, name, form)
        return time_us(line, work, self.prepared.bandwidth, self.factor, self.pick)

    def weights(self, experts: Work, dense: Work) -> float:
        traffic = self.prepared.traffic
        time = self.work("experts", self.setting.kernel, traffic.expert_format, experts) if experts.load else 0.0
        return time + self.work("dense", "", traffic.dense_format, dense)

    def cache(self) -> float:
        op: Operation = "latent" if self.prepared.traffic.mla else "attention"
        time = self.work(op, self.setting.attention, self.cache_format, self.parts.cache)
        return time + time_us(None, Work(load=self.parts.streamed), self.prepared.bandwidth, self.factor, self.pick)

    def exchange(self, calls: tuple[Call, ...]) -> float:
        time = 0.0
        for call in calls:
            line = self.prepared.kernel("a2a", call.path, "") if call.path == self.setting.a2a else None
            if line is not None:
                one = (line.base_us + line.mb_us * call.size / 1e6) * line.at(self.pick)
            else:
                one = self.prepared.collectives.lines[call.path, call.gpus][self.pick].at(call.size)
            time += call.count * one
        return time

    def overhead(self, layers: float) -> float:
        """Launches, norms and routing of so many layers, the expert kernel's own part with them."""
        traffic, cost = self.prepared.traffic, self.parts.overhead
        assert cost is not None  # a gap has named it otherwise
        line = self.prepared.kernel("experts", self.setting.kernel, traffic.expert_format) if traffic.experts else None
        share = traffic.moe_layers / traffic.layers if traffic.layers else 0.0
        return layers * (cost.at(self.pick) + (line.base_us * share if line else 0.0))

    def hops(self, size: float) -> float:
        hop = self.prepared.collectives.hop
        return (self.setting.pp - 1) * hop[self.pick].at(size) if self.setting.pp > 1 and hop else 0.0

    def step(self) -> float:
        """One target pass with its draft steps."""
        setting, parts, constants = self.setting, self.parts, self.prepared.costs.constants
        time = self.weights(parts.experts, parts.dense) + self.cache() + self.exchange(parts.calls)
        time += self.overhead(self.prepared.traffic.layers)
        time += self.hops(self.prepared.traffic.hidden * ACTIVATION_BYTES * setting.requests * setting.verified)
        if setting.draft_steps:
            draft = time_us(None, parts.draft[0], self.prepared.bandwidth, self.factor, self.pick)
            draft += time_us(None, parts.draft[1], self.prepared.bandwidth, self.factor, self.pick)
            draft += self.overhead(LAYERS_PER_DRAFT) + constants["draft_host_us"].at(self.pick)
            time += setting.draft_steps * (draft + self.exchange(parts.draft_calls))
        return time if setting.overlap else time + constants["host_step_us"].at(self.pick)

    def prompt(self) -> float:
        """One request's prompt by itself, its attention left out."""
        setting, traffic = self.setting, self.prepared.traffic
        alone = msgspec.structs.replace(setting, concurrency=1, draft_steps=0, draft_tokens=0)
        experts = expert_work(traffic, setting.prompt, setting.tp, setting.ep)
        dense = dense_work(traffic, setting.prompt, setting.tp, setting.attention_tp)
        time = self.weights(experts, dense) + self.exchange(calls_of(self.prepared, alone, setting.prompt))
        size = traffic.hidden * ACTIVATION_BYTES * setting.prompt
        return time + self.overhead(traffic.layers) + self.hops(size)

    def token(self, accepted: float) -> float:
        """Time between two tokens of one request."""
        waiting = 0.0
        if self.setting.prompt and self.setting.output:
            waiting = (self.setting.requests - 1) / self.setting.output * self.prompt()
        return self.step() / accepted + waiting


PICKS: tuple[Pick, Pick, Pick] = (LOW, CENTRAL, HIGH)
