"""An answer and what somebody would have rather -> what would have to give for it, and what it would cost."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from solver.answer import Answered
from solver.choices import Demand, pin_of
from solver.conflict import Impossible, explain
from solver.engines.optimum import optimise
from solver.facts import typed_env
from solver.rivals import Rival, rival_of
from solver.solve import Problem
from solver.variables import same


class WhyNot(msgspec.Struct, frozen=True):
    """`status`: given (the answer has it), in force (the engine does it by itself), possible, impossible.

    `by`: who put it there; `pin`: the request's own value that would have to go first; `unasked`: why the solver leaves
    it alone by itself, where it does; `cost`: the best launch with it.
    """

    demand: Demand
    status: Literal["given", "in force", "possible", "impossible"]
    by: str | None = None
    pin: Any = None
    unasked: str | None = None
    cost: Rival | None = None
    conflict: Impossible | None = None


def why_not(answered: Answered, demand: Demand) -> WhyNot:
    """Why the answer does not have it: already there, or at what cost, or what stands against it."""
    space, name = demand.key.split(".", 1)
    problem, solution = answered.problem, answered.solution
    given = solution.given.get(name) if space == "flag" else _typed(answered, name)
    state = solution.result.outcomes[0].state
    if any(same(given, value) for value in demand.values):
        by = next((r.text for r in solution.reasons if r.flag == demand.key), state.origin(space, name))
        return WhyNot(demand, "given", by)
    if given is None and len(demand.values) == 1 and same(state.get(space, name), demand.values[0]):
        return WhyNot(demand, "in force", state.origin(space, name))
    pin = pin_of(problem.context, demand.key)
    others = [-answered.engine.literal(n, v) for n, v in problem.closed if n != demand.key]
    found = optimise(answered.engine, [*others, answered.engine.one_of(demand.key, demand.values)])
    if found is not None:
        unasked = _unasked(problem, demand) if pin is None else None
        return WhyNot(demand, "possible", pin=pin, unasked=unasked, cost=rival_of(answered, found[0]))
    return WhyNot(demand, "impossible", pin=pin, conflict=explain(problem.context, problem.goal, demand))


def _unasked(problem: Problem, demand: Demand) -> str | None:
    """Why the solver does not look at it for this goal."""
    given_up = [lever for lever in problem.context.resolver.program.levers if lever.get("gives_up")]
    for lever in given_up:
        if demand.key.removeprefix("flag.") == lever["name"]:
            return f"it is never given unasked, since with it {lever['gives_up']}"
    closed = [value for name, value in problem.closed if name == demand.key]
    if all(any(same(value, other) for other in closed) for value in demand.values):
        return f"it is nothing that {problem.goal['id']} chooses by itself"
    return None


def _typed(answered: Answered, name: str) -> Any:
    text = answered.solution.env.get(name)
    return None if text is None else typed_env(answered.problem.context.resolver.program.env[name], text)
