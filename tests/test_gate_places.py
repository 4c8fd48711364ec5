"""Where the gate is put: each hook, action, job and unit in the docs is read, and run as far as a machine allows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT, Run

from solver.gate.kinds import kind_of_name

GOOD = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B\n"
BAD = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --nope 1\n"
DOCS = ROOT / "docs" / "gate"


@pytest.fixture
def shell(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a script in bash, where `flagwise` is this checkout's and `pip` does nothing."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    starts = f'#!/bin/sh\nexec {sys.executable} -c "from solver.cli import main; main()" "$@"\n'
    for name, text in {"flagwise": starts, "pip": "#!/bin/sh\n"}.items():
        (binaries / name).write_text(text)
        (binaries / name).chmod(0o755)
    (tmp_path / "work").mkdir()

    def run(script: str, **env: str) -> subprocess.CompletedProcess[str]:
        path = f"{binaries}:{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script], cwd=tmp_path / "work", text=True, capture_output=True,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **env}, check=False,
        )  # fmt: skip

    return run


def test_the_pre_commit_hook_gets_the_files_that_the_gate_looks_at(
    tmp_path: Path, flagwise: Callable[..., Run]
) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    pattern = re.compile(hook["files"])
    names = ["a.sh", "b/Dockerfile", "Dockerfile.dev", "c.yaml", "d.yml", "e.md", "f.service", "g.sbatch", "h.json",
             "x.container", "y.slurm", "z.mdx", "serve.py", "demo.ipynb", "guide.rst", "Makefile", "a/justfile", "b.mk",
             "chart.yaml.tpl", "sglang.service.j2"]  # fmt: skip
    assert all(pattern.search(name) and kind_of_name(name) for name in names)
    assert not any(pattern.search(name) for name in ("a.js", "b.txt", "README", "dockerfile.rs"))
    assert hook["entry"] == "flagwise gate"
    for text, status in ((GOOD, 0), (BAD, 1)):
        (tmp_path / "a.sh").write_text(text)
        assert flagwise("gate", str(tmp_path / "a.sh")).status == status


def test_the_action_annotates_and_writes_sarif(tmp_path: Path, shell: Callable[..., Any]) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    check = next(step for step in action["runs"]["steps"] if step.get("name") == "Check")
    assert "${{" not in check["run"]  # nothing that is put in becomes part of the script
    (tmp_path / "work" / "a.sh").write_text(BAD)
    inputs = {name: given["default"] for name, given in action["inputs"].items()}
    wanted = {name: re.fullmatch(r"\$\{\{ inputs\.(\w+) \}\}", text)[1] for name, text in check["env"].items()}  # type: ignore[index]
    env = {name: inputs[key] for name, key in wanted.items()}
    done = shell(check["run"], **env)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("::error file=a.sh,line=1")
    assert (tmp_path / "work" / "flagwise.sarif").exists()
    done = shell(check["run"], **{**env, "PATHS": "a.sh; touch pwned", "OPTIONS": "$(touch pwned)"})
    assert not (tmp_path / "work" / "pwned").exists()


def test_the_gitlab_job_leaves_the_reports_it_names(tmp_path: Path, shell: Callable[..., Any]) -> None:
    job = yaml.safe_load((DOCS / "gitlab-ci.yml").read_text())["flagwise"]
    (tmp_path / "work" / "a.sh").write_text(BAD)
    assert shell("\n".join(job["script"])).returncode == 1
    for report in job["artifacts"]["reports"].values():
        assert (tmp_path / "work" / report).exists()


def test_the_init_container_checks_the_script_that_is_started(tmp_path: Path, flagwise: Callable[..., Run]) -> None:
    config, pod = yaml.safe_load_all((DOCS / "pod.yaml").read_text())
    (gate,), (engine,) = pod["spec"]["initContainers"], pod["spec"]["containers"]
    assert gate["volumeMounts"] == engine["volumeMounts"]
    script = engine["command"][-1]
    assert gate["command"][-1] == script
    mounted = tmp_path / Path(script).name
    for text, status in ((config["data"]["serve.sh"], 0), (BAD, 1)):
        mounted.write_text(text)
        assert flagwise(*gate["command"][1:-1], str(mounted)).status == status
    assert flagwise("gate", str(DOCS / "pod.yaml"), "--hardware", "1xh100-sxm").status == 0


def test_the_unit_checks_itself_before_it_starts(tmp_path: Path, flagwise: Callable[..., Run]) -> None:
    text = (DOCS / "sglang.service").read_text()
    line = next(line for line in text.splitlines() if line.startswith("ExecStartPre="))
    words = line.removeprefix("ExecStartPre=").split()
    assert words[0].endswith("/flagwise")
    assert words[-1].endswith("/%n")
    unit = tmp_path / "sglang.service"
    for content, status in ((text, 0), (text.replace("--tp 8", "--tp 16"), 1)):
        unit.write_text(content)
        assert flagwise(*words[1:-1], str(unit)).status == status


def test_the_example_is_mended_where_it_can_be(tmp_path: Path, flagwise: Callable[..., Run]) -> None:
    """After the best repair nothing is left to fail."""
    import shutil

    shutil.copytree(DOCS / "example", tmp_path / "example")
    assert flagwise("gate", str(tmp_path / "example")).status == 1
    run = flagwise("gate", str(tmp_path / "example"), "--fix", "--unsafe")
    assert run.status == 0, run.out
    assert len(re.findall(r"^mended ", run.out, re.M)) == 3
