"""Options of `diff` and of `validate --lock` -> what differs, printed; `diff` fails where an error is gained."""

from __future__ import annotations

from typing import Any

import msgspec

from solver.check import Result
from solver.compare.account import Brief, account_of
from solver.compare.differences import differences
from solver.compare.lock import read_lock, reasons_in
from solver.compare.sides import heading, locked_context, side_of
from solver.compare.text import comparison, since
from solver.context import Options, check_context
from solver.errors import RequestError
from solver.launch import Launch
from solver.render.data import SCHEMA, dumps, result_data
from solver.render.text import validation
from solver.store import Store

FINDINGS = 1


def diff(values: dict[str, Any]) -> int:
    """Compare two launches. Errors: RequestError."""
    from solver.verbs import options_of, store

    if len(values["command"]) != 2:
        raise RequestError("expected two launches, each a command in quotes, a file or -: flagwise diff A B")
    if values["command"] == ["-", "-"]:
        raise RequestError("standard input can be one of the two launches, not both")
    where, options = store(), options_of(values)
    first, second = (side_of(where, text, options) for text in values["command"])
    before, after = (account_of(side.context, side.result) for side in (first, second))
    found = differences(before, after)
    if values["format"] == "json":
        data = {"schema": SCHEMA, "knowledge": where.index.hash, "before": heading(first), "after": heading(second)}
        metrics = {"before": before.metrics, "after": after.metrics}
        print(dumps({**data, "differences": msgspec.to_builtins(found), "metrics": metrics}))
    else:
        print(comparison(first, second, before, after, found))
    return FINDINGS if any(map(_is_error, found.gained)) else 0


def _is_error(finding: Brief) -> bool:
    return finding.severity == "error" and not finding.conditional_on and not finding.after


def validate_locked(
    where: Store, path: str, launch: Launch | None, options: Options, form: str, require_context: bool
) -> Result:
    """Check the launch of a lock file (or another in its place), print what has changed since. Errors: RequestError."""
    from solver.verbs import refuse_assumed

    lock = read_lock(path)
    context = locked_context(where, lock, launch, options)
    if require_context:
        refuse_assumed(context)
    result = check_context(context)
    found = differences(lock.held, account_of(context, result, reasons_in(lock.reasons)))
    if form == "json":
        data = msgspec.to_builtins(result_data(context, result))
        print(dumps({**data, "lock": {"file": path, "changes": msgspec.to_builtins(found)}}))
    else:
        print("\n".join([*since(path, context, found), "", validation(context, result)]))
    return result
