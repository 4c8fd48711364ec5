"""A context and a goal's levers -> what the solver may choose, with the values it may give to each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from solver.conditions import Unknown, evaluator
from solver.context import Context
from solver.facts import State, typed_env
from solver.goals import Goal
from solver.grammar import fold_release, parse
from solver.symbolic import Choice
from solver.variables import same


def choices_of(context: Context, levers: Iterable[str]) -> tuple[tuple[Choice, ...], tuple[Choice, ...]]:
    """What the solver may choose, and what it never gives up unasked (open for repairs only)."""
    program, facts = context.resolver.program, context.facts
    free: list[Choice] = []
    kept: list[Choice] = []
    state = State(program, facts, {})
    wanted = set(levers)
    for lever in program.levers:
        if lever["name"] not in wanted:
            continue
        space, name = ("env", lever["name"][4:]) if lever["name"].startswith("env.") else ("flag", lever["name"])
        known = program.env if space == "env" else program.flags
        given = facts.env if space == "env" else facts.given
        if name not in known or name in given or not _applies(lever, state, program):
            continue
        values = _domain(lever, known[name], space, state, program)
        if len(values) > 1:
            (kept if lever.get("gives_up") else free).append(Choice(space, name, values))
    return tuple(free), tuple(kept)


def idle_levers(context: Context) -> frozenset[str]:
    """The levers that mean nothing for this model and machine."""
    program = context.resolver.program
    state = State(program, context.facts, {})
    return frozenset(lever["name"] for lever in program.levers if not _applies(lever, state, program))


def _applies(lever: dict[str, Any], state: State, program: Any) -> bool:
    return all(_evaluate(text, state, program) is True for text in lever.get("when", ()))


def _evaluate(text: str, state: State, program: Any) -> Any:
    from packaging.version import Version

    value = evaluator(fold_release(parse(text), Version, program.release), program.tables)(state)
    return value if type(value) is Unknown or not isinstance(value, bool | int) else bool(value)


def _domain(lever: dict[str, Any], form: Any, space: str, state: State, program: Any) -> tuple[Any, ...]:
    values = lever["values"]
    if values == "choices":
        values = list(form.choices or ())
    elif isinstance(values, dict):
        from packaging.version import Version

        node = fold_release(parse(values["expr"]), Version, program.release)
        values = evaluator(node, program.tables)(state)
        values = (
            []
            if values is None or type(values) is Unknown
            else list(values)
            if isinstance(values, list | tuple)
            else [values]
        )
    allowed = form.choices if space == "flag" and form.choices else None
    default = form.default if space == "flag" else None
    kept = [v for v in values if v not in lever.get("without", ()) and (allowed is None or v in allowed)]
    return (None, *(v for v in dict.fromkeys(kept) if v is not None and (v != default or type(v) is not type(default))))


def near(context: Context, goal: Goal, free: tuple[Choice, ...]) -> tuple[Choice, ...]:
    """The flags and variables of a starting command that the pins leave open: as they are, left out, or changed."""
    facts, program = context.facts, context.resolver.program
    values = {c.key: c.values for c in free}
    found = []
    for key, kept in goal.get("keep", {}).items():
        space, name = key.split(".", 1)
        known, pinned = (program.flags, facts.given) if space == "flag" else (program.env, facts.env)
        if name in known and name not in pinned:
            others = [v for v in values.get(key, ()) if v is not None and v != kept]
            found.append(Choice(space, name, (kept, None, *others)))
    return tuple(found)


class Demand(msgspec.Struct, frozen=True):
    """What a question wants of one flag or variable: one of some values (None: left out), said in words."""

    key: str
    values: tuple[Any, ...]
    text: str


def opened_for(context: Context, demand: Demand) -> Choice:
    """The choice that lets a flag or variable have what is demanded beside what it has."""
    space, name = demand.key.split(".", 1)
    pin = pin_of(context, demand.key)
    others = tuple(v for v in demand.values if v is not None and not (pin is not None and same(v, pin)))
    return Choice(space, name, (None, *others)) if pin is None else Choice(space, name, (pin, None, *others), True)


def joined(choices: Iterable[Choice], also: Iterable[Choice]) -> tuple[tuple[Choice, ...], list[tuple[str, Any]]]:
    """The choices with those of a question besides, and the (name, value) pairs that an answer itself may not take.

    A value that is asked about comes last, and a pin stays first: the answer is the one there would be without asking.
    """
    found = {c.key: c for c in choices}
    closed: list[tuple[str, Any]] = []
    for choice in also:
        if choice.pinned:
            found = {choice.key: choice, **{k: c for k, c in found.items() if k != choice.key}}
            closed += [(choice.key, v) for v in choice.values[1:]]
            continue
        before = found[choice.key].values if choice.key in found else (None,)
        more = tuple(v for v in choice.values if not any(same(v, b) for b in before))
        found[choice.key] = Choice(choice.space, choice.name, (*before, *more))
        closed += [(choice.key, v) for v in more]
    return tuple(found.values()), closed


def pin_of(context: Context, key: str) -> Any:
    """The value that the request gives a flag or variable; None where it gives none, or one that is never changed."""
    space, name = key.split(".", 1)
    facts, program = context.facts, context.resolver.program
    if space == "env":
        return typed_env(program.env[name], facts.env[name]) if name in facts.env and name in program.env else None
    value = facts.given.get(name) if name in program.flags else None
    return None if isinstance(value, list | dict) or name == "model_path" else value
