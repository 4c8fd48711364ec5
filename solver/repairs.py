"""A request without a solution -> the launches that a small change leads to, ranked by what they cost the goal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from solver.choices import Demand, opened_for
from solver.context import Context, resolver_for
from solver.engines.optimum import optimise
from solver.engines.sat import SatEngine, holds
from solver.facts import Facts
from solver.findings import spelling
from solver.goals import Goal
from solver.records import Traits
from solver.side_by_side import begin
from solver.solve import Problem, aimed, built, checked, completed, errors_in, metrics_of, with_kept
from solver.words import say

PIN, KEPT, ASKED = "pin:", "kept:", "asked:"
"""What a demand begins with that is a pin, something never given up unasked, or what a question wants."""

MOST_DROPPED = 3
"""Repairs change at most so many things."""
MOST_REPAIRS = 6


class Repair(msgspec.Struct, frozen=True):
    """One way out: what changes, the launch it leads to and its metrics."""

    changes: tuple[str, ...]
    given: dict[str, Any]
    env: dict[str, str]
    release: str
    model: str | None
    metrics: dict[str, Any]
    costs: tuple[float, ...]
    text: str | None = None


def corrections(engine: SatEngine, soft: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The smallest sets of `soft` demands without which all the rest holds together, small ones first.

    Each is found with no more dropped than need be, and from then on neither it nor more than it is dropped.
    """
    hard = [lit for name, lit in engine.selectors.items() if name not in soft]
    dropped = {name: -engine.selectors[name] for name in soft}
    found: list[tuple[str, ...]] = []
    for size in range(1, min(MOST_DROPPED, len(soft)) + 1):
        few = [engine.at_most(dropped.values(), size)] if size < len(soft) else []
        while (truth := engine.possible([*hard, *few])) is not None:
            way = tuple(name for name in soft if holds(truth, dropped[name]))
            hard.append(engine.either(engine.selectors[name] for name in way))
            found.append(way)
    return sorted(found, key=lambda way: (len(way), [soft.index(name) for name in way]))


def correction(engine: SatEngine, selectors: dict[str, int], held: Iterable[str], fixed: list[int]) -> list[str]:
    """Demands without which the rest holds together with `held`, none of which is there for nothing."""
    grown = set(held)
    for name in ("", *selectors):
        wanted = [selectors[n] for n in (*grown, name) if n]
        if name not in grown and (truth := engine.possible([*fixed, *wanted])) is not None:
            grown |= {n for n, literal in selectors.items() if holds(truth, literal)}
    return [n for n in selectors if n not in grown]


def repaired(context: Context, problem: Problem, engine: SatEngine, way: tuple[str, ...]) -> Repair | None:
    """The best launch without some demands, in the model in which all are open; None where it does not check."""
    found = optimise(engine, [lit for name, lit in engine.selectors.items() if name not in way])
    if found is None:
        return None
    dropped = [f"drop {name.removeprefix('rule:')}" for name in way if name.startswith("rule:")]
    before = msgspec.structs.replace(context, facts=with_kept(context.facts, problem.goal))
    return _checked(before, context, completed(problem, found[0]), found[1], dropped)


def solved_as(before: Context, context: Context, goal: Goal, demand: Demand | None, change: str) -> Repair | None:
    """The launch of a request with another release, checkpoint, machine or length, if it has one that checks."""
    ready = built(context, goal, [opened_for(context, demand)] if demand else ())
    if ready.builder.fixed:
        return None
    with SatEngine(ready.constraints()) as engine:
        if engine.possible([engine.one_of(demand.key, demand.values)] if demand else []) is None:
            return None
    problem = aimed(ready)
    with SatEngine(problem.model) as engine:
        best = optimise(engine, [engine.one_of(demand.key, demand.values)] if demand else ())
    before = msgspec.structs.replace(before, facts=with_kept(before.facts, goal))
    return _checked(before, context, completed(problem, best[0]), best[1], [change]) if best else None


def _checked(
    before: Context, context: Context, facts: Facts, costs: tuple[float, ...], changes: list[str]
) -> Repair | None:
    """A repaired launch with what changes, if the validator accepts it."""
    result = checked(context, facts)
    if errors_in(result):
        return None
    return Repair(
        changes=(*changes, *_changes(before, context, facts.given, facts.env)),
        given=facts.given,
        env=facts.env,
        release=context.release,
        model=context.model_name,
        metrics=metrics_of(msgspec.structs.replace(context, facts=facts), result),
        costs=costs,
    )


def _changes(before: Context, after: Context, given: dict[str, Any], env: dict[str, str]) -> tuple[str, ...]:
    """What happens to the pins: removed, changed, or (for what the solver never gives up unasked) added."""
    program = after.resolver.program
    lines = []
    for name, value in before.facts.given.items():
        if name not in given:
            lines.append(f"drop {spelling(program, name)} {say(value)}".replace(" true", ""))
        elif given[name] != value:
            lines.append(f"change {spelling(program, name)} from {say(value)} to {say(given[name])}")
    for name, text in before.facts.env.items():
        if env.get(name) != text:
            lines.append(f"drop {name}={text}" if name not in env else f"change {name} from {text} to {env[name]}")
    given_up = {lever["name"] for lever in program.levers if lever.get("gives_up")}
    lines += [f"add {spelling(program, n)}" for n in given if n in given_up and n not in before.facts.given]
    return tuple(lines)


def ranked(repairs: Iterable[Repair]) -> tuple[Repair, ...]:
    """Each way out once, by what it costs the goal."""
    found: dict[tuple[str, ...], Repair] = {}
    for repair in sorted(repairs, key=lambda r: (r.costs, len(r.changes), r.changes)):
        found.setdefault(repair.changes, repair)
    return tuple(found.values())[:MOST_REPAIRS]


def elsewhere(context: Context, goal: Goal, demand: Demand | None = None) -> Callable[[], list[Repair]]:
    """Begin to look for repairs that keep every pin: another checkpoint of the same model, another release."""
    works = [partial(_other_checkpoint, context, goal, demand, entry) for entry in _family(context)]
    results = begin([partial(_plainly, work) for work in (*works, partial(_other_release, context, goal, demand))])
    return lambda: [Repair(*fields) for fields in results() if fields is not None]


def _plainly(work: Callable[[], Repair | None]) -> tuple[Any, ...] | None:
    found = work()
    return None if found is None else msgspec.structs.astuple(found)


def _other_release(context: Context, goal: Goal, demand: Demand | None) -> Repair | None:
    """The nearest newer verified release in which the request has a solution."""
    releases = [r.version for r in context.index.releases]
    newer = releases[releases.index(context.release) + 1 :]
    verified = {r.version for r in context.index.releases if r.verified}
    for release in newer:
        if release not in verified:
            continue
        resolver = resolver_for(context.store, release)
        named = [f"flag.{name}" for name in context.facts.given] + ([demand.key] if demand else [])
        if any(key.split(".", 1)[1] not in resolver.program.flags for key in named if key.startswith("flag.")):
            continue
        facts = msgspec.structs.replace(context.facts, release=release)
        moved = msgspec.structs.replace(context, resolver=resolver, facts=facts, release=release)
        repair = solved_as(context, moved, goal, demand, f"use SGLang {release}")
        if repair:
            return repair
    return None


def _family(context: Context) -> list[Traits]:
    """Other checkpoints of the same family in the catalogue."""
    family, own = context.facts.model.get("family"), context.facts.model.get("id")
    return [e for e in context.index.models.values() if family is not None and e.family == family and e.id != own]


def _other_checkpoint(context: Context, goal: Goal, demand: Demand | None, entry: Traits) -> Repair | None:
    given = {k: v for k, v in context.facts.given.items() if k not in ("model_path", "quantization")}
    if entry.hub_ids and "model_path" in context.facts.given:
        given["model_path"] = entry.hub_ids[0]
    traits = {"id": entry.id, "family": entry.family, **entry.traits}
    facts = msgspec.structs.replace(context.facts, given=given, model=traits)
    moved = msgspec.structs.replace(context, facts=facts, model_name=entry.id)
    repair = solved_as(context, moved, goal, demand, f"serve {entry.hub_ids[0] if entry.hub_ids else entry.id}")
    if repair is None:
        return None
    return msgspec.structs.replace(repair, changes=tuple(c for c in repair.changes if "model-path" not in c))
