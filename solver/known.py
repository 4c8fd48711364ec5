"""`Knowledge` -> which release has which flag, variable and value, for what a command names and its release lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from solver.records import FlagForm

if TYPE_CHECKING:
    from solver.knowledge import Knowledge


class Known(msgspec.Struct, frozen=True):
    """Which release has which spelling and variable; needed only when a command names something unknown."""

    flags: dict[str, tuple[str, tuple[str, ...]]]
    """Spelling -> canonical id, and the releases that have it."""
    env: dict[str, tuple[str, ...]]
    advice: dict[str, str] = {}
    """Spelling or variable -> what the newest release that has it says to write instead."""
    choices: dict[str, dict[str, tuple[str, str]]] = {}
    """Canonical id -> value -> the first and last release that take it."""
    stored: dict[str, Any] = {}
    """Spelling without a value of its own -> what it stores in the flag that it writes."""


def known_of(knowledge: Knowledge) -> Known:
    """Which release has what, over all releases."""
    from solver.knowledge import form_in

    releases = [r.version for r in knowledge.releases]
    held: dict[str, dict[str, tuple[str, FlagForm]]] = {}
    choices: dict[str, dict[str, tuple[str, str]]] = {}
    for release in releases:
        for flag in knowledge.flags.values():
            form: FlagForm | None = form_in(flag.forms, release)
            if form is None:
                continue
            for spelling in form.spellings:
                held.setdefault(spelling, {})[release] = (flag.id, form)
            for value in map(str, form.choices or ()):
                taken = choices.setdefault(flag.id, {})
                taken[value] = (taken.get(value, (release,))[0], release)
    newest = {spelling: list(of.values())[-1] for spelling, of in held.items()}
    env = {n: tuple(r for r in releases if form_in(v.forms, r)) for n, v in knowledge.env.items()}
    advice = {spelling: form.deprecated for spelling, (_, form) in newest.items()}
    advice |= {n: form_in(v.forms, env[n][-1]).deprecated for n, v in knowledge.env.items() if env[n]}
    return Known(
        flags={s: (form.into or flag_id, tuple(held[s])) for s, (flag_id, form) in newest.items()},
        env=env,
        advice={name: said for name, said in advice.items() if said and said != "nothing"},
        choices=choices,
        stored={s: f.const for s, (_, f) in newest.items() if f.into and f.type == "flag" and f.const is not None},
    )
