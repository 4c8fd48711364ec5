"""Standard streams as they come: closed, full, of another encoding; never a traceback, never a wrong status."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

GOOD = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 2"
WRONG = f"{GOOD} --no-such-flag"


def run(words: str, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
    """`flagwise` as the shell starts it; `words` may redirect. $F is the program, $L a launch, $W a wrong one."""
    said = {**os.environ, "F": f"{sys.executable} -m solver.cli", "L": GOOD, "W": WRONG, **env}
    return subprocess.run(["bash", "-c", words], input=stdin, capture_output=True, env=said, check=False)


def one_line(done: subprocess.CompletedProcess[bytes]) -> str:
    """The only line on standard error."""
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


@pytest.mark.parametrize("verb", ["validate", "gate", "diff", "solve"])
def test_standard_input_that_is_no_text_is_refused(verb: str) -> None:
    """Also where the locale lets such bytes through."""
    more = f'"{GOOD}"' if verb == "diff" else ""
    done = run(f"$F {verb} - {more}", GOOD.encode() + b"\xff", LC_ALL="C.UTF-8")
    assert done.returncode == 2
    assert "standard input is not text in UTF-8" in one_line(done)


def test_a_log_on_standard_input_may_be_cut_anywhere() -> None:
    log = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB\n\xe2\x80"
    piped = run("$F diagnose -", log, LC_ALL="C.UTF-8")
    assert piped.returncode in (0, 1)
    assert piped.stderr == b""


def test_closed_streams_end_in_a_status() -> None:
    assert "standard input is closed" in one_line(run("$F validate - <&-"))
    assert run('$F validate "$W" --hardware 2xh100-sxm --engine-version 0.5.10 >&-').returncode == 1
    assert run("$F validate ls 2>&-").returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_full_disk_is_told(form: str) -> None:
    done = run(f'$F validate "$L" --format {form} > /dev/full')
    assert done.returncode == 2
    assert "cannot be written" in one_line(done)


def test_what_an_encoding_lacks_is_replaced() -> None:
    done = run('$F validate "$L"', PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert b"conditional: SGLang" in done.stdout


def test_a_reader_that_leaves_is_no_success(tmp_path: Path) -> None:
    """A pipe that is closed early ends the program as SIGPIPE would, not with the status of a clean run."""
    (tmp_path / "many.sh").write_text(f"{WRONG}\n" * 2000)
    done = run(f"set -o pipefail; $F gate {tmp_path} --format json | head -c 1")
    assert done.returncode == 141
    assert done.stderr == b""
