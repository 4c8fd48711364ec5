"""A report -> one of the forms in which it can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from solver.compiled import Program
from solver.context import resolver_for

if TYPE_CHECKING:
    from solver.gate.report import Report, Reported
    from solver.store import Store

Programs = Callable[[int | None], Program | None]
"""Index of a launch -> the program of its release; None for a finding without one."""


def render(form: str, report: Report, shown: list[Reported], store: Store, on_unknown: bool) -> str:
    """The report in a form. `shown`: the findings of interest; `on_unknown`: what depends on unknown facts fails."""
    programs = programs_of(report, store)
    match form:
        case "json":
            from solver.gate.output import data

            return data.output(report, shown, store.index.hash, on_unknown, programs)
        case "sarif":
            from solver.gate.output import sarif

            return sarif.output(report, shown, store)
        case "github":
            from solver.gate.output import github

            return github.output(report, shown)
        case "gitlab":
            from solver.gate.output import gitlab

            return gitlab.output(shown)
        case "junit":
            from solver.gate.output import junit

            return junit.output(report, shown, on_unknown)
    from solver.gate.output import text

    return text.output(report, shown, on_unknown, programs)


def programs_of(report: Report, store: Store) -> Programs:
    """How the release that judged a launch writes its flags."""

    def program(launch: int | None) -> Program | None:
        verdict = report.launches[launch].verdict if launch is not None else None
        return resolver_for(store, verdict.release, verdict.fork).program if verdict else None

    return program
