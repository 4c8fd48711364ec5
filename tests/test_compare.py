"""`solve --lock`, `validate --lock` and `diff`: what is held, what has changed since, what differs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from solver.compare import account
from solver.compare.lock import Lock, json_schema, parse_lock
from solver.context import Options, build, check_context
from solver.gate.kinds import launches_of
from solver.gate.run import flag_names
from solver.handoff import FORMS
from solver.launch import read_command
from solver.store import Store, default_root

ROOT = Path(__file__).parent.parent
CASE = ("--model", "qwen3-8b", "--hardware", "2xh100-sxm", "--engine-version", "0.5.12")


@pytest.fixture(scope="session")
def locked(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `solve --lock` writes for a small problem."""
    path = tmp_path_factory.mktemp("lock") / "qwen.lock.json"
    argv = ["solve", *CASE, "--lock", str(path), "--emit", "shell", "--", "--served-model-name", "it's $x"]
    done = subprocess.run([sys.executable, "-m", "solver.cli", *argv], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return path.read_text()


@pytest.fixture
def lock(locked: str, tmp_path: Path) -> Path:
    """The lock file of a small problem."""
    path = tmp_path / "qwen.lock.json"
    path.write_text(locked)
    return path


def edited(lock: Path, change: Callable[[Any], object]) -> None:
    data = json.loads(lock.read_text())
    change(data)
    lock.write_text(json.dumps(data))


def changes(flagwise: Callable[..., Any], lock: Path, *more: str, status: int = 0) -> dict[str, Any]:
    done = flagwise("validate", "--lock", str(lock), "--format", "json", *more)
    assert done.status == status, done.err
    return dict(json.loads(done.out)["lock"]["changes"])


def test_a_lock_holds_the_solution_and_what_it_rests_on(flagwise: Callable[..., Any], lock: Path, store: Store) -> None:
    data = json.loads(lock.read_text())
    answer = json.loads(flagwise("solve", *CASE, "--emit", "json", "--", "--served-model-name", "it's $x").out)
    assert (data["argv"], data["env"], data["objective"]) == (answer["argv"], answer["env"], answer["objective"])
    assert data["reasons"] == answer["reasons"]
    held = data["held"]
    assert held["knowledge"] == store.index.hash
    assert held["release"] == "0.5.12"
    assert held["traits"]["model.layers"] == 36
    assert held["traits"]["hardware.sm"] == 90
    assert held["metrics"] == answer["objective"]["after"]
    assert {finding["rule"] for finding in held["findings"]} <= held["rules"].keys()
    assert {r["by"] for r in data["reasons"] if r["kind"] == "rule" and store.rule(r["by"])} <= held["rules"].keys()
    assert held["effective"].keys() == {f"flag.{n}" for n in store.program("0.5.12").flags}
    assert data["request"]["argv"] == ["--served-model-name", "it's $x"]


def test_a_lock_follows_its_schema(lock: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(json.loads(lock.read_text()), json_schema())


def test_a_lock_among_the_files_of_a_project_is_one_launch(lock: Path, store: Store) -> None:
    """What it holds of flags is not taken for configuration files."""
    (found,) = launches_of(lock.read_text(), "json", flag_names(store))
    data = json.loads(lock.read_text())
    assert [word.text for word in found.launch.words] == data["argv"][3:]
    assert found.launch.env == data["env"]


def test_the_same_request_gives_the_same_bytes(flagwise: Callable[..., Any], lock: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.json"
    assert flagwise("solve", *CASE, "--lock", str(again), "--", "--served-model-name", "it's $x").status == 0
    assert again.read_bytes() == lock.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.json", "qwen.lock.json"]


def test_a_file_that_is_there_is_replaced_only_when_asked(flagwise: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("mine")
    refused = flagwise("solve", *CASE, "--lock", str(path))
    assert refused.status == 2
    assert "--overwrite" in refused.err
    assert path.read_text() == "mine"
    assert flagwise("solve", *CASE, "--lock", str(path), "--overwrite").status == 0
    assert json.loads(path.read_text())["schema"] == "flagwise-lock/1"


def test_a_folder_that_is_not_there_is_one_clear_line(flagwise: Callable[..., Any], tmp_path: Path) -> None:
    refused = flagwise("solve", *CASE, "--lock", str(tmp_path / "none" / "x.json"))
    assert refused.status == 2
    assert "cannot write" in refused.err


def test_no_lock_is_written_without_a_solution(flagwise: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    done = flagwise("solve", "--model", "qwen3.5-397b-a17b-nvfp4", "--hardware", "8xh100-sxm", "--engine-version",
                    "0.5.10", "--lock", str(path))  # fmt: skip
    assert done.status == 1
    assert not path.exists()


def test_right_after_writing_nothing_has_changed(flagwise: Callable[..., Any], lock: Path) -> None:
    assert not any(changes(flagwise, lock).values())
    assert f"nothing has changed since {lock} was written" in flagwise("validate", "--lock", str(lock)).out


@pytest.mark.parametrize(
    ("kind", "where", "then", "said"),
    [
        ("head", ("knowledge",), "0", "knowledge  0"),
        ("traits", ("traits", "hardware.sm"), 89, "hardware.sm  89    90"),
        ("metrics", ("metrics", "kv_tokens"), 1, "kv tokens  1 tokens"),
        ("effective", ("effective", "flag.attention_backend"), "x", "--attention-backend  x"),
        ("rules", ("rules", "gone"), "1", "no longer matter: gone"),
        ("flags", ("flags", "flag.tp_size"), 9, "--tensor-parallel-size  9     2"),
    ],
)
def test_each_kind_of_change_is_said(
    kind: str, where: tuple[str, ...], then: Any, said: str, flagwise: Callable[..., Any], lock: Path
) -> None:
    def change(data: Any) -> None:
        held = data["held"]
        (held if len(where) == 1 else held[where[0]])[where[-1]] = then

    edited(lock, change)
    found = changes(flagwise, lock)
    assert [k for k, v in found.items() if v] == [kind]
    assert [(d["name"], d["before"]) for d in found[kind]] == [(where[-1], then)]
    text = flagwise("validate", "--lock", str(lock)).out
    assert text.startswith(f"changed since {lock} was written\n")
    assert said in text


def test_findings_come_and_go_between_releases(flagwise: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    case = ("--model", "qwen3.5-397b-a17b-nvfp4", "--hardware", "8xrtx-pro-6000")
    assert flagwise("solve", *case, "--engine-version", "0.5.10", "--lock", str(path), "--", "--tp", "8").status == 0
    found = changes(flagwise, path, "--engine-version", "0.5.23", status=1)
    assert {"name": "release", "before": "0.5.10", "after": "0.5.23"} in found["head"]
    assert "renamed-flag" in {finding["rule"] for finding in found["gained"]}
    assert not {f["rule"] for f in found["gained"]} & {f["rule"] for f in found["lost"]}
    text = flagwise("validate", "--lock", str(path), "--engine-version", "0.5.23").out
    assert "+ error[renamed-flag]" in text
    assert "no such flag" not in text


def test_a_launch_that_was_edited_is_held_against_the_lock(flagwise: Callable[..., Any], lock: Path) -> None:
    command = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 2 --disable-radix-cache"
    found = changes(flagwise, lock, command)
    assert {"name": "flag.disable_radix_cache", "after": True} in found["flags"]
    assert {"name": "flag.served_model_name", "before": "it's $x"} in found["flags"]
    assert {"name": "flag.disable_radix_cache", "before": False, "after": True} in found["effective"]


def test_rules_that_a_flag_is_there_for_are_held(flagwise: Callable[..., Any], tmp_path: Path) -> None:
    """The rule that demands top-k is silent once it is given; the flag still rests on it."""
    path = tmp_path / "x.json"
    case = ("--model", "qwen3.5-397b-a17b-nvfp4", "--hardware", "8xrtx-pro-6000", "--engine-version", "0.5.10")
    assert flagwise("solve", *case, "--lock", str(path), "--", "--tp", "8").status == 0
    assert "spec-topk-missing" in json.loads(path.read_text())["held"]["rules"]
    assert not any(changes(flagwise, path).values())


def test_what_had_to_be_assumed_is_refused_on_request(flagwise: Callable[..., Any], lock: Path) -> None:
    edited(lock, lambda d: d["request"].update(hardware="8xgone"))
    assert flagwise("validate", "--lock", str(lock)).status == 0
    assert "hardware is not stated" in flagwise("validate", "--lock", str(lock), "--require-context").err
    assert flagwise("validate", "--lock", str(lock), "--batch", "x.jsonl").status == 2


def test_exit_status_is_that_of_validate(flagwise: Callable[..., Any], lock: Path) -> None:
    wrong = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp-sise 2"
    assert flagwise("validate", "--lock", str(lock), wrong).status == 1
    assert flagwise("validate", "--lock", str(lock), "--fail-on", "note").status in (0, 1)
    edited(lock, lambda d: d["held"]["metrics"].update(kv_tokens=1))
    assert flagwise("validate", "--lock", str(lock)).status == 0


def test_rewritten_knowledge_is_named(
    flagwise: Callable[..., Any], lock: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    """A copy of the knowledge in which one rule that mattered says something else."""
    copy = tmp_path / "knowledge"
    shutil.copytree(default_root(), copy, ignore=shutil.ignore_patterns("__pycache__", "*.bin"))
    rules = json.loads(lock.read_text())["held"]["rules"]
    path = next(p for p in sorted((copy / "sglang" / "rules").rglob("*.yaml")) if p.stem in rules)
    text = path.read_text()
    title = yaml.safe_load(text)["title"]
    path.write_text(text.replace(f"title: {title}", f"title: {title} as of late", 1))
    monkeypatch.setenv("FLAGWISE_KNOWLEDGE", str(copy))
    found = changes(flagwise, lock)
    assert [difference["name"] for difference in found["rules"]] == [path.stem]
    assert [difference["name"] for difference in found["head"]] == ["knowledge"]
    assert f"were rewritten: {path.stem}" in flagwise("validate", "--lock", str(lock)).out


def test_a_model_that_is_gone_is_judged_by_the_traits_of_the_lock(flagwise: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    config = {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28,
        "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072,
        "vocab_size": 151936, "torch_dtype": "bfloat16", "max_position_embeddings": 40960, "tie_word_embeddings": True,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    path = tmp_path / "x.json"
    machine = tmp_path / "box.yaml"
    machine.write_text("gpu: h100-sxm\ngpus: 2\n")
    done = flagwise("solve", "--model", str(folder), "--hardware", str(machine), "--engine-version", "0.5.12", "--lock",
                    str(path))  # fmt: skip
    assert done.status == 0, done.err
    shutil.rmtree(folder)
    machine.unlink()
    done = flagwise("validate", "--lock", str(path))
    assert done.out.startswith("nothing has changed")
    assert done.out.count("no longer found; its traits are those of the lock file") == 2
    assert flagwise("validate", "--lock", str(path), "--model", str(tmp_path / "other")).status == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "no lock file"),
        ("[1]", "no lock file"),
        ("x", "no lock file"),
        ('{"schema": "flagwise-lock/9"}', "flagwise-lock/1"),
        ('{"schema": "flagwise-lock/1", "more": 1}', "no lock file"),
    ],
)
def test_what_is_no_lock_is_refused_in_one_line(
    text: str, says: str, flagwise: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    done = flagwise("validate", "--lock", str(path))
    assert done.status == 2
    assert says in done.err
    assert done.err.count("\n") == 1


# ------------------------------------------------------------------------ diff


LAUNCH = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 2"


def differ(flagwise: Callable[..., Any], *args: str, status: int = 0) -> dict[str, Any]:
    done = flagwise("diff", "--format", "json", *args)
    assert done.status == status, done.err or done.out
    return dict(json.loads(done.out))


def test_two_commands_differ_in_flags_values_findings_and_figures(flagwise: Callable[..., Any]) -> None:
    other = f"SGLANG_LOG_MS=1 {LAUNCH} --tp 1 --mem-fraction-static 1.5"
    answer = differ(flagwise, *CASE, LAUNCH, other, status=1)
    found = answer["differences"]
    assert {"name": "flag.tp_size", "before": 2, "after": 1} in found["flags"]
    assert {"name": "flag.mem_fraction_static", "after": 1.5} in found["flags"]
    assert {"name": "SGLANG_LOG_MS", "after": "1"} in found["env"]
    assert {"name": "flag.tp_size", "before": 2, "after": 1} in found["effective"]
    assert any(finding["severity"] == "error" for finding in found["gained"])
    assert answer["metrics"]["before"]["weights_gib"] < answer["metrics"]["after"]["weights_gib"]
    text = flagwise("diff", *CASE, LAUNCH, other).out
    assert "--mem-fraction-static   not given  1.5" in text
    assert "SGLANG_LOG_MS  not set  1" in text


def test_the_other_way_round_the_error_is_lost_and_the_status_is_0(flagwise: Callable[..., Any]) -> None:
    found = differ(flagwise, *CASE, f"{LAUNCH} --mem-fraction-static 1.5", LAUNCH)["differences"]
    assert any(finding["severity"] == "error" for finding in found["lost"])


def test_a_launch_does_not_differ_from_itself(flagwise: Callable[..., Any], lock: Path) -> None:
    assert "no difference" in flagwise("diff", *CASE, LAUNCH, LAUNCH).out
    assert not any(differ(flagwise, str(lock), str(lock))["differences"].values())


@pytest.mark.parametrize("form", [form for form in FORMS if form not in ("argv", "json", "config")])
def test_a_lock_and_what_was_handed_over_are_the_same_launch(
    form: str, flagwise: Callable[..., Any], lock: Path, tmp_path: Path
) -> None:
    text = flagwise("solve", *CASE, "--emit", form, "--", "--served-model-name", "it's $x").out
    suffix = {"k8s": "yaml", "compose": "yaml", "systemd": "service", "slurm": "slurm"}.get(form, "sh")
    path = tmp_path / f"launch.{suffix}"
    path.write_text(text)
    found = differ(flagwise, *CASE, str(lock), str(path))["differences"]
    added = [{"name": "flag.host", "after": "0.0.0.0"}] if form == "k8s" else []
    assert found["flags"] == added
    assert [d["name"] for d in found["effective"]] == [d["name"] for d in added]
    assert not found["env"]
    assert not found["gained"]


def test_one_of_several_launches_of_a_file_is_named_by_its_line(flagwise: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "two.sh"
    path.write_text(f"#!/bin/sh\n{LAUNCH}\n\n{LAUNCH} --tp 1\n")
    found = differ(flagwise, *CASE, f"{path}:2", f"{path}:4")["differences"]
    assert found["flags"] == [{"name": "flag.tp_size", "before": 2, "after": 1}]
    refused = flagwise("diff", *CASE, str(path), LAUNCH)
    assert refused.status == 2
    assert f"{path}:2, {path}:4" in refused.err


def test_a_launch_said_twice_in_a_file_is_one(flagwise: Callable[..., Any], lock: Path, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(flagwise("solve", *CASE, "--emit", "json", "--", "--served-model-name", "it's $x").out)
    assert not any(differ(flagwise, *CASE, str(lock), str(path))["differences"].values())


@pytest.mark.parametrize(
    ("sides", "says"),
    [((LAUNCH,), "diff A B"), ((LAUNCH, LAUNCH, LAUNCH), "diff A B"), (("nope.yaml", LAUNCH), "no such file"),
     (("-", "-"), "not both"), (("echo hi", LAUNCH), "no SGLang launch")],
)  # fmt: skip
def test_what_cannot_be_compared_is_one_clear_line(
    sides: tuple[str, ...], says: str, flagwise: Callable[..., Any]
) -> None:
    done = flagwise("diff", *sides)
    assert done.status == 2
    assert says in done.err
    assert done.err.count("\n") == 1


def test_standard_input_is_one_side(flagwise: Callable[..., Any]) -> None:
    done = flagwise("diff", *CASE, "-", LAUNCH, stdin=f"{LAUNCH} --disable-radix-cache\n")
    assert done.status == 0
    assert "standard input" in done.out


def test_the_same_finding_under_another_spelling_is_the_same(store: Store) -> None:
    """Spellings change between releases; a finding does not come and go with them."""
    keys = []
    for release in ("0.5.12", "0.5.23"):
        options = Options("qwen3-8b", "4xrtx-pro-6000-ws", release)
        context = build(store, read_command("--tp 4", bare=True), options)
        found = account.account_of(context, check_context(context)).findings
        keys += [finding.key for finding in found if finding.rule == "custom-all-reduce-refused-on-pcie"]
    assert len(keys) == 2
    assert keys[0] == keys[1]


def test_a_lock_is_read_as_it_was_written(lock: Path) -> None:
    import msgspec

    from solver.render.data import dumps

    read: Lock = parse_lock(lock.read_text(), "x")
    assert dumps(msgspec.to_builtins(read)) + "\n" == lock.read_text()
