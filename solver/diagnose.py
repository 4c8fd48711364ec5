"""The verb `diagnose`: a log (a file or standard input) and a command -> the first cause printed, and the status."""

from __future__ import annotations

from typing import Any

from solver import verbs
from solver.context import Options
from solver.errors import RequestError
from solver.inputs import standard_input

USAGE = "flagwise diagnose LOG [COMMAND]"


def diagnose(values: dict[str, Any]) -> int:
    """Read a server log, find the first cause, name the rule, and give the repaired command."""
    from solver.diagnosis import diagnose as diagnosis_of
    from solver.render import diagnosis as render

    words = values["command"]
    if not words:
        raise RequestError(f"expected a log file, or - for standard input: {USAGE}")
    text = _text(words[0])
    command = verbs.read(words[1:]) if words[1:] else None
    options = Options(values["model"], values["hardware"], values["engine_version"])
    found = diagnosis_of(verbs.store(), text, command, options)
    print(render.output(found, values["format"]))
    return verbs.FINDINGS if any(f.severity == "error" and not f.conditional_on for f in found.findings) else 0


def _text(path: str) -> str:
    """The log; bytes that are no text are replaced, as crashes cut them anywhere."""
    if path == "-":
        return standard_input(replace=True)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123  # verbs hand over plain paths
            return file.read()
    except OSError as error:
        raise RequestError(f"cannot read the log {path}: {error.strerror}") from None
