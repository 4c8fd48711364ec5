"""A solution -> a lock file that holds what it rests on; a lock file -> the launch, and what it is judged by."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from solver import __version__
from solver.compare.account import Account, account_of
from solver.context import Context, Lookup, Options
from solver.errors import RequestError
from solver.index import Index
from solver.inputs import file_text
from solver.output_file import refuse_taken, write_whole
from solver.release import Assumed
from solver.render.data import dumps, emit_data
from solver.solve import Solution

SCHEMA = "flagwise-lock/1"


class Request(msgspec.Struct, frozen=True):
    """What was asked: the goal, the pins, and what the launch is judged by."""

    goal: str
    argv: tuple[str, ...]
    env: dict[str, str]
    model: str | None
    hardware: str | None
    engine_version: str
    options: dict[str, Any]


class Lock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A solved launch with all that it rests on. `held`: what was true of it when it was written."""

    schema: str
    flagwise: str
    request: Request
    argv: tuple[str, ...]
    env: dict[str, str]
    held: Account
    objective: dict[str, Any]
    proven: bool
    reasons: tuple[dict[str, Any], ...]


def json_schema() -> dict[str, Any]:
    """The JSON schema of a lock file."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(Lock)}


def lock_of(context: Context, goal: str, answer: Solution, options: Options) -> Lock:
    """The lock of an answer. `options` are those of the request."""
    data = emit_data(context, answer)
    launch = context.launch
    solved = msgspec.structs.replace(context, facts=answer.facts, problems=())
    return Lock(
        schema=SCHEMA,
        flagwise=__version__,
        request=Request(
            goal=goal,
            argv=tuple(word.text for word in launch.words) if launch else (),
            env={name: value for name, value in launch.env.items() if value is not None} if launch else {},
            model=options.model or context.facts.given.get("model_path"),
            hardware=options.hardware,
            engine_version=options.engine_version or context.release,
            options=options.request,
        ),
        argv=tuple(data["argv"]),
        env=data["env"],
        held=account_of(solved, answer.result, reasons_in(data["reasons"])),
        objective=data["objective"],
        proven=data["proven"],
        reasons=tuple(data["reasons"]),
    )


def reasons_in(reasons: Iterable[dict[str, Any]]) -> list[str]:
    """What the flags of a solution are there for: rule ids, and other things that no rule is called."""
    return sorted({str(reason["by"]) for reason in reasons})


def keeper(path: str, overwrite: bool, options: Options) -> Callable[[Context, str, Solution], None]:
    """What keeps an answer in a file. Errors: RequestError, before anything is solved, for a file that is there."""
    refuse_taken(path, overwrite, f", or see what has changed since with `flagwise validate --lock {path}`")

    def keep(context: Context, goal: str, answer: Solution) -> None:
        write(path, lock_of(context, goal, answer, options), overwrite)

    return keep


def write(path: str, lock: Lock, overwrite: bool) -> None:
    """Write a lock file, whole or not at all. Errors: RequestError."""
    write_whole(path, dumps(msgspec.to_builtins(lock)) + "\n", overwrite)


def is_lock(text: str) -> bool:
    """Whether a text is that of a lock file, of this version or another."""
    return text.lstrip().startswith("{") and '"flagwise-lock/' in text[:200]


def read_lock(path: str) -> Lock:
    """A lock file. Errors: RequestError."""
    return parse_lock(file_text(path, "the lock file"), path)


def parse_lock(text: str, path: str) -> Lock:
    """The lock in a text that was read from `path`. Errors: RequestError."""
    try:
        schema = msgspec.json.decode(text, type=_Marked).schema
        if schema != SCHEMA:
            raise RequestError(
                f"{path} has the schema {schema!r}: expected {SCHEMA!r}, as `flagwise solve --lock` writes it"
            )
        return msgspec.json.decode(text, type=Lock)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RequestError(f"{path} is no lock file: {error}; `flagwise solve --lock FILE` writes one") from None


class _Marked(msgspec.Struct):
    schema: str


class Remembered(Lookup):
    """Traits by name; those of a model or machine that is no longer found are the ones in a lock file."""

    def __init__(self, index: Index, lock: Lock) -> None:
        super().__init__(index)
        self.lock = lock

    def model(self, wanted: str | None, path: Any) -> tuple[str | None, dict[str, Any], list[Assumed]]:
        try:
            return super().model(wanted, path)
        except RequestError:
            if wanted != self.lock.request.model:
                raise
        return self.lock.held.model, self._traits("model"), [_remembered("model", str(wanted))]

    def machine(self, wanted: str | None) -> tuple[dict[str, Any], list[Assumed]]:
        try:
            return super().machine(wanted)
        except RequestError:
            if wanted != self.lock.request.hardware:
                raise
        return self._traits("hardware"), [_remembered("hardware", str(wanted))]

    def _traits(self, space: str) -> dict[str, Any]:
        return {n.partition(".")[2]: v for n, v in self.lock.held.traits.items() if n.startswith(f"{space}.")}


def _remembered(what: str, name: str) -> Assumed:
    return Assumed(what, name, "it is no longer found; its traits are those of the lock file")
