"""Comments beside launches -> what they say about them.

    # flagwise: hardware=8xrtx-pro-6000 release=0.5.12 ignore=repeated-flag because the image sets the first value

A comment holds for the launch whose lines it stands in, else for the next one after it. Keys are model, hardware,
release, fail-on and ignore (rules, separated by commas); `because` and the rest of the line are the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from solver.gate.settings import Said
from solver.records import SEVERITIES, Span

MARK = "flagwise:"
KEYS = ("model", "hardware", "release", "fail-on", "ignore")
_COMMENT = re.compile(r"(?:#|<!--|//)[ \t]*flagwise:[ \t]*([^\n]*?)[ \t]*(?:-->[^\n]*)?\r?(?=\n|$)")
_REASON = re.compile(r"(?:^|[ \t])because[ \t]+(.*)$")


class Directive(msgspec.Struct, frozen=True):
    """One comment: its place, what it says, the rules it switches off, why, and what is wrong with it."""

    place: Span
    said: Said
    ignore: tuple[str, ...] = ()
    because: str | None = None
    problem: str | None = None


def directives_in(text: str) -> list[Directive]:
    """The comments of a text in order."""
    return [_read(match[1], Span(match.start(), match.end())) for match in _COMMENT.finditer(text)]


def _read(words: str, place: Span) -> Directive:
    reason = _REASON.search(words)
    said: dict[str, str] = {}
    problem: str | None = None
    for word in (words[: reason.start()] if reason else words).split():
        key, equals, value = word.partition("=")
        if key not in KEYS or not equals or not value:
            problem = f"{word!r} is not understood: expected {', '.join(f'{k}=…' for k in KEYS)} and `because …`"
        said[key] = value
    level = said.get("fail-on")
    if level is not None and level not in SEVERITIES:
        problem = f"fail-on={level}: expected {', '.join(SEVERITIES)}"
    ignore = tuple(rule for rule in said.get("ignore", "").split(",") if rule)
    because = reason[1].strip() if reason else None
    if ignore and not because:
        problem = f"{', '.join(ignore)} is switched off without a reason: write `ignore={ignore[0]} because …`"
    if problem:
        return Directive(place, Said(), problem=problem)
    fields = {name: said.get(name.replace("_", "-")) for name in Said.__struct_fields__}
    return Directive(place, Said(**fields), ignore, because)  # type: ignore[arg-type]  # the level was checked above


def held_by(directives: list[Directive], spans: Iterable[tuple[int, int]], text: str) -> list[int | None]:
    """For each comment the index of its launch, given the launches' stretches in order; None where none follows."""
    if not directives:
        return []
    lines = [(text.rfind("\n", 0, start) + 1, _line_end(text, end)) for start, end in spans]
    found: list[int | None] = []
    for directive in directives:
        at = directive.place.start
        inside = [i for i, (start, end) in enumerate(lines) if start <= at < end]
        after = [i for i, (start, _) in enumerate(lines) if start > at]
        found.append(inside[-1] if inside else after[0] if after else None)
    return found


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
