"""An answer and one flag of it -> the whole chain of reasons: who put its value there, because of what, and what else.

For a flag that is given: the pin, or the rules that refuse it otherwise with the facts they look at, or what each other
value would cost at best. For one that is not: the value in force and each rule that made it so. Flags that a reason
rests on follow with their own reasons.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from solver.answer import Answered
from solver.constraints import Assignment, cost, evaluate, violated
from solver.engines.optimum import optimise
from solver.pipeline import trace
from solver.records import Fact
from solver.rivals import LevelChange, deciding, level_changes
from solver.solve import Reason, checked, completed
from solver.variables import same

NOT_A_REASON = ("default", "unknown", "computed", "request")
"""Origins of facts that say nothing by themselves."""


class Cause(msgspec.Struct, frozen=True):
    """A rule (or a guard or ban of the request) at work: what it refuses or writes, because of which facts.

    `before` and `after`: the values where it writes one.
    """

    rule: str
    title: str
    because: tuple[Fact, ...] = ()
    writes: bool = False
    before: Any = None
    after: Any = None


class Other(msgspec.Struct, frozen=True):
    """Another value (None: left out), with all else free. `possible`: some launch has it; `refused`: what refuses it
    while all else stays; `level`: where its best launch is worse, None where that is as good."""

    value: Any
    possible: bool
    refused: tuple[str, ...]
    level: LevelChange | None


class Why(msgspec.Struct, frozen=True):
    """One flag or variable. `given`: what the answer gives it (None: nothing); `kind` as in `Reason`; `by`: who.

    `rests_on`: the reasons of other flags of the answer that the causes look at.
    """

    key: str
    given: Any
    in_force: Any
    kind: str
    by: str
    text: str
    causes: tuple[Cause, ...] = ()
    others: tuple[Other, ...] = ()
    rests_on: tuple[Why, ...] = ()


def why(answered: Answered, key: str) -> Why:
    """The chain of reasons of one flag or variable; each other flag that it rests on is there once."""
    return _why(answered, key, {key}, whole=True)


def _why(answered: Answered, key: str, seen: set[str], whole: bool) -> Why:
    space, name = key.split(".", 1)
    answer = answered.solution
    given = answer.given.get(name) if space == "flag" else answer.env.get(name)
    state = answer.result.outcomes[0].state
    reason = next((r for r in answer.reasons if r.flag == key), None)
    others = _others(answered, key, whole)
    causes = (*_refusals(answered, key, others), *_writes(answered, space, name))
    if reason is None:
        reason = _unasked(answered, key, state.origin(space, name))
    below = [k for k in _flags_in(answered, causes) if k not in seen]
    seen |= set(below)
    return Why(
        key=key,
        given=given,
        in_force=state.get(space, name),
        kind=reason.kind,
        by=reason.by,
        text=reason.text,
        causes=causes,
        others=others if whole else (),
        rests_on=tuple(_why(answered, k, seen, whole=False) for k in below),
    )


def _unasked(answered: Answered, key: str, origin: str) -> Reason:
    """Why a flag that the answer does not give has the value it has."""
    name = key.split(".", 1)[1]
    program = answered.problem.context.resolver.program
    levers = {f"{'' if o['name'].startswith('env.') else 'flag.'}{o['name']}": o for o in program.levers}
    chosen = {c.key for c in answered.problem.choices}
    if origin not in ("default", "given"):
        return Reason(key, None, "rule", origin, f"not given; {origin} makes it so")
    gives_up = levers.get(key, {}).get("gives_up")
    if gives_up:
        text = f"not given; never given unasked, since with it {gives_up}"
    elif key in chosen:
        text = "not given; the engine's own default is kept"
    else:
        text = f"not given; the engine's own default, and {name} is nothing that this goal chooses"
    return Reason(key, None, "default", "default", text)


def _others(answered: Answered, key: str, at_best: bool) -> tuple[Other, ...]:
    """Every other value that the solver could choose, and (`at_best`) what the best launch with it would cost."""
    problem, engine, best = answered.problem, answered.engine, answered.best
    if key not in problem.model.base or any(c.key == key and c.pinned for c in problem.choices):
        return ()
    base = {name: best[name] for name in problem.model.base}
    written = answered.solution.given.get(key.removeprefix("flag."))
    closed = [value for name, value in problem.closed if name == key]
    found = []
    for value in problem.model.variables[key].domain:
        if any(same(value, taken) for taken in (best[key], written, *closed)):
            continue
        refused = violated(problem.model, evaluate(problem.model, {**base, key: value}))
        reached = optimise(engine, [*answered.held, engine.literal(key, value)]) if at_best else None
        level = _worse(answered, reached[0]) if reached else None
        found.append(Other(value, reached is not None, tuple(dict.fromkeys(refused)), level))
    return tuple(found)


def _worse(answered: Answered, values: Assignment) -> LevelChange | None:
    """The level at which a launch falls behind the answer."""
    problem = answered.problem
    level, better = deciding(problem, answered.solution.costs, values)
    if level is None or better:
        return None
    changes = {c.title: c for c in level_changes(problem, answered.best, values)}
    same_figure = (c for c in changes.values() if c.figure and c.figure == level.figure)
    return changes.get(level.title) or next(same_figure, None) or _plain(level, answered.best, values)


def _plain(level: Any, before: Assignment, after: Assignment) -> LevelChange:
    here, there = cost(level, before), cost(level, after)
    return LevelChange(level.title, level.figure, here, there, there - here, True)


def _refusals(answered: Answered, key: str, others: Iterable[Other]) -> tuple[Cause, ...]:
    """The rules that refuse the launch with this flag left out or, where that is no refusal, with its other values."""
    problem, context = answered.problem, answered.problem.context
    refusing = [o for o in others if o.refused]
    left_out = [o for o in refusing if o.value is None]
    found: dict[str, Cause] = {}
    for other in left_out or (refusing if all(o.refused for o in others) else []):
        base = {name: answered.best[name] for name in problem.model.base}
        values = evaluate(problem.model, {**base, key: other.value})
        findings = {f.rule: f for f in checked(context, completed(problem, values)).findings}
        for rule in other.refused:
            finding = findings.get(rule)
            cause = Cause(rule, finding.title, _telling(finding.because)) if finding else Cause(rule, rule)
            found.setdefault(rule, cause)
    return tuple(found.values())


def _writes(answered: Answered, space: str, name: str) -> tuple[Cause, ...]:
    """The rules that changed the value in force, in order, each with the facts it looked at."""
    context = answered.problem.context
    found = []
    for traced in trace(context.resolver, answered.solution.facts, context.estimates, space, name):
        rule = context.store.rule(traced.write.rule)
        title = rule.title if rule else traced.write.rule
        write = traced.write
        found.append(Cause(write.rule, title, _telling(traced.because), True, write.before, write.after))
    return tuple(found)


def _telling(because: Iterable[Fact]) -> tuple[Fact, ...]:
    return tuple(f for f in because if f.origin not in NOT_A_REASON and f.value is not None)


def _flags_in(answered: Answered, causes: Iterable[Cause]) -> tuple[str, ...]:
    """The flags and variables of the answer that some causes look at."""
    there = {r.flag for r in answered.solution.reasons}
    names = (f.name.replace("given.", "flag.", 1) for cause in causes for f in cause.because)
    return tuple(name for name in dict.fromkeys(names) if name in there)
