"""Files with findings -> the same files mended: edits of the words concerned, each read again before it is kept.

Safe is a change after which every value in force is what it was: another spelling, or a flag gone that changed nothing.
With `unsafe` the fix is taken that leaves the fewest errors and warnings. A change that does not remove its finding, or
brings a new one, is not made.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, NamedTuple

from solver.check import Result
from solver.gate.edits import Unmendable, apply
from solver.gate.files import Kind
from solver.gate.found import Found, Unreadable
from solver.gate.inspect import Inspector
from solver.gate.judge import Judged
from solver.gate.mend import edits_of, fixes_for
from solver.gate.output.target import replace_file
from solver.gate.report import Mend, Trouble
from solver.records import Finding, Fix
from solver.render.text import fix_text

MOST_CHANGES = 200
"""Changes in one file; more is a sign of two fixes that undo each other."""

Verdicts = list[tuple[Found, Judged | None, frozenset[str]]]


class Trial(NamedTuple):
    """A change that holds: the new text, what it leaves (less is better), and how to say it."""

    text: str
    leaves: tuple[int, int, int]
    what: str


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
            new, mends = self._changed(path, text, kind, inspector)
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

    def _changed(self, path: str, text: str, kind: Kind, inspector: Inspector) -> tuple[str, list[Mend]]:
        mends: list[Mend] = []
        refused: dict[tuple[int, str, tuple[str, ...]], Mend] = {}
        verdicts = inspector.verdicts(path, text, kind)
        for _ in range(MOST_CHANGES):
            step = self._step(path, text, kind, inspector, verdicts, refused)
            if step is None:
                break
            text, mend = step
            mends.append(mend)
            verdicts = inspector.verdicts(path, text, kind)
        return text, [*mends, *refused.values()]

    def _step(
        self, path: str, text: str, kind: Kind, inspector: Inspector, verdicts: Verdicts, refused: dict[Any, Mend]
    ) -> tuple[str, Mend] | None:
        """The first finding that can be mended, mended."""
        for index, (found, judged, off) in enumerate(verdicts):
            if judged is None:
                continue
            for finding in judged.result.findings:
                key = (index, finding.rule, (*finding.flags, *finding.env, str(finding.span)))
                if finding.conditional_on or finding.after or finding.rule in off or key in refused:
                    continue
                line = text.count("\n", 0, found.at.start) + 1
                best, why = self._best(path, text, kind, inspector, verdicts, index, finding)
                if best is not None:
                    return best.text, Mend(path, line, finding.rule, best.what)
                if why:
                    refused[key] = Mend(path, line, finding.rule, "", why)
        return None

    def _best(
        self, path: str, text: str, kind: Kind, inspector: Inspector, verdicts: Verdicts, index: int, finding: Finding
    ) -> tuple[Trial | None, str]:
        """The best change for a finding, or why there is none (empty: nothing was to be done)."""
        found, judged, _ = verdicts[index]
        assert judged is not None
        trials: list[Trial] = []
        why = ""
        if self.unsafe and finding.severity == "note":
            fixes: list[Fix] = [fix for fix in fixes_for(finding, judged) if _is_respelling(fix)]
        else:
            fixes = fixes_for(finding, judged)
        for fix in fixes:
            what = fix_text(fix, judged.context.resolver.program)
            try:
                new = apply(text, edits_of(fix, found, judged, text))
                after = inspector.verdicts(path, new, kind)
            except (Unmendable, Unreadable) as error:
                why = why or f"{what}: {error}"
                continue
            complaint = self._complaint(verdicts, after, index, finding, fix)
            if complaint is None:
                trials.append(Trial(new, _leaves(after), what))
            elif complaint:
                why = why or f"{what}: {complaint}"
        if not trials:
            return None, why if finding.severity != "note" else ""
        return min(trials, key=lambda trial: trial.leaves), ""

    def _complaint(self, before: Verdicts, after: Verdicts, index: int, finding: Finding, fix: Fix) -> str | None:
        """Why a change is not made; None: it holds. Empty: it is not safe, and only that was asked for."""
        if len(after) != len(before):
            return "another number of launches would be read"
        old, new = before[index][1], after[index][1]
        if old is None or new is None:
            return "the launch could not be judged any more"
        keeps = _same_values(old, new, (*fix.unset, *fix.env))
        if not keeps and not self.unsafe:
            return ""
        if _has(new.result, finding) >= _has(old.result, finding):
            return "the finding would stay"
        for place, ((_, was, _), (_, now, _)) in enumerate(zip(before, after, strict=True)):
            added = _serious(now, keeps) - _serious(was, keeps)
            if added:
                return f"it would bring {', '.join(sorted(added))}"
            if place != index and not keeps and was is not None and now is not None and was.result != now.result:
                return "another launch of the file would change"
        return None


def _is_respelling(fix: Fix) -> bool:
    """Whether a fix only writes something otherwise, or takes a spelling away."""
    return any(name.startswith("-") for name in fix.unset) or bool(fix.env and fix.unset)


def _same_values(before: Judged, after: Judged, apart_from: Iterable[str]) -> bool:
    """Whether everything in force is the same, but for variables that go by another name now."""
    ends = [[outcome.state.spaces for outcome in judged.result.outcomes] for judged in (before, after)]
    if len(ends[0]) != len(ends[1]) or before.context.facts.doubtful != after.context.facts.doubtful:
        return False
    out = set(apart_from)
    return all(
        a["flag"] == b["flag"] and {n: v for n, v in a["env"].items() if n not in out} == {n: v for n, v in b["env"].items() if n not in out}
        for a, b in zip(*ends, strict=True)
    )  # fmt: skip


def _has(result: Result, finding: Finding) -> int:
    """How often a finding is made."""
    key = (finding.rule, finding.flags, finding.env)
    return sum((f.rule, f.flags, f.env) == key for f in result.findings if not f.after)


def _serious(judged: Judged | None, keeps: bool) -> set[str]:
    """Rules that a change must not add: errors, and warnings too where it is to keep the meaning."""
    levels = ("error", "warning") if keeps else ("error",)
    findings = judged.result.findings if judged else ()
    return {f.rule for f in findings if f.severity in levels and not f.conditional_on and not f.after}


def _leaves(verdicts: Verdicts) -> tuple[int, int, int]:
    """Errors, warnings and all findings that are left."""
    found = [f for _, judged, _ in verdicts if judged for f in judged.result.findings if not f.conditional_on]
    return sum(f.severity == "error" for f in found), sum(f.severity == "warning" for f in found), len(found)


def _diff(path: str, old: str, new: str) -> str:
    """A unified diff, as `patch` and `git apply` read it."""
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
