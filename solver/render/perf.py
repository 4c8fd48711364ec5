"""A solve answer -> its text or JSON with what another estimator says of the launches shown, beside our own figures."""

from __future__ import annotations

from typing import Any

import msgspec

from solver.compiled import Program
from solver.context import Context
from solver.errors import RequestError
from solver.render.data import dumps, shown, solution_data
from solver.render.solution import POINTS
from solver.render.text import table
from solver.solve import Solution
from solver.words import say

BEST = "the answer"


def judged_by_other(context: Context, values: dict[str, Any]) -> bool:
    """Whether the request wants that. Errors: RequestError where it cannot be had, before any work is done."""
    if not values.get("perf"):
        return False
    from solver.perf import wanted

    asked = wanted(context.facts.request)
    if asked and values["emit"] is not None:
        raise RequestError("--perf tells more of the answer, and --emit prints the launch alone: leave one of them out")
    return asked


def judged_elsewhere(context: Context, answer: Solution, values: dict[str, Any], text: str) -> str:
    """The printed answer with the other's figures: a table below the text, or the key `perf` of the JSON."""
    from solver.perf import OTHER, compared

    points = answer.alternatives[:POINTS]
    launches = [answer.given, *({**answer.given, **p.given} for p in points)]
    solved = msgspec.structs.replace(context, facts=answer.facts)
    found = list(compared(solved, launches))
    if values["format"] == "json":
        names = ("own_us", "other_us", "inputs", "missing")
        rows = [
            dict(zip(names, (_rounded(own), _rounded(o.value), o.inputs, list(o.missing)), strict=True))
            for own, o in found
        ]
        data = solution_data(context, str(values["goal"]), answer)
        return dumps({**data, "perf": {"from": OTHER, "answer": rows[0], "alternatives": rows[1:]}})
    program = context.resolver.program
    labels = [BEST, *(_layout(p.given, program) for p in points)]
    lines = [
        (f"  {label}", _ms(own), _ms(other.value), "; ".join(other.missing))
        for label, (own, other) in zip(labels, found, strict=True)
    ]
    source = next((other.inputs["from"] for _, other in found if other.known), OTHER)
    head = f"time per token, ms: our own, which the search used, and {source}"
    return "\n".join([text, "", head, *table(lines, ("  launch", "own", "its", "why not"))])


def _layout(given: dict[str, Any], program: Program) -> str:
    return " ".join(f"{shown(f'flag.{n}', program)} {say(v)}" for n, v in given.items() if v not in (1, None))


def _rounded(us: float | None) -> float | None:
    return None if us is None else round(us, 4)


def _ms(us: float | None) -> str:
    return "unknown" if us is None else f"{us / 1e3:.2f}"
