"""Events of a log -> what it says of the launch: arguments, release, model, GPU, and a command that it shows.

The engine prints its resolved arguments once, up to some releases as `ServerArgs(name=value, …)`, later as a dict. The
names tell the release: each release has its own set of arguments.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from solver.log_events import Event
from solver.signatures import LogPattern

ARGUMENTS = re.compile(r"server_args=(?:ServerArgs\(|\{)")
NAME = re.compile(r"\s*(?:'(\w+)'\s*:|(\w+)\s*=)\s*")
COMMAND = re.compile(r"(?:[A-Z][A-Z0-9_]*=\S+ +)*(?:\S*python[\d.]* -m sglang\.launch_server|sglang serve) .*--.*")
OPENING, CLOSING = "([{", ")]}"


class LogFacts(msgspec.Struct, frozen=True):
    """What the log says. `arguments`: name as the release calls it -> effective value; `complete`: none is cut off."""

    arguments: dict[str, Any] = {}
    complete: bool = False
    release: str | None = None
    model: str | None = None
    gpu: str | None = None
    command: str | None = None
    ranks: tuple[str, ...] = ()


def read_facts(events: Sequence[Event], patterns: Iterable[LogPattern]) -> LogFacts:
    """Everything that the log says of its launch, the first mention of each."""
    arguments, complete = _arguments(events)
    found: dict[str, str] = {}
    for pattern in patterns:
        compiled = re.compile(pattern.pattern)
        match = next((m for e in events if (m := compiled.search(e.text))), None)
        if match:
            found.setdefault(pattern.fact, next(g for g in match.groups() if g is not None))
    model = arguments.get("model_path")
    return LogFacts(
        arguments=arguments,
        complete=complete,
        release=found.get("release"),
        model=model if isinstance(model, str) else found.get("model"),
        gpu=found.get("gpu"),
        command=_command(events),
        ranks=tuple(sorted({e.rank for e in events if e.rank})),
    )


def _command(events: Sequence[Event]) -> str | None:
    """A launch line that the log shows, unless shell variables in it were never replaced."""
    for event in events:
        for text in event.text.split("\n"):
            match = COMMAND.search(text)
            if match and "$" not in match[0]:
                return match[0].rstrip("&\\ ")
    return None


# ----------------------------------------------------------------- arguments


def _arguments(events: Sequence[Event]) -> tuple[dict[str, Any], bool]:
    for event in events:
        match = ARGUMENTS.search(event.text)
        if match:
            return read_arguments(event.text[match.end() :])
    return {}, False


def read_arguments(text: str) -> tuple[dict[str, Any], bool]:
    """`name=value, …` or `'name': value, …` up to the closing bracket, and whether that bracket was reached.

    A value that is no Python literal (an object's own form) is left out; so is one that is cut off.
    """
    found: dict[str, Any] = {}
    position = 0
    while match := NAME.match(text, position):
        end = _value_end(text, match.end())
        if end is None:
            return found, False
        with suppress(ValueError, SyntaxError):
            found[match[1] or match[2]] = ast.literal_eval(text[match.end() : end].strip())
        if text[end] != ",":
            return found, True
        position = end + 1
    return found, False


def _value_end(text: str, start: int) -> int | None:
    """The position of the comma or bracket after a value; None when the text ends before."""
    depth, quote, position = 0, "", start
    while position < len(text):
        char = text[position]
        if quote:
            if char == "\\":
                position += 1
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char in OPENING:
            depth += 1
        elif char in CLOSING:
            if depth == 0:
                return position
            depth -= 1
        elif char == "," and depth == 0:
            return position
        position += 1
    return None


def releases_with(
    names: Iterable[str], known_flags: Mapping[str, tuple[str, tuple[str, ...]]], releases: Sequence[str]
) -> list[str]:
    """The releases whose arguments are most like these names: most of them known, fewest of the release missing."""
    wanted = set(names)
    by_release: dict[str, dict[str, set[str]]] = {r: {} for r in releases}
    for spelling, (ident, where) in known_flags.items():
        for release in where:
            if release in by_release:
                by_release[release].setdefault(ident, {ident}).add(spelling.lstrip("-").replace("-", "_"))
    scores = {}
    for release, flags in by_release.items():
        seen = [names & wanted for names in flags.values()]
        scores[release] = sum(bool(s) for s in seen) - sum(not s for s in seen)
    most = max(scores.values(), default=0)
    return [r for r in releases if scores[r] == most]
