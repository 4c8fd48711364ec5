"""Work beside each other gives what work one after the other gives, whatever becomes of a child."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import pytest

from solver.side_by_side import begin

HERE = os.getpid()


@pytest.fixture(params=[True, False], ids=["cores", "one core"])
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether there are cores to spare, and no thread but this one."""
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("work is begun beside this only on Linux")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1} if request.param else {0})
    monkeypatch.setattr("threading.active_count", lambda: 1)
    return bool(request.param)


def tell(value: Any) -> tuple[Any, bool]:
    return value, os.getpid() == HERE


def test_results_come_in_order_and_as_they_were(many: bool) -> None:
    values = [None, ("a", 1.5), {"b": [True, -(10**30)]}, "x" * 300_000]
    assert begin([partial(tell, value) for value in values])() == [(value, not many) for value in values]


def test_a_single_piece_is_done_here(many: bool) -> None:
    assert begin([partial(tell, 1)])() == [(1, True)]


def test_what_a_child_cannot_end_is_done_here(many: bool) -> None:
    def dies() -> int:
        if os.getpid() != HERE:
            os._exit(3)
        return 7

    sent = object()
    assert begin([dies, lambda: sent, partial(tell, 1)])() == [7, sent, (1, not many)]


def test_an_error_is_raised_here(many: bool) -> None:
    def fails() -> int:
        raise ValueError("as said")

    with pytest.raises(ValueError, match="as said"):
        begin([fails, partial(tell, 1)])()
    with pytest.raises(ChildProcessError):  # no child is left
        os.waitpid(-1, os.WNOHANG)
