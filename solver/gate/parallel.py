"""Files -> the same report from several processes, in the order of the files."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable

from solver.gate.files import Candidate
from solver.gate.inspect import Inspector
from solver.gate.report import Report

AT_ONCE = 8
"""Files that a process takes at a time."""
_mine: Inspector | None = None


def run(inspector: Inspector, candidates: Iterable[Candidate], jobs: int, progress: Callable[[int], None]) -> None:
    """Look at the files with several processes; where they cannot be forked, with this one."""
    if "fork" not in multiprocessing.get_all_start_methods():
        inspector.run(candidates, progress)
        return
    with multiprocessing.get_context("fork").Pool(jobs, _adopt, (inspector,)) as pool:
        for report, used in pool.imap(_look_at, candidates, AT_ONCE):
            inspector.take_over(report, used)
            progress(inspector.report.files)


def _adopt(inspector: Inspector) -> None:
    """A forked process has the knowledge that was loaded before."""
    global _mine
    _mine = inspector


def _look_at(candidate: Candidate) -> tuple[Report, set[int]]:
    assert _mine is not None
    _mine.report, _mine.used = Report(), set()
    _mine.run([candidate], lambda number: None)
    return _mine.report, _mine.used
