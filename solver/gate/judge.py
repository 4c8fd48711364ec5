"""A launch in a file and what is said about it -> its context and result, each flag and variable with its words.

Words are handed to the reader with their number as their place, so that what it says of a flag is said of its words,
wherever in the file they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from solver.check import opened, order, verdict_of
from solver.context import Context, Lookup, Options, build, check_context, choose_release, is_open, resolver_for
from solver.errors import RequestError
from solver.expansion import Word
from solver.findings import reading_findings
from solver.gate.alike import Alike
from solver.gate.found import Found
from solver.gate.report import Verdict
from solver.gate.settings import Said
from solver.gate.shapes import Shapes
from solver.index import Index
from solver.launch import Launch
from solver.pipeline import Outcome
from solver.problems import Problem
from solver.records import Finding, Span
from solver.release import FORK, image_version
from solver.store import Store
from solver.traits.hardware import COUNTED

BY_RELEASE = (
    "renamed-flag",
    "other-release-flag",
    "refused-flag",
    "ambiguous-abbreviation",
    "env-not-read",
    "env-deprecated",
)
"""Problems of words that another release may take."""


class Judged(msgspec.Struct, frozen=True):
    """A launch with its findings and verdict. Spans in it count words of the launch.

    `outcomes` are the runs behind them, kept only by an exact judge.
    """

    context: Context
    findings: tuple[Finding, ...]
    verdict: Verdict
    outcomes: tuple[Outcome, ...] = ()


def _verdict(context: Context, options: Options, findings: tuple[Finding, ...]) -> Verdict:
    fork = options.engine_version if context.release_from == FORK else None
    gpus = context.facts.hardware.get("gpus")
    model, hardware = context.model_name, context.hardware_name
    return Verdict(context.release, context.release_from, fork, model, hardware, gpus, verdict_of(findings))


OPEN_IN_PART = frozenset(("missing-required",))
OPEN_IN_FRAGMENT = OPEN_IN_PART | {"unexpected-value", "repeated-flag"}
"""Problems that the rest of a command can take away, where only a part of it is known."""


class Judge:
    """Judges launches; those that are alike once. `options` are the command line's, which a comment alone overrides.

    `exact`: each launch is judged by itself, so that what is in force can be compared.
    """

    def __init__(self, store: Store, options: Options, exact: bool = False) -> None:
        self.store = store
        self.options = options
        self.lookup = Lookup(store.index)
        self.exact = exact
        self._alike = Alike(store)
        self._shapes: dict[tuple[str | None, str | None], Shapes] = {}
        self._done: dict[Any, Judged] = {}
        self._apart: set[Any] = set()
        """Launches that tell of a value which makes no difference otherwise."""

    def judge(self, found: Found, general: Said, beside_it: Said, read_beside: Callable[[str], str | None]) -> Judged:
        """The verdict on a launch; `general` is from the settings, `beside_it` from comments. Errors: RequestError."""
        launch, options = found.launch, self._options(found, general, beside_it)
        words = _without_unread(launch.words, read_beside)
        rest = (
            tuple([(i, w.unknown, w.splits) for i, w in enumerate(words) if w.unknown or w.splits]), launch.entry,
            tuple(launch.env.items()), launch.image, launch.unexported and (launch.unexported, launch.text),
            options.model, options.hardware, options.engine_version, found.hints.gpus, found.partial, found.fragment,
        )  # fmt: skip
        texts: tuple[object, ...] = tuple([word.text for word in words])
        left_out: frozenset[str] = frozenset()
        if not self.exact:
            telling, left_out = self._shapes_of(launch, options).telling(words)
            if (telling, rest) in self._apart:
                left_out = frozenset()
            texts = telling if left_out else texts
        key = (texts, rest)
        if key not in self._done:
            judged, said = self._judged(found, msgspec.structs.replace(launch, words=_numbered(words)), options)
            if said & left_out:
                self._apart.add(key)
                key = (tuple([word.text for word in words]), rest)
            self._done[key] = judged
        return self._done[key]

    def _shapes_of(self, launch: Launch, options: Options) -> Shapes:
        """What tells launches from each other in the release that judges this one. Errors: RequestError."""
        key = (options.engine_version, launch.image)
        if key not in self._shapes:
            release, release_from, _ = choose_release(self.store.index, options.engine_version, launch)
            resolver = resolver_for(self.store, release, options.engine_version if release_from == FORK else None)
            self._shapes[key] = self._alike.shapes(resolver)
        return self._shapes[key]

    def _judged(self, found: Found, launch: Launch, options: Options) -> tuple[Judged, set[str | None]]:
        """The verdict on a launch, and the flags whose value it tells."""
        context = build(self.store, launch, options, self.lookup)
        if found.hints.gpus is not None and options.hardware is None:
            facts = msgspec.structs.replace(context.facts, hardware={"gpus": found.hints.gpus})
            context = msgspec.structs.replace(context, facts=facts)
        if found.partial:
            open_ones = OPEN_IN_FRAGMENT if found.fragment else OPEN_IN_PART
            problems = tuple(p for p in context.problems if p.kind not in open_ones)
            context = msgspec.structs.replace(context, problems=problems)
        read = self._read(context)
        if self.exact:
            result = check_context(msgspec.structs.replace(context, problems=()), found.fragment)
            findings = tuple(sorted((*read, *result.findings), key=order))
            return Judged(context, findings, _verdict(context, options, findings), result.outcomes), set()
        kept = self._alike.findings(context)
        rest = opened(kept.findings) if found.fragment or is_open(launch) else kept.findings
        findings = tuple(sorted((*read, *rest), key=order))
        said = {name for space, name in kept.besides if space == "flag"} | {p.flag for p in context.problems}
        return Judged(context, findings, _verdict(context, options, findings)), said

    def _read(self, context: Context) -> Iterator[Finding]:
        """What is wrong with the words; where nobody said the release, what another one takes depends on that."""
        program = context.resolver.program
        for problem in context.problems:
            open_to_doubt = context.release_from == "assumed" and _is_taken_elsewhere(context.index, problem)
            for finding in reading_findings(self.store, program, (problem,), context.facts):
                yield msgspec.structs.replace(finding, conditional_on=("release",)) if open_to_doubt else finding

    def _options(self, found: Found, general: Said, beside_it: Said) -> Options:
        """What is said of a launch: by a comment, else on the command line, else by its image, else in the settings."""
        mine = self.options
        hints = found.hints
        release = beside_it.release or mine.engine_version
        if release is None and not _names_release(hints.image):
            release = general.release
        hardware = beside_it.hardware or mine.hardware or general.hardware or self._named_gpu(hints.gpu)
        if hardware and hints.gpus and not beside_it.hardware and (machine := COUNTED.fullmatch(hardware)):
            hardware = f"{hints.gpus}x{machine['gpu']}" if "." not in hardware and "/" not in hardware else hardware
        return Options(beside_it.model or mine.model or general.model, hardware, release, mine.request)

    def _named_gpu(self, name: str | None) -> str | None:
        """The catalogue's id of a GPU that a manifest or a job names."""
        if name is None:
            return None
        names = self.store.index.core.gpu_names
        return names.get(name.lower()) or names.get(name.lower().replace("-", " "))


def _is_taken_elsewhere(index: Index, problem: Problem) -> bool:
    """Whether another release knows the spelling, the variable or the value that this one does not take."""
    if problem.kind == "invalid-choice":
        return problem.given in index.known_choices.get(problem.flag or "", {})
    known = problem.given in index.known_flags or problem.given in index.known_env
    return known and problem.kind in BY_RELEASE


def _names_release(image: str | None) -> bool:
    return bool(image and image_version(image))


def _without_unread(words: tuple[Word, ...], read_beside: Callable[[str], str | None]) -> tuple[Word, ...]:
    """The words; a `--config` file that does not lie beside the launch is not known."""
    if not any(word.text == "--config" for word in words):
        return words
    found = list(words)
    for index, word in enumerate(found[1:], 1):
        if found[index - 1].text == "--config" and read_beside(word.text) is None:
            found[index] = msgspec.structs.replace(word, unknown=True)
    return tuple(found)


def _numbered(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The words with their number as place."""
    return tuple([Word(w.text, Span(i, i + 1), w.unknown, w.splits) for i, w in enumerate(words)])


def place_of(finding: Finding, judged: Judged, found: Found) -> Span:
    """Where a finding stands in the file: the words it is about, else a variable's, else the engine's name."""
    flags = judged.context.resolver.program.options.spellings
    spans = [finding.span] if finding.span and not finding.env else []
    given = judged.context.facts.spans
    spans += [given[flag] for name in finding.flags if (flag := flags.get(name, "")) in given]
    for span in spans:
        places = [p for p in found.words[span.start : span.end] if p is not None]
        if places:
            return Span(min(p.start for p in places), max(p.end for p in places))
    for name in finding.env:
        if place := env_place(name, found):
            return place
    return found.at


def env_place(name: str, found: Found) -> Span | None:
    """Where a variable of a launch is set in the file."""
    import re

    if name in found.env_places:
        return found.env_places[name]
    pattern = rf"(?<![\w$]){re.escape(name)}=(?:'[^']*'|\"[^\"]*\"|[^\s;&|()'\"])*"
    match = re.search(pattern, found.launch.text)
    return found.text.place(Span(match.start(), match.end())) if match else None


def judged_or_refused(
    judge: Judge, found: Found, general: Said, beside_it: Said, read_beside: Callable[[str], str | None]
) -> tuple[Judged | None, str]:
    """The verdict on a launch, or why it cannot be judged."""
    try:
        return judge.judge(found, general, beside_it, read_beside), ""
    except RequestError as error:
        return None, str(error)
