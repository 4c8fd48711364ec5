"""Plain values as read from knowledge YAML in; the typed, measured constants of the cost model out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from solver.acceptance import Family
from solver.collectives import Algorithm, Link, Pick, StandIn
from solver.kernels import Kernel
from solver.records import Source, Strict


class Constant(Strict, frozen=True):
    """One measured figure with its range."""

    value: float
    low: float
    high: float
    unit: str
    sources: tuple[Source, ...]
    note: str | None = None

    def at(self, pick: Pick) -> float:
        return (self.low, self.value, self.high)[pick]


class LayerCost(Strict, frozen=True):
    """Overhead in us a layer beside that of the expert kernel; an empty `sm` stands for the rest."""

    value: float
    low: float
    high: float
    sources: tuple[Source, ...]
    sm: tuple[int, ...] = ()
    note: str | None = None

    def at(self, pick: Pick) -> float:
        return (self.low, self.value, self.high)[pick]


class Costs(Strict, frozen=True):
    """Everything measured that the formulas need."""

    constants: dict[str, Constant]
    layers: tuple[LayerCost, ...]
    algorithms: tuple[Algorithm, ...]
    links: tuple[Link, ...] = ()
    stand_ins: tuple[StandIn, ...] = ()
    acceptance: tuple[Family, ...] = ()
    kernels: tuple[Kernel, ...] = ()


def load_costs(
    costs: Mapping[str, Any], kernels: Sequence[Any], links: Sequence[Any], acceptance: Sequence[Any]
) -> Costs:
    """Typed constants from the plain content of costs.yaml, kernels.yaml, links/ and acceptance/; ValidationError names
    a fault. Kernels of costs.yaml are written by hand and go first."""
    every = [*costs.get("kernels", ()), *kernels]
    return msgspec.convert({**costs, "kernels": every, "links": list(links), "acceptance": list(acceptance)}, Costs)


def read_costs(root: Path) -> Costs:
    """The same from a `knowledge` folder."""
    import yaml  # only needed when nothing is compiled

    def folder(name: str) -> list[Any]:
        return [yaml.safe_load(path.read_text("utf-8")) for path in sorted((root / name).glob("*.yaml"))]

    constants = yaml.safe_load((root / "sglang" / "costs.yaml").read_text("utf-8"))
    kernels = yaml.safe_load((root / "sglang" / "kernels.yaml").read_text("utf-8"))
    return load_costs(constants, kernels, folder("links"), folder("acceptance"))


def layer_cost(layers: tuple[LayerCost, ...], sm: int | None) -> LayerCost | None:
    """The entry of this SM, else the one for the rest."""
    return next((e for e in layers if sm in e.sm), next((e for e in layers if not e.sm), None))
