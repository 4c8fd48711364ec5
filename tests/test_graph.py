"""The graph: what is in it, its four forms, and what happens without the dot program."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

CASE = (
    "--tp", "8", "--speculative-algorithm", "NEXTN", "--speculative-num-draft-tokens", "2",
    "--speculative-eagle-topk", "1", "--enable-mscclpp",
)  # fmt: skip


@pytest.fixture
def drawn(flagwise: Callable[..., Any]) -> Callable[..., Any]:
    def run(*options: str, pins: tuple[str, ...] = CASE) -> Any:
        return flagwise(
            "graph", "--model", "qwen3.5-397b-a17b-nvfp4", "--hardware", "8xrtx-pro-6000", "--engine-version", "0.5.10",
            *options, "--", *pins,
        )  # fmt: skip

    return run


def test_violated_rules_and_who_set_what_are_visible(drawn: Callable[..., Any]) -> None:
    data = json.loads(drawn("--format", "json").out)
    nodes = {n["id"]: n for n in data["nodes"]}
    assert nodes["rule.spec-on-hybrid-needs-extra-buffer"]["state"] == "violated"
    assert nodes["rule.spec-steps-missing"]["state"] == "violated"
    assert nodes["flag.enable_mscclpp"]["state"] == "given"
    assert nodes["flag.attention_backend"]["state"] == "set"
    assert "attention-backend-default" in nodes["flag.attention_backend"]["detail"]
    assert {n["kind"] for n in data["nodes"]} >= {"flag", "env", "model", "hardware", "rule"}
    links = {(e["source"], e["target"], e["kind"]) for e in data["links"]}
    assert ("flag.mamba_radix_cache_strategy", "rule.spec-on-hybrid-needs-extra-buffer", "refuses") in links
    assert ("rule.mamba-strategy-auto-is-no-buffer", "flag.mamba_radix_cache_strategy", "sets") in links
    assert ("model.architecture", "rule.spec-on-hybrid-needs-extra-buffer", "needs") in links


def test_networkx_reads_the_json_back(drawn: Callable[..., Any]) -> None:
    import networkx as nx

    graph = nx.node_link_graph(json.loads(drawn("--format", "json").out), edges="links")
    assert nx.is_weakly_connected(graph) or nx.number_weakly_connected_components(graph) < 6


def test_a_valid_launch_has_nothing_violated(drawn: Callable[..., Any]) -> None:
    data = json.loads(drawn("--format", "json", pins=("--tp", "8")).out)
    assert not [n for n in data["nodes"] if n["state"] == "violated"]


def test_around_keeps_the_neighbourhood(drawn: Callable[..., Any]) -> None:
    whole = json.loads(drawn("--format", "json").out)
    near = json.loads(drawn("--format", "json", "--around", "--mamba-scheduler-strategy").out)
    assert any(n["id"] == "flag.mamba_radix_cache_strategy" for n in near["nodes"])
    assert len(near["nodes"]) > 3
    assert near != whole


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs the dot program (package graphviz)")
def test_svg_is_well_formed_and_has_a_legend(drawn: Callable[..., Any]) -> None:
    root = ET.fromstring(drawn("--format", "svg").out)
    texts = {"".join(t.itertext()) for t in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"legend", "rule violated", "given by you", "spec-steps-missing"} <= texts


def test_dot_can_be_drawn_and_mermaid_is_consistent(drawn: Callable[..., Any]) -> None:
    dot = drawn("--format", "dot").out
    assert dot.startswith("digraph")
    assert "cluster_legend" in dot
    mermaid = drawn("--format", "mermaid").out.splitlines()
    assert mermaid[0] == "flowchart LR"
    defined = {m[1] for line in mermaid if (m := re.match(r"\s+(n\d+)[\[({>]", line))}
    used = {n for line in mermaid if re.search(r"(-->|==>|-\.->)", line) for n in re.findall(r"\bn\d+\b", line)}
    assert used <= defined
    assert any(line.strip().startswith("class ") and line.endswith("violated") for line in mermaid)


def test_without_dot_the_message_names_the_package(drawn: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    done = drawn("--format", "svg")
    assert done.status == 2
    assert "graphviz" in done.err
    assert "mermaid" in done.err
    assert drawn("--format", "mermaid").status == 0


def test_output_never_overwrites(drawn: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "graph.dot"
    assert drawn("--output", str(path)).status == 0
    before = path.read_text()
    again = drawn("--output", str(path))
    assert again.status == 2
    assert "there already" in again.err
    assert path.read_text() == before
