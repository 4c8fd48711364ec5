"""This machine -> the text that its vendor's tool prints about the GPUs."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from shutil import which

from solver.errors import RequestError

TIMEOUT_S = 20.0
QUERY = (
    "--query-gpu=index,name,memory.total,compute_cap,driver_version,pcie.link.gen.max,pcie.link.width.max,power.limit"
)
NVIDIA = (
    ("nvidia-smi", QUERY, "--format=csv"),
    ("nvidia-smi",),
    ("nvidia-smi", "topo", "-m"),
    ("nvidia-smi", "topo", "-p2p", "r"),
)
AMD = (("rocm-smi", "--showproductname", "--showmeminfo", "vram"), ("rocm-smi", "--showtopotype"))


def ask_this_machine() -> str:
    """Run the vendor's tool, each question without a shell and with a time limit; the answers as one text.

    A question that an old driver refuses is left out. Errors: RequestError when no tool is installed, when it hangs,
    or when it answers nothing.
    """
    questions = NVIDIA if which("nvidia-smi") else AMD if which("rocm-smi") else ()
    if not questions:
        raise RequestError(
            "hardware auto: neither nvidia-smi nor rocm-smi is on PATH; name the machine (such as 8xb200) or give a "
            "file with the output of nvidia-smi"
        )
    answers = [answer(question) for question in questions]
    if not any(answers):
        raise RequestError(f"hardware auto: {questions[0][0]} sees no GPU or cannot reach its driver")
    return "\n\n".join(f"$ {' '.join(q)}\n{a}" for q, a in zip(questions, answers, strict=True) if a)


def answer(command: Sequence[str]) -> str:
    """Standard output of one command; empty when it fails. Errors: RequestError when it takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise RequestError(f"hardware auto: `{' '.join(command)}` gave no answer in {TIMEOUT_S:.0f} s") from None
    except OSError as error:
        raise RequestError(f"hardware auto: `{command[0]}` cannot be run ({error.strerror})") from None
    return done.stdout if done.returncode == 0 else ""
