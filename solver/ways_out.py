"""A request without an answer -> ways out beside its pins: shorter requests, more GPUs, what rules name as fixes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from solver.choices import Demand
from solver.context import Context
from solver.findings import spelling
from solver.goals import Goal
from solver.records import Fix
from solver.repair import apply_fix, editable
from solver.repairs import Repair, solved_as
from solver.solve import with_link
from solver.traits.find import find_hardware
from solver.words import say

SHORTEST = 1024
"""Tokens below which no request is made shorter."""
COUNTS = (2, 4, 8, 16, 32)
"""How many GPUs of a kind are tried."""


def resized(context: Context, goal: Goal, demand: Demand | None = None) -> tuple[Repair, ...]:
    """The longest request that the machine serves, halving what was asked, and the fewest GPUs that serve it whole."""
    ways = (_shorter(context), _more(context))
    found = (next((r for c, change in way if (r := solved_as(context, c, goal, demand, change))), None) for way in ways)
    return tuple(repair for repair in found if repair)


def mended(context: Context, goal: Goal, demand: Demand | None, rules: Iterable[str]) -> tuple[Repair, ...]:
    """What the rules of a conflict name as their fixes, where those set something that no goal touches."""
    found = [_fixed(context, goal, demand, fix) for name in rules for fix in _fixes(context, name)]
    return tuple(repair for repair in found if repair)


def _fixes(context: Context, name: str) -> tuple[Fix, ...]:
    rule = context.store.rule(name)
    return tuple(fix for fix in rule.fix if editable(fix) and (fix.set or fix.env)) if rule else ()


def _fixed(context: Context, goal: Goal, demand: Demand | None, fix: Fix) -> Repair | None:
    program = context.resolver.program
    if not all(name in program.flags for name in fix.set) or not all(name in program.env for name in fix.env):
        return None
    given = [
        f"{spelling(program, name)} {say(v)}".removesuffix(" true") for name, v in fix.set.items() if v is not None
    ]
    given += [f"{name}={text}" for name, text in fix.env.items()]
    moved = msgspec.structs.replace(context, facts=apply_fix(context.facts, fix))
    return solved_as(context, moved, goal, demand, f"give {' '.join(given)}") if given else None


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
