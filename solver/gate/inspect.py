"""Files -> a report: each file is read, its launches are found and judged, its comments and settings are applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from solver.gate import files
from solver.gate.directives import MARK, Directive, directives_in, held_by
from solver.gate.files import Candidate
from solver.gate.flag_mappings import FlagNames
from solver.gate.found import Finds, Found, Kind, Unreadable
from solver.gate.judge import Judge, Judged, judged_or_refused, place_of
from solver.gate.kinds import TEMPLATES, find_in
from solver.gate.report import Checked, Lines, Report, Reported, Trouble, own_finding
from solver.gate.settings import Said, Scoped, Settings
from solver.gate.text import Text
from solver.records import Finding, Severity, Span


class Inspector:
    """One run of the gate. `flags`: names of all flags; `fail_on` holds where nothing else is said."""

    def __init__(self, judge: Judge, settings: Settings, flags: FlagNames, fail_on: Severity | None) -> None:
        self.judge = judge
        self.settings = settings
        self.scoped = Scoped(settings)
        self.flags = flags
        self.fail_on = fail_on
        self.report = Report()
        self.mender: Mender | None = None
        self.used: set[int] = set()
        """Indices of the settings' `ignore` entries that switched something off."""

    def run(self, candidates: Iterable[Candidate], progress: Callable[[int], None]) -> Report:
        """Look at every file; what is wrong with one does not stop the rest."""
        for candidate in candidates:
            self.report.files += 1
            progress(self.report.files)
            try:
                content = files.read(candidate)
                if content is not None:
                    self.look(candidate.path, files.decoded(content[0]), content[1])
            except Unreadable as error:
                if candidate.named or not candidate.path.lower().endswith(TEMPLATES):  # a template may be of any form
                    self.report.troubles.append(Trouble(candidate.path, str(error)))
        return self.report

    def look(self, path: str, text: str, kind: Kind) -> None:
        """Find and judge the launches of one file. Errors: Unreadable."""
        if self.mender is not None:
            text = self.mender.mended(path, text, kind, self)
        finds, read_beside = self.launches_in(path, text, kind)
        self.report.troubles += [Trouble(path, problem) for problem in finds.problems]
        directives = directives_in(text) if MARK in text else []
        if not finds.found and not directives:
            return
        lines = Lines(path, text)
        said = self.scoped.said_of(path)
        held = held_by(directives, map(_stretch, finds.found), text)
        reporter = _Reporter(self, lines, said)
        for index, found in enumerate(finds.found):
            mine = [
                d for d, at in zip(directives, held, strict=True) if at is not None and _same(finds.found, at, index)
            ]
            reporter.launch(found, mine, read_beside)
        reporter.comments(directives, held)

    def launches_in(self, path: str, text: str, kind: Kind) -> tuple[Finds, Callable[[str], str | None]]:
        """The launches of one file, and how its neighbours are read. Errors: Unreadable."""
        read_beside = files.beside(path)
        return find_in(Text.whole(text), kind, self.flags, read_beside), read_beside

    def verdicts(self, path: str, text: str, kind: Kind) -> list[Judgement]:
        """Each launch of a text with its verdict. Errors: Unreadable."""
        finds, read_beside = self.launches_in(path, text, kind)
        directives = directives_in(text) if MARK in text else []
        held = held_by(directives, map(_stretch, finds.found), text)
        general = self.scoped.said_of(path)
        off = {i.rule for i in self.settings.ignore if self.scoped.holds(i.paths, path)}
        made = []
        for index, found in enumerate(finds.found):
            mine = [
                d for d, at in zip(directives, held, strict=True) if at is not None and _same(finds.found, at, index)
            ]
            beside_it = _merged(mine)
            judged, _ = judged_or_refused(self.judge, found, general, beside_it, read_beside)
            fail_on = beside_it.fail_on or self.fail_on or general.fail_on or "error"
            made.append(Judgement(found, judged, off | {rule for d in mine for rule in d.ignore}, fail_on))
        return made

    def take_over(self, report: Report, used: set[int]) -> None:
        """Add what another process found."""
        self.report.add(report)
        self.used |= used

    def unused_settings(self) -> None:
        """Rules that the settings switch off and that found nothing in this run."""
        lines = Lines(self.settings.path, self.settings.text)
        for index, ignore in enumerate(self.settings.ignore):
            if index not in self.used:
                at = max(self.settings.text.find(ignore.rule), 0)
                finding = own_finding("gate-suppression-unused", f"{ignore.rule} is switched off and finds nothing.")
                where = lines.where(Span(at, at + len(ignore.rule)))
                self.report.findings.append(Reported(finding, where, None, index, self.fail_on or "error"))


class Judgement(NamedTuple):
    """One launch, its verdict (None: it cannot be judged), the rules switched off for it, and its fail level."""

    found: Found
    judged: Judged | None
    off: set[str]
    fail_on: Severity


class Mender(Protocol):
    """What changes a file before it is looked at; the new text comes back."""

    def mended(self, path: str, text: str, kind: Kind, inspector: Inspector) -> str: ...


class _Reporter:
    """Writes what one file has into the report."""

    def __init__(self, inspector: Inspector, lines: Lines, said: Said) -> None:
        self.inspector = inspector
        self.lines = lines
        self.said = said
        self.seen: dict[tuple[object, ...], int] = {}
        self.used: set[tuple[Span, str]] = set()
        self.ignores = [
            (index, ignore)
            for index, ignore in enumerate(inspector.settings.ignore)
            if inspector.scoped.holds(ignore.paths, lines.file)
        ]

    def launch(self, found: Found, directives: list[Directive], read_beside: Callable[[str], str | None]) -> None:
        beside_it = _merged(directives)
        report = self.inspector.report
        judged, refused = judged_or_refused(self.inspector.judge, found, self.said, beside_it, read_beside)
        where = self.lines.where(found.at)
        verdict = judged.verdict if judged else None
        report.launches.append(Checked(found.kind, found.launch, found.hints, where, verdict, refused))
        if judged is None:
            report.troubles.append(Trouble(f"{where.file}:{where.line}", refused))
            return
        fail_on = beside_it.fail_on or self.inspector.fail_on or self.said.fail_on or "error"
        for finding in judged.findings:
            place = self.lines.where(place_of(finding, judged, found))
            self._report(finding, place, len(report.launches) - 1, fail_on, self._silenced(finding.rule, directives))

    def _silenced(self, rule: str, directives: list[Directive]) -> str | None:
        """Why a rule is switched off for a launch."""
        for directive in directives:
            if rule in directive.ignore:
                self.used.add((directive.place, rule))
                return directive.because
        for index, ignore in self.ignores:
            if ignore.rule == rule:
                self.inspector.used.add(index)
                return ignore.because
        return None

    def _report(
        self, finding: Finding, where: object, launch: int | None, fail_on: Severity, suppressed: str | None = None
    ) -> None:
        key = (finding.rule, finding.flags, finding.env)
        number = self.seen[key] = self.seen.get(key, -1) + 1
        self.inspector.report.findings.append(
            Reported(finding, where, launch, number, fail_on, suppressed)  # type: ignore[arg-type]
        )

    def comments(self, directives: list[Directive], held: list[int | None]) -> None:
        """What is wrong with the comments themselves."""
        fail_on = self.inspector.fail_on or self.said.fail_on or "error"
        for directive, launch in zip(directives, held, strict=True):
            where = self.lines.where(directive.place)
            if directive.problem:
                self._report(own_finding("gate-comment-unreadable", directive.problem, "error"), where, None, fail_on)
            elif launch is None:
                text = "No launch follows this comment, and none has it in its lines."
                self._report(own_finding("gate-comment-unattached", text), where, None, fail_on)
            else:
                for rule in directive.ignore:
                    if (directive.place, rule) not in self.used:
                        text = f"{rule} is switched off here and finds nothing in this launch."
                        self._report(own_finding("gate-suppression-unused", text), where, None, fail_on)


def _merged(directives: list[Directive]) -> Said:
    """What several comments say about one launch; later ones win."""
    merged: dict[str, object] = {}
    for directive in directives:
        merged |= {n: v for n in Said.__struct_fields__ if (v := getattr(directive.said, n)) is not None}
    return Said(**merged)  # type: ignore[arg-type]  # each value comes from a field of that name


def _stretch(found: Found) -> tuple[int, int]:
    """From the engine's name to the last argument, in the file."""
    places = [found.at, *(p for p in found.words if p is not None)]
    return found.at.start, max(p.end for p in places)


def _same(launches: list[Found], at: int, index: int) -> bool:
    """Whether a comment's launch is this one, or stands at the same place."""
    return launches[at].at == launches[index].at
