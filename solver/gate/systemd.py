"""A systemd unit or a podman quadlet -> the launches in its Exec lines, with the variables it sets.

A value goes on over lines that end in a backslash, comment lines inside are passed over. `$NAME` and `${NAME}` are
variables, `$$` and `%%` stand for themselves, other `%` specifiers are not known. The signs of a shell (`;`, `|`, `>`)
mean nothing in an Exec line.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from solver.errors import RequestError
from solver.gate.arguments import launches_in
from solver.gate.compose import ReadBeside, read_env_text
from solver.gate.found import UNKNOWN, Finds, Hints, Slot
from solver.gate.text import Builder, Text
from solver.records import Span
from solver.shell import tokens
from solver.wrappers import Env

_KEY = re.compile(r"[ \t]*([A-Za-z]+)[ \t]*=[ \t]*")
_PREFIX = re.compile(r"[@:+!|-]+(?=[/\w\"'$])")
_SPECIAL = re.compile(r"\\\r?\n|\\.|\$\$|%%|%[A-Za-z]|['\"]|[;|&<>()#`*?]")


class Setting(NamedTuple):
    """One `Key=value`, the value with the lines that continue it."""

    key: str
    value: Text
    place: Span


def find(source: Text, read_beside: ReadBeside) -> Finds:
    """The launches of a unit."""
    finds = Finds()
    found = settings(source)
    env, places = _environment(found, read_beside)
    image = next((s.value.text.strip() for s in found if s.key == "Image"), None)
    for setting in found:
        if not setting.key.startswith("Exec") or not (image or "sglang" in setting.value.text):
            continue
        prefix = _PREFIX.match(setting.value.text)
        text = as_shell(setting.value.cut(prefix.end() if prefix and not image else 0, len(setting.value.text)))
        bare = bool(image) and "sglang" in str(image) and text.text.startswith("-")
        try:
            finds.found += launches_in(
                "systemd", text, setting.place, env=env, env_places=places, hints=Hints(image=image), bare=bare,
                slot=Slot(setting.place.start, "Environment={name}={value}\n"),
            )  # fmt: skip
        except RequestError as error:
            line = source.text.count("\n", 0, setting.place.start) + 1
            finds.problems.append(f"{error} (in {setting.key} on line {line})")
    return finds


def settings(source: Text) -> list[Setting]:
    """The settings of a unit in order."""
    found: list[Setting] = []
    lines = source.text.splitlines(keepends=True)
    at = number = 0
    while number < len(lines):
        match = _KEY.match(lines[number])
        start, skipped, builder = at, match.end() if match else 0, Builder(source)
        while number < len(lines):
            line = lines[number]
            comment = not skipped and line.lstrip()[:1] in ("#", ";")
            if match and not comment:
                builder.take(at + skipped, at + len(line))
            skipped = 0
            at += len(line)
            number += 1
            if not match or (not comment and not line.rstrip().endswith("\\")):
                break
        if match:
            place = source.place(Span(start, at))
            found.append(Setting(match[1], builder.finish(), place or Span(start, at)))
    return found


def as_shell(value: Text) -> Text:
    """An Exec value as shell text: signs that only a shell knows are escaped, specifiers are not known."""
    builder = Builder(value)
    at, quote = 0, ""
    for match in _SPECIAL.finditer(value.text):
        sign = match[0]
        builder.take(at, match.start())
        at = match.end()
        if sign in ("'", '"'):
            quote = sign if not quote else "" if quote == sign else quote
            builder.take(match.start(), at)
        elif sign == "$$":
            builder.replace(match.start(), at, "$" if quote == "'" else "\\$")
        elif sign == "%%":
            builder.replace(match.start(), at, "%")
        elif sign[0] == "%":
            builder.replace(match.start(), at, f"{UNKNOWN}{sign}}}")
        elif len(sign) == 1 and not quote:
            builder.compute("\\")
            builder.take(match.start(), at)
        else:
            builder.take(match.start(), at)
    builder.take(at, len(value.text))
    return builder.finish()


def _environment(found: list[Setting], read_beside: ReadBeside) -> tuple[Env, dict[str, Span]]:
    """Variables of `Environment=` and `EnvironmentFile=`, the files after, as systemd reads them."""
    env: Env = {}
    places: dict[str, Span] = {}
    for setting in found:
        if setting.key != "Environment":
            continue
        try:
            words = tokens(setting.value.text.rstrip("\n"))
        except RequestError:
            continue
        for word in words:
            name, equals, value = "".join(piece.text for piece in word.pieces).partition("=")
            if equals and name.isidentifier():
                env[name] = None if "%" in value.replace("%%", "") else value.replace("%%", "%")
                places[name] = setting.value.place(Span(word.start, word.end)) or setting.place
    for setting in found:
        if setting.key == "EnvironmentFile":
            text = read_beside(setting.value.text.strip().removeprefix("-"))
            env.update(read_env_text(text) if text is not None else {})
    return env, places
