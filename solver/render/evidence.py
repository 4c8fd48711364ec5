"""What is on record about a launch -> a few sentences: what ran, in what it differs, what never ran."""

from __future__ import annotations

from typing import Any

from solver.compiled import Program
from solver.evidence import Difference, Nearest, Ran, Support
from solver.findings import spelling
from solver.handoff.command import flag_words
from solver.words import listed, say

KINDS = {
    "ci": "a test of the engine",
    "cookbook": "a cookbook recipe",
    "benchmark": "a published benchmark",
    "docs": "a vendor's page",
}
SHOWN = 4
"""So many differences and pairs are written out; the JSON result has all."""


def named(name: str, program: Program) -> str:
    """A flag in the release's spelling, or a variable."""
    return name.removeprefix("env.") if name.startswith("env.") else spelling(program, name)


def typed(name: str, value: Any, program: Program) -> str:
    """A flag with its value as one types it."""
    if name.startswith("env."):
        return f"{name[4:]}={say(value)}"
    form = program.flags.get(name)  # a record of another release may have a flag that this one has not
    return " ".join(flag_words(form, value) if form else [named(name, program), say(value)]) or named(name, program)


def record_lines(ran: Ran, program: Program) -> list[str]:
    """A launch on record in the spellings of its own release: what ran, where, and where that is written."""
    about = "about " if ran.dated else ""
    lines = [f"{ran.id}: {KINDS[ran.kind]}", f"{ran.model} on {ran.hardware} under SGLang {about}{ran.release}"]
    for what, values in (("choices", ran.choices), ("amounts", ran.amounts)):
        flags = [typed(n, v, program) for n, v in sorted(values.items())]
        lines.append(f"{what}: {' '.join(flags) or 'none'}")
    return [*lines, f"source: {ran.source}" + (f" ({ran.note})" if ran.note else "")]


def support_lines(support: Support, release: str, program: Program) -> list[str]:
    """What ran or what ran nearest, its source, and what never ran; the absence of evidence is told, never judged."""
    near = support.nearest
    if near is None:
        return [f"evidence: no launch of {support.architecture} is on record"]
    where = _where(near, release)
    if support.ran:
        amounts = f", with {_other(near.amounts, program)}" if near.amounts else ""
        what = "these choices ran with other amounts" if near.amounts else "this exact set ran"
        lines = [f"evidence: {what}: {where}{amounts}"]
    else:
        alone = support.machine and not support.scope.endswith("machine")
        none = f" (none on {support.machine} is)" if alone else ""
        other = f", with {_other(near.differs, program)}" if near.differs else ""
        lines = [f"evidence: this set is not on record{none}; nearest is {where}{other}"]
    lines.append(f"{near.ran.source}" + (f" ({near.ran.note})" if near.ran.note else ""))
    return [*lines, *_never(support, program)]


def _where(near: Nearest, release: str) -> str:
    ran = near.ran
    about = "about " if ran.dated else ""
    same = "this release" if ran.release == release and not ran.dated else f"SGLang {about}{ran.release}"
    return f"{ran.model} on {ran.hardware} under {same}, {KINDS[ran.kind]} [{ran.id}]"


def _other(found: tuple[Difference, ...], program: Program) -> str:
    """The record's side of some differences: what it has besides or instead, and what it does without."""
    has = [
        typed(d.flag, d.there, program) + ("" if d.here is None else f" instead of {say(d.here)}")
        for d in found
        if d.there is not None
    ]
    lacks = [f"no {named(d.flag, program)}" for d in found if d.there is None]
    shown = [*has, *lacks][:SHOWN]
    return listed(shown + ([f"{len(found) - SHOWN} other differences"] if len(found) > SHOWN else []))


def _never(support: Support, program: Program) -> list[str]:
    """The choices, and the pairs of choices, that no record of the architecture on this kind of machine has."""
    where = f"no record on {support.machine}" if support.machine else "no record"
    lines = []
    if support.unseen:
        words = [typed(n, support.choices[n], program) for n in support.unseen]
        lines.append(f"{where} has {listed(words, 'or')}")
    if support.unseen_pairs:
        shown = support.unseen_pairs[:SHOWN]
        pairs = [" with ".join(typed(n, support.choices[n], program) for n in pair) for pair in shown]
        more = len(support.unseen_pairs) - len(shown)
        rest = f", nor {more} more pairs" if more else ""
        lines.append(f"{where} has together {'; '.join(pairs)}{rest}")
    return lines
