"""The knowledge loads strictly, passes its own lint, and its cache follows the files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from solver.errors import KnowledgeError
from solver.knowledge import holds, load, read_yaml
from solver.lint import lint
from solver.store import Store, default_root, seal


def test_every_rule_passes_the_lint(store: Store) -> None:
    """Shape, names, sources, and each rule's own examples and fixes."""
    assert lint(load(default_root()), store) == []


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the knowledge that a test may change."""
    root = tmp_path / "knowledge"
    shutil.copytree(default_root(), root, ignore=shutil.ignore_patterns("__pycache__", "_compiled"))
    return root


def rule_file(root: Path, rule: str) -> Path:
    return next((root / "sglang" / "rules").rglob(f"{rule}.yaml"))


def test_an_unknown_key_is_an_error_that_names_the_file(copied: Path) -> None:
    path = rule_file(copied, "spec-steps-missing")
    path.write_text(path.read_text() + "\nsurprise: 1\n")
    with pytest.raises(KnowledgeError, match=r"spec-steps-missing.*surprise"):
        load(copied)


def test_a_key_that_stands_twice_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: 1\na: 2\n")
    with pytest.raises(KnowledgeError, match="stands twice"):
        read_yaml(path)


def test_broken_yaml_and_wrong_ids_are_named(copied: Path) -> None:
    path = rule_file(copied, "spec-steps-missing")
    path.rename(path.with_name("other-name.yaml"))
    with pytest.raises(KnowledgeError, match="not the file name"):
        load(copied)
    path.with_name("other-name.yaml").write_text("id: [")
    with pytest.raises(KnowledgeError, match="not YAML"):
        load(copied)


def test_yaml_is_read_with_a_safe_loader(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("!!python/object/apply:os.system ['true']\n")
    with pytest.raises(KnowledgeError):
        read_yaml(path)


@pytest.mark.parametrize(
    ("release", "inside"),
    [("0.5.9", False), ("0.5.10", True), ("0.5.10.post1", True), ("0.5.13.post1", True), ("0.5.14", False)],
)
def test_post_releases_fall_where_one_expects(release: str, inside: bool) -> None:
    assert holds(">=0.5.10,<0.5.14", release) is inside


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("severity: error", "severity: error\nset: {tp_size: 1}", "exactly one of"),
        ("flag.speculative_algorithm in", "flag.no_such_flag in", "unknown flag.no_such_flag"),
        ("status: oracle", 'status: oracle\nversions: ">0.5.9"', "only >= and <"),
        ("step: speculative_decoding", "step: no_such_step", "has no step no_such_step"),
    ],
)
def test_the_lint_names_what_is_wrong(copied: Path, old: str, new: str, complaint: str) -> None:
    path = rule_file(copied, "spec-topk-missing")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    found = lint(load(copied), Store(copied), "spec-topk-missing")
    assert any(complaint in line for line in found), found


def test_the_cache_is_rebuilt_when_a_file_changes(copied: Path) -> None:
    before = Store(copied).index.hash
    assert Store(copied).index.hash == before
    path = rule_file(copied, "spec-steps-missing")
    path.write_text(path.read_text().replace("title: Top-k", "title: Top k"))
    assert Store(copied).index.hash != before


def test_a_sealed_cache_is_used_until_a_file_is_edited(
    copied: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FLAGWISE_CACHE", str(tmp_path / "cache"))
    seal(copied, copied / "_compiled")
    assert Store(copied).index.hash
    assert not (tmp_path / "cache").exists()
    path = rule_file(copied, "spec-steps-missing")
    path.unlink()
    assert Store(copied).rule("spec-steps-missing") is None


def test_a_place_that_cannot_be_written_is_no_error(
    copied: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("FLAGWISE_CACHE", str(blocked))
    assert Store(copied).program("0.5.10").release == "0.5.10"
    assert os.path.getsize(blocked) == 0  # noqa: PTH202
