"""Captured `--help` output of an argparse parser -> the flags it shows.

The text says spellings, choices, how many values a flag takes, and in its usage lines what is required. It does not say
types, so that no value of a flag is refused that only this text makes known. Grammar of what is read:

    option := two blanks, name [value] (", " name [value])*, then the help or the end of the line
    value  := METAVAR | {a,b} | METAVAR METAVAR | METAVAR [METAVAR ...] | [METAVAR ...] | [METAVAR]
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from solver.records import FlagForm

_OPTION = re.compile(r"^ {2}(-{1,2}[A-Za-z].*)$", re.MULTILINE)
_NAME = re.compile(r"(?:^|, )(-{1,2}[A-Za-z][\w.-]*)")
_CHOICES = re.compile(r"\{([^}]*)\}")
_USAGE = re.compile(r"^usage:.*?(?=\n\s*\n)", re.DOTALL | re.MULTILINE)
_BRACKETED = re.compile(r"\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]")
_DEFAULT = re.compile(r"\(default: ([^()]*)\)")


def read_help(text: str) -> tuple[FlagForm, ...]:
    """The flags of a help text, in its order. Errors: ValueError where it shows none."""
    required = _required(text)
    starts = [(m.start(), m[1]) for m in _OPTION.finditer(text)]
    ends = [*(start for start, _ in starts[1:]), len(text)]
    found = []
    for (start, header), end in zip(starts, ends, strict=False):
        form = _form(header, text[start:end], required)
        if form is not None:
            found.append(form)
    if not found:
        raise ValueError("no flags in this text; expected the --help output of the launcher")
    return tuple(found)


def _required(text: str) -> set[str]:
    """Names in the usage lines that stand outside brackets."""
    usage = _USAGE.search(text)
    bare = _BRACKETED.sub(" ", usage[0]) if usage else ""
    return {word for word in bare.split() if word.startswith("--")}


def _form(header: str, body: str, required: set[str]) -> FlagForm | None:
    head = re.split(r" {2,}", header, maxsplit=1)[0].rstrip()
    spellings = tuple(_NAME.findall(head))
    if "--help" in spellings or not any(s.startswith("--") for s in spellings):
        return None
    value = head[_last_name(head) :].strip()
    off = {f"--no-{s[2:]}" for s in spellings}
    if not value:
        yes_no = bool(off & set(spellings))
        action = "BooleanOptionalAction" if yes_no else "store_true"
        kept = tuple(s for s in spellings if s not in off)
        return FlagForm("", kept, type="flag", action=action, const=None if yes_no else True)
    choices = _CHOICES.search(value)
    return FlagForm(
        versions="",
        spellings=spellings,
        nargs=_nargs(_CHOICES.sub("X", value)),
        choices=tuple(choices[1].split(",")) if choices else None,
        default=next(iter(_defaults(body)), None),
        required=any(s in required for s in spellings),
    )


def _last_name(head: str) -> int:
    return max(m.end() for m in _NAME.finditer(head))


def _nargs(value: str) -> str | int | None:
    """How many values `value` stands for, as argparse writes it."""
    if "..." in value:
        return "*" if value.startswith("[") else "+"
    if value.startswith("["):
        return "?"
    count = len(value.split())
    return count if count > 1 else None


def _defaults(body: str) -> Iterator[str]:
    """The default that `ArgumentDefaultsHelpFormatter` adds."""
    yield from (d for d in _DEFAULT.findall(" ".join(body.split())) if d != "None")
