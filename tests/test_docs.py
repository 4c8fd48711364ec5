"""What the documentation shows is what comes out."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import write_docs  # noqa: E402  # a tool, not part of the package


def test_everything_derived_is_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    """Commands print what is shown, and the schema is that of the records (`make docs` refreshes)."""
    assert write_docs.main(check=True) == 0, capsys.readouterr().out


def test_every_documented_command_is_a_tested_one() -> None:
    """Commands stand in console blocks, which the test above runs; none hides in another kind of block."""
    shown = 0
    for name in write_docs.PAGES:
        text = (ROOT / name).read_text()
        blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S)
        for language, body in blocks:
            if re.search(r"^\$ |^flagwise ", body, re.M):
                assert language == "console", name
                shown += len(write_docs.commands(body))
    assert shown >= 6


def test_the_make_targets_that_the_docs_name_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for page in [*write_docs.PAGES, "CONTRIBUTING.md"]:
        for target in re.findall(r"(?:`make |^    make )(\w+)", (ROOT / page).read_text(), re.M):
            assert re.search(rf"^{target}:", makefile, re.M), (page, target)


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), (page.name, target)


def test_results_follow_the_schema() -> None:
    """The keys and types of a real result are those of the committed schema."""
    schema = json.loads((ROOT / "docs" / "result.schema.json").read_text())
    done = subprocess.run(
        [sys.executable, "-m", "solver.cli", "validate", "--format", "json", "--engine-version", "0.5.10", "--hardware",
         "8xh100-sxm", "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --nope"],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    follow(json.loads(done.stdout), schema, schema["$defs"])


def follow(value: Any, schema: dict[str, Any], defs: dict[str, Any]) -> None:
    """The part of JSON Schema that the committed schema uses."""
    if "$ref" in schema:
        return follow(value, defs[schema["$ref"].rsplit("/", 1)[1]], defs)
    if "anyOf" in schema:
        return None
    if "enum" in schema:
        assert value in schema["enum"]
    kind = schema.get("type")
    if kind == "object":
        assert isinstance(value, dict)
        assert set(schema.get("required", ())) <= set(value)
        for key, item in value.items():
            known = schema.get("properties")
            if known is not None:
                assert key in known, key
                follow(item, known[key], defs)
            elif isinstance(schema.get("additionalProperties"), dict):
                follow(item, schema["additionalProperties"], defs)
    elif kind == "array":
        assert isinstance(value, list)
        for item in value:
            follow(item, schema.get("items") or {}, defs)
    elif kind == "string":
        assert isinstance(value, str)
    return None
