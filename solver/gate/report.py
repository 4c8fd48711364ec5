"""Judged launches, comments and settings -> what the gate reports: findings with their places, and what failed."""

from __future__ import annotations

import bisect
from typing import Literal

import msgspec

from solver.check import at_or_above
from solver.gate.found import Hints, Kind
from solver.launch import Launch
from solver.records import Finding, Severity, Span


class Where(msgspec.Struct, frozen=True):
    """A place in a file. Lines and columns count from 1, columns in characters; `start` and `end` are byte offsets."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    start: int
    end: int


class Lines:
    """The lines of a text, to tell where an offset is."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self._ascii = text.isascii()
        self._starts: list[int] = []

    def where(self, span: Span) -> Where:
        if not self._starts:
            self._starts = [0]
            at = self.text.find("\n")
            while at >= 0:
                self._starts.append(at + 1)
                at = self.text.find("\n", at + 1)
        line, end_line = (bisect.bisect_right(self._starts, at) for at in (span.start, max(span.end - 1, span.start)))
        return Where(
            self.file,
            line,
            span.start - self._starts[line - 1] + 1,
            end_line,
            span.end - self._starts[end_line - 1] + 1,
            self._byte(span.start),
            self._byte(span.end),
        )

    def _byte(self, offset: int) -> int:
        return offset if self._ascii else len(self.text[:offset].encode("utf-8"))


class Reported(msgspec.Struct, frozen=True):
    """One finding at its place. `launch`: index of its launch, None for one about a comment or a setting.

    `earlier`: findings of the same rule about the same thing before it in the file. `state`: new (or no baseline
    given), or known from the baseline.
    `suppressed`: why its rule is switched off here.
    """

    finding: Finding
    where: Where
    launch: int | None
    earlier: int
    fail_on: Severity
    suppressed: str | None = None
    state: Literal["new", "known"] = "new"

    @property
    def fingerprint(self) -> str:
        """What names the finding across runs, while lines move: file, rule, what it is about, and `earlier`."""
        from hashlib import sha256  # loads a cryptographic library, which most runs do not need

        finding = self.finding
        parts = (self.where.file, finding.rule, *finding.flags, *finding.env, str(self.earlier))
        return sha256("\0".join(parts).encode()).hexdigest()[:32]

    @property
    def counts(self) -> bool:
        """Whether it can fail the run."""
        return self.suppressed is None and self.state == "new" and not self.finding.after

    def fails(self, on_unknown: bool) -> bool:
        """Whether it fails the run. `on_unknown`: also if it depends on what is not known."""
        open_to_doubt = bool(self.finding.conditional_on) and not on_unknown
        return self.counts and not open_to_doubt and at_or_above(self.finding, self.fail_on)


class Verdict(msgspec.Struct, frozen=True):
    """What a launch was judged by, and the outcome. `fork`: whose flags it has; the release is what that rests on."""

    release: str
    release_from: str
    fork: str | None
    model: str | None
    hardware: str | None
    gpus: int | None
    outcome: Literal["valid", "conditional", "invalid"]


class Checked(msgspec.Struct, frozen=True):
    """One launch with its place and verdict; `refused`: why it cannot be judged. It may cross between processes."""

    kind: Kind
    launch: Launch
    hints: Hints
    where: Where
    verdict: Verdict | None
    refused: str = ""


class Trouble(msgspec.Struct, frozen=True):
    """A file, or a part of it, that could not be looked at."""

    file: str
    problem: str


class Mend(msgspec.Struct, frozen=True):
    """One finding that was mended, or (with `why_not`) could not be. `line` counts in the file before the change."""

    file: str
    line: int
    rule: str
    what: str
    why_not: str | None = None


class Report(msgspec.Struct):
    """What one run found. `mends`: what `--fix` did. `gone`: what is in the baseline and found no more."""

    launches: list[Checked] = []
    findings: list[Reported] = []
    troubles: list[Trouble] = []
    files: int = 0
    mends: list[Mend] = []
    gone: list[tuple[str, str]] = []

    def add(self, other: Report) -> None:
        """Take over what another run found."""
        first = len(self.launches)
        for item in other.findings:
            moved = None if item.launch is None else item.launch + first
            self.findings.append(msgspec.structs.replace(item, launch=moved))
        self.launches += other.launches
        self.troubles += other.troubles
        self.mends += other.mends
        self.files += other.files


GATE_RULES = {
    "gate-comment-unreadable": "A flagwise comment is not understood",
    "gate-comment-unattached": "A flagwise comment stands beside no launch",
    "gate-suppression-unused": "A rule is switched off that finds nothing here",
}
"""Findings of the gate itself: about what people wrote for it, not about the engine."""


def own_finding(rule: str, message: str, severity: Severity = "warning") -> Finding:
    """A finding of the gate itself."""
    return Finding(rule, severity, "host", "source", GATE_RULES[rule], message)
