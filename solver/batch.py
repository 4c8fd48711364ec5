"""JSON lines of launches -> one JSON result per line, in order; a line that cannot be read does not stop the rest."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from types import NoneType
from typing import Any, NamedTuple

import msgspec

from solver.check import at_or_above
from solver.context import Context, Lookup, Options, build, check_context
from solver.errors import RequestError
from solver.launch import Launch, read_argv, read_command
from solver.records import Severity
from solver.render.data import ResultData, line, result_data
from solver.store import Store

KEYS = {"id", "command", "argv", "env", "model", "model_dir", "hardware", "engine_version"}
WRONG_REQUEST, FINDINGS = 2, 1

Judge = Callable[[Context], tuple[Any, bool]]
"""A launch -> the fields of its result, as a record or a mapping, and whether it fails."""


def validate_lines(store: Store, path: str, options: Options, fail_on: Severity, fail_on_unknown: bool) -> int:
    """Validate each line and print its result; returns the worst line's exit status."""

    def judge(context: Context) -> tuple[ResultData, bool]:
        result = check_context(context)
        counted = [f for f in result.findings if at_or_above(f, fail_on) and not f.after]
        return result_data(context, result), any(fail_on_unknown or not f.conditional_on for f in counted)

    return each_line(store, path, options, judge)


WINDOW = 1024
"""Lines that are read before they are judged."""


class Row(NamedTuple):
    """One line: its fields, and what is wrong with it."""

    fields: dict[str, Any]
    problem: str | None = None

    @property
    def kin(self) -> tuple[str, ...]:
        """What it has in common with lines that share most of what has to be worked out."""
        return tuple([str(self.fields.get(key)) for key in ("engine_version", "model_dir", "model", "hardware")])


def each_line(store: Store, path: str, options: Options, judge: Judge) -> int:
    """Judge every line of a file; a bad line becomes a result with an `error`.

    Of a window of lines those of one release, model and machine are judged one after another; the results come in the
    order of the lines.
    """
    worst = 0
    lookup = Lookup(store.index)
    for window in _windows(path):
        rows = [_row(text, number) for number, text in window]
        results = [""] * len(rows)
        for place in sorted(range(len(rows)), key=[row.kin for row in rows].__getitem__):
            data, status = _judged(store, rows[place], options, lookup, judge)
            results[place] = line(rows[place].fields.get("id"), data)
            worst = max(worst, status)
        sys.stdout.writelines(results)
    return worst


def _judged(store: Store, row: Row, options: Options, lookup: Lookup, judge: Judge) -> tuple[Any, int]:
    try:
        if row.problem:
            raise RequestError(row.problem)
        data, failed = judge(_context(store, row.fields, options, lookup))
    except RequestError as error:
        return {"error": str(error)}, WRONG_REQUEST
    return data, FINDINGS if failed else 0


def _windows(path: str) -> Iterator[list[tuple[int, str]]]:
    """The lines of a file that are not blank, with their numbers, so many at a time."""
    window: list[tuple[int, str]] = []
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123  # verbs hand over plain paths
            for number, text in enumerate(file, 1):
                if text.strip():
                    window.append((number, text))
                if len(window) == WINDOW:
                    yield window
                    window = []
    except (OSError, UnicodeDecodeError) as error:
        yield window  # what was read before
        raise RequestError(f"cannot read the batch file {path}: {error}") from None
    yield window


def _row(text: str, number: int) -> Row:
    try:
        fields = _read_json(text)
    except UnicodeEncodeError:
        return Row({}, f"line {number}: half of a surrogate pair stands alone; expected whole characters")
    except (ValueError, RecursionError):
        return Row({}, f"line {number} is not JSON")
    if not isinstance(fields, dict):
        return Row({}, f"line {number}: expected an object with {', '.join(sorted(KEYS))}")
    unknown = fields.keys() - KEYS
    if unknown:
        known = ", ".join(sorted(KEYS))
        return Row(fields, f"line {number}: unknown keys {', '.join(sorted(unknown))}; known are {known}")
    return Row(fields)


def _read_json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        fields = json.loads(text)  # which takes more, such as NaN
        json.dumps(fields, ensure_ascii=False).encode()  # but half a surrogate pair could not be answered
        return fields


def _context(store: Store, row: dict[str, Any], options: Options, lookup: Lookup) -> Context:
    model = row.get("model_dir") or row.get("model") or options.model
    settled = Options(
        model,
        row.get("hardware") or options.hardware,
        row.get("engine_version") or options.engine_version,
        options.request,
    )
    for key in ("model", "model_dir", "hardware", "engine_version"):
        if type(row.get(key)) not in (str, NoneType):
            raise RequestError(f"{key}: expected a text")
    return build(store, _launch(row), settled, lookup)


def _launch(row: dict[str, Any]) -> Launch:
    env = row.get("env") or {}
    if not isinstance(env, dict) or not all(isinstance(v, str) for v in env.values()):
        raise RequestError("env: expected an object of texts")
    argv, command = row.get("argv"), row.get("command")
    if isinstance(argv, list) and all(isinstance(a, str) for a in argv):
        return read_argv(argv, env)
    if not isinstance(command, str):
        raise RequestError("expected `command` (a text) or `argv` (a list of texts)")
    launch = read_command(command)
    return msgspec.structs.replace(launch, env={**env, **launch.env}) if env else launch
