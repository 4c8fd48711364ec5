"""A report -> one of the forms in which it can be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from solver.gate.report import Report, Reported
    from solver.store import Store


def render(form: str, report: Report, shown: list[Reported], store: Store, on_unknown: bool) -> str:
    """The report in a form. `shown`: the findings of interest; `on_unknown`: what depends on unknown facts fails."""
    match form:
        case "json":
            from solver.gate.output import data

            return data.output(report, shown, store.index.hash, on_unknown)
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

    return text.output(report, shown, on_unknown)
