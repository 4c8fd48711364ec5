"""A context and a goal -> the proven answer with reasons and trade-off, or the conflict with repairs."""

from __future__ import annotations

import msgspec

from solver.conflict import Impossible, explain
from solver.context import Context
from solver.engines.optimum import optimise
from solver.engines.sat import SatEngine
from solver.goals import Goal
from solver.reasons import reasons_of, trade_off
from solver.release import refuse_without_rules
from solver.solve import (
    Solution,
    checked,
    completed,
    errors_in,
    metrics_of,
    problem_of,
    with_kept,
    written_out,
)


class Disagreement(RuntimeError):
    """Solver and validator disagree about a launch: a fault of flagwise, never of the request."""


def solve(context: Context, goal: str | Goal) -> Solution | Impossible:
    """Complete a request. Errors: RequestError when the model, the machine or the release is not known well enough."""
    refuse_without_rules(context.index, context.release)
    problem = problem_of(context, goal)
    if problem.model.fixed_violations:
        return explain(context, goal)
    with SatEngine(problem.model) as engine:
        found = optimise(engine)
        if found is None:
            return explain(context, goal)
        best, costs = found
        facts, chosen = written_out(problem, completed(problem, best))
        result = checked(context, facts)
        if errors_in(result):
            raise Disagreement(f"the validator finds {', '.join(errors_in(result))} in the solver's own answer")
        reasons = reasons_of(problem, best, costs, chosen)
        alternatives = trade_off(problem, engine, best, costs)
    after = msgspec.structs.replace(context, facts=facts)
    asked = with_kept(context.facts, problem.goal)
    return Solution(
        given=facts.given,
        env=facts.env,
        facts=facts,
        result=result,
        levels=problem.model.levels,
        costs=costs,
        before=metrics_of(context, checked(context, asked)),
        after=metrics_of(after, result),
        reasons=reasons,
        alternatives=alternatives,
        proven=True,
    )
