"""The form that is asked for and a solved launch -> its text."""

from __future__ import annotations

from collections.abc import Callable

from solver.context import Context
from solver.handoff.config import config
from solver.handoff.containers import compose, k8s
from solver.handoff.job import Job, job_of
from solver.handoff.shell_text import argv, docker, shell, slurm
from solver.handoff.systemd import systemd
from solver.solve import Solution

WRITERS: dict[str, Callable[[Job], str]] = {
    "shell": shell,
    "argv": argv,
    "config": config,
    "docker": docker,
    "compose": compose,
    "k8s": k8s,
    "systemd": systemd,
    "slurm": slurm,
}
"""Form -> what writes it; `json` is the answer itself and is written by `render.data`."""


def handed_over(form: str, context: Context, answer: Solution) -> str:
    """The launch of an answer in one of the forms of `WRITERS`."""
    return WRITERS[form](job_of(context, answer.given, answer.env, answer.after.get("idle_gpus")))
