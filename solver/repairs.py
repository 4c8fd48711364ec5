"""A request without a solution -> the launches that a small change leads to, ranked by what they cost the goal."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import msgspec

from solver.check import spelling
from solver.context import Context, resolver_for
from solver.engines.sat import SatEngine
from solver.goals import Goal, ban_name
from solver.solve import best_of, checked, choices_of, completed, errors_in, metrics_of, problem_of
from solver.words import say

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
    """The smallest sets of pins without which the rest holds together, small ones first."""
    rules = [lit for name, lit in engine.selectors.items() if name.startswith("rule:")]
    found: list[tuple[str, ...]] = []
    for size in range(1, MOST_DROPPED + 1):
        for dropped in combinations(soft, size):
            if any(set(f) <= set(dropped) for f in found):
                continue
            kept = [engine.selectors[n] for n in soft if n not in dropped]
            if engine.solve([*rules, *kept]) is not None:
                found.append(dropped)
    return found


def repaired(
    context: Context, goal: Goal, dropped: tuple[str, ...], add: dict[str, Any] | None = None
) -> Repair | None:
    keys = {name.split(":", 1)[1] for name in dropped}
    given = {k: v for k, v in context.facts.given.items() if f"flag.{k}" not in keys} | (add or {})
    env = {k: v for k, v in context.facts.env.items() if f"env.{k}" not in keys}
    facts = msgspec.structs.replace(context.facts, given=given, env=env)
    return _solved(context, msgspec.structs.replace(context, facts=facts), goal)


def _solved(before: Context, context: Context, goal: Goal, change: str | None = None) -> Repair | None:
    """The repaired launch, if it has a solution that the validator accepts."""
    problem = problem_of(context, goal)
    best = best_of(problem)
    if best is None:
        return None
    facts = completed(problem, best[0])
    result = checked(context, facts)
    if errors_in(result):
        return None
    changes = _changes(before, context, facts.given, facts.env)
    return Repair(
        changes=((change,) if change else ()) + changes,
        given=facts.given,
        env=facts.env,
        release=context.release,
        model=context.model_name,
        metrics=metrics_of(msgspec.structs.replace(context, facts=facts), result),
        costs=best[1],
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


def elsewhere(context: Context, goal: Goal) -> tuple[Repair, ...]:
    """Repairs that keep every pin: giving something up, another checkpoint of the same model, another release."""
    found = [*_given_up(context, goal), *_other_checkpoints(context, goal), *_other_releases(context, goal)]
    return (*_wishes_dropped(context, goal), *found)


def _wishes_dropped(context: Context, goal: Goal) -> list[Repair]:
    """Without one of the guards or bans that the request brought."""
    guards, bans = list(goal["guards"]), list(goal.get("bans", ()))
    fewer = [(g["title"], {**goal, "guards": [o for o in guards if o is not g]}) for g in guards if g.get("wish")]
    fewer += [(ban_name(b), {**goal, "bans": [o for o in bans if o is not b]}) for b in bans]
    return [r for title, g in fewer if (r := _solved(context, context, g, f"drop {title}"))]


def _given_up(context: Context, goal: Goal) -> list[Repair]:
    found = []
    for choice in choices_of(context, goal["levers"])[1]:
        for value in choice.values[1:]:
            repair = repaired(context, goal, (), {choice.name: value})
            if repair:
                found.append(repair)
    return sorted(found, key=lambda r: (r.costs, r.changes))


def _other_releases(context: Context, goal: Goal) -> list[Repair]:
    """The nearest newer verified release in which the request has a solution."""
    releases = [r.version for r in context.index.releases]
    newer = releases[releases.index(context.release) + 1 :]
    verified = {r.version for r in context.index.releases if r.verified}
    for release in newer:
        if release not in verified:
            continue
        resolver = resolver_for(context.store, release)
        if any(name not in resolver.program.flags for name in context.facts.given):
            continue
        facts = msgspec.structs.replace(context.facts, release=release)
        moved = msgspec.structs.replace(context, resolver=resolver, facts=facts, release=release)
        repair = _solved(context, moved, goal, f"use SGLang {release}")
        if repair:
            return [repair]
    return []


def _other_checkpoints(context: Context, goal: Goal) -> list[Repair]:
    """Other checkpoints of the same family in the catalogue."""
    family = context.facts.model.get("family")
    found = []
    for entry in context.index.models.values():
        if family is None or entry.family != family or entry.id == context.facts.model.get("id"):
            continue
        given = {k: v for k, v in context.facts.given.items() if k not in ("model_path", "quantization")}
        if entry.hub_ids and "model_path" in context.facts.given:
            given["model_path"] = entry.hub_ids[0]
        traits = {"id": entry.id, "family": entry.family, **entry.traits}
        facts = msgspec.structs.replace(context.facts, given=given, model=traits)
        moved = msgspec.structs.replace(context, facts=facts, model_name=entry.id)
        repair = _solved(context, moved, goal, f"serve {entry.hub_ids[0] if entry.hub_ids else entry.id}")
        if repair:
            changes = tuple(c for c in repair.changes if "model-path" not in c)
            found.append(msgspec.structs.replace(repair, changes=changes))
    return sorted(found, key=lambda r: (r.costs, r.changes))
