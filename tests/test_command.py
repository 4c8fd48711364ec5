"""A launch written out is read back as it was."""

from __future__ import annotations

import pytest

from solver.context import Options, build
from solver.handoff.command import flag_words
from solver.launch import read_argv
from solver.store import Store


@pytest.mark.parametrize("release", ["0.5.9", "0.5.10", "0.5.12", "0.5.23"])
def test_each_switch_is_written_as_the_release_reads_it(store: Store, release: str) -> None:
    flags = build(store, read_argv([]), Options(None, None, release)).resolver.program.flags
    switches = {n: f.const for n, f in flags.items() if f.type == "flag" and f.const is not None}
    assert len(switches) > 50
    words = [w for name, value in switches.items() for w in flag_words(flags[name], value)]
    assert [w for w in words if not w.startswith("--")] == []
    context = build(store, read_argv(["--model-path", "x", *words]), Options(None, None, release))
    assert [p.given for p in context.problems if p.refuses] == []
