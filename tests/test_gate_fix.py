"""`gate --fix`: only the spans concerned change, a second run changes nothing, and no file is ever half written."""

from __future__ import annotations

import difflib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, Run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solver.context import Options
from solver.gate.fix import FileMender
from solver.gate.inspect import Inspector
from solver.gate.judge import Judge
from solver.gate.kinds import find_in, kind_of_name
from solver.gate.output.data import argv_of
from solver.gate.run import flag_names
from solver.gate.settings import Settings
from solver.gate.text import Text
from solver.store import Store

RELEASE, MACHINE = "0.5.12", "8xh100-sxm"
GOOD = (("--model-path", "Qwen/Qwen3-8B"), ("--port", "30000"), ("--trust-remote-code",), ("--tp", "2"),
        ("--served-model-name", "a b"), ("--chat-template", "it's"), ("--log-level", "warning"))  # fmt: skip
RESPELLED = (("--mem_fraction_static", "0.8"), ("--enable_metrics",), ("--schedule_policy", "lpm"),
             ("--max_running_requests", "64"), ("--context_length=4096",))  # fmt: skip
"""Flags that mean something else written, and how they should be written."""


def shell(words: list[str]) -> str:
    return " ".join(word if word.isascii() and not set(word) & set(" '") else f'"{word}"' for word in words)


def lines(words: list[str], indent: str) -> str:
    """Shell text with each flag on a line of its own."""
    parts: list[list[str]] = []
    for word in words:
        if word.startswith("--") or not parts:
            parts.append([])
        parts[-1].append(word)
    return f" \\\n{indent}".join(map(shell, parts))


def script(words: list[str]) -> str:
    return (
        f"#!/bin/bash\n# it's é\nset -e\npython3 -m sglang.launch_server \\\n  {lines(words, '  ')}  # end\necho done\n"
    )


def array(words: list[str]) -> str:
    inside = "\n".join(f"  {shell([word])}  # part" for word in words)
    return f'ARGS=(\n{inside}\n)\nexec sglang serve "${{ARGS[@]}}"\n'


def pod(words: list[str]) -> str:
    args = "\n".join(f"    - {json.dumps(word)}" + ("  # é" if i % 2 else "") for i, word in enumerate(words))
    return (
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n"
        f"    command: [python3, -m, sglang.launch_server]\n    args:\n{args}\n    resources: {{}}  # kept\n"
    )


def pod_flow(words: list[str]) -> str:
    args = ", ".join("'" + word.replace("'", "''") + "'" for word in words)
    return (
        f"apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - {{name: a, command: [sglang, serve], args: [{args}]}}\n"
    )


def block(words: list[str]) -> str:
    body = f"python3 -m sglang.launch_server \\\n            {lines(words, '            ')}"
    return f"jobs:\n  a:\n    steps:\n      - run: |\n          {body}\n      - run: echo é\n"


def compose(words: list[str]) -> str:
    body = "\n      ".join(shell([word]) for word in words)
    return (
        f"services:\n  a:  # é\n    command: >-\n      python3 -m sglang.launch_server\n      {body}\n    ports: [1]\n"
    )


def image(words: list[str]) -> str:
    return f"FROM scratch\n# é\nCMD {json.dumps(['sglang', 'serve', *words], ensure_ascii=False)}\nEXPOSE 1\n"


def unit(words: list[str]) -> str:
    return f"[Service]\nExecStart=/usr/bin/python3 -m sglang.launch_server \\\n  {lines(words, '  ')}\nRestart=always\n"


def page(words: list[str]) -> str:
    return f"# é\n\n1. Start:\n\n   ```bash\n   sglang serve \\\n     {lines(words, '     ')}\n   ```\n\nDone.\n"


def batch(words: list[str]) -> str:
    plain = " ".join(word for word in words if " " not in word and "'" not in word)
    return f'#!/bin/bash\n#SBATCH --nodes=1\nsrun bash -c "sglang serve {plain}"\n'


def argument_list(words: list[str]) -> str:
    return json.dumps(["python3", "-m", "sglang.launch_server", *words], indent=1) + "\n"


def configuration(words: list[str]) -> str:
    entries: list[list[str]] = []
    for word in words:
        if word.startswith("--"):
            entries.append(word[2:].split("="))
        else:
            entries[-1].append(word)
    rows = [f"{entry[0]}: {json.dumps(entry[1]) if len(entry) > 1 else 'true'}" for entry in entries]
    return "# é\n" + "\n".join(f"{row}  # kept" for row in rows) + "\n"


KINDS: dict[str, Callable[[list[str]], str]] = {
    "a.sh": script, "b.sh": array, "pod.yaml": pod, "flow.yaml": pod_flow, "ci.yml": block, "compose.yaml": compose,
    "Dockerfile": image, "a.service": unit, "a.md": page, "a.sbatch": batch, "argv.json": argument_list,
    "engine.yaml": configuration,
}  # fmt: skip


def mended(
    name: str, text: str, store: Store, unsafe: bool = False, machine: str = MACHINE, release: str = RELEASE
) -> tuple[str, list[str]]:
    """The text after `--fix`, and what was said about it."""
    judge = Judge(store, Options(None, machine, release), exact=True)
    inspector = Inspector(judge, Settings(), flag_names(store), None)
    mender = FileMender(unsafe, write=False, diff=True)
    kind = kind_of_name(name)
    assert kind is not None
    mender.mended(name, text, kind, inspector)
    if not mender.diffs:
        return text, [m.why_not or m.what for m in inspector.report.mends]
    return patched(text, mender.diffs[0]), [m.why_not or m.what for m in inspector.report.mends]


def patched(text: str, diff: str) -> str:
    """Apply a unified diff that is known to fit."""
    old, new, at = text.splitlines(keepends=True), [], 0
    for line in diff.splitlines(keepends=True)[2:]:
        if line.startswith("@@"):
            start = int(line.split()[1][1:].split(",")[0]) - 1
            new += old[at:start]
            at = start
        elif line[0] == "-":
            at += 1
        elif line[0] == "+":
            new.append(line[1:])
        elif line[0] == " ":
            new.append(old[at])
            at += 1
    return "".join(new + old[at:])


def words_of(name: str, text: str, store: Store) -> list[str]:
    kind = kind_of_name(name)
    assert kind is not None
    (found,) = find_in(Text.whole(text), kind, flag_names(store), lambda path: None).found
    return list(argv_of(found.launch))


@pytest.mark.parametrize("name", sorted(KINDS))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=st.lists(st.sampled_from(GOOD[1:] + RESPELLED), min_size=2, unique=True))
def test_respelling_touches_the_spelling_alone(name: str, chosen: list[tuple[str, ...]], store: Store) -> None:
    """In a file of any kind: the underscores of wrong spellings become dashes, no other character changes; and once
    is enough."""
    words = [word for flag in (GOOD[0], *chosen) for word in flag]
    before = KINDS[name](words)
    after, _ = mended(name, before, store)
    assert len(after) == len(before)
    changed = [index for index, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    wrong = [flag[0].split("=")[0].removeprefix("--") for flag in chosen if flag in RESPELLED]
    assert {before[index] for index in changed} <= {"_"}
    assert {after[index] for index in changed} <= {"-"}
    assert len(changed) == sum(spelling.count("_") for spelling in wrong)
    assert mended(name, after, store)[0] == after
    kept = [w for w in words_of(name, before, store) if not w.startswith("--")]
    assert [w for w in words_of(name, after, store) if not w.startswith("--")] == kept


@pytest.mark.parametrize("name", sorted(KINDS))
def test_the_best_repair_leaves_no_error_and_keeps_every_other_line(name: str, store: Store) -> None:
    """A flag that has to come: it is laid out as its neighbours are, and the lines around stay as they were."""
    words = [w for flag in GOOD[:4] for w in flag] + ["--tp-size", "16"]
    before = KINDS[name](words)
    after, said = mended(name, before, store, unsafe=True)
    assert after != before, said
    assert mended(name, after, store, unsafe=True)[0] == after
    kept = [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line.startswith("- ")]
    assert len(kept) <= len(before.splitlines()) // 2 + 1
    assert "é" not in before or after.count("é") >= 1


HYBRID = ["--model-path", "nvidia/Qwen3.5-397B-A17B-NVFP4", "--tp", "8", "--speculative-algorithm", "NEXTN"]
AROUND = {
    "run.sh": "docker run --rm -v a:b \\\n  lmsysorg/sglang:v0.5.10 sglang serve {}\n",
    "env.yaml": "kind: Pod\napiVersion: v1\nspec:\n  containers:\n    - name: a\n      env:\n        - name: A\n"
    "          value: b\n      command: [sh, -c]\n      args: ['sglang serve {}']\n",
    "map.yaml": "services:\n  a:\n    environment:\n      A: b  # kept\n    command: sglang serve {}\n",
    "list.yaml": "services:\n  a:\n    environment:\n    - A=b\n    command: sglang serve {}\n",
}
"""Layouts in which a variable has a place of its own kind."""


@pytest.mark.parametrize("name", [*sorted(KINDS), *AROUND])
def test_a_repair_with_a_variable_puts_it_where_the_launch_gets_it(name: str, store: Store) -> None:
    before = AROUND[name].format(" ".join(HYBRID)) if name in AROUND else KINDS[name](HYBRID)
    after, said = mended(name, before, store, unsafe=True, machine="8xrtx-pro-6000", release="0.5.10")
    if name in ("engine.yaml", "argv.json", "flow.yaml"):  # there is no place for a variable: the next repair then
        assert "disable-radix-cache" in after
        return
    kind = kind_of_name(name)
    assert kind is not None
    (found,) = find_in(Text.whole(after), kind, flag_names(store), lambda path: None).found
    assert found.launch.env.get("SGLANG_ENABLE_SPEC_V2") == "1", (after, said)
    assert "extra_buffer" in [word.text for word in found.launch.words]
    assert mended(name, after, store, unsafe=True, machine="8xrtx-pro-6000", release="0.5.10")[0] == after
    for line in before.splitlines():
        assert line in after or any(word in line for word in ("sglang", "NEXTN", "docker")), line


def test_what_comes_from_a_variable_is_not_mended_and_it_says_why(tmp_path: Path, flagwise: Callable[..., Run]) -> None:
    path = tmp_path / "run.sh"
    path.write_text('FLAGS="--mem_fraction_static 0.8"\nsglang serve --model-path Qwen/Qwen3-8B $FLAGS\n')
    before = path.read_bytes()
    run = flagwise("gate", str(path), "--fix", "--engine-version", RELEASE, "--hardware", MACHINE)
    assert path.read_bytes() == before
    assert "comes from a variable" in run.out
    assert run.status == 1


def test_a_diff_changes_nothing(tmp_path: Path, flagwise: Callable[..., Run]) -> None:
    path = tmp_path / "run.sh"
    path.write_text("sglang serve --model_path Qwen/Qwen3-8B")
    run = flagwise("gate", str(path), "--diff", "--engine-version", RELEASE)
    assert run.out.splitlines()[2:] == [
        "@@ -1 +1 @@",
        "-sglang serve --model_path Qwen/Qwen3-8B",
        "\\ No newline at end of file",
        "+sglang serve --model-path Qwen/Qwen3-8B",
        "\\ No newline at end of file",
    ]
    assert path.read_text() == "sglang serve --model_path Qwen/Qwen3-8B"


def test_mode_links_and_line_ends_are_kept(tmp_path: Path, flagwise: Callable[..., Run]) -> None:
    path, link = tmp_path / "run.sh", tmp_path / "link.sh"
    path.write_bytes(b"\xef\xbb\xbf# x\r\nsglang serve --model_path a/b\r\n")
    path.chmod(0o751)
    link.symlink_to("run.sh")
    flagwise("gate", str(link), "--fix", "--engine-version", RELEASE)
    assert path.read_bytes() == b"\xef\xbb\xbf# x\r\nsglang serve --model-path a/b\r\n"
    assert path.stat().st_mode & 0o777 == 0o751
    assert link.is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.sh", "run.sh"]


def test_killed_at_any_point_it_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    """A process that replaces a file over and over is killed again and again."""
    path = tmp_path / "run.sh"
    contents = [letter * 200_000 for letter in (b"a", b"b")]
    path.write_bytes(contents[0])
    code = (
        "import sys\nfrom solver.gate.output.target import replace_file\n"
        "while True:\n    for letter in (b'a', b'b'):\n        replace_file(sys.argv[1], letter * 200_000)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for number in range(8):
        process = subprocess.Popen([sys.executable, "-c", code, str(path)], env=environment)
        time.sleep(0.15 + number * 0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert path.read_bytes() in contents


def test_a_file_that_cannot_be_written_is_told(
    tmp_path: Path, flagwise: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.sh"
    path.write_text("sglang serve --model_path a/b\n")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    run = flagwise("gate", str(path), "--fix", "--engine-version", RELEASE)
    assert run.status == 2
    assert "cannot be written (Permission denied)" in run.out
    assert [p.name for p in tmp_path.iterdir()] == ["run.sh"]
