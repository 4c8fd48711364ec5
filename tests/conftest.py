"""Shared by all tests: one knowledge store, a cache folder of their own, a command line inside the process."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from solver.store import Store, default_root

ROOT = Path(__file__).parent.parent
SHARED = ROOT.parent / "shared"


class Run(NamedTuple):
    """What a command line printed, and its exit status."""

    status: int
    out: str
    err: str


@pytest.fixture(scope="session", autouse=True)
def _cache() -> Iterator[None]:
    """Tests use a cache of their own, so that they see the knowledge as it is on disk."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get("FLAGWISE_CACHE")
        os.environ["FLAGWISE_CACHE"] = folder
        yield
        if before is None:
            del os.environ["FLAGWISE_CACHE"]
        else:
            os.environ["FLAGWISE_CACHE"] = before


@pytest.fixture(scope="session")
def store(_cache: None) -> Store:
    return Store(default_root())


@pytest.fixture
def flagwise(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Run `flagwise ARGS…` in this process."""
    from solver.cli import main

    def run(*args: str, stdin: str = "") -> Run:
        out, err = io.StringIO(), io.StringIO()
        monkeypatch.setattr(sys, "argv", ["flagwise", *args])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as done:
            main()
        return Run(int(done.value.code or 0), out.getvalue(), err.getvalue())

    return run
