"""Independent pieces of work -> their results in order, worked out beside each other where there are cores for it.

A forked child has all that is loaded, does one piece and sends back what came of it. Where that is not possible (one
core, other threads, no Linux), or a child does not come to an end, the piece is done here: the results are the same.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

Work = Callable[[], Any]
"""A piece of work; its result is made of plain values: texts, numbers, null, and lists, tuples and mappings of them."""


def begin(works: Sequence[Work]) -> Callable[[], list[Any]]:
    """Begin; what is returned waits for the results."""
    begun = [_begun(work) if _may_fork(len(works)) else None for work in works]

    def results() -> list[Any]:
        sent = [None if child is None else _sent(*child) for child in begun]
        return [work() if data is None else marshal.loads(data) for work, data in zip(works, sent, strict=True)]

    return results


def _may_fork(count: int) -> bool:
    threading = sys.modules.get("threading")
    alone = threading is None or threading.active_count() == 1
    return sys.platform == "linux" and alone and count > 1 and len(os.sched_getaffinity(0)) > 1


def _begun(work: Work) -> tuple[int, int] | None:
    """A child at work: its process id, and the end of a pipe that its result comes out of."""
    outlet, inlet = os.pipe()
    try:
        child = os.fork()
    except OSError:  # no process to be had
        os.close(outlet)
        os.close(inlet)
        return None
    if child:
        os.close(inlet)
        return child, outlet
    status = 1
    try:
        with os.fdopen(inlet, "wb") as pipe:
            marshal.dump(work(), pipe)
        status = 0
    finally:
        os._exit(status)  # whatever happened: the parent does it again and says so


def _sent(process: int, outlet: int) -> bytes | None:
    """What a child has sent; None where it did not come to an end."""
    with os.fdopen(outlet, "rb") as pipe:
        sent = pipe.read()
    _, status = os.waitpid(process, 0)
    return sent if status == 0 else None
