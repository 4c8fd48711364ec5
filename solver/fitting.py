"""Sizes, a machine and the flags that decide memory -> how the pools come out, and whether a request fits.

Traits come without their namespace (`layers`, `memory_mib`). All functions are pure, and all figures are estimates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from solver.memory import (
    BYTES,
    GIB,
    compressed_bytes_per_token_per_gpu,
    draft_gib_per_gpu,
    kv_bytes_per_token_per_gpu,
    layer_bytes,
    resolved_kv_dtype,
    stage,
    state_bytes,
    state_bytes_per_request,
    weights_gib_per_gpu,
)

Values = Mapping[str, Any]
#: What a rank holds before its weights count: the CUDA context, and from two GPUs on NCCL and its buffers. The second
#: figure is solved from a public log (Qwen3-235B-A22B-FP8 on 4x H100, mem fraction 0.93: 367,404 tokens;
#: https://github.com/vllm-project/vllm/issues/21348), which gives 2.6; the first is an estimate.
OVERHEAD_GIB = (1.0, 2.5)
#: The same from two GPUs on where PCIe is the only link and the cards are small: GeForce and inference cards there have
#: no peer access, so NCCL sets up less. Measured: 4x L4 0.86 (QwQ-32B, tp 4, 21.63 GB free) and, over four nodes, 0.80;
#: 2x RTX 4090 1.06 (Qwen3.5-9B, tp 2, 22.93 GB free). Four RTX PRO 6000, which have peer access, take 2.0.
SMALL_PCIE_OVERHEAD_GIB = 1.1
SMALL_GIB = 32
SIZES = (1, 2, 4, 8, 16, 32, 64)
"""Tensor-parallel sizes that are tried for the smallest that fits."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The flags that decide memory, with the engine's defaults. `draft_tokens` 0 means no speculation.

    `kv_dtype` auto takes what the checkpoint declares, as the loader does; `max_running_requests` are those that must
    find room, per attention replica, `spec_requests` those for which the engine sets states of drafts aside (0: the
    same); `context` is the tokens that one request must be able to hold. `slots_per_request`: state slots that a
    running request takes. `draft_counted`: the draft is loaded before the pools are sized. `joint_states`: states of
    drafts come out of the recurrent share instead of coming off before it.
    """

    tp: int = 1
    pp: int = 1
    ep: int = 1
    attention_dp: int = 1
    mem_fraction_static: float = 0.88
    kv_dtype: str = "auto"
    ssm_dtype: str | None = None
    context: int = 4096
    max_running_requests: int = 1
    spec_requests: int = 0
    draft_tokens: int = 0
    mtp_draft: bool = True
    draft_counted: bool = False
    slots_per_request: int = 3
    joint_states: bool = False
    radix_cache: bool = True
    mamba_full_memory_ratio: float = 0.9
    max_mamba_cache_size: int | None = None
    swa_full_tokens_ratio: float = 0.8

    @property
    def attention_tp(self) -> int:
        return self.tp // self.attention_dp or 1

    @property
    def drafts(self) -> bool:
        return self.draft_tokens > 0 and self.mtp_draft


class Memory(msgspec.Struct, frozen=True):
    """What one GPU holds, in GiB, and what that serves. `fits` is the verdict, `short` says what is too large.

    `need_gib`: weights, draft, and states and cache of what must find room; `reserve_gib`: what `mem_fraction_static`
    leaves to activations, CUDA graphs and, where it is not counted, the draft; `states_short`: not one request finds
    its recurrent states.
    """

    fits: bool
    short: str | None
    have_gib: float
    need_gib: float
    static_gib: float
    reserve_gib: float
    weights_gib: float
    draft_gib: float
    kv_pool_gib: float
    state_pool_gib: float
    kv_tokens: int
    state_slots: int
    slots_per_request: int
    states_short: bool
    requests: int

    def figure(self, name: str) -> Any:
        """A field as it is shown and compared: GiB to two places."""
        value = getattr(self, name)
        return round(value, 2) if type(value) is float else value

    def figures(self) -> dict[str, Any]:
        """All fields, as `figure`."""
        return {name: self.figure(name) for name in self.__struct_fields__}


class Sizes(msgspec.Struct, frozen=True):
    """The sizes that `verdict` judges, GiB but for tokens and slots."""

    have: float
    static: float
    weights: float
    draft: float
    kv_pool: float
    state_pool: float
    tokens: int
    slots: int
    cell: float  # bytes of KV cache a token


def fits(model: Values, hardware: Values, settings: Settings) -> Memory:
    """Size the pools as the engine does and say whether one request of `context` tokens, beside the states of
    `max_running_requests`, finds room.

    static = memory before loading x mem_fraction_static; what the weights leave of it is divided between recurrent
    states and KV cache (SGLang 0.5.10, profile_max_num_token and handle_max_mamba_cache). From 0.5.14 on the draft's
    weights are loaded by then, and its layers cost KV cache of the same pool (model_runner_kv_cache_mixin.py,
    profile_max_num_token; pool_configurator.py, DefaultPoolConfigurator).
    """
    have = memory_before_loading(hardware, settings)
    weights = weights_gib_per_gpu(model, settings.tp, settings.pp, settings.ep, settings.attention_dp)
    static = have * settings.mem_fraction_static
    early = draft_gib_per_gpu(model, settings.tp) if settings.drafts and settings.draft_counted else 0.0
    slots, state_pool, rest = divide_pool(model, settings, static - weights - early)
    cell = pool_cell(model, settings)
    tokens = max(0, int(rest * GIB / cell)) if cell else 0
    draft = draft_gib_per_gpu(model, settings.tp, tokens, settings.kv_dtype) if settings.drafts else 0.0
    sizes = Sizes(have, static, weights, draft, max(rest, 0.0), state_pool, tokens, slots, cell)
    return verdict(model, settings, sizes)


def fitting_tp(model: Values, hardware: Values, settings: Settings) -> int | None:
    """The smallest tensor-parallel size above the present one that fits, expert parallelism growing with it."""
    for tp in SIZES:
        if tp > settings.tp:
            ep = settings.ep * tp // settings.tp if settings.ep > 1 else settings.ep
            if fits(model, hardware, msgspec.structs.replace(settings, tp=tp, ep=ep)).fits:
                return tp
    return None


def memory_before_loading(hardware: Values, settings: Settings) -> float:
    """GiB that a rank sees free before it loads weights."""
    total = hardware.get("memory_mib") or hardware["memory_gib"] * 1024
    alone = settings.tp * settings.pp == 1
    small = hardware.get("link") == "pcie" and total <= SMALL_GIB * 1024
    overhead = OVERHEAD_GIB[0] if alone else SMALL_PCIE_OVERHEAD_GIB if small else OVERHEAD_GIB[1]
    return float(max(0.0, total / 1024 - overhead))


def divide_pool(model: Values, settings: Settings, rest: float) -> tuple[int, float, float]:
    """(state slots, GiB of states, GiB left for the KV cache) from what the weights leave.

    The slots are given by a flag, or by the request limit when the radix cache is off, or by the ratio of state to KV
    memory. Beside them each running request keeps a state per draft token: for every request that may run, off the
    top (up to 0.5.12); or for those that the slots can serve, within the share of the states (SGLang 0.5.13,
    model_runner_kv_cache_mixin.py, handle_max_mamba_cache).
    """
    per_slot = state_bytes(model, settings.attention_tp, settings.ssm_dtype, settings.pp) / GIB
    if not per_slot:
        return 0, 0.0, rest
    drafts = settings.draft_tokens
    requests = settings.spec_requests // settings.attention_dp or settings.max_running_requests
    left = rest if settings.joint_states else rest - per_slot * requests * drafts
    ratio = settings.mamba_full_memory_ratio
    if settings.max_mamba_cache_size is not None:
        slots = settings.max_mamba_cache_size
    elif not settings.radix_cache:
        slots = settings.max_running_requests
    else:
        shared = drafts / settings.slots_per_request if settings.joint_states else 0.0
        slots = max(0, int(left * ratio / (1 + ratio) / (per_slot * (1 + shared))))
    if settings.joint_states:
        requests = min(requests, slots // settings.slots_per_request)
    states = (slots + requests * drafts) * per_slot
    return slots, states, rest - states


def pool_cell(model: Values, settings: Settings) -> float:
    """Bytes that a token takes in the pool: sliding layers keep `swa_full_tokens_ratio` of the tokens (SGLang 0.5.10,
    _resolve_hybrid_swa_tokens), and a counted draft adds its layers."""
    if model.get("compressed_layers"):
        return compressed_bytes_per_token_per_gpu(model, settings.swa_full_tokens_ratio, settings.drafts, settings.pp)
    cell = kv_bytes_per_token_per_gpu(model, settings.attention_tp, settings.kv_dtype, settings.pp)
    counted = settings.drafts and settings.draft_counted
    if model.get("sliding_layers") or counted:
        width = BYTES[resolved_kv_dtype(model, settings.kv_dtype)]
        full, sliding = layer_bytes(model, settings.attention_tp, width)
        cell -= sliding * stage(model.get("sliding_layers") or 0, settings.pp) * (1 - settings.swa_full_tokens_ratio)
        cell += full * (model.get("mtp_layers") or 0) if counted else 0.0
    return cell


def verdict(model: Values, settings: Settings, sizes: Sizes) -> Memory:
    tp, slots = settings.attention_tp, settings.slots_per_request
    per_request = state_bytes_per_request(model, tp, slots, settings.draft_tokens, settings.ssm_dtype, settings.pp)
    wanted = settings.max_running_requests * per_request / GIB
    by_state = sizes.slots // slots if per_request else None
    by_tokens = sizes.tokens // settings.context if settings.context else 0
    return Memory(
        fits=(short := shortage(settings, sizes, by_state)) is None,
        short=short,
        have_gib=sizes.have,
        need_gib=sizes.weights + sizes.draft + wanted + sizes.cell * settings.context / GIB,
        static_gib=sizes.static,
        reserve_gib=sizes.have - sizes.static,
        weights_gib=sizes.weights,
        draft_gib=sizes.draft,
        kv_pool_gib=sizes.kv_pool,
        state_pool_gib=sizes.state_pool,
        kv_tokens=sizes.tokens,
        state_slots=sizes.slots,
        slots_per_request=slots,
        states_short=bool(per_request) and sizes.weights < sizes.static and sizes.slots < slots,
        requests=by_tokens if by_state is None else min(by_tokens, by_state),
    )


def shortage(settings: Settings, sizes: Sizes, by_state: int | None) -> str | None:
    """What does not fit, the first in the order in which the engine would notice."""
    if sizes.weights >= sizes.static:
        return "weights"
    if by_state is not None and by_state < settings.max_running_requests:
        return "recurrent states"
    if sizes.tokens < settings.context:
        return "kv cache"
    late = sizes.draft if not settings.draft_counted else 0.0
    return "draft" if late > sizes.have - sizes.static else None
