"""Files with findings -> the same files mended: edits of the words concerned, each read again before it is kept.

Safe is a change after which every value in force is what it was: another spelling, or a flag gone that changed nothing.
With `unsafe`, what would fail the run is also mended, by the first of its rule's fixes that holds. A change that does
not remove its finding, or brings a new error, is not made.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, NamedTuple

from solver.check import at_or_above
from solver.facts import State
from solver.gate.edits import Unmendable, apply
from solver.gate.found import Kind, Unreadable
from solver.gate.inspect import Inspector, Judgement
from solver.gate.judge import Judged, place_of
from solver.gate.mend import edits_of, fixes_for
from solver.gate.output.target import replace_file
from solver.gate.report import Mend, Trouble
from solver.pipeline import plain
from solver.records import Finding, Fix
from solver.render.text import fix_text

MOST_CHANGES = 200
"""Changes in one file; more is a sign of two fixes that undo each other."""


class FileMender:
    """Mends files in one run. `write`: put the new text into the file; `diff`: collect what would change."""

    def __init__(self, unsafe: bool, write: bool, diff: bool) -> None:
        self.unsafe = unsafe
        self.write = write
        self.diff = diff
        self.diffs: list[str] = []

    def mended(self, path: str, text: str, kind: Kind, inspector: Inspector) -> str:
        """The text after all changes that hold; it is in the file if it is to be written."""
        try:
            new, mends = _Work(path, kind, inspector, self.unsafe).changed(text)
        except Unreadable:
            return text  # the look that follows says why
        if new != text and self.diff:
            self.diffs.append(_diff(path, text, new))
        if new != text and self.write:
            try:
                replace_file(path, new.encode())
            except OSError as error:
                inspector.report.troubles.append(Trouble(path, f"cannot be written ({error.strerror})"))
                return text
        inspector.report.mends += mends
        return new if self.write else text


class _Spot(NamedTuple):
    """A finding of one launch of a text."""

    verdicts: list[Judgement]
    at: int
    finding: Finding

    @property
    def verdict(self) -> Judgement:
        return self.verdicts[self.at]


class _Work:
    """The changes of one file."""

    def __init__(self, path: str, kind: Kind, inspector: Inspector, unsafe: bool) -> None:
        self.path = path
        self.kind = kind
        self.inspector = inspector
        self.unsafe = unsafe
        self.refused: dict[tuple[object, ...], Mend] = {}

    def changed(self, text: str) -> tuple[str, list[Mend]]:
        """The text with everything mended that can be, and what was mended and what not. Errors: Unreadable."""
        mends: list[Mend] = []
        while len(mends) < MOST_CHANGES and (step := self._step(text)):
            text, mend = step
            mends.append(mend)
        return text, [*mends, *self.refused.values()]

    def _verdicts(self, text: str) -> list[Judgement]:
        return self.inspector.verdicts(self.path, text, self.kind)

    def _step(self, text: str) -> tuple[str, Mend] | None:
        """The first finding that can be mended, mended."""
        verdicts = self._verdicts(text)
        for index, verdict in enumerate(verdicts):
            for finding in verdict.judged.findings if verdict.judged else ():
                key = (index, finding.rule, finding.flags, finding.env, finding.span)
                if finding.conditional_on or finding.after or finding.rule in verdict.off or key in self.refused:
                    continue
                place = place_of(finding, verdict.judged, verdict.found) if verdict.judged else verdict.found.at
                line = text.count("\n", 0, place.start) + 1
                new, words = self._mended(text, _Spot(verdicts, index, finding))
                if new is not None:
                    return new, Mend(self.path, line, finding.rule, words)
                if words and at_or_above(finding, verdict.fail_on):
                    self.refused[key] = Mend(self.path, line, finding.rule, "", words)
        return None

    def _mended(self, text: str, spot: _Spot) -> tuple[str | None, str]:
        """The text with the first fix of a finding that holds, and the fix in words; else None, and why not."""
        judged = spot.verdict.judged
        assert judged is not None
        any_fix = self.unsafe and at_or_above(spot.finding, spot.verdict.fail_on)
        why = ""
        for fix in fixes_for(spot.finding, judged):
            if not any_fix and not fix.unset:
                continue  # what only adds to a launch is never safe
            words = fix_text(fix, judged.context.resolver.program)
            try:
                new = apply(text, edits_of(fix, spot.verdict.found, judged, text))
                complaint = self._complaint(spot, self._verdicts(new), fix, any_fix)
            except (Unmendable, Unreadable) as error:
                complaint = str(error)
            else:
                if complaint is None:
                    return new, words
            why = why or (f"{words}: {complaint}" if complaint else "")
        return None, why

    def _complaint(self, spot: _Spot, after: list[Judgement], fix: Fix, any_fix: bool) -> str | None:
        """Why a change is not made; None: it holds. Empty: it is not safe, and only that was asked for."""
        if len(after) != len(spot.verdicts):
            return "another number of launches would be read"
        old, new = spot.verdict.judged, after[spot.at].judged
        if old is None or new is None:
            return "the launch could not be judged any more"
        if lost := [name for name, value in fix.env.items() if new.context.facts.env.get(name) != str(value)]:
            return f"{', '.join(lost)} would not reach the engine"
        keeps = _same_values(old, new, (*fix.unset, *fix.env))
        if not keeps and not any_fix:
            return ""
        if _count(new, spot.finding) >= _count(old, spot.finding):
            return "the finding would stay"
        for was, now in zip(spot.verdicts, after, strict=True):
            added = _serious(now.judged, keeps) - _serious(was.judged, keeps)
            if added:
                return f"it would bring {', '.join(sorted(added))}"
        return None


def _same_values(before: Judged, after: Judged, apart_from: Iterable[str]) -> bool:
    """Whether everything in force is the same, but for variables that go by another name now."""
    ends = [[outcome.state for outcome in judged.outcomes] for judged in (before, after)]
    if len(ends[0]) != len(ends[1]) or before.context.facts.doubtful != after.context.facts.doubtful:
        return False
    out = set(apart_from)

    def in_force(state: State) -> list[dict[str, Any]]:
        flags = {name: plain(value) for name, value in state.values("flag").items()}
        return [flags, {name: plain(value) for name, value in state.values("env").items() if name not in out}]

    return all(in_force(a) == in_force(b) for a, b in zip(*ends, strict=True))


def _count(judged: Judged, finding: Finding) -> int:
    """How often a finding is made."""
    key = (finding.rule, finding.flags, finding.env)
    return sum((f.rule, f.flags, f.env) == key for f in judged.findings if not f.after)


def _serious(judged: Judged | None, keeps: bool) -> set[str]:
    """Rules that a change must not add: errors, and warnings too where it is to keep the meaning."""
    levels = ("error", "warning") if keeps else ("error",)
    findings = judged.findings if judged else ()
    return {f.rule for f in findings if f.severity in levels and not f.conditional_on and not f.after}


def _diff(path: str, old: str, new: str) -> str:
    """A unified diff, as `patch` and `git apply` read it."""
    name = path.lstrip("/")
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
