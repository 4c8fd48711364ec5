"""The launches on record + a model being built -> what may be chosen to come near one of them, and how far off that is.

Which record is held against is itself a variable of the model, so that the optimum is over all of them at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from solver.context import Context
from solver.evidence import Part, Ran, differences, in_scope, machine_of, split
from solver.symbolic import Builder, Choice
from solver.variables import Var

DIFFERENCES, OTHER_RELEASE = "evidence", "evidence_release"
"""What a goal's level may count: the choices that differ from the record, and whether it is of another release."""
RECORD = "evidence.record"
"""The variable whose value is the id of the record that a launch is held against."""
AT_MOST = 12
"""So many records are tried, those nearest to what is given."""


def counts_evidence(goal: dict[str, Any]) -> bool:
    """Whether a goal has a level that counts the differences to the nearest record."""
    return any(level.get("count") == DIFFERENCES for level in goal["levels"])


def records_near(context: Context) -> tuple[Ran, ...]:
    """The records that do the same job on the same kind of machine, for the model or else its architecture.

    Nearest to the pins first. What ran on another kind of machine says nothing about kernels here: no candidate.
    """
    facts, program = context.facts, context.resolver.program
    architecture = str(facts.model.get("architecture"))
    part = context.index.evidence(architecture)
    pins, _ = split(facts.given, facts.env, program.flags, program.env, part)
    machine = machine_of(facts.hardware)
    here = (r for r in part.same_job(pins) if r.machine == machine)
    _, records = in_scope(here, facts.model.get("id"), machine)
    order = context.index.release_order
    now = order.get(context.release, 0)

    def distance(record: Ran) -> tuple[int, int, str]:
        against = {n: v for n, v in record.choices.items() if n in pins}
        return len(differences(pins, against, {})), abs(order.get(record.release, 0) - now), record.id

    return tuple(sorted(records, key=distance)[:AT_MOST])


def widened(
    context: Context, choices: Iterable[Choice], kept: Iterable[Choice], records: Iterable[Ran]
) -> tuple[Choice, ...]:
    """The choices with the values of the records besides, and a choice for what only the records set."""
    facts, program = context.facts, context.resolver.program
    values: dict[str, dict[Any, None]] = {}
    for record in records:
        for name, value in record.choices.items():
            if isinstance(value, Hashable):
                values.setdefault(name if name.startswith("env.") else f"flag.{name}", {})[value] = None
    found = []
    for choice in choices:
        more = [v for v in values.pop(choice.key, {}) if _possible(program, choice, v) and v not in choice.values]
        found.append(Choice(choice.space, choice.name, (*choice.values, *more)))
    closed = {c.key for c in kept} | {f"flag.{n}" for n in facts.given} | {f"env.{n}" for n in facts.env}
    for key, some in values.items():
        space, name = key.split(".", 1)
        one = Choice(space, name, (None,))
        if key not in closed and name in (program.env if space == "env" else program.flags):
            allowed = tuple(v for v in some if _possible(program, one, v))
            found += [Choice(space, name, (None, *allowed))] if allowed else []
    return tuple(found)


def _possible(program: Any, choice: Choice, value: Any) -> bool:
    allowed = program.flags[choice.name].choices if choice.space == "flag" else None
    return allowed is None or value in allowed


def count_differences(builder: Builder, context: Context, records: tuple[Ran, ...]) -> None:
    """Add the record as a variable, and what can be counted of it to `builder.nearness`."""
    facts, program = context.facts, context.resolver.program
    part = context.index.evidence(str(facts.model.get("architecture")))
    pins, _ = split(facts.given, facts.env, program.flags, program.env, part)
    by_id = {r.id: r.choices for r in records}
    builder.pool.add(RECORD, tuple(by_id))
    chosen = {name.removeprefix("flag."): name for name in builder.base}
    builder.base.append(RECORD)
    names: list[str] = []
    constant = 0.0
    for name in sorted({*chosen, *pins, *(n for r in records for n in r.choices)}):
        if name in part.incidental or name in part.amounts:
            continue
        key = chosen.get(name)
        inputs = (RECORD, key) if key else (RECORD,)
        differ = _differs(builder, part, by_id, name, pins.get(name))
        found = builder.pool.table(f"{name} differs from the record", inputs, differ)
        if type(found) is Var:
            names.append(found.name)
        else:
            constant += bool(found)
    builder.nearness[DIFFERENCES] = (names, constant)
    release = {r.id: r.release for r in records}
    other = builder.pool.table("the record is of another release", (RECORD,), lambda r: release[r] != context.release)
    builder.nearness[OTHER_RELEASE] = ([other.name], 0.0) if type(other) is Var else ([], float(bool(other)))


def _differs(builder: Builder, part: Part, by_id: dict[str, dict[str, Any]], name: str, pinned: Any) -> Any:
    """A function of the record's id (and of the value of the choice) that says whether they differ."""
    program = builder.resolver.program
    known = program.env.get(name[4:]) if name.startswith("env.") else program.flags.get(name)
    same = part.same.get(name, {})

    def differ(record: str, *value: Any) -> bool:
        here = value[0] if value else pinned
        if known is not None and here == known.default:
            here = None
        one = same.get(here, here) if isinstance(here, str) else here
        return bool(one != by_id[record].get(name))

    return differ
