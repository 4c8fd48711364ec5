"""`--perf aiconfigurator`: another estimator's time per token, or one line that says why it has none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

ROOT = Path(__file__).resolve().parent.parent
HERE = ("--model", "deepseek-r1", "--engine-version", "0.5.14")
LAUNCH = "python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8"
ESTIMATE = ("estimate", "--perf", "aiconfigurator", "--format", "json", *HERE)
INSTALLED = find_spec("aiconfigurator") is not None
FAKE = """
from types import SimpleNamespace

def cli_estimate(model_path, system_name, **asked):
    print("progress that nobody asked for")
    if asked["batch_size"] == 13:
        raise ValueError("no data for this batch\\nand a long story")
    global seen
    seen = {"model_path": model_path, "system_name": system_name, **asked}
    tpot = 10.0 / asked["tp_size"] + asked["batch_size"]
    return SimpleNamespace(tpot=tpot, backend_version="0.5.14", system_name=system_name)
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, Any]]:
    """A package with the two names that are used of the real one; gives what it was last asked."""
    for name, text in {"cli/api.py": FAKE, "sdk/common.py": "DefaultHFModels = {'deepseek-ai/DeepSeek-R1'}\n"}.items():
        path = tmp_path / "aiconfigurator" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        (path.parent / "__init__.py").touch()
    (tmp_path / "aiconfigurator" / "__init__.py").touch()
    for name in [n for n in sys.modules if n.partition(".")[0] == "aiconfigurator"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield lambda: sys.modules["aiconfigurator.cli.api"].seen
    for name in [n for n in sys.modules if n.partition(".")[0] == "aiconfigurator"]:
        del sys.modules[name]


def latency(run: Run) -> dict[str, Any]:
    assert run.status == 0, run.err
    return dict(json.loads(run.out)["metrics"]["token_latency_us"])


@pytest.mark.skipif(INSTALLED, reason="aiconfigurator is installed here")
@pytest.mark.parametrize("verb", ["estimate", "solve"])
def test_without_the_package_one_line_says_what_to_install(flagwise: Callable[..., Run], verb: str) -> None:
    run = flagwise(verb, "--perf", "aiconfigurator", *HERE, "--hardware", "8xh200", LAUNCH)
    assert (run.status, run.out) == (2, "")
    assert run.err == "flagwise: --perf aiconfigurator needs that package: pip install 'flagwise[aiconfigurator]'\n"


def test_the_launch_as_it_resolves_is_what_is_asked_about(flagwise: Callable[..., Run], fake: Any) -> None:
    launch = f"{LAUNCH} --ep 8 --kv-cache-dtype fp8_e4m3"
    found = latency(flagwise(*ESTIMATE, "--hardware", "8xh200", "--concurrency", "4", "--context", "3000", launch))
    assert (found["value"], found["low"], found["high"], found["known"]) == (5250.0, None, None, True)
    asked = {"model_path": "deepseek-ai/DeepSeek-R1", "system_name": "h200_sxm", "tp_size": 8, "moe_ep_size": 8}
    asked |= {"moe_tp_size": 1, "isl": 3000, "batch_size": 4, "kvcache_quant_mode": "fp8"}
    assert asked.items() <= fake().items()


def test_replicas_of_attention_count_as_it_counts_them(flagwise: Callable[..., Run], fake: Any) -> None:
    launch = f"{LAUNCH} --dp 8 --enable-dp-attention"
    latency(flagwise(*ESTIMATE, "--hardware", "8xh200", "--concurrency", "64", launch))
    assert {"tp_size": 1, "attention_dp_size": 8, "batch_size": 8, "moe_tp_size": 8}.items() <= fake().items()


@pytest.mark.parametrize(
    ("machine", "more", "why"),
    [
        ("8xmi300x", (), "no tables of sglang for mi300x"),
        ("8xh200", ("--disable-overlap-schedule",), "no notion of steps without overlap"),
        ("8xh200", ("--moe-a2a-backend", "deepep"), "no notion of an expert exchange (deepep)"),
    ],
)
def test_what_it_does_not_know_is_named_and_never_filled_in(
    flagwise: Callable[..., Run], fake: Any, machine: str, more: tuple[str, ...], why: str
) -> None:
    found = latency(flagwise(*ESTIMATE, "--hardware", machine, " ".join([LAUNCH, *more])))
    assert (found["value"], found["missing"]) == (None, [why])


def test_a_model_without_a_configuration_is_not_looked_for_elsewhere(flagwise: Callable[..., Run], fake: Any) -> None:
    words = [*ESTIMATE, "--hardware", "8xh200", "python -m sglang.launch_server --model-path Qwen/Qwen3-32B"]
    words[words.index("deepseek-r1")] = "qwen3-32b"
    run = flagwise(*words)
    assert latency(run)["missing"] == ["no configuration of qwen3-32b"]


def test_its_refusal_is_one_line(flagwise: Callable[..., Run], fake: Any) -> None:
    found = latency(flagwise(*ESTIMATE, "--hardware", "8xh200", "--concurrency", "13", LAUNCH))
    assert found["missing"] == ["aiconfigurator says: no data for this batch"]


def test_solve_shows_its_figures_beside_those_of_the_search(flagwise: Callable[..., Run], fake: Any) -> None:
    asked = ("solve", "--goal", "min-latency", *HERE, "--hardware", "8xh200")
    plain, more = (flagwise(*asked, *perf, "--format", "json") for perf in ((), ("--perf", "aiconfigurator")))
    own, both = json.loads(plain.out), json.loads(more.out)
    assert own["argv"] == both["argv"]  # the search is ours
    assert both["perf"]["answer"]["own_us"] == own["objective"]["after"]["token_latency_us"]
    assert both["perf"]["answer"]["other_us"] or both["perf"]["answer"]["missing"]
    text = flagwise(*asked, "--perf", "aiconfigurator").out
    assert "time per token, ms: our own, which the search used, and aiconfigurator" in text


def test_with_emit_it_is_a_wrong_request(flagwise: Callable[..., Run], fake: Any) -> None:
    run = flagwise("solve", "--perf", "aiconfigurator", "--emit", "shell", *HERE, "--hardware", "8xh200")
    assert run.status == 2 and "--emit" in run.err


def test_the_real_package_answers_for_a_launch_that_it_has_tables_for() -> None:
    python = os.environ.get("FLAGWISE_AICONFIGURATOR", sys.executable if INSTALLED else "")
    if not python:
        pytest.skip("aiconfigurator is not installed; FLAGWISE_AICONFIGURATOR may name a Python that has it")
    words = ["-c", "from solver.cli import main; main()", *ESTIMATE, "--hardware", "8xh200", LAUNCH]
    done = subprocess.run([python, *words], capture_output=True, text=True, cwd=ROOT, check=False)
    found = latency(Run(done.returncode, done.stdout, done.stderr))
    assert 5_000 < found["value"] < 15_000
    assert "tables of SGLang" in found["inputs"]["from"]
