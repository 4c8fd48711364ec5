"""Shell and Slurm scripts -> the launches in them."""

from __future__ import annotations

import re
from itertools import pairwise

from solver.errors import RequestError
from solver.gate.arguments import launches_in
from solver.gate.found import Finds, Found, Hints, Kind
from solver.gate.text import Text
from solver.records import Span

_NAMED = re.compile(r"sglang|launch_server")
_CONTINUED = re.compile(r"\\[ \t]*\r?$")


def find(source: Text, kind: Kind = "shell", hints: Hints | None = None) -> Finds:
    """The launches of a script; where the whole is no shell text, those of the commands that name the engine."""
    whole = Span(0, len(source.text))
    try:
        return Finds(launches_in(kind, source, source.place(whole) or whole, hints=hints))
    except RequestError as error:
        found = [f for part in _commands(source) for f in _alone(part, kind, hints)]
        return Finds(found, [] if found else [str(error).replace("the command", "the script")])


def _alone(part: Text, kind: Kind, hints: Hints | None) -> list[Found]:
    whole = Span(0, len(part.text))
    try:
        return launches_in(kind, part, part.place(whole) or whole, hints=hints)
    except RequestError:
        return []


def _commands(source: Text) -> list[Text]:
    """Each line that names the engine with the lines that continue it, for scripts that are no shell as a whole."""
    parts: list[Text] = []
    lines = source.text.split("\n")
    at = number = 0
    while number < len(lines):
        start, named = at, False
        while number < len(lines):
            line = lines[number]
            named = named or bool(_NAMED.search(line))
            at += len(line) + 1
            number += 1
            if not _CONTINUED.search(line):
                break
        if named:
            parts.append(source.cut(start, min(at, len(source.text))))
    return parts


_SBATCH = re.compile(r"^#SBATCH[ \t]+(.+)$", re.M)
_GRES = re.compile(r"gpu(?::([A-Za-z][\w.-]*))?(?::(\d+))?$")


def slurm_hints(text: str) -> Hints:
    """GPUs a node and their name, as the job asks for them."""
    gpus: int | None = None
    gpu: str | None = None
    for match in _SBATCH.finditer(text):
        words = re.split(r"[ \t=]+", match[1].split(" #")[0].strip())
        for name, value in pairwise(words):
            found = _GRES.match(value if name == "--gres" else f"gpu:{value}")
            if name in ("--gres", "--gpus-per-node") and found:
                gpu, gpus = found[1] or gpu, int(found[2]) if found[2] else gpus
    return Hints(gpus=gpus, gpu=gpu)


def find_slurm(source: Text) -> Finds:
    """The launches of a batch script, with what the job asks for."""
    return find(source, "slurm", slurm_hints(source.text))
