"""`sglang==X` -> the path of that release's wheel, fetched from the package registry into a temporary folder.

pip is asked for the wheel alone, without dependencies; nothing is installed and nothing of the package is run.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

PACKAGE = re.compile(r"sglang==(\d[\w.+!-]*)")
_ANY_MACHINE = ("--python-version", "3.11", "--implementation", "cp", "--platform", "manylinux_2_34_x86_64")
"""Releases since 0.5.11 are built for Linux and Python 3.11; they are read all the same on any other machine."""
_LONGEST_S = 600


@contextmanager
def fetched(requirement: str) -> Iterator[Path]:
    """The wheel, for as long as the context lasts. Errors: ValueError where the registry has no such release."""
    if not PACKAGE.fullmatch(requirement):
        raise ValueError(f"{requirement}: expected sglang==RELEASE, such as sglang==0.5.10")
    with TemporaryDirectory(prefix="flagwise-") as folder:
        said = ""
        for options in ((), _ANY_MACHINE):
            said = _download(requirement, folder, options)
            found = sorted(Path(folder).glob("sglang-*.whl"))
            if found:
                yield found[0]
                return
        raise ValueError(f"{requirement}: pip found no wheel: {said}")


def _download(requirement: str, folder: str, options: tuple[str, ...]) -> str:
    """Run pip; its last complaint."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += [*options, "--dest", folder, requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    complaints = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")]
    return complaints[-1].removeprefix("ERROR:").strip() if complaints else f"pip ended with status {done.returncode}"
