"""The text of a server log (and its command) -> `Diagnosis`: the first cause, what else is wrong, the mended launch.

A child that fails makes its parent, its peers and whoever waits for them fail too, each with a traceback. What
counts is the first message that is a cause; consequences are named only where no cause is left in the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from solver.check import Result
from solver.context import Context, Options, check_context
from solver.knowledge import holds
from solver.launch import Launch
from solver.log_context import settle
from solver.log_events import Event, event_of, raising
from solver.log_facts import LogFacts, read_facts
from solver.log_findings import explained
from solver.log_guess import Located
from solver.log_lines import records_of
from solver.log_words import placed, places_by_fingerprint
from solver.records import Finding
from solver.repair import Repaired, errors_of, repair
from solver.signatures import matches_in
from solver.store import Store

SHORT_LOG = 40
"""Up to so many messages the log counts as an excerpt, whose lines may belong together without saying so."""


DIED = "hit an exception"
"""What each process of the engine says when it goes down; another traceback before that was survived."""
TROUBLE = re.compile(
    r"\b(?:error|fail(?:ed|ure)|fatal|abort(?:ed)?|assert\w*|unsupported|not supported|illegal)\b", re.I
)
"""What an excerpt that raises nothing says when it is about a problem all the same."""


class Diagnosis(msgspec.Struct, frozen=True):
    """What a log shows. `findings`: the first cause first; `cause`: where it stands (None: the log shows no problem).

    `guess`: no signature and no rule knows the cause. `result`: the check of the command, where one is known.
    """

    context: Context
    facts: LogFacts
    lines: int
    cause: Located | None
    guess: bool
    findings: tuple[Finding, ...]
    result: Result | None
    repaired: Repaired | None


def diagnose(store: Store, text: str, command: Launch | None, options: Options) -> Diagnosis:
    """Read a log, find its first cause, and mend the command. Errors: RequestError."""
    said_at = places_by_fingerprint(store.index.logs.messages)
    events = [placed(event_of(record), said_at) for record in records_of(text)]
    facts = read_facts(events, store.index.logs.patterns)
    context, has_command = settle(store, facts, command, options)
    result = check_context(context) if has_command else None
    causes, hints, aftermath = located_in(store, events, context)
    if not causes and not hints and not aftermath and len(events) <= SHORT_LOG:
        causes = [Located(placed(e, said_at), None, None) for e in map(raising, events) if TROUBLE.search(e.text)][:1]
    found = [explained(context, result, where) for where in (*causes, *hints)]
    guess = bool(causes) and causes[0].signature is None and found[0][0].status == "guess"
    findings = unique(f for group in found for f in group)
    from_command = list(result.findings) if result else []
    if not findings:
        from_log = (f for where in aftermath for f in explained(context, result, where))
        findings = unique([*(errors_of(result) if result else ()), *from_log])
    findings = unique([*findings, *_nearest_first(from_command, findings)])
    mended = repair(context, result, tuple(findings[:1])) if result is not None and findings else None
    cause = next(iter((*causes, *hints, *aftermath)), None)
    return Diagnosis(context, facts, len(text.splitlines()), cause, guess, tuple(findings), result, mended)


def unique(findings: Iterable[Finding]) -> list[Finding]:
    """Each rule's first finding."""
    found: dict[str, Finding] = {}
    for finding in findings:
        found.setdefault(finding.rule, finding)
    return list(found.values())


def _nearest_first(rest: list[Finding], found: list[Finding]) -> list[Finding]:
    """What the command alone shows, first what is about the same flags as the cause."""
    about = {name for f in found[:1] for name in (*f.flags, *f.env)}
    return sorted(rest, key=lambda f: f.severity != "error" or not about & {*f.flags, *f.env})


def located_in(
    store: Store, events: Sequence[Event], context: Context
) -> tuple[list[Located], list[Located], list[Located]]:
    """The causes that the log shows, the first one first, its hints, and the consequences of something not in it."""
    logs = store.index.logs
    assumed = context.release_from == "assumed"
    known = [s for s in logs.signatures if assumed or holds(s.versions, context.release)]
    found = matches_in(events, known, logs.phases)
    if 1 < len(events) <= SHORT_LOG and not any(m and m.signature.role == "cause" for _, _, m in found):
        found += matches_in([_joined(events)], known, logs.phases)
    located = [Located(event, phase, match.signature if match else None) for event, phase, match in found]
    causes = [x for x in located if x.role == "cause"]
    died = any(DIED in x.event.text for x in causes)
    causes.sort(key=lambda x: (died and x.event.survived(DIED), x.event.numbers[0]))
    hints = [x for x in located if x.role == "hint"]
    aftermath = [x for x in located if x.role == "consequence"][:1]
    if not causes:
        unknown = [x for x in located if x.signature is None and x.event.raised]
        causes = sorted(unknown, key=lambda x: DIED not in x.event.text)[:1]
    return causes, hints, aftermath


def _joined(events: Sequence[Event]) -> Event:
    """All messages of an excerpt as one."""
    raised = tuple(r for e in events for r in e.raised)
    numbers = tuple(n for e in events for n in e.numbers)
    return Event(events[0].rank, "\n".join(e.text for e in events), numbers, raised)
