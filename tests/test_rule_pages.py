"""The pages under docs/rules: every rule has one, and each index leads to it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import ROOT

from solver.knowledge import load
from solver.store import default_root

sys.path.insert(0, str(ROOT / "tools"))

import rule_pages
import write_messages
import write_modules


@pytest.fixture(scope="module")
def pages() -> dict[Path, str]:
    return rule_pages.pages()


def test_every_rule_has_a_page_that_the_index_links(pages: dict[Path, str]) -> None:
    index = pages[rule_pages.FOLDER / "index.md"]
    for rule, topic in rule_pages.topics_of(load(default_root())).items():
        assert rule_pages.FOLDER / topic / f"{rule}.md" in pages
        assert f"({topic}/{rule}.md)" in index


@pytest.mark.parametrize(
    ("name", "entry", "rule"),
    [
        ("hardware", "**sm == 103**", "deepgemm-crash-glm5-b300"),
        ("hardware", "**vendor == amd**", "spec-on-hybrid-needs-extra-buffer"),
        ("models", "**architecture in @mamba_radix_archs**", "spec-on-hybrid-needs-extra-buffer"),
        ("flags", "**mamba_radix_cache_strategy**", "spec-on-hybrid-needs-extra-buffer"),
    ],
)
def test_an_index_leads_from_a_flag_or_trait_to_its_rules(
    pages: dict[Path, str], name: str, entry: str, rule: str
) -> None:
    line = next(t for t in pages[rule_pages.FOLDER / f"{name}.md"].split("\n") if t.startswith(entry))
    assert f"[{rule}]" in line


def test_releases_say_what_begins_and_ends(pages: dict[Path, str]) -> None:
    sections = pages[rule_pages.FOLDER / "releases.md"].split("\n## ")
    section = {s.split("\n", 1)[0]: s for s in sections}
    rule = "[spec-on-hybrid-needs-extra-buffer]"
    assert rule in section["0.5.10"].split("New: ")[1].split("\n")[0]
    assert rule in section["0.5.14"].split("Gone: ")[1].split("\n")[0]


def test_what_a_module_reads_is_found_behind_every_holder(tmp_path: Path) -> None:
    """Arguments lie behind `server_args`, namespaces, getters of one value, `envs`, and names in texts."""
    path = tmp_path / "module.py"
    path.write_text(
        "def f(self, other):\n"
        "    self.server_args.page_size\n"
        "    get_exec().moe.ep_size\n"
        "    get_moe_runner_backend()\n"
        "    envs.SGLANG_X.get()\n"
        "    other.tp_size\n"
    )
    names = {n: n for n in ("page_size", "ep_size", "moe_runner_backend", "SGLANG_X", "tp_size")}
    assert write_modules.reads_of(path, names) == {"page_size", "ep_size", "moe_runner_backend", "SGLANG_X"}


def test_messages_are_read_in_their_constant_pieces(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        'def f(x):\n    assert x, f"one {x} two"\n    raise ValueError("three " + "four")\n    raise KeyError(x)\n'
    )
    assert list(write_messages.raised_in(path)) == [("f", ["one ", " two"]), ("f", ["three ", "four"])]
