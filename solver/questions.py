"""A request with questions -> its answer with theirs, printed: why, why not, the best answers, the front.

One model and one engine serve the answer and all of its questions. Errors: RequestError.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import msgspec

from solver.answer import Answered, answering
from solver.asking import Questions, read_questions
from solver.choices import Demand, opened_for
from solver.conflict import Impossible
from solver.context import Context
from solver.errors import RequestError
from solver.front import Front, front_of
from solver.goals import Goal
from solver.output_file import refuse_taken, write_whole
from solver.ranking import best_answers
from solver.render.data import dumps, emit_data, solution_data
from solver.render.plot import plot
from solver.render.questions import answer_lines, questions_text
from solver.render.questions_data import answers_data
from solver.render.solution import conflict_output, output
from solver.rivals import Rival
from solver.solve import Solution
from solver.why import Why, why
from solver.why_not import WhyNot, why_not

FINDINGS = 1


class Answers(msgspec.Struct, frozen=True):
    """What was asked, answered. `asked_for`: how many best answers were wanted."""

    why: tuple[Why, ...] = ()
    why_not: tuple[WhyNot, ...] = ()
    best: tuple[Rival, ...] = ()
    asked_for: int = 0
    front: Front | None = None


def ask(context: Context, goal: Goal, values: dict[str, Any], keep: Callable[[Context, str, Solution], None]) -> int:
    """Solve, keep the answer where that is asked for, and print it with the answers to the questions."""
    questions = read_questions(context, goal, values)
    svg, form, emit = values["front_svg"], values["format"], values["emit"]
    if svg is not None:
        if svg == values["lock"]:
            raise RequestError(f"--front-svg and --lock both name {svg}: expected two files")
        refuse_taken(svg, values["overwrite"])
    with answering(context, goal, opened(context, questions), (m.text for m in questions.front)) as found:
        if isinstance(found, Impossible):
            print(conflict_output(context, goal["id"], found, form))
            return FINDINGS
        answers = answered(found, questions)
    keep(context, goal["id"], found.solution)
    if svg is not None and answers.front is not None:
        write_whole(svg, plot(context, answers.front), values["overwrite"])
    _print(context, goal["id"], found.solution, answers, form, emit)
    return 0


def opened(context: Context, questions: Questions) -> list[Any]:
    """What the questions open in the model: each flag once, with all the values that are asked about."""
    demands: dict[str, list[Any]] = {}
    for demand in questions.why_not:
        demands.setdefault(demand.key, []).extend(demand.values)
    return [opened_for(context, Demand(key, tuple(dict.fromkeys(values)), "")) for key, values in demands.items()]


def answered(found: Answered, questions: Questions) -> Answers:
    """Each question's answer, in the order in which they are shown."""
    front = questions.front
    return Answers(
        why=tuple(why(found, key) for key in questions.why),
        why_not=tuple(why_not(found, demand) for demand in questions.why_not),
        best=best_answers(found, questions.top) if questions.top else (),
        asked_for=questions.top,
        front=front_of(found, (front[0], front[1])) if front else None,
    )


def _print(context: Context, goal: str, solution: Solution, answers: Answers, form: str, emit: str | None) -> None:
    """The answers beside the solution; where the solution is to stand alone, they go to standard error."""
    if emit == "json" or (form == "json" and emit is None):
        whole = emit_data(context, solution) if emit else solution_data(context, goal, solution)
        print(dumps({**whole, **answers_data(context, answers)}))
    elif emit is not None:
        print(output(context, goal, solution, form, emit))
        print("\n".join(answer_lines(context, answers)).lstrip("\n"), file=sys.stderr)
    else:
        print(questions_text(context, goal, solution, answers))
