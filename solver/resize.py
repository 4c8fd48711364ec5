"""A request that asks for more than its machine or model has -> what would serve it: shorter requests, more GPUs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from solver.choices import Demand
from solver.context import Context
from solver.goals import Goal
from solver.repairs import Repair, solved_as
from solver.solve import with_link
from solver.traits.find import find_hardware

SHORTEST = 1024
"""Tokens below which no request is made shorter."""
COUNTS = (2, 4, 8, 16, 32)
"""How many GPUs of a kind are tried."""


def resized(context: Context, goal: Goal, demand: Demand | None = None) -> tuple[Repair, ...]:
    """The longest request that the machine serves, halving what was asked, and the fewest GPUs that serve it whole."""
    ways = (_shorter(context), _more(context))
    found = (next((r for c, change in way if (r := solved_as(context, c, goal, demand, change))), None) for way in ways)
    return tuple(repair for repair in found if repair)


def _shorter(context: Context) -> Iterator[tuple[Context, str]]:
    asked, longest = context.facts.request["context"], context.facts.model.get("max_context")
    if longest and longest < asked:
        yield _asking(context, longest)
    size = asked // 2
    while size >= SHORTEST:
        if not longest or size < longest:
            yield _asking(context, size)
        size //= 2


def _asking(context: Context, size: int) -> tuple[Context, str]:
    facts = msgspec.structs.replace(context.facts, request={**context.facts.request, "context": size})
    return msgspec.structs.replace(context, facts=facts), f"ask for requests of {size} tokens (--context {size})"


def _more(context: Context) -> Iterator[tuple[Context, str]]:
    """More GPUs of the same kind, for requests that are no longer than the model's context."""
    asked, longest = context.facts.request["context"], context.facts.model.get("max_context")
    base, change = _asking(context, longest) if longest and longest < asked else (context, "")
    hardware = context.facts.hardware
    for count in (n for n in COUNTS if hardware.get("gpu") and n > hardware["gpus"]):
        name = f"{count}x{hardware['gpu']}"
        facts = msgspec.structs.replace(base.facts, hardware=find_hardware(context.index, name))
        machine = with_link(msgspec.structs.replace(base, facts=facts, hardware_name=name))
        yield machine, "; ".join(part for part in (change, f"use {count} such GPUs (--hardware {name})") if part)
