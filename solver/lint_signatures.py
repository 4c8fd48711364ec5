"""What is known about logs -> complaints: unknown names, fragments that are sentences, examples that fail."""

from __future__ import annotations

import re
from collections.abc import Iterator

from solver.errors import ConditionError
from solver.grammar import parse
from solver.knowledge import Knowledge
from solver.log_events import event_of
from solver.log_lines import records_of
from solver.signatures import Signature, is_computed, matches_in
from solver.words import holes

RANGE = re.compile(r"(>=|<)\d+\.\d+\.\d+(\.post\d+)?(,<\d+\.\d+\.\d+(\.post\d+)?)?$")
LONGEST, MOST_WORDS = 64, 9
"""A fragment recognises; a longer one would be the engine's own sentence."""


def lint_signatures(knowledge: Knowledge, only: str | None = None) -> list[str]:
    """All complaints about signatures (those whose id contains `only`), phases, patterns and places."""
    found = []
    for signature in knowledge.logs.signatures:
        if only is None or only in signature.id:
            found += [f"{signature.id}: {c}" for c in (*_names(signature, knowledge), *_example(signature, knowledge))]
    if only is None:
        found += _patterns(knowledge)
        for place in knowledge.logs.places:
            found += [f"place {place.path}: {c}" for c in _unknown_flags(place.about, knowledge)]
    return sorted(found)


def _names(signature: Signature, knowledge: Knowledge) -> Iterator[str]:
    if signature.id in knowledge.rules:
        yield "is the id of a rule too"
    if not RANGE.match(signature.versions):
        yield f"versions {signature.versions!r}: only >= and < of whole releases"
    if not signature.sources and not signature.rules:
        yield "has no source and no rule that has one"
    yield from (f"names the unknown rule {r}" for r in signature.rules if r not in knowledge.rules)
    phases = {p.id for p in knowledge.logs.phases}
    yield from (f"names the unknown phase {p}" for p in signature.phases if p not in phases)
    yield from _unknown_flags((*signature.about, *(n for f in signature.fix for n in (*f.set, *f.unset))), knowledge)
    yield from _texts(signature)
    yield from _conditions(signature)


def _unknown_flags(names: tuple[str, ...], knowledge: Knowledge) -> Iterator[str]:
    """Names in capitals are variables, of which the engine does not read all that matter."""
    yield from (f"names the unknown flag {n}" for n in names if not n.isupper() and n not in knowledge.flags)


def _texts(signature: Signature) -> Iterator[str]:
    for fragment in (*(f for fs in signature.match for f in fs), *signature.unless, *signature.log):
        if len(fragment) > LONGEST or len(fragment.split()) > MOST_WORDS or "\n" in fragment:
            yield f"fragment {fragment!r} is longer than {LONGEST} characters or {MOST_WORDS} words"
    for name, pattern in signature.read.items():
        if _groups(pattern) != 1:
            yield f"pattern {name} has to be a regular expression with one group"
    if signature.words is not None and signature.words not in signature.read:
        yield f"words names {signature.words}, which is not read"
    known = {"release", *(f"log.{name}" for name in signature.read)}
    for hole in holes(signature.message):
        if hole not in known and hole.split(".")[0] not in ("flag", "spell"):
            yield f"message names {hole}, which is not known"


def _groups(pattern: str) -> int:
    try:
        return re.compile(pattern).groups
    except re.error:
        return 0


def _conditions(signature: Signature) -> Iterator[str]:
    computed = [v["expr"] for f in signature.fix for v in f.set.values() if is_computed(v)]
    for text in (*computed, *(f.only_if for f in signature.fix if f.only_if)):
        try:
            parse(str(text))
        except ConditionError as error:
            yield str(error)


def _example(signature: Signature, knowledge: Knowledge) -> Iterator[str]:
    """The example is recognised by its own signature, and by no other before it."""
    events = [event_of(record) for record in records_of(signature.example)]
    found = matches_in(events, knowledge.logs.signatures, knowledge.logs.phases)
    first = next((m.signature.id for _, _, m in found if m), None)
    if first != signature.id:
        yield f"its example is recognised by {first or 'no signature'}"


def _patterns(knowledge: Knowledge) -> Iterator[str]:
    for pattern in knowledge.logs.patterns:
        if _groups(pattern.pattern) < 1:
            yield f"pattern of {pattern.fact} is not a regular expression with a group: {pattern.pattern}"
