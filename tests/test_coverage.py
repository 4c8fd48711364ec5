"""Coverage: every place of a small engine is found, and judged by the rules that cite it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from solver.coverage import as_data, as_text, coverage, set_aside, share, table
from solver.coverage_sites import Site, sites
from solver.knowledge import Knowledge, load
from solver.records import Source
from solver.store import default_root

ENGINE = """
class ServerArgs:
    def __post_init__(self):
        self._handle_one()
        register_other(_declared)

    def _handle_one(self):
        if self.page_size is not None:
            if self.page_size < 1:
                raise ValueError("x")
            self.attention_backend = "triton"
        elif not is_hip():
            assert self.tp_size % 2 == 0
        if is_hip():
            self.page_size = 16

    def _never_called(self):
        raise ValueError("x")


def _declared(server_args):
    overrides = {}
    overrides["kv_cache_dtype"] = "auto"
    declare_resolution(server_args, "one", moe_runner_backend="auto")
    return {"page_size": 1}
"""
NAMES = ("page_size", "attention_backend", "tp_size", "kv_cache_dtype", "moe_runner_backend")


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return load(default_root())


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    file = tmp_path / "sglang" / "srt" / "server_args.py"
    file.parent.mkdir(parents=True)
    file.write_text(ENGINE)
    return tmp_path


def found(engine: Path) -> list[Site]:
    return sites(engine, NAMES)


def test_refusals_and_writes_on_the_path_are_found(engine: Path) -> None:
    assert [(s.symbol, s.kind, s.flags) for s in found(engine)] == [
        ("_handle_one", "raise", ("page_size",)),
        ("_handle_one", "write", ("attention_backend",)),
        ("_handle_one", "assert", ("tp_size",)),
        ("_handle_one", "write", ("page_size",)),
        ("_declared", "write", ("kv_cache_dtype",)),
        ("_declared", "write", ("moe_runner_backend",)),
        ("_declared", "write", ("page_size",)),
    ]


def test_what_no_launch_reaches_is_left_out(engine: Path) -> None:
    assert "_never_called" not in {s.symbol for s in found(engine)}


def test_a_condition_that_excludes_a_platform_is_not_taken_for_that_platform(engine: Path) -> None:
    guards = {s.kind + s.flags[0]: s.guards for s in found(engine) if s.symbol == "_handle_one"}
    assert "is_hip" in guards["writepage_size"]
    assert "is_hip" not in guards["asserttp_size"]


def rule(knowledge: Knowledge, **changes: object) -> Knowledge:
    """The knowledge with one rule only."""
    some = next(r for r in knowledge.rules.values() if r.id == "nextn-becomes-eagle")
    source = Source(release="0.5.9", file="sglang/srt/server_args.py", symbol="_handle_one")
    plain = msgspec.structs.replace(some, when=(), set={}, cases=(), let={}, sources=(source,), severity=None)
    return msgspec.structs.replace(knowledge, rules={some.id: msgspec.structs.replace(plain, **changes)})


def covered(knowledge: Knowledge, engine: Path) -> set[tuple[str, tuple[str, ...]]]:
    return {(j.site.kind, j.site.flags) for j in coverage(knowledge, "0.5.9", engine) if j.state == "covered"}


def test_a_rule_covers_the_write_that_it_makes(knowledge: Knowledge, engine: Path) -> None:
    assert covered(rule(knowledge, set={"attention_backend": "triton"}), engine) == {("write", ("attention_backend",))}


def test_a_refusal_is_covered_by_an_error_about_its_flags_only(knowledge: Knowledge, engine: Path) -> None:
    about_pages = {"severity": "error", "require": ("flag.page_size == 1",)}
    assert covered(rule(knowledge, **about_pages), engine) == {("raise", ("page_size",))}
    assert covered(rule(knowledge, **{**about_pages, "severity": "warning"}), engine) == set()


def test_a_rule_of_other_releases_covers_nothing(knowledge: Knowledge, engine: Path) -> None:
    assert covered(rule(knowledge, set={"attention_backend": "triton"}, versions=">=0.5.20"), engine) == set()


def test_other_platforms_are_set_aside_with_a_reason(knowledge: Knowledge, engine: Path) -> None:
    judged = coverage(rule(knowledge), "0.5.9", engine)
    assert [(j.site.flags, j.by) for j in judged if j.state == "set aside"] == [(("page_size",), "other platform")]


def test_every_line_set_aside_says_what_and_why(knowledge: Knowledge) -> None:
    for line in set_aside(Path(knowledge.root)):
        assert line.why
        assert line.file or line.symbol or line.flag or line.guard, line


def test_table_text_and_data_agree(knowledge: Knowledge, engine: Path) -> None:
    judged = coverage(knowledge, "0.5.9", engine)
    counts = table(judged)["all"]
    assert sum(counts.values()) == len(judged) == len(as_data("0.5.9", judged)["sites"])
    assert f"{share(counts):.1%}" in as_text("0.5.9", judged)
