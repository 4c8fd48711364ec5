"""JSON lines of launches -> one JSON result per line, in order; a line that cannot be read does not stop the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

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


def each_line(store: Store, path: str, options: Options, judge: Judge) -> int:
    """Judge every line of a file; a bad line becomes a result with an `error`."""
    worst = 0
    lookup = Lookup(store.index)
    for number, text in enumerate(_lines(path), 1):
        if not text.strip():
            continue
        row_id: Any = None
        try:
            row = _row(text, number)
            row_id = row.get("id")
            _known_keys(row, number)
            data, failed = judge(_context(store, row, options, lookup))
            worst = max(worst, FINDINGS if failed else 0)
        except RequestError as error:
            data, worst = {"error": str(error)}, WRONG_REQUEST
        print(line(row_id, data))
    return worst


def _lines(path: str) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123  # verbs hand over plain paths
            yield from file
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"cannot read the batch file {path}: {error}") from None


def _row(text: str, number: int) -> dict[str, Any]:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        raise RequestError(f"line {number} is not JSON") from None
    if not isinstance(row, dict):
        raise RequestError(f"line {number}: expected an object with {', '.join(sorted(KEYS))}")
    return row


def _known_keys(row: dict[str, Any], number: int) -> None:
    unknown = set(row) - KEYS
    if unknown:
        raise RequestError(
            f"line {number}: unknown keys {', '.join(sorted(unknown))}; known are {', '.join(sorted(KEYS))}"
        )


def _context(store: Store, row: dict[str, Any], options: Options, lookup: Lookup) -> Context:
    model = row.get("model_dir") or row.get("model") or options.model
    settled = Options(
        model,
        row.get("hardware") or options.hardware,
        row.get("engine_version") or options.engine_version,
        options.request,
    )
    for key in ("model", "model_dir", "hardware", "engine_version"):
        if not isinstance(row.get(key), str | None):
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
    import msgspec

    launch = read_command(command)
    return msgspec.structs.replace(launch, env={**env, **launch.env})
