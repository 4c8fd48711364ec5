"""A context and a goal -> the proven answer with reasons and trade-off, or the conflict with repairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from solver.check import Result
from solver.conflict import Impossible, explain
from solver.constraints import Assignment
from solver.context import Context
from solver.engines.optimum import optimise
from solver.engines.sat import SatEngine
from solver.facts import Facts
from solver.goals import Goal
from solver.reasons import reasons_of, trade_off
from solver.release import refuse_without_rules
from solver.solve import (
    Problem,
    Solution,
    checked,
    completed,
    errors_in,
    metrics_of,
    problem_of,
    with_kept,
    written_out,
)
from solver.symbolic import Choice


class Disagreement(RuntimeError):
    """Solver and validator disagree about a launch: a fault of flagwise, never of the request."""


class Answered(msgspec.Struct, frozen=True):
    """An answer with the model and the engine that gave it, to be asked further. `best`: the optimum's assignment."""

    problem: Problem
    engine: Any
    best: Assignment
    solution: Solution

    @property
    def held(self) -> tuple[int, ...]:
        """The literals under which the engine answers the request as it stands."""
        return self.problem.own(self.engine)


def solve(context: Context, goal: str | Goal) -> Solution | Impossible:
    """Complete a request. Errors: RequestError when the model, the machine or the release is not known well enough."""
    with answering(context, goal) as found:
        return found.solution if isinstance(found, Answered) else found


@contextmanager
def answering(
    context: Context, goal: str | Goal, also: Iterable[Choice] = (), measured: Iterable[str] = ()
) -> Iterator[Answered | Impossible]:
    """Complete a request and keep the engine for questions: what they open and measure is part of its model."""
    refuse_without_rules(context.index, context.release)
    problem = problem_of(context, goal, also, measured)
    if problem.model.fixed_violations:
        yield explain(context, goal)
        return
    with SatEngine(problem.model) as engine:
        found = optimise(engine, problem.own(engine))
        if found is None:
            yield explain(context, goal)
            return
        yield Answered(problem, engine, found[0], _solution(context, problem, engine, *found))


def _solution(
    context: Context, problem: Problem, engine: SatEngine, best: Assignment, costs: tuple[float, ...]
) -> Solution:
    """The launch of an optimum, checked, with its reasons and the other points of the trade-off."""
    facts, chosen, result = launch_of(problem, best)
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
        reasons=reasons_of(problem, best, costs, chosen),
        alternatives=trade_off(problem, engine, best, costs),
        proven=True,
    )


def launch_of(problem: Problem, assignment: Assignment) -> tuple[Facts, dict[str, str], Result]:
    """The facts of an assignment's launch, what was written out of what rules chose, and what the validator says.

    Errors: Disagreement where it finds an error.
    """
    facts, chosen = written_out(problem, completed(problem, assignment))
    result = checked(problem.context, facts)
    if errors_in(result):
        raise Disagreement(f"the validator finds {', '.join(errors_in(result))} in the solver's own answer")
    return facts, chosen, result
