"""A checked launch -> this process replaced by it: argv and environment as given, no shell in between."""

from __future__ import annotations

import os
import shutil
import sys

from solver.errors import RequestError
from solver.launch import Launch, argv_of, shell_of


def become(launch: Launch) -> None:
    """Print what is handed over and replace this process. Errors: RequestError when it cannot be started."""
    unknown = [word.text for word in launch.words if word.unknown] + [n for n, v in launch.env.items() if v is None]
    if unknown:
        raise RequestError(f"cannot start a launch whose {', '.join(unknown)} is not known here: write the values out")
    argv = argv_of(launch)
    program = shutil.which(argv[0])
    if program is None:
        raise RequestError(f"cannot start {argv[0]!r}: no such program on PATH")
    print(f"\nstarting: {shell_of(launch)}", flush=True)
    sys.stderr.flush()
    os.execve(program, argv, {**os.environ, **{n: v for n, v in launch.env.items() if v is not None}})
