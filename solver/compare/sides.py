"""What `diff` and `validate --lock` are told to look at -> the launch and the context that judges it.

A side is a command text, `-` for standard input, a lock file, or any file in which launches are found; `FILE:LINE`
names one of several.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from solver.check import Result
from solver.compare.lock import Lock, Remembered, is_lock, parse_lock
from solver.context import Context, Options, build, check_context
from solver.errors import RequestError
from solver.inputs import file_text, standard_input
from solver.launch import Launch, read_argv, read_command
from solver.store import Store

if TYPE_CHECKING:
    from solver.gate.found import Found

_LINE = re.compile(r"(.+):([1-9]\d*)")


class Side(NamedTuple):
    """One judged launch and what it is called."""

    name: str
    context: Context
    result: Result


def side_of(where: Store, text: str, options: Options) -> Side:
    """Judge what a text names. Errors: RequestError."""
    if text == "-":
        return _command(where, "standard input", standard_input(), options)
    if _is_file(text):
        return _file(where, text, None, options)
    named = _LINE.fullmatch(text)
    if named and _is_file(named[1]):
        return _file(where, named[1], int(named[2]), options)
    if text and not re.search(r"\s", text) and not text.startswith("-"):
        raise RequestError(f"{text}: no such file, and no launch command; expected a command, a file, FILE:LINE or -")
    return _command(where, "command", text, options)


def _is_file(text: str) -> bool:
    """Whether a text names a file; one too long for a name does not."""
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False


def _command(where: Store, name: str, text: str, options: Options) -> Side:
    context = build(where, read_command(text, bare=True), options)
    return Side(name, context, check_context(context))


def _file(where: Store, path: str, line: int | None, options: Options) -> Side:
    text = file_text(path)
    if is_lock(text):
        lock = parse_lock(text, path)
        context = locked_context(where, lock, None, options)
        return Side(path, context, check_context(context))
    return _found(where, path, text, line, options)


def _found(where: Store, path: str, text: str, line: int | None, options: Options) -> Side:
    """The launch in a file, with what stands beside it: image, GPUs, comments for the gate."""
    from solver.gate.found import Unreadable
    from solver.gate.inspect import Inspector
    from solver.gate.judge import Judge
    from solver.gate.kinds import kind_of_name, kind_of_text
    from solver.gate.run import flag_names
    from solver.gate.settings import Settings

    inspector = Inspector(Judge(where, options, exact=True), Settings(), flag_names(where), None)
    try:
        verdicts = inspector.verdicts(path, text, kind_of_name(path) or kind_of_text(text))
    except Unreadable as error:
        raise RequestError(f"{path}: {error}") from None
    lines = [text.count("\n", 0, verdict.found.at.start) + 1 for verdict in verdicts]
    chosen = [v for v, at in zip(verdicts, lines, strict=True) if line is None or at == line]
    if len({_said(v.found) for v in chosen}) != 1:
        raise RequestError(_which(path, line, lines))
    judged = chosen[0].judged
    if judged is None:
        raise RequestError(f"{path}: the launch cannot be judged; `flagwise gate {path}` says why")
    result = check_context(judged.context)
    return Side(path if line is None else f"{path}:{line}", judged.context, result)


def _said(found: Found) -> tuple[Any, ...]:
    """What makes two launches of a file the same one, said twice."""
    return (tuple((word.text, word.unknown) for word in found.launch.words), tuple(found.launch.env.items()))


def _which(path: str, line: int | None, lines: list[int]) -> str:
    """What to say where a file, or a line of it, does not hold just one launch."""
    if not lines:
        return f"{path}: no SGLang launch in it"
    many = "more than one launch" if line is None or line in lines else f"no launch on line {line}"
    return f"{path}: {many}; expected one of {', '.join(f'{path}:{at}' for at in lines)}"


def locked_context(where: Store, lock: Lock, launch: Launch | None, options: Options) -> Context:
    """The context of the lock's launch, or of another one in its place, judged by what the lock says.

    What `options` say of release, model and machine comes first.
    """
    asked = lock.request
    settled = Options(
        options.model or asked.model,
        options.hardware or asked.hardware,
        options.engine_version or asked.engine_version,
        asked.options,
    )
    lookup = Remembered(where.index, lock)
    return build(where, launch or read_argv(lock.argv, lock.env), settled, lookup)


def heading(side: Side) -> dict[str, Any]:
    """What a side is, as plain data."""
    return {
        "name": side.name,
        "release": side.context.release,
        "model": side.context.model_name,
        "hardware": side.context.hardware_name,
        "verdict": side.result.verdict,
    }
