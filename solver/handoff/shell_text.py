"""A job -> shell text: the command itself, a `docker run` line, a Slurm batch script."""

from __future__ import annotations

import shlex

from solver.handoff.command import argv_of, shell_of
from solver.handoff.job import Job, one_line

CORES = 4
"""Cores for each GPU: its scheduler, and a share of what splits and joins text. Slurm's own default is 1 for all."""
ADDRESS_PORT = 20000
"""Where the machines of one launch find each other, unless the launch says it."""


def shell(job: Job) -> str:
    """One command with its variables in front."""
    return shell_of(argv_of(job.given, job.flags), job.env)


def argv(job: Job) -> str:
    """One argument a line."""
    return "\n".join(argv_of(job.given, job.flags))


def docker(job: Job) -> str:
    """A `docker run` command. The container shares the machine's network, so that the address means the same inside."""
    layout = job.tables["container_layout"]
    options = [["docker", "run", "--rm", "--network", "host", "--ipc", "host"], gpu_options(job)]
    options.append(["-v", f'"$HOME/.cache/huggingface:{layout["weights"]}"'])
    lines = [" ".join(line) for line in options]
    lines += [f"-v {shlex.quote(f'{path}:{path}:ro')}" for path in job.paths]
    lines += [f"-e {shlex.quote(f'{name}={value}')}" for name, value in job.env.items()]
    command = shell_of(job.argv(layout["python"]), {})
    return "\n".join([*notes(job), " \\\n  ".join([*lines, shlex.quote(job.image), command])])


def gpu_options(job: Job) -> list[str]:
    """The options of `docker run` that hand the GPUs to a container."""
    if job.amd:
        return ["--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "video",
                "--cap-add", "SYS_PTRACE", "--security-opt", "seccomp=unconfined"]  # fmt: skip
    return ["--gpus", "all" if job.all_gpus else str(job.gpus)]


def notes(job: Job) -> list[str]:
    """Comment lines of a container: what it serves and what may have to be adapted."""
    lines = [
        f"# {job.title}",
        "# Adapt: the image, where another build of the release fits the driver better; the folder of the weights;",
        "# add HF_TOKEN to the environment for a model that asks for one.",
    ]
    if job.amd and not job.all_gpus:
        lines.append(f"# The launch uses {job.gpus} GPUs; the container sees all of the machine's.")
    return [*lines, *warnings(job)]


def warnings(job: Job) -> list[str]:
    """Comment lines about what cannot be settled here: paths without a beginning, the other machines."""
    lines = [
        f"# {one_line(path)} is relative to where the launch starts: write it from the root." for path in job.relative
    ]
    if job.nodes > 1:
        rank, address = several_nodes(job)
        lines.append(f"# One of {job.nodes} machines: start it on each, with its own {rank} and the same {address}.")
    return lines


def several_nodes(job: Job) -> tuple[str, str]:
    """The spellings of a machine's rank and of the address where they meet."""
    names = job.tables["several_nodes"]
    return job.flags[names["rank"]].spellings[0], job.flags[names["address"]].spellings[0]


def slurm(job: Job) -> str:
    """A batch script for `sbatch`: one task a node, which sees the node's GPUs."""
    lines = [
        "#!/bin/bash",
        f"# {job.title}",
        "# Adapt: partition, account and time limit of the cluster; cores and memory, if nodes are shared;",
        "# how `python` is found (a module, an environment).",
        "#SBATCH --job-name=sglang",
        f"#SBATCH --nodes={job.nodes}",
        "#SBATCH --ntasks-per-node=1",
        f"#SBATCH --gres=gpu:{job.gpus}",
        f"#SBATCH --cpus-per-task={CORES * job.gpus}",
        "#SBATCH --mem=0",
        "#SBATCH --output=sglang-%j.log",
        "##SBATCH --partition=PARTITION",
        "##SBATCH --time=DAYS-HOURS",
        "",
        "set -euo pipefail",
        *(f"export {name}={shlex.quote(value)}" for name, value in job.env.items()),
    ]
    return "\n".join([*lines, *_srun(job)])


def _srun(job: Job) -> list[str]:
    srun = f"srun --cpus-per-task={CORES * job.gpus}"  # srun does not take it over from the job since Slurm 22.05
    if job.nodes == 1:
        return ["", f"{srun} {shell_of(argv_of(job.given, job.flags), {})}"]
    names = job.tables["several_nodes"]
    given = {name: value for name, value in job.given.items() if name != names["rank"]}
    rank, address = several_nodes(job)
    command = shell_of(argv_of(given, job.flags), {}) + f' \\\n  {rank} "$SLURM_NODEID"'
    lines = [""]
    if names["address"] not in given:
        lines += ['FIRST_NODE=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)', "export FIRST_NODE", ""]
        command += f' \\\n  {address} "$FIRST_NODE:{ADDRESS_PORT}"'
    return [*lines, f"{srun} bash -c {shlex.quote('exec ' + command)}"]
