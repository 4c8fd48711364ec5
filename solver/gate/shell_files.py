"""Shell and Slurm scripts -> the launches in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from solver.errors import RequestError
from solver.gate.arguments import launches_in, replaced
from solver.gate.found import Finds, Found, Hints, Kind
from solver.gate.templates import placeholder
from solver.gate.text import Text
from solver.records import Span
from solver.shell import DOCUMENTS, Token, tokens
from solver.wrappers import basename

_NAMED = re.compile(r"sglang|launch_server")
_REFERENCE = re.compile(r"\\\$|\$(?:\{([A-Za-z_]\w*)[^{}\n]*\}|([A-Za-z_]\w*))")
_ESCAPED = re.compile(r"\\(?=\$)")
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


def documents(source: Text) -> Iterator[tuple[str, Text, bool]]:
    """The here-documents of a script that name the engine: the file that each is written to (else empty), its text,
    and whether the shell fills in variables."""
    try:
        stream = tokens(source.text)
    except RequestError:
        return
    for index, token in enumerate(stream):
        if token.kind == "document" and _NAMED.search(token.text):
            body = source.cut(token.start, token.end)
            yield _written_to(stream, index), body, _is_open(stream, index)


def filled(body: Text, as_shell: bool) -> Text:
    """What the shell makes of a here-document: escaped dollar signs are bare, variables of unknown value. Where it is a
    script itself, its own variables and those of the outer script cannot be told apart: they stay."""
    if as_shell:
        return replaced(body, _ESCAPED, lambda match: "")
    return replaced(body, _REFERENCE, lambda m: "$" if m[0] == "\\$" else placeholder(m[1] or m[2]))


def _is_open(stream: list[Token], index: int) -> bool:
    """Whether the word after `<<` is not quoted."""
    ending = next((stream[i + 1] for i in range(index, -1, -1) if stream[i].text in DOCUMENTS), None)
    return ending is not None and not any(piece.quoted or piece.raw.startswith("\\") for piece in ending.pieces)


def _written_to(stream: list[Token], index: int) -> str:
    """The file that the command of a here-document writes: `cat > FILE <<END`; a program's source is called `-.py`."""
    while index and stream[index].kind != "word":
        index -= 1
    line: list[Token] = []
    while index >= 0 and stream[index].text != "\n" and stream[index].kind != "document":
        line.insert(0, stream[index])
        index -= 1
    for before, token in pairwise(line):
        if before.kind == "operator" and before.text.lstrip("0123456789") in (">", ">>", ">|") and token.kind == "word":
            return token.text.strip("\"'")
    return "-.py" if line and basename(line[0].text).startswith("python") else ""


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
