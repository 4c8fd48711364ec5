"""Measured link constants and engine limits in; latency (us) and transfer steps of one collective out."""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from typing import Literal

import msgspec
from packaging.specifiers import SpecifierSet

from solver.records import Source, Strict

MEGABYTE = 1e6
DECODING = 262_144
"""Bytes up to which a line holds; `beyond` has the points from there on."""
FALLBACK = "nccl"  # what every release does when a faster path does not take the message
UNASKED = (FALLBACK, "custom", "all_gather", "reduce_scatter")
"""Paths that a launch takes without a flag for them."""

Pick = Literal[0, 1, 2]
LOW: Pick = 0
CENTRAL: Pick = 1
HIGH: Pick = 2


class Line(Strict, frozen=True):
    """A latency as alpha + beta * size: microseconds, and microseconds per 10^6 bytes.

    `beyond`: measured points (10^6 bytes, microseconds) from the end of that line on, since other protocols carry large
    messages. Between them it is straight, and after the last one it goes on as between the last two.
    """

    alpha_us: float
    beta_us_per_mb: float
    beyond: tuple[tuple[float, float], ...] = ()

    def straight(self, size: float) -> float:
        """The line alone, at messages of decoding."""
        return self.alpha_us + self.beta_us_per_mb * size / MEGABYTE

    def times(self, factor: float) -> Line:
        """A link so many times slower."""
        beyond = tuple((mb, us * factor) for mb, us in self.beyond)
        return Line(self.alpha_us * factor, self.beta_us_per_mb * factor, beyond)

    def at(self, size: float) -> float:
        if size <= DECODING or not self.beyond:
            return self.alpha_us + self.beta_us_per_mb * size / MEGABYTE
        megabytes = size / MEGABYTE
        after = min(bisect_left(self.beyond, (megabytes,)), len(self.beyond) - 1)
        (start, low), (end, high) = self.beyond[after - 1], self.beyond[after]
        return low + (high - low) * (megabytes - start) / (end - start)


class Rate(Strict, frozen=True):
    """The fitted all-reduce of one algorithm on a number of GPUs, with the extreme measured series as its range.

    `error` is the largest relative distance of a measured row from the central line. `beyond`: as in `Line`, of the
    central one; the others are as far from these points as their lines are where they begin.
    """

    algorithm: str
    gpus: int
    low: Line
    central: Line
    high: Line
    series: int
    rows: int
    error: float
    sources: tuple[Source, ...]
    versions: str = ""
    beyond: tuple[tuple[float, float], ...] = ()
    note: str | None = None

    def lines(self) -> tuple[Line, Line, Line]:
        """The range of this all-reduce at every size."""
        own = self.central.straight(DECODING)
        low, high = (self._around(line, line.straight(DECODING) / own) for line in (self.low, self.high))
        return low, self._around(self.central, 1.0), high

    def _around(self, line: Line, factor: float) -> Line:
        return Line(line.alpha_us, line.beta_us_per_mb, tuple((mb, us * factor) for mb, us in self.beyond))


class Hop(Strict, frozen=True):
    """One send from a pipeline stage to the next."""

    low: Line
    central: Line
    high: Line
    sources: tuple[Source, ...]
    note: str | None = None


class Link(Strict, frozen=True):
    """How the GPUs named in `gpus` (catalogue ids) talk to each other over one kind of link."""

    id: str
    gpus: tuple[str, ...]
    link: str
    rates: tuple[Rate, ...]
    hop: Hop | None = None
    note: str | None = None


class StandIn(Strict, frozen=True):
    """The measured link that is reckoned with, so many times slower, in place of one that nobody measured.

    `link`: kind of both; `like`: id of the measured one; `gpus`: catalogue ids (empty: all others).
    """

    link: str
    like: str
    low: float
    value: float
    high: float
    sources: tuple[Source, ...]
    gpus: tuple[str, ...] = ()
    note: str | None = None

    def of(self, link: Link) -> Link:
        """That link as it is reckoned with, without the paths that only a flag takes: those have to be measured."""
        rates = [
            msgspec.structs.replace(
                rate,
                low=rate.central.times(self.low),
                central=rate.central.times(self.value),
                high=rate.central.times(self.high),
                beyond=tuple((mb, us * self.value) for mb, us in rate.beyond),
            )
            for rate in link.rates
            if rate.algorithm in UNASKED
        ]
        hop = link.hop
        scaled = (hop.low.times(self.low), hop.central.times(self.value), hop.high.times(self.high)) if hop else None
        return Link(
            self.like, self.gpus, self.link, tuple(rates), Hop(*scaled, hop.sources) if hop and scaled else None
        )


class Algorithm(Strict, frozen=True):
    """Where a release takes a path, and how many transfer steps it has.

    `steps`: ring is 2(n-1); half_ring n-1; one_shot 1; shots 1 below the byte limit of `one_shot_below` ([GPUs, bytes]
    pairs) and 2 from there on. `while_faster`: taken up to the size at which NCCL's measured line crosses its own.
    Outside `gpus`, `links`, `max_bytes` or CUDA graphs the engine uses NCCL.
    """

    id: str
    steps: Literal["ring", "half_ring", "one_shot", "shots"]
    sources: tuple[Source, ...]
    versions: str = ""
    sm: tuple[int, ...] = ()
    gpus: tuple[int, ...] = ()
    max_gpus_without_nvlink: int | None = None
    max_bytes: int | None = None
    needs_cuda_graph: bool = False
    while_faster: bool = False
    one_shot_below: tuple[tuple[int, int], ...] = ()
    note: str | None = None

    def takes(self, gpus: int, size: float, nvlink: bool, cuda_graph: bool) -> bool:
        """Whether the engine uses this path for one message."""
        limit = self.max_gpus_without_nvlink
        return (
            (not self.gpus or gpus in self.gpus)
            and (self.max_bytes is None or size <= self.max_bytes)
            and (nvlink or limit is None or gpus <= limit)
            and (cuda_graph or not self.needs_cuda_graph)
        )

    def transfer_steps(self, gpus: int, size: float) -> int:
        """Sequential transfer steps of one all-reduce."""
        if gpus <= 1:
            return 0
        if self.steps == "ring":
            return 2 * (gpus - 1)
        if self.steps == "half_ring":
            return gpus - 1
        if self.steps == "one_shot":
            return 1
        return 1 if any(n == gpus and size < limit for n, limit in self.one_shot_below) else 2


class Collectives(Strict, frozen=True):
    """All collectives of one machine under one release; `lines` are (low, central, high) by path and GPUs."""

    algorithms: dict[str, Algorithm]
    lines: dict[tuple[str, int], tuple[Line, Line, Line]]
    hop: tuple[Line, Line, Line] | None
    nvlink: bool
    like: str | None = None
    """The link that stands in for one that nobody measured, or not with so many GPUs."""
    borrowed: frozenset[tuple[str, int]] = frozenset()
    """The lines that are of that link."""

    def path(self, wanted: str, gpus: int, size: float, cuda_graph: bool) -> Algorithm:
        """The path that really carries the message; KeyError names an algorithm that no data file knows."""
        algorithm = self.algorithms[wanted]
        taken = algorithm.takes(gpus, size, self.nvlink, cuda_graph)
        if taken and algorithm.while_faster:
            own, other = (self.lines.get((name, gpus)) for name in (algorithm.id, FALLBACK))
            taken = not own or not other or own[CENTRAL].straight(size) <= other[CENTRAL].straight(size)
        return algorithm if taken else self.algorithms[FALLBACK]


@lru_cache(maxsize=256)
def in_range(versions: str, release: str | None) -> bool:
    """Whether a release (none means the newest) lies in a range such as ">=0.5.12"; an empty range holds all."""
    if not versions:
        return True
    if release is None:
        return "<" not in versions
    return SpecifierSet(versions, prereleases=True).contains(release)


def find_link(links: tuple[Link, ...], gpu: str | None, kind: str | None) -> Link | None:
    """The link record of a GPU; an unstated kind is accepted where the GPU has one record only."""
    found = [link for link in links if gpu in link.gpus and kind in (None, link.link)]
    return found[0] if len(found) == 1 else None


def find_stand_in(
    stand_ins: tuple[StandIn, ...], links: tuple[Link, ...], gpu: str | None, kind: str | None
) -> Link | None:
    """What is reckoned with for GPUs whose link nobody measured; the entry that names the GPU goes first."""
    fitting = [s for s in stand_ins if s.link == kind and (gpu in s.gpus or not s.gpus)]
    chosen = next((s for s in fitting if s.gpus), fitting[0] if fitting else None)
    link = next((entry for entry in links if chosen and entry.id == chosen.like), None)
    return chosen.of(link) if chosen and link else None


def collect(
    link: Link | None,
    algorithms: tuple[Algorithm, ...],
    kind: str | None,
    sm: int | None,
    release: str | None,
    stand_in: Link | None = None,
) -> Collectives:
    """Everything that holds for one machine and release; without rows only the transfer steps are known.

    A path without rows of this release takes those of another, one without rows at all those of the stand-in.
    """
    known = {
        a.id: a
        for a in reversed(algorithms)
        if in_range(a.versions, release) and (not a.sm or sm is None or sm in a.sm)
    }
    for missing in {a.id for a in algorithms} - known.keys():
        known[missing] = known[FALLBACK]
    own, others = (
        {(r.algorithm, r.gpus): r.lines() for r in sorted(entry.rates, key=lambda r: in_range(r.versions, release))}
        if entry
        else {}
        for entry in (link, stand_in)
    )
    hop = (link and link.hop) or (stand_in and stand_in.hop)
    return Collectives(
        algorithms=known,
        lines=others | own,
        hop=(hop.low, hop.central, hop.high) if hop else None,
        nvlink=kind in ("nvlink", "xgmi"),
        like=stand_in.id if stand_in else None,
        borrowed=frozenset(others.keys() - own.keys()),
    )
