"""The outside contract: exit statuses, one-line errors, batch, and what the quick reader and typer agree on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from solver import batch, context
from solver.cli import read_quickly
from solver.usage import VERBS

GOOD = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 2"
HERE = ("--hardware", "8xh100-sxm", "--engine-version", "0.5.10")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("validate", ""), ["empty", "sglang"]),
        (("validate", "ls -l"), ["no SGLang launch"]),
        (("validate", "python -m sglang.launch_server --model-path 'x"), ["never closed"]),
        (("validate", GOOD, "--engine-version", "9.9"), ["unknown release", "0.5.23"]),
        (("validate", GOOD, "--hardware", "8xfoo"), ["unknown GPU", "h100-sxm"]),
        (("validate", GOOD, "--model", "/no/such/folder"), ["unknown model"]),
        (("validate", GOOD, "--format", "xml"), ["expected text, json"]),
        (("validate", GOOD, "--fail-on", "never"), ["expected error, warning, note"]),
        (("validate", GOOD, "--nope"), ["--nope"]),
        (("validate", GOOD, "--context", "many"), ["whole number"]),
        (("validate", GOOD, "--context", "0"), ["at least 1"]),
        (("validate", "--batch", "/no/such/file"), ["cannot read"]),
        (("validate", GOOD, "--require-context"), ["release is not stated"]),
        (("solve", "--goal", "nope", "--", "--tp", "8"), ["unknown goal", "min-pcie-roundtrips"]),
        (("solve", "--model", "qwen3-8b", *HERE, "--", "--no-such-flag"), ["--no-such-flag"]),
        (("explain", "no-such-rule"), ["no rule, flag, goal or signature"]),
        (("explain",), ["expected one name"]),
        (("graph", "--around", "--nope", GOOD), ["unknown flag"]),
        (("inspect", "model", "/no/such/folder"), ["unknown model"]),
        (("inspect", "hardware", "8xnothing"), ["unknown GPU"]),
        (("frobnicate",), ["frobnicate"]),
        (("inspect",), ["flagwise inspect model", "flagwise inspect hardware"]),
        (("knowledge", "lint", "no-such-rule"), ["no rule", "no-such-rule"]),
        (("estimate", GOOD), ["estimate needs hardware.vendor", "--hardware"]),
        (("validate", "--lock", "/no/such/file"), ["cannot read the lock file /no/such/file: No such file"]),
        (("diff", "no-such-file.sh", GOOD), ["no such file"]),
        (("gate", "--config", "/no/such.toml"), ["cannot read /no/such.toml: No such file"]),
        (("knowledge", "coverage", "--release", "0.4"), ["expected one of", "0.5.23"]),
        (("knowledge", "coverage", "--release", "0.5.10", "--wheel", "/no/such"), ["no such file"]),
    ],
)
def test_a_wrong_request_ends_in_one_clear_line(
    flagwise: Callable[..., Any], args: tuple[str, ...], words: list[str]
) -> None:
    done = flagwise(*args)
    assert done.status == 2
    assert done.out == ""
    assert done.err.count("\n") == 1
    for word in words:
        assert word in done.err


def test_a_wrong_request_is_json_where_json_was_asked_for(flagwise: Callable[..., Any]) -> None:
    for form in (("--format", "json"), ("--format=json",)):
        done = flagwise("validate", GOOD, "--engine-version", "9.9", *form)
        assert done.status == 2
        assert "unknown release" in json.loads(done.out)["error"]


@pytest.mark.parametrize("content", ["{", '{"architectures": 3}', "[]", ""])
def test_a_broken_checkpoint_ends_in_one_line(flagwise: Callable[..., Any], tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    done = flagwise("validate", GOOD, "--model", str(tmp_path), *HERE)
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert "config.json" in done.err


def test_a_broken_hardware_file_ends_in_one_line(flagwise: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "machine.yaml"
    for content in ("gpu: [", "nonsense: 1", "- 3"):
        path.write_text(content)
        done = flagwise("validate", GOOD, "--hardware", str(path), "--engine-version", "0.5.10")
        assert done.status == 2, content
        assert done.err.count("\n") == 1


def test_broken_knowledge_is_named(
    flagwise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sglang").mkdir()
    (tmp_path / "sglang" / "releases.yaml").write_text("- version: [")
    monkeypatch.setenv("FLAGWISE_KNOWLEDGE", str(tmp_path))
    done = flagwise("validate", GOOD)
    assert done.status == 2
    assert "releases.yaml" in done.err


def test_statuses_do_not_depend_on_the_format(flagwise: Callable[..., Any]) -> None:
    bad = f"{GOOD} --no-such-flag"
    for form in ("text", "json"):
        assert flagwise("validate", GOOD, *HERE, "--format", form).status == 0
        assert flagwise("validate", bad, *HERE, "--format", form).status == 1


def test_fail_on_moves_the_line(flagwise: Callable[..., Any]) -> None:
    noted = f"SGLANG_NO_SUCH_VARIABLE=1 {GOOD}"
    assert flagwise("validate", noted, *HERE).status == 0
    assert flagwise("validate", noted, *HERE, "--fail-on", "warning").status == 1


def test_a_command_comes_as_text_argv_or_standard_input(flagwise: Callable[..., Any]) -> None:
    as_text = flagwise("validate", GOOD, *HERE, "--format", "json")
    as_argv = flagwise("validate", *HERE, "--format", "json", "--", *GOOD.split())
    piped = flagwise("validate", "-", *HERE, "--format", "json", stdin=GOOD)
    assert as_text.out == as_argv.out == piped.out


def test_batch_keeps_order_and_survives_bad_lines(flagwise: Callable[..., Any], tmp_path: Path) -> None:
    lines = [
        {"id": "a", "command": GOOD, "engine_version": "0.5.10", "hardware": "8xh100-sxm"},
        {"id": "b", "argv": ["--tp", "2"], "model": "qwen3-8b", "engine_version": "0.5.9"},
        {"id": "c", "command": "ls"},
        {"id": "d", "command": GOOD, "surprise": 1},
    ]
    path = tmp_path / "batch.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in lines) + '{broken\n\n[1]\n{"id": "\\ud800"}\n')
    done = flagwise("validate", "--batch", str(path))
    rows = [json.loads(row) for row in done.out.splitlines()]
    assert [r["id"] for r in rows] == ["a", "b", "c", "d", None, None, None]
    assert [("error" in r) for r in rows] == [False, False, True, True, True, True, True]
    assert done.status == 2
    assert rows[0]["verdict"] == "valid"


def test_lines_that_are_judged_together_are_answered_as_if_alone(
    flagwise: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "WINDOW", 5)  # so that a window ends in the midst of the file
    rows = [
        {
            "id": [release, tp],
            "command": GOOD.replace("--tp 2", f"--tp {tp} {more}"),
            "engine_version": release,
            **where,
        }
        for tp, more in ((2, ""), (3, "--enable-dp-attention"), (4, "--speculative-algorithm EAGLE"))
        for release in ("0.5.23", "0.5.9", "0.5.10")
        for where in ({"hardware": "8xh100-sxm"}, {"hardware": "2xrtx-4090"})
    ]
    path = tmp_path / "batch.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    together = flagwise("validate", "--batch", str(path)).out.splitlines()
    assert len(together) == len(rows)
    for row, answer in zip(rows, together, strict=True):
        monkeypatch.setattr(context, "_resolvers", {})  # nothing is remembered, and nothing shared among releases
        options = ("--engine-version", row["engine_version"], "--hardware", row["hardware"])
        alone = json.loads(flagwise("validate", row["command"], *options, "--format", "json").out)
        assert {"id": row["id"], **alone} == json.loads(answer)


def test_what_was_read_before_a_file_breaks_off_is_answered(flagwise: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "batch.jsonl"
    good = json.dumps({"id": "a", "command": GOOD, "engine_version": "0.5.10"}) + "\n"
    path.write_bytes(good.encode() * 300 + b"\xff\n")  # more than is read ahead of a line
    done = flagwise("validate", "--batch", str(path))
    assert done.status == 2 and "cannot read the batch file" in done.err
    answers = [json.loads(row) for row in done.out.splitlines()]
    assert len(answers) > 200 and all("verdict" in answer for answer in answers)


def test_the_json_result_has_its_stable_keys(flagwise: Callable[..., Any]) -> None:
    data = json.loads(flagwise("validate", f"{GOOD} --no-such-flag", *HERE, "--format", "json").out)
    assert set(data) == {
        "schema", "flagwise", "knowledge", "engine", "model", "hardware", "verdict", "findings", "resolved", "evidence",
        "assumed",
    }  # fmt: skip
    assert set(data["findings"][0]) == {
        "rule", "severity", "stage", "status", "title", "flags", "env", "message", "because", "conditional_on", "after",
        "span", "fixes", "sources",
    }  # fmt: skip
    start, end = next(f["span"] for f in data["findings"] if f["rule"] == "unknown-flag")
    assert f"{GOOD} --no-such-flag"[start:end] == "--no-such-flag"


def test_the_release_comes_from_the_image_tag(flagwise: Callable[..., Any]) -> None:
    text = (
        "docker run --gpus all lmsysorg/sglang:v0.5.9-cu130 python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B"
    )
    engine = json.loads(flagwise("validate", text, "--format", "json").out)["engine"]
    assert engine["version"] == "0.5.9"
    assert engine["from"] == "image"


def test_the_quick_reader_reads_what_typer_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every verb and option through both readers gives the same values."""
    from solver.commandline import run

    seen: list[dict[str, Any]] = []
    for name, verb in VERBS.items():
        monkeypatch.setitem(VERBS, name, verb._replace(run=_recorder(seen)))
    for name, verb in list(VERBS.items()):
        argv = name.split()
        for option in verb.options:
            value = option.choices[-1] if option.choices else "3"
            argv += [option.name] if option.kind is bool else [option.name, value]
        argv += ["--", "x", "--y"] if verb.arguments else []
        seen.clear()
        assert run(argv) == 0
        quick = read_quickly(argv)
        assert quick is not None, argv
        assert seen == [quick[1]], name


def _recorder(seen: list[dict[str, Any]]) -> Callable[[dict[str, Any]], int]:
    def record(values: dict[str, Any]) -> int:
        """Record."""
        seen.append(values)
        return 0

    return record


@pytest.mark.parametrize(
    "args",
    [
        ("solve", "--model", "qwen3.5-397b-a17b-nvfp4", "--hardware", "8xrtx-pro-6000", "--engine-version", "0.5.10"),
        ("validate", "--engine-version", "0.5.9", "--model", "qwen3.5-397b-a17b-nvfp4", "--", "--tp", "8", "--nope"),
    ],
)
def test_the_answer_does_not_depend_on_the_hash_seed(args: tuple[str, ...]) -> None:
    outputs = set()
    for seed in ("0", "1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-m", "solver.cli", args[0], "--format", "json", *args[1:]]
        outputs.add(subprocess.run(command, capture_output=True, text=True, env=env, check=False).stdout)
    assert len(outputs) == 1
    assert outputs != {""}


def test_help_lists_every_verb(flagwise: Callable[..., Any]) -> None:
    done = flagwise("--help")
    assert done.status == 0
    for name in VERBS:
        assert name.split()[0] in done.out
    assert "--hardware" in flagwise("solve", "--help").out


def test_inspect_and_version(flagwise: Callable[..., Any]) -> None:
    assert "model.linear_attention" in flagwise("inspect", "model", "qwen3.5-397b-a17b-nvfp4").out
    machine = json.loads(flagwise("inspect", "hardware", "8xrtx-pro-6000", "--format", "json").out)["hardware"]
    assert (machine["sm"], machine["gpus"], machine["link"]) == (120, 8, "pcie")
    assert flagwise("version").out.startswith("flagwise ")
    assert flagwise("--version").out == flagwise("version").out
    assert flagwise("-h").out == flagwise("--help").out
    assert flagwise("validate", GOOD, *HERE[:3], "v0.5.10").out == flagwise("validate", GOOD, *HERE).out  # a tag


def test_estimate_gives_ranges_and_inputs(flagwise: Callable[..., Any]) -> None:
    common = (
        "estimate",
        "--model",
        "qwen3.5-397b-a17b-nvfp4",
        "--hardware",
        "8xrtx-pro-6000",
        "--engine-version",
        "0.5.10",
    )
    data = json.loads(flagwise(*common, "--format", "json", "--", "--tp", "8").out)
    latency = data["metrics"]["token_latency_us"]
    assert latency["low"] < latency["value"] < latency["high"]
    assert latency["inputs"]["path"] == "nccl"
    assert data["metrics"]["pcie_roundtrips_per_token"]["value"] == 121 * 14
    assert data["memory"]["fits"] is True
    assert "range" in flagwise(*common, "--", "--tp", "8").out


def test_explain_tells_rule_flag_and_goal(flagwise: Callable[..., Any]) -> None:
    rule = flagwise("explain", "spec-on-hybrid-needs-extra-buffer").out
    for word in ("error", ">=0.5.10,<0.5.14", "fix:", "source:", "fails:", "passes:"):
        assert word in rule
    flag = flagwise("explain", "mamba-scheduler-strategy", "--engine-version", "0.5.10").out
    assert "extra_buffer" in flag
    assert "spec-on-hybrid-needs-extra-buffer" in flag
    assert flagwise("explain", "--mamba-scheduler-strategy", "--engine-version", "0.5.10").out == flag
    assert flagwise("explain", "--tp").out == flagwise("explain", "tp-size").out
    assert "Usage" in flagwise("explain", "--help").out
    assert "PCIe round trips" in flagwise("explain", "min-pcie-roundtrips").out


def test_a_script_in_place_of_a_command_says_how_to_give_it(flagwise: Callable[..., Any], tmp_path: Path) -> None:
    script = tmp_path / "serve.sh"
    script.write_text(GOOD)
    done = flagwise("validate", str(script))
    assert done.status == 2
    assert f"- < {script}" in done.err


# -------------------------------------------------------------------- launch


@pytest.fixture
def pretend(tmp_path: Path) -> dict[str, str]:
    """A `sglang` package that prints what it is started with."""
    package = tmp_path / "sglang"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "launch_server.py").write_text(
        "import json, os, sys\nprint(json.dumps([sys.argv[1:], os.environ.get('SGLANG_X')]))\n"
    )
    root = str(Path(__file__).parent.parent)
    return {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{root}"}


def launched(env: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "solver.cli", "launch", *args], capture_output=True, text=True, env=env, check=False
    )


def test_launch_becomes_the_command_without_a_shell(pretend: dict[str, str]) -> None:
    argv = [
        sys.executable,
        "-m",
        "sglang.launch_server",
        "--model-path",
        "Qwen/Qwen3-8B",
        "--served-model-name",
        "a b; $(c)",
    ]
    done = launched(pretend, *HERE, "--", "env", "SGLANG_X=1", *argv)
    assert done.returncode == 0, done.stderr
    *_, last = done.stdout.splitlines()
    assert json.loads(last) == [argv[3:], "1"]
    assert "starting:" in done.stdout


def test_launch_refuses_errors_unless_forced(pretend: dict[str, str]) -> None:
    argv = [sys.executable, "-m", "sglang.launch_server", "--model-path", "Qwen/Qwen3-8B", "--no-such-flag"]
    refused = launched(pretend, *HERE, "--", *argv)
    assert refused.returncode == 1
    assert "starting:" not in refused.stdout
    assert "--force" in refused.stderr
    forced = launched(pretend, *HERE, "--force", "--", *argv)
    assert forced.returncode == 0
    assert json.loads(forced.stdout.splitlines()[-1])[0] == argv[3:]


def test_launch_says_when_the_program_is_not_there(pretend: dict[str, str]) -> None:
    done = launched(
        pretend, *HERE, "--", "no-such-python", "-m", "sglang.launch_server", "--model-path", "Qwen/Qwen3-8B"
    )
    assert done.returncode == 2
    assert "no-such-python" in done.stderr


def test_a_model_newer_than_the_release_is_told(flagwise: Callable[..., Any]) -> None:
    """The way out names the first release that has the model class, and there the warning is gone."""
    launch = "sglang serve --model-path deepseek-ai/DeepSeek-V4-Flash --tp 8"

    def judged(release: str) -> dict[str, Any]:
        done = flagwise("validate", launch, "--hardware", "8xb200", "--engine-version", release, "--format", "json")
        found = [f for f in json.loads(done.out)["findings"] if f["rule"] == "architecture-from-a-later-release"]
        return dict(found[0]) if found else {}

    (fix,) = judged("0.5.10")["fixes"]
    assert fix["upgrade"] == "0.5.12"
    assert not judged(fix["upgrade"])


def test_inspect_says_where_each_trait_was_read(flagwise: Callable[..., Any], tmp_path: Path) -> None:
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 1000,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    origins = json.loads(flagwise("inspect", "model", str(tmp_path), "--format", "json").out)["origins"]
    assert origins["layers"] == "config.json: num_hidden_layers"
    assert origins["max_context"] == "default of the config class of llama"
    assert origins["weight_gib"] == "computed from shapes and formats"
    catalogued = json.loads(flagwise("inspect", "model", "qwen3-8b", "--format", "json").out)
    assert set(catalogued["origins"].values()) == {"catalogue entry qwen3-8b"} and catalogued["sources"]
    assert catalogued["origins"].keys() == catalogued["model"].keys()


def test_what_rests_on_a_default_is_open_where_the_command_may_give_it(flagwise: Callable[..., Any]) -> None:
    """`$MORE` may give the size that is missing; written out as nothing, the same is an error."""
    command = f"{GOOD.removesuffix(' --tp 2')} --dp-size 8 --enable-dp-attention"
    told = json.loads(flagwise("validate", f"{command} $MORE", *HERE, "--format", "json").out)
    found = next(f for f in told["findings"] if f["rule"] == "tp-not-divisible-by-dp")
    assert found["conditional_on"] == ["flag.tp_size"]
    assert told["verdict"] == "conditional"
    assert json.loads(flagwise("validate", command, *HERE, "--format", "json").out)["verdict"] == "invalid"
