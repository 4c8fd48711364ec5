"""Measured lines of the engine's kernels in; the time of one operation on one GPU out, in us with its range.

Lines come from knowledge/sglang/kernels.yaml (tools/fit_kernels.py) and from `kernels` in costs.yaml. Where no line
holds, an operation takes its bytes over the nominal bandwidth times `bandwidth_factor`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from solver.collectives import CENTRAL, HIGH, LOW, Pick, in_range
from solver.records import Source, Strict

Operation = Literal["experts", "dense", "attention", "latent", "a2a"]


class Kernel(Strict, frozen=True):
    """us = base_us + byte_factor * bytes / B + item_us * items + mb_us * MB, at least gflop_us * 10^9 operations.

    B is the nominal bandwidth. `base_us` is per layer and counts as overhead; `low` and `high` are factors on the rest.
    Empty `kernel` and `format` hold for all. `fork`: no release has the kernel, so only its name finds it.
    """

    op: Operation
    low: float
    high: float
    sources: tuple[Source, ...]
    kernel: str = ""
    format: str = ""
    sm: tuple[int, ...] = ()
    gpus: tuple[str, ...] = ()
    versions: str = ""
    base_us: float = 0.0
    byte_factor: float = 0.0
    item_us: float = 0.0
    mb_us: float = 0.0
    gflop_us: float = 0.0
    rows: int = 0
    fork: bool = False
    note: str | None = None

    def at(self, pick: Pick) -> float:
        """The factor of one end of the range."""
        return (self.low, 1.0, self.high)[pick]


class Work(msgspec.Struct, frozen=True):
    """What one operation does on the busiest GPU in all layers: bytes read, experts touched, 10^9 operations."""

    load: float = 0.0
    items: float = 0.0
    gflop: float = 0.0


def find_kernel(
    kernels: tuple[Kernel, ...],
    op: Operation,
    kernel: str,
    form: str,
    gpu: str | None,
    sm: int | None,
    release: str | None,
) -> Kernel | None:
    """The line of this kernel, format and GPU, in this release or another; one for the GPU itself goes first.

    A kernel that nobody measured takes the slowest line of its format, so that it is never chosen for speed. A cache
    format that nobody measured is read like another one by the same kernel.
    """
    here = [k for k in kernels if k.op == op and (gpu in k.gpus or sm in k.sm)]
    here.sort(key=lambda k: gpu not in k.gpus)
    same = [k for k in here if k.format in ("", form)]
    now = [k for k in same if in_range(k.versions, release)]
    named = [[k for k in lines if k.kernel == kernel] for lines in (now, same)]
    other = [k for k in here if k.kernel == kernel] if op in ("attention", "latent") else []
    slowest = [sorted((k for k in lines if not k.fork), key=lambda k: -k.base_us) for lines in (now, same)]
    return next((lines[0] for lines in (*named, other, *slowest) if lines), None)


def time_us(line: Kernel | None, work: Work, bandwidth: float, factor: tuple[float, float, float], pick: Pick) -> float:
    """Time of the work beside the overhead of its launches. `factor`: share of the bandwidth where no line holds."""
    if line is None:
        return work.load / (bandwidth * (factor[HIGH], factor[CENTRAL], factor[LOW])[pick])
    moved = line.byte_factor * work.load / bandwidth + line.item_us * work.items
    return max(moved, line.gflop_us * work.gflop) * line.at(pick)
