"""Public threads kept in tests/threads: each failing launch gets its rule, each one reported as working no error."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from solver.context import Options, build, check_context
from solver.knowledge import read_yaml
from solver.launch import read_command
from solver.records import Severity
from solver.store import Store

FOLDER = Path(__file__).parent / "threads"


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the finding says; no severity for a launch that works."""

    severity: Severity | None
    about: tuple[str, ...] = ()


class Thread(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One launch of a public thread, rewritten to its essentials."""

    id: str
    url: str
    release: str
    model: str | None
    hardware: str | None
    command: str
    expect: Expected
    rule: str | None


def threads() -> list[Thread]:
    return [msgspec.convert(row, Thread) for path in sorted(FOLDER.glob("*.yaml")) for row in read_yaml(path)]


@pytest.mark.parametrize("thread", threads(), ids=lambda t: t.id)
def test_a_thread_is_judged_as_it_ended(store: Store, thread: Thread) -> None:
    context = build(store, read_command(thread.command), Options(thread.model, thread.hardware, thread.release))
    findings = [f for f in check_context(context).findings if not f.conditional_on and not f.after]
    if thread.expect.severity is None:
        assert [(f.rule, f.message) for f in findings if f.severity == "error"] == []
        return
    found = next((f for f in findings if f.rule == thread.rule), None)
    assert found, [(f.severity, f.rule) for f in findings]
    assert found.severity == thread.expect.severity
    assert {*found.flags, *found.env} & {*thread.expect.about}, (found.flags, found.env)


def test_threads_are_told_apart() -> None:
    ids = [t.id for t in threads()]
    assert sorted(set(ids)) == sorted(ids)
