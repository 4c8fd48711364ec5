"""A systemd unit or a podman quadlet -> the launches in its Exec lines, with the variables it sets.

A value goes on over lines that end in a backslash, comment lines inside are passed over. `$NAME` and `${NAME}` are
variables, `$$` and `%%` stand for themselves, other `%` specifiers are not known. Escapes such as `\\n` hold in both
kinds of quotes. The signs of a shell (`;`, `|`, `>`) mean nothing in an Exec line.
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
_SPECIAL = re.compile(
    r"\\\r?\n|\\(?:x[0-9a-fA-F]{2}|[0-7]{3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)|\$\$|\$|%%|%[A-Za-z]|['\"]|[;|&<>()#`*?]"
)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "s": " ", "t": "\t", "v": "\v"}


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


def as_shell(value: Text, variables: bool = True) -> Text:
    """A value as shell text: signs that only a shell knows are escaped, specifiers are not known.

    Without `variables` a dollar is a dollar, as in `Environment=`.
    """
    builder = Builder(value)
    at, quote = 0, ""
    for match in _SPECIAL.finditer(value.text):
        sign = match[0]
        builder.take(at, match.start())
        at = match.end()
        if sign in ("'", '"'):
            quote = sign if not quote else "" if quote == sign else quote
            literal = quote not in ("", sign)
            builder.replace(match.start(), at, _literal(sign, quote)) if literal else builder.take(match.start(), at)
        elif sign[0] == "\\" and sign[-1] != "\n":
            builder.replace(match.start(), at, _literal(_unescaped(sign[1:]), quote))
        elif sign[0] == "$" and (not variables or sign == "$$"):
            builder.replace(match.start(), at, _literal("$", quote) * (1 if variables else len(sign)))
        elif sign == "%%":
            builder.replace(match.start(), at, "%")
        elif sign[0] == "%":
            builder.replace(match.start(), at, f"{UNKNOWN}{sign}}}")
        elif sign == "`" or (len(sign) == 1 and sign != "$" and not quote):
            builder.replace(match.start(), at, _literal(sign, quote))
        else:
            builder.take(match.start(), at)
    builder.take(at, len(value.text))
    return builder.finish()


def _unescaped(code: str) -> str:
    """What the characters after a backslash stand for."""
    if len(code) > 1:
        number = int(code, 8) if code.isdigit() and len(code) == 3 else int(code[1:], 16)
        return chr(number) if 0 < number <= 0x10FFFF else ""
    return _ESCAPED.get(code, code)


def _literal(char: str, quote: str) -> str:
    """One character as shell text that stands for itself inside these quotes."""
    if quote == "'":
        return "'\"'\"'" if char == "'" else char
    if quote == '"':
        return f"\\{char}" if char in '"\\$`' else char
    return f"'{char}'" if char == "\n" else f"\\{char}"


def _environment(found: list[Setting], read_beside: ReadBeside) -> tuple[Env, dict[str, Span]]:
    """Variables of `Environment=` and `EnvironmentFile=`, the files after, as systemd reads them."""
    env: Env = {}
    places: dict[str, Span] = {}
    for setting in found:
        if setting.key != "Environment":
            continue
        value_text = as_shell(setting.value, variables=False)
        try:
            words = tokens(value_text.text.rstrip("\n"))
        except RequestError:
            continue
        for word in words:
            name, equals, value = "".join(piece.text for piece in word.pieces).partition("=")
            if equals and name.isidentifier():
                env[name] = None if UNKNOWN in value or any(p.kind != "text" for p in word.pieces) else value
                places[name] = value_text.place(Span(word.start, word.end)) or setting.place
    for setting in found:
        if setting.key == "EnvironmentFile":
            text = read_beside(setting.value.text.strip().removeprefix("-"))
            env.update(read_env_text(text) if text is not None else {})
    return env, places
