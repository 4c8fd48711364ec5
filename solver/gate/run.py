"""The verb `gate`: options -> files looked at, outputs written; status 0, 1 (findings) or 2 (not all was looked at)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from solver.check import at_or_above
from solver.context import Options
from solver.errors import RequestError
from solver.gate import files
from solver.gate.flag_mappings import FlagNames
from solver.gate.found import Unreadable
from solver.gate.inspect import Inspector
from solver.gate.judge import Judge
from solver.gate.kinds import kind_of_text
from solver.gate.report import Report, Reported
from solver.gate.settings import Settings, load
from solver.inputs import standard_input
from solver.store import Store

if TYPE_CHECKING:
    from solver.gate.fix import FileMender

FINDINGS, NOT_LOOKED_AT = 1, 2


def gate(values: dict[str, Any]) -> int:
    """Find the launches in files and folders and check them; `-` reads standard input."""
    from solver.verbs import store

    where = store()
    paths: Sequence[str] = values["command"] or (".",)
    settings = load(next((p for p in paths if p != "-"), "."), values["config"])
    targets = _targets(values)
    inspector = _inspector(where, settings, values)
    mender = _mender(values)
    inspector.mender = mender
    _look(inspector, paths, settings, values["jobs"])
    report = inspector.report
    if mender is not None and mender.diff:
        print("".join(mender.diffs), end="")
        targets = targets[1:]
    _baseline(report, values)
    shown = [item for item in report.findings if at_or_above(item.finding, values["show"])]
    for form, path in targets:
        _write(form, path, _rendered(form, report, shown, where, values))
    return _status(report, values)


def _inspector(where: Store, settings: Settings, values: dict[str, Any]) -> Inspector:
    options = Options(values["model"], values["hardware"], values["engine_version"])
    judge = Judge(where, options, exact=values["fix"] or values["diff"])
    judge.lookup.machine(options.hardware)  # a wrong one is refused before any file is read
    for said in (settings, *settings.files):
        try:
            judge.lookup.machine(said.hardware)
        except RequestError as error:
            raise RequestError(f"{settings.path}: {error}") from None
    return Inspector(judge, settings, flag_names(where), values["fail_on"])


def _mender(values: dict[str, Any]) -> FileMender | None:
    """What `--fix`, `--unsafe` and `--diff` ask for. Errors: RequestError."""
    if not (values["fix"] or values["diff"]):
        if values["unsafe"]:
            raise RequestError("--unsafe: expected with --fix or --diff")
        return None
    if "-" in values["command"]:
        raise RequestError("--fix: standard input cannot be changed; name files or folders")
    from solver.gate.fix import FileMender

    return FileMender(values["unsafe"], write=not values["diff"], diff=values["diff"])


def _baseline(report: Report, values: dict[str, Any]) -> None:
    """Write the baseline, or compare with it. Errors: RequestError."""
    path = values["baseline"]
    if path is None:
        if values["write_baseline"]:
            raise RequestError("--write-baseline: expected with --baseline FILE")
        return
    from solver.gate import baseline

    if values["write_baseline"]:
        baseline.write(path, report)
    baseline.compare(baseline.read(path), report)


def flag_names(where: Store) -> FlagNames:
    """The flags of all releases."""
    return FlagNames(lambda: where.index.known_flags)


def _look(inspector: Inspector, paths: Sequence[str], settings: Settings, jobs: int) -> None:
    """Look at what is on standard input and at the files under the paths."""
    if "-" in paths:
        text = standard_input()
        inspector.report.files += 1
        try:
            inspector.look("<stdin>", text, kind_of_text(text))
        except Unreadable as error:
            raise RequestError(f"standard input: {error}") from None

    def is_excluded(path: str) -> bool:
        return bool(settings.exclude) and inspector.scoped.holds(settings.exclude, path)

    progress = _progress()
    found = files.candidates([p for p in paths if p != "-"], is_excluded)
    if jobs > 1 and inspector.mender is None:
        from solver.gate.parallel import run

        run(inspector, found, jobs, progress)
    else:
        inspector.run(found, progress)
    progress(-1)
    if any(os.path.isdir(path) for path in paths):
        inspector.unused_settings()


def _progress() -> Callable[[int], None]:
    """Says on a terminal how far the run is; -1 wipes it away."""
    if not sys.stderr.isatty():
        return lambda number: None

    def progress(number: int) -> None:
        if number < 0:
            sys.stderr.write("\r\x1b[K")
        elif number % 50 == 0:
            sys.stderr.write(f"\r{number:,} files looked at")
            sys.stderr.flush()

    return progress


# ------------------------------------------------------------------- outputs


def _targets(values: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Each output and where it goes (None: standard output). Errors: RequestError for what could not be written."""
    from solver.gate import FORMS
    from solver.gate.output.target import check_target

    targets: list[tuple[str, str | None]] = [(values["format"], None)]
    for wanted in values["output"]:
        form, equals, path = wanted.partition("=")
        if form not in FORMS or not equals or not path:
            raise RequestError(f"--output {wanted!r}: expected FORMAT=FILE, FORMAT one of {', '.join(FORMS)}")
        check_target(path)
        targets.append((form, path))
    return targets


def _rendered(form: str, report: Report, shown: list[Reported], where: Store, values: dict[str, Any]) -> str:
    from solver.gate.output import render

    return render(form, report, shown, where, values["fail_on_unknown"])


def _write(form: str, path: str | None, text: str) -> None:
    from solver.gate.output.target import write_report

    if path is None:
        print(text)
    else:
        write_report(form, path, text)


def _status(report: Report, values: dict[str, Any]) -> int:
    """2 where something could not be looked at, else 1 where a finding fails, else 0; the same for every output."""
    if report.troubles:
        return NOT_LOOKED_AT
    return FINDINGS if any(item.fails(values["fail_on_unknown"]) for item in report.findings) else 0
