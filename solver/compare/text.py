"""What differs between two launches -> lines for a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import UNSET

from solver.compare.account import Account, Brief
from solver.compare.differences import Difference, Differences
from solver.compare.sides import Side
from solver.compiled import Program
from solver.context import Context
from solver.findings import spelling
from solver.render.text import judged_by, paint, table, wrapped
from solver.words import figure, say

LONGEST = 48
"""Characters of a value that are shown beside another one."""


def comparison(first: Side, second: Side, before: Account, after: Account, found: Differences) -> str:
    """What `diff` prints."""
    lines = []
    for letter, side in (("A", first), ("B", second)):
        verdict = paint(side.result.verdict, side.result.verdict)
        lines.append(f"{letter}  {side.name}: {verdict}, {judged_by(side.context)}")
        lines += [f"   assumed {a.what} {a.value}: {a.why}" for a in side.context.assumed]
    if not found:
        lines += ["", "no difference"]
    lines += changes(second.context.resolver.program, found, ("A", "B"))
    names = [n for n in before.metrics if before.metrics[n] is not None or after.metrics.get(n) is not None]
    rows = [(f"  {_named(n)}", figure(n, before.metrics[n]), figure(n, after.metrics.get(n))) for n in names]
    if not rows:
        return "\n".join([*lines, "", "figures: unknown; they need --model and --hardware"])
    return "\n".join([*lines, "", "figures (estimates; docs/cost-model.md)", *table(rows, ("  figure", "A", "B"))])


def since(path: str, context: Context, found: Differences) -> list[str]:
    """What `validate --lock` prints of the changes."""
    if not found:
        return [f"nothing has changed since {path} was written"]
    lines = [f"changed since {path} was written"]
    lines += _table("judged by", found.head, ("then", "now"), str)
    lines += changes(context.resolver.program, found, ("then", "now"))
    lines += _table("traits", found.traits, ("then", "now"), str)
    lines += _rules(found.rules)
    rows = [(f"  {_named(d.name)}", _figure(d.name, d.before), _figure(d.name, d.after)) for d in found.metrics]
    return [*lines, *(["", "figures (estimates)", *table(rows, ("  figure", "then", "now"))] if rows else [])]


def changes(program: Program, found: Differences, sides: tuple[str, str]) -> list[str]:
    """Flags, variables, values in force and findings."""
    said = {(d.name, _shown(d.before), _shown(d.after)) for d in found.flags}
    both = [d for d in found.effective if UNSET not in (d.before, d.after)]
    silent = [d for d in both if (d.name, _shown(d.before), _shown(d.after)) not in said]
    lines = _table("flags", found.flags, sides, lambda name: _spelled(program, name), "not given")
    lines += _table("variables", found.env, sides, str, "not set")
    lines += _table("values in force", silent, sides, lambda name: _spelled(program, name))
    return lines + _of_one_release(found.effective, sides) + _findings(found)


def _of_one_release(found: Sequence[Difference], sides: tuple[str, str]) -> list[str]:
    """How many flags only one of two releases has; which they are is in the JSON."""
    counts = (sum(d.after is UNSET for d in found), sum(d.before is UNSET for d in found))
    if not any(counts):
        return []
    return ["", f"flags of one release alone: {sides[0]} {counts[0]}, {sides[1]} {counts[1]}; --format json lists them"]


def _spelled(program: Program, name: str) -> str:
    return spelling(program, name.removeprefix("flag."))


def _table(
    title: str, found: Sequence[Difference], sides: tuple[str, str], name: Any, absent: str = "not known"
) -> list[str]:
    rows = [(f"  {name(d.name)}", _shown(d.before, absent), _shown(d.after, absent)) for d in found]
    return ["", title, *table(rows, ("  name", *sides))] if rows else []


def _shown(value: Any, absent: str = "") -> str:
    if value is UNSET:
        return absent
    if value is None:
        return "unset"
    if isinstance(value, dict) and value.keys() <= {"one_of", "unknown"}:
        return say(value)
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _named(metric: str) -> str:
    return metric.replace("_", " ")


def _figure(name: str, value: Any) -> str:
    return "not computed" if value is UNSET else figure(name, value)


def _findings(found: Differences) -> list[str]:
    lines = [*_signed("+", found.gained), *_signed("-", found.lost), *_signed("~", found.changed)]
    return ["", "findings (+ gained, - lost, ~ says something else)", *lines] if lines else []


def _signed(sign: str, findings: Iterable[Brief]) -> list[str]:
    lines: list[str] = []
    for finding in findings:
        on = f" (on {', '.join(finding.conditional_on)})" if finding.conditional_on else ""
        lines.append(f"  {sign} {paint(finding.severity, finding.severity)}[{finding.rule}] {finding.title}{on}")
        lines += wrapped(finding.message, "      ") if sign != "-" else []
    return lines


def _rules(found: Sequence[Difference]) -> list[str]:
    """Rules that fire or write a value now and did not then, the other way round, and those that were rewritten."""
    groups = {
        "matter now": [d.name for d in found if d.before is UNSET],
        "no longer matter": [d.name for d in found if d.after is UNSET],
        "were rewritten": [d.name for d in found if UNSET not in (d.before, d.after)],
    }
    lines = [line for word, names in groups.items() if names for line in wrapped(f"{word}: {', '.join(names)}", "  ")]
    return ["", "rules", *lines] if lines else []
