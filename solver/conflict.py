"""A request without a solution -> a smallest conflict, who asked for each part of it, and the repairs by their cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from solver.check import spelling
from solver.context import Context
from solver.decisions import mentioned
from solver.engines.sat import SatEngine
from solver.facts import typed_env
from solver.goals import Goal, ban_name, unguarded
from solver.records import Fact
from solver.repairs import MOST_REPAIRS, Repair, corrections, elsewhere, ranked, repaired
from solver.solve import Problem, best_of, choices_of, goal_of, problem_of, without
from solver.symbolic import Choice
from solver.words import say


class Member(msgspec.Struct, frozen=True):
    """One part of a conflict. `who`: you, model, hardware, release, default."""

    who: str
    text: str
    rule: str | None = None


class Impossible(msgspec.Struct, frozen=True):
    """The answer to a solve request that has none."""

    members: tuple[Member, ...]
    repairs: tuple[Repair, ...]


def explain(context: Context, goal: str | Goal) -> Impossible:
    """The smallest conflict of a request without solution, and its repairs in order of what they cost the goal.

    Where it is the request's own guards and bans that leave nothing, they stand against the pins alone: the rules are
    given. Otherwise each rule is a part of the conflict.
    """
    goal = goal_of(context, goal)
    wishes = {guard["title"] for guard in goal["guards"] if guard.get("wish")} | set(
        map(ban_name, goal.get("bans", ()))
    )
    if wishes and best_of(problem_of(context, unguarded(goal))):
        return _explained(context, goal, wishes)
    return _explained(context, unguarded(goal), None)


def _explained(context: Context, goal: Goal, soft_bans: set[str] | None) -> Impossible:
    problem = problem_of(context, goal, free_pins=_pins(context, goal))
    soft = _soft(context, goal)
    if problem.model.fixed_violations:
        members = _members(context, problem, (), (problem.model.fixed_violations[0],))
        return Impossible(members, ranked(elsewhere(context, goal)))
    with SatEngine(problem.model, soft, soft_bans) as engine:
        core = smallest(engine, engine.selectors)
        rules = tuple(n.removeprefix("rule:") for n in core if n.startswith("rule:"))
        members = _members(context, problem, tuple(n for n in core if not n.startswith("rule:")), rules)
        ways = corrections(engine, tuple(soft))
    repairs = [r for c in ways[: 2 * MOST_REPAIRS] if (r := repaired(context, goal, c))]
    return Impossible(members, ranked([*repairs, *elsewhere(context, goal)]))


def _pins(context: Context, goal: Goal) -> tuple[Choice, ...]:
    """Each pin as something choosable, so that it can be kept, dropped or changed to what the solver could choose."""
    facts, program = context.facts, context.resolver.program
    keys = [f"flag.{n}" for n, v in facts.given.items() if n in program.flags and not isinstance(v, list | dict)]
    keys += [f"env.{n}" for n in facts.env if n in program.env]
    open_context = msgspec.structs.replace(context, facts=without(facts, keys))
    free = {c.key: c.values for c in choices_of(open_context, goal["levers"])[0]}
    found = []
    for key in keys:
        space, name = key.split(".", 1)
        value = facts.given[name] if space == "flag" else typed_env(program.env[name], facts.env[name])
        others = [v for v in free.get(key, (None,)) if v is not None and v != value]
        if value is not None and name != "model_path":
            found.append(Choice(space, name, (value, None, *others)))
    return tuple(found)


def _soft(context: Context, goal: Goal) -> dict[str, tuple[str, Any]]:
    """Demands that may be dropped: each pin keeps its value."""
    return {f"pin:{c.key}": (c.key, c.values[0]) for c in _pins(context, goal)}


# ------------------------------------------------------------------ conflict


def minimal(engine: SatEngine, selectors: dict[str, int], fixed: Iterable[int] = ()) -> tuple[str, ...]:
    """A set of demands that cannot hold together, of which none can be left out, in the order of `selectors`."""
    fixed = list(fixed)
    names = {lit: name for name, lit in selectors.items()}
    core = engine.refuted([*fixed, *selectors.values()])
    kept = [names[lit] for lit in core if lit in names]
    for name in list(kept):
        rest = [n for n in kept if n != name]
        if engine.solve([*fixed, *(selectors[n] for n in rest)]) is None:
            kept = rest
    return tuple(n for n in selectors if n in kept)


def smallest(engine: SatEngine, selectors: dict[str, int]) -> tuple[str, ...]:
    """A conflict with the fewest members: hitting sets of the corrections found so far, until one refuses by itself."""
    from pysat.examples.hitman import Hitman

    numbers = {name: i for i, name in enumerate(selectors, 1)}
    names = {i: name for name, i in numbers.items()}
    with Hitman(solver="g4", htype="sorted") as hitting:
        while True:
            found = hitting.get() or []
            chosen = {names[i] for i in found}
            if engine.solve([selectors[n] for n in chosen]) is None:
                return tuple(n for n in selectors if n in chosen)
            grown = set(chosen)
            for name in selectors:
                if name not in grown and engine.solve([selectors[n] for n in (*grown, name)]) is not None:
                    grown.add(name)
            hitting.hit([numbers[n] for n in selectors if n not in grown])


def _members(context: Context, problem: Problem, pins: tuple[str, ...], rules: tuple[str, ...]) -> tuple[Member, ...]:
    program = context.resolver.program
    members = []
    for name in pins:
        key = name.split(":", 1)[1]
        space, flag = key.split(".", 1)
        value = context.facts.given.get(flag) if space == "flag" else context.facts.env.get(flag)
        members.append(
            Member("you", f"{spelling(program, flag)} {say(value)}" if space == "flag" else f"{flag}={value}")
        )
    used: dict[str, Fact] = {}
    texts = []
    compiled_rules = {r.id: r for r in program.rules}
    for rule_id in rules:
        compiled = compiled_rules.get(rule_id)
        if compiled is None:  # a guard or a ban
            own = {guard["title"] for guard in problem.goal["guards"] if not guard.get("wish")}
            texts.append(Member("goal" if rule_id in own else "you", rule_id))
            continue
        for space, name in mentioned(compiled):
            if space in ("model", "hardware"):
                used[f"{space}.{name}"] = Fact(f"{space}.{name}", problem.builder.state.get(space, name), "trait")
        rule = context.store.rule(rule_id)
        texts.append(Member("release", f"SGLang {context.release}: {rule.title if rule else rule_id}", rule_id))
    members += _kept_defaults(context, problem, rules)
    names = {"model": context.model_name, "hardware": context.hardware_name}
    for space in ("model", "hardware"):
        facts = [f"{n} is {say(f.value)}" for n, f in sorted(used.items()) if n.startswith(f"{space}.")]
        if facts:
            members.append(Member(space, f"{names[space]}: {', '.join(facts)}"))
    return (*members, *texts)


def _kept_defaults(context: Context, problem: Problem, rules: tuple[str, ...]) -> list[Member]:
    """What the conflict rests on that nobody asked for: the engine's defaults that are never given up unasked."""
    program = context.resolver.program
    looked_at = {name for r in program.rules if r.id in rules for space, name in mentioned(r) if space == "flag"}
    levers = {lever["name"]: lever.get("gives_up") for lever in program.levers}
    kept = [c.name for c in problem.kept if c.name in looked_at and c.name not in context.facts.given]
    return [Member("default", f"{spelling(program, n)} is left out (with it, {levers[n]})") for n in kept]
