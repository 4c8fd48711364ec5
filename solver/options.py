"""One argument and a release's flags -> the option it names, found the way argparse finds it.

An argument is an option if it starts with `-` and is not a negative number and holds no blank; a known spelling is one
always. Exact spellings come first, then `--flag=value`, then prefixes that fit a single spelling (CPython 3.11's
`_parse_optional`). The engine has long options only, besides `-h`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from solver.facts import make_room
from solver.records import FlagForm

HELP = ("-h", "--help")
_NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


class Option(NamedTuple):
    """`spelling` is the full option string (empty: unknown or ambiguous), `value` what stands after `=`."""

    spelling: str
    value: str | None = None
    candidates: tuple[str, ...] = ()


class Index(NamedTuple):
    """`spellings` maps option strings to canonical ids; `owners` a dest to the id that stands for it.

    `found` keeps what arguments named, `settled` what flags with their values stored and `near` what is spelled like
    unknown ones (see `reading`), since launches say the same ones again.
    """

    spellings: dict[str, str]
    owners: dict[str, str]
    required: tuple[str, ...]
    found: dict[str, Option | None]
    settled: dict[tuple[str, ...], Any]
    near: dict[str, list[str]]

    def find(self, text: str) -> Option | None:
        """The option that an argument names (see `find_option`)."""
        if not text.startswith("-"):
            return None
        if text not in self.found:
            make_room(self.found)
            self.found[text] = find_option(text, self.spellings)
        return self.found[text]


def index(flags: Mapping[str, FlagForm]) -> Index:
    """The look-up tables of one release's flags, in the order of its parser."""
    spellings = dict.fromkeys(HELP, "help")
    owners: dict[str, str] = {}
    for flag, form in flags.items():
        spellings.update(dict.fromkeys(spellings_of(form), flag))
        dest = dest_of(form)
        if dest not in owners or flags[owners[dest]].deprecated:
            owners[dest] = flag
    return Index(spellings, owners, tuple(flag for flag, form in flags.items() if form.required), {}, {}, {})


def spellings_of(form: FlagForm) -> tuple[str, ...]:
    """All option strings of a flag, the `--no-…` ones of a yes/no flag among them."""
    if form.action != "BooleanOptionalAction":
        return form.spellings
    off = (f"--no-{s[2:]}" for s in form.spellings if not s.startswith("--no-"))
    return tuple(dict.fromkeys((*form.spellings, *off)))


def dest_of(form: FlagForm) -> str:
    """Where the release's parser stores the flag."""
    return form.dest or form.spellings[0].lstrip("-").replace("-", "_")


def find_option(text: str, spellings: Mapping[str, str]) -> Option | None:
    """The option that an argument names; None where argparse takes it as a value."""
    if not text.startswith("-"):
        return None
    if text in spellings:
        return Option(text)
    if len(text) == 1:
        return None
    name, equals, value = text.partition("=")
    given = value if equals else None
    if equals and name in spellings:
        return Option(name, given)
    if text.startswith("--"):
        candidates = tuple(s for s in spellings if s.startswith(name))
        if candidates:
            return Option(candidates[0], given) if len(candidates) == 1 else Option("", given, candidates)
    elif text.startswith("-h"):
        return Option("-h", text[2:])
    if _NEGATIVE_NUMBER.fullmatch(text) or " " in text:
        return None
    return Option("", given)


def count_values(form: FlagForm, available: int) -> int | None:
    """How many of the arguments that follow a flag takes; None where it needs more than there are."""
    if takes_no_value(form):
        return 0
    if form.nargs == "?":
        return min(1, available)
    if form.nargs == "*":
        return available
    if form.nargs == "+":
        return available or None
    wanted = form.nargs if isinstance(form.nargs, int) else 1
    return wanted if available >= wanted else None


def takes_no_value(form: FlagForm) -> bool:
    """Whether the flag stands alone."""
    return form.type == "flag" or form.nargs == 0
