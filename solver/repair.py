"""Facts and findings -> the launch with fixes applied, as far as fixes alone mend it."""

from __future__ import annotations

from typing import Any

import msgspec

from solver.check import Result
from solver.context import Context, check_context
from solver.facts import Facts, env_text
from solver.records import Finding, Fix

MOST_ROUNDS = 8
"""Each round applies one fix; a launch with more problems than this is left as far as it got."""


class Repaired(msgspec.Struct, frozen=True):
    """A mended launch, which rule's fix was applied in which order, and the errors that no fix removes."""

    facts: Facts
    applied: tuple[tuple[str, Fix], ...]
    left: tuple[str, ...]


def apply_fix(facts: Facts, fix: Fix) -> Facts:
    """The facts with a fix's edits made."""
    given = {k: v for k, v in facts.given.items() if k not in fix.unset}
    given.update({k: v for k, v in fix.set.items() if v is not None})
    given = {k: v for k, v in given.items() if fix.set.get(k, v) is not None}
    env = {k: v for k, v in facts.env.items() if k not in fix.unset}
    env.update({k: env_text(v) for k, v in fix.env.items()})
    return msgspec.structs.replace(facts, given=given, env=env)


def repair(context: Context, result: Result, first: tuple[Finding, ...]) -> Repaired | None:
    """Mend the given findings, then every error that a check still finds; None where no fix changes the command."""
    facts, applied = context.facts, []
    pending = [*first, *errors_of(result)]
    before = {f.rule for f in pending}
    tried: set[str] = set()
    for _ in range(MOST_ROUNDS):
        finding = next((f for f in pending if f.rule not in tried), None)
        if finding is None:
            break
        tried.add(finding.rule)
        found = _best_fix(context, facts, finding, before)
        if found is not None:
            fix, facts, after = found
            applied.append((finding.rule, fix))
            pending = [*(f for f in first if f.rule not in tried), *errors_of(after)]
    if not applied:
        return None
    left = tuple(f.rule for f in errors_of(_checked(context, facts)))
    return Repaired(facts, tuple(applied), left)


def errors_of(result: Result) -> list[Finding]:
    """The unconditional errors of a result, without those that another one brings about."""
    return [f for f in result.findings if f.severity == "error" and not f.conditional_on and not f.after]


def _checked(context: Context, facts: Facts) -> Result:
    return check_context(msgspec.structs.replace(context, facts=facts, problems=()))


def _best_fix(context: Context, facts: Facts, finding: Finding, before: set[str]) -> tuple[Fix, Facts, Result] | None:
    """The first fix that can be made here, removes the finding and adds no error."""
    for fix in finding.fixes:
        if not editable(fix):
            continue
        mended = apply_fix(facts, fix)
        if (mended.given, mended.env) == (facts.given, facts.env) and finding.stage != "parse":
            continue  # at the stage parse the reader has read the words as they were meant: only their spelling changes
        after = _checked(context, mended)
        errors = {f.rule for f in errors_of(after)}
        if finding.rule not in errors and errors <= before:
            return fix, mended, after
    return None


def editable(fix: Fix) -> bool:
    """Whether a fix is made by editing the command alone, with values that are known."""
    values: list[Any] = [*fix.set.values(), *fix.env.values()]
    known = not any(isinstance(v, dict) or (isinstance(v, str) and v.startswith("<")) for v in values)
    return known and bool(fix.set or fix.env or fix.unset) and not fix.upgrade and not fix.checkpoint
