"""A request without a solution -> a smallest conflict, who asked for each part of it, and the repairs by their cost."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from solver.choices import Demand, choices_of, pin_of
from solver.conditions import Unknown
from solver.context import Context
from solver.decisions import mentioned
from solver.engines.sat import SatEngine
from solver.findings import spelling
from solver.goals import Goal, ban_name
from solver.records import Fact
from solver.repairs import ASKED, KEPT, MOST_REPAIRS, PIN, Repair, correction, corrections, elsewhere, ranked, repaired
from solver.screening import names_of
from solver.solve import Problem, goal_of, problem_of, without
from solver.symbolic import Choice
from solver.variables import same
from solver.ways_out import mended, resized
from solver.words import fill, holes, say

SIZES = ("memory_gib", "memory_mib", "gpus")
"""Traits that say how large a machine is."""


class Member(msgspec.Struct, frozen=True):
    """One part of a conflict. `who`: you, asked (a question's own), model, hardware, release, goal, default."""

    who: str
    text: str
    rule: str | None = None


class Impossible(msgspec.Struct, frozen=True):
    """The answer to a solve request that has none."""

    members: tuple[Member, ...]
    repairs: tuple[Repair, ...]


def explain(context: Context, goal: str | Goal, demand: Demand | None = None) -> Impossible:
    """The smallest conflict of a request without solution, and its repairs in order of what they cost the goal.

    One model serves all of it: pins, bans, guards and what the solver never gives up are all open in it, and each is
    held by an assumption. Where it is the request's own guards and bans that leave nothing, they stand against the pins
    alone: the rules are given. Otherwise each rule is a part of the conflict. A demand is never dropped.
    """
    goal = goal_of(context, goal)
    others = elsewhere(context, goal, demand)
    opened = _opened(context, goal, demand)
    problem = problem_of(context, goal, opened)
    if problem.model.fixed_violations:
        members = _members(context, problem, (), (problem.model.fixed_violations[0],))
        return Impossible(members, ranked([*others(), *_around(context, goal, demand, members)]))
    asked = demand.key if demand else None
    kept = {c.key for c in problem.kept if c.key != asked and c.key not in goal.get("keep", {})}
    soft = {f"{PIN}{c.key}": (c.key, c.values[0]) for c in opened if c.pinned and c.key != asked}
    soft |= {f"{KEPT}{c.key}": (c.key, None) for c in opened if c.key in kept and not c.pinned}
    with SatEngine(problem.model, soft) as engine:
        if demand is not None:
            engine.selectors[f"{ASKED}{demand.text}"] = engine.one_of(demand.key, demand.values)
        members = _members(context, problem, *_core(engine, goal))
        ways = corrections(engine, _droppable(engine, goal))
        repairs = [repaired(context, problem, engine, way) for way in ways[: 2 * MOST_REPAIRS]]
    found = [r for r in repairs if r]
    return Impossible(members, ranked([*found, *others(), *_around(context, goal, demand, members, bool(found))]))


def _around(
    context: Context, goal: Goal, demand: Demand | None, members: tuple[Member, ...], found: bool = False
) -> list[Repair]:
    """Ways out beside the pins that a conflict suggests: a machine or length that fits, fixes that rules name."""
    ways: list[Repair] = []
    rules = tuple(m.rule for m in members if m.rule)
    if any(m.who == "goal" for m in members) or _of_size(context, rules):
        ways += resized(context, goal, demand)
    if not found:
        ways += mended(context, goal, demand, rules)
    return ways


def _of_size(context: Context, rules: tuple[str, ...]) -> bool:
    """Whether one of some rules looks at how large the machine is."""
    compiled = (rule for rule in context.resolver.program.rules if rule.id in rules)
    return any(("hardware", size) in names_of(rule) for rule in compiled for size in SIZES)


def _opened(context: Context, goal: Goal, demand: Demand | None) -> tuple[Choice, ...]:
    """Each pin, so that it can be kept, dropped or changed to what the solver could choose; what it never gives up
    unasked; and what is banned or asked about."""
    facts = context.facts
    keys = [f"flag.{n}" for n in facts.given] + [f"env.{n}" for n in facts.env]
    pins = {key: value for key in keys if (value := pin_of(context, key)) is not None}
    free, kept = choices_of(msgspec.structs.replace(context, facts=without(facts, pins)), goal["levers"])
    values = {c.key: c.values for c in (*free, *kept)}
    if demand:
        values[demand.key] = tuple(dict.fromkeys((None, *values.get(demand.key, ()), *demand.values)))
    banned = {f"{space}.{name}" for space, name, text in goal.get("bans", ()) if not text}
    found = []
    for key, pin in pins.items():
        others = (v for v in values.pop(key, ()) if v is not None and not same(v, pin))
        found.append(Choice(*_split(key), (pin, None, *others), pinned=True))
    unasked = {c.key for c in kept if c.key not in goal.get("keep", {})}
    open_too = {*banned, *unasked, *([demand.key] if demand else ())}
    found += [Choice(*_split(key), some) for key, some in values.items() if key in open_too]
    return tuple(found)


def _split(key: str) -> tuple[str, str]:
    space, _, name = key.partition(".")
    return space, name


def _wishes(goal: Goal) -> list[str]:
    """What the bans of the request's own guards and bans are called."""
    return [g["title"] for g in goal["guards"] if g.get("wish")] + [ban_name(b) for b in goal.get("bans", ())]


def _droppable(engine: SatEngine, goal: Goal) -> tuple[str, ...]:
    """Demands that a repair may drop: pins and wishes, and what the solver never gives up unasked."""
    wishes = {f"rule:{title}" for title in _wishes(goal)}
    return tuple(n for n in engine.selectors if n.startswith((PIN, KEPT)) or n in wishes)


def _core(engine: SatEngine, goal: Goal) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The demands and the rules of a smallest conflict, with what it needs of the things that are never given up."""
    wishes = {f"rule:{title}" for title in _wishes(goal)}
    names = engine.selectors
    kept = [n for n in names if n.startswith(KEPT)]
    rules = [n for n in names if n.startswith("rule:") and n not in wishes]
    rest = [n for n in names if n not in wishes and n not in kept and n not in rules]
    by_wishes = wishes and engine.solve([names[n] for n in (*rules, *kept, *rest)]) is not None
    soft = [n for n in names if n in rest or n in (wishes if by_wishes else rules)]
    fixed = [names[n] for n in (*(rules if by_wishes else ()), *kept)]
    core = smallest(engine, {n: names[n] for n in soft}, fixed)
    held = [names[n] for n in (*core, *(rules if by_wishes else ()))]
    needed = [k for k in kept if engine.solve([*held, *(names[o] for o in kept if o != k)]) is not None]
    demands = (*(n for n in core if not n.startswith("rule:")), *needed)
    return demands, tuple(n.removeprefix("rule:") for n in core if n.startswith("rule:"))


# ------------------------------------------------------------------ conflict


def smallest(engine: SatEngine, selectors: dict[str, int], fixed: Iterable[int] = ()) -> tuple[str, ...]:
    """A conflict with the fewest members: hitting sets of the corrections found so far, until one refuses by itself.

    `fixed`: literals that hold in any case.
    """
    from pysat.examples.hitman import Hitman

    fixed = list(fixed)
    numbers = {name: i for i, name in enumerate(selectors, 1)}
    names = {i: name for name, i in numbers.items()}
    with Hitman(solver="g4", htype="sorted") as hitting:
        while True:
            found = hitting.get() or []
            chosen = {names[i] for i in found}
            if engine.solve([*fixed, *(selectors[n] for n in chosen)]) is None:
                return tuple(n for n in selectors if n in chosen)
            hitting.hit([numbers[n] for n in correction(engine, selectors, chosen, fixed)])


def _filled(problem: Problem, template: str) -> str:
    """The sentence of a guard with what the request says of model, machine and itself."""
    values = {name: problem.builder.state.get(*name.split(".", 1)) for name in holes(template) if "." in name}
    return fill(template, {name: value for name, value in values.items() if type(value) is not Unknown})


def _members(
    context: Context, problem: Problem, demands: tuple[str, ...], rules: tuple[str, ...]
) -> tuple[Member, ...]:
    program = context.resolver.program
    levers = {lever["name"]: lever.get("gives_up") for lever in program.levers}
    members, defaults = [], []
    for name in demands:
        kind, what = name.split(":", 1)
        space, _, flag = what.partition(".")
        if kind + ":" == ASKED:
            members.append(Member("asked", what))
        elif kind + ":" == KEPT:
            defaults.append(Member("default", f"{spelling(program, flag)} is left out (with it, {levers[flag]})"))
        else:
            value = context.facts.given.get(flag) if space == "flag" else context.facts.env.get(flag)
            text = f"{spelling(program, flag)} {say(value)}" if space == "flag" else f"{flag}={value}"
            members.append(Member("you", text))
    used: dict[str, Fact] = {}
    texts = []
    compiled_rules = {r.id: r for r in program.rules}
    for rule_id in rules:
        compiled = compiled_rules.get(rule_id)
        if compiled is None:  # a guard or a ban
            own = {guard["title"]: guard for guard in problem.goal["guards"] if not guard.get("wish")}
            says = own[rule_id].get("says") or rule_id if rule_id in own else rule_id
            texts.append(Member("goal" if rule_id in own else "you", _filled(problem, says)))
            continue
        for space, name in mentioned(compiled):
            if space in ("model", "hardware"):
                value = problem.builder.state.get(space, name)
                if type(value) is not Unknown:  # what nobody knows refuses nothing
                    used[f"{space}.{name}"] = Fact(f"{space}.{name}", value, "trait")
        rule = context.store.rule(rule_id)
        texts.append(Member("release", f"SGLang {context.release}: {rule.title if rule else rule_id}", rule_id))
    members += defaults
    names = {"model": context.model_name, "hardware": context.hardware_name}
    for space in ("model", "hardware"):
        facts = [f"{n} is {say(f.value)}" for n, f in sorted(used.items()) if n.startswith(f"{space}.")]
        if facts:
            members.append(Member(space, f"{names[space]}: {', '.join(facts)}"))
    return (*members, *texts)
