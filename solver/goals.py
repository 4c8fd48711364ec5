"""A goal's levels (data) + a model being built -> objective levels over its variables."""

from __future__ import annotations

from typing import Any

from solver.constraints import Lazy, Level
from solver.errors import RequestError
from solver.symbolic import Builder
from solver.variables import Var


def find_goal(goals: dict[str, Any], name: str) -> dict[str, Any]:
    """A goal by id. Errors: RequestError with the goals there are."""
    if name not in goals:
        raise RequestError(f"unknown goal {name!r}; known are {', '.join(sorted(goals))}")
    return dict(goals[name])


def levels_of(builder: Builder, goal: dict[str, Any]) -> tuple[Level, ...]:
    """The objective levels of a goal, in order, over the builder's final values."""
    return tuple(_level(builder, spec) for spec in goal["levels"])


def _level(builder: Builder, spec: dict[str, Any]) -> Level:
    counts: list[str] = []
    amounts: list[Lazy] = []
    constant = 0.0
    if spec.get("count") == "warnings":
        counts = [name for name, _ in builder.warnings]
        constant = float(len(builder.fixed_warnings))
    if spec.get("count") in builder.nearness:
        counts, constant = builder.nearness[spec["count"]]
    if spec.get("count") == "given":
        counts = [v.name for v in (builder.chosen(name) for name in builder.base) if v]
    for text in (*spec.get("count_if", ()), *([spec["amount"]] if "amount" in spec else ())):
        value = builder.expression(text)
        if type(value) is Var and "amount" not in spec:
            value = builder.pool.truth(value)
        if type(value) is Var and "amount" not in spec:
            counts.append(value.name)
        elif type(value) is Var:
            amounts.append(Lazy((value.name,), lambda values, name=value.name: values[name]))  # type: ignore[misc]
        elif type(value) is Lazy:
            amounts.append(value)
        else:
            constant += value or 0
    if counts and amounts:
        amounts += [Lazy((name,), lambda values, name=name: bool(values[name])) for name in counts]  # type: ignore[misc]
        counts = []
    figure = spec["amount"].removeprefix("estimate.") if "amount" in spec else None
    return Level(
        spec["title"], tuple(counts), tuple(amounts), spec.get("slack"), constant, "amount" not in spec, figure
    )
