"""An answer and two metrics -> the launches that no other valid one beats in both: their Pareto front, proven complete.

Every combination of the values that the two metrics are computed from is looked at once; of the launches behind one
point, the one that the goal likes best is shown. A launch whose metric nobody can say (a path that was never measured)
has no place in the plane.
"""

from __future__ import annotations

from typing import Any

import msgspec

from solver.answer import Answered
from solver.asking import Metric
from solver.constraints import Assignment, Lazy
from solver.engines.optimum import optimise
from solver.engines.sat import SatEngine
from solver.rivals import Rival, rival_of
from solver.variables import Var

Pair = tuple[float, float]
DIGITS = 6
"""Metrics that agree in so many digits after the point are the same."""


class FrontPoint(msgspec.Struct, frozen=True):
    """One point and the launch behind it, held against the answer. `is_answer`: it is the answer's own point."""

    values: Pair
    launch: Rival
    is_answer: bool


class Front(msgspec.Struct, frozen=True):
    """The points by the first metric, best first. `others`: what else valid launches reach; `answer`: its own place."""

    metrics: tuple[Metric, Metric]
    points: tuple[FrontPoint, ...]
    others: tuple[Pair, ...]
    answer: Pair | None


def front_of(answered: Answered, metrics: tuple[Metric, Metric]) -> Front:
    """The front over all valid launches within the pins, guards and bans of the request."""
    engine = answered.engine
    places: dict[Pair, list[tuple[Any, ...]]] = {}
    names = _inputs(answered, metrics)
    for values in engine.combinations(names, answered.held):
        if (place := _place(answered, metrics, values)) is not None:
            places.setdefault(place, []).append(tuple(values.values()))
    best = sorted(not_beaten(places, metrics), key=lambda p: _good(p, metrics))
    own = _place(answered, metrics, answered.best)
    points = []
    for place in best:
        held = [*answered.held, _one_row(engine, names, places[place])]
        found = (answered.best, ()) if place == own else optimise(engine, held)
        assert found is not None, "a combination that was found is possible"
        points.append(FrontPoint(place, rival_of(answered, found[0]), place == own))
    others = sorted(set(places) - set(best))
    return Front(metrics, tuple(points), tuple(others), own)


def not_beaten(places: Any, metrics: tuple[Metric, Metric]) -> list[Pair]:
    """The places that no other is at least as good as in both metrics."""
    found: list[Pair] = []
    best = float("inf")
    for place in sorted(places, key=lambda p: _good(p, metrics)):
        if (second := _good(place, metrics)[1]) < best:
            found.append(place)
            best = second
    return found


def _good(place: Pair, metrics: tuple[Metric, Metric]) -> Pair:
    """The place with small as good."""
    first, second = (-v if m.maximised else v for v, m in zip(place, metrics, strict=True))
    return first, second


def _place(answered: Answered, metrics: tuple[Metric, Metric], values: Assignment) -> Pair | None:
    """Both metrics of an assignment; None where one is not known."""
    found = []
    for metric in metrics:
        figure = answered.problem.figures[metric.text]
        value = (
            figure.run(values) if isinstance(figure, Lazy) else values[figure.name] if type(figure) is Var else figure
        )
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        found.append(round(float(value), DIGITS))
    return found[0], found[1]


def _inputs(answered: Answered, metrics: tuple[Metric, Metric]) -> tuple[str, ...]:
    figures = [answered.problem.figures[metric.text] for metric in metrics]
    names = (f.inputs if isinstance(f, Lazy) else (f.name,) if type(f) is Var else () for f in figures)
    return tuple(dict.fromkeys(name for some in names for name in some))


def _one_row(engine: SatEngine, names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> int:
    """A literal under which the named variables have one of some combinations of values."""
    return engine.either(
        engine.all_of(engine.literal(name, value) for name, value in zip(names, row, strict=True)) for row in rows
    )
