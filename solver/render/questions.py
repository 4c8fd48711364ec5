"""Answers to the questions about a solution -> lines for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from solver.compiled import Program
from solver.context import Context
from solver.front import Front, Pair
from solver.handoff.command import argv_of, flag_words, shell_of
from solver.records import Fact
from solver.render.data import shown
from solver.render.solution import METRICS, conflict_lines, heading, idle_lines, level_lines
from solver.render.text import table, wrapped
from solver.rivals import LevelChange, Moved, Rival
from solver.solve import Solution
from solver.why import Cause, Other, Why
from solver.why_not import WhyNot
from solver.words import FIGURES, figure, listed, say

if TYPE_CHECKING:
    from solver.questions import Answers


def questions_text(context: Context, goal: str, solution: Solution, answers: Answers) -> str:
    """What `solve` prints when something is asked about the answer: the command, then each answer."""
    head = [
        *heading(context, goal, solution),
        "",
        "proven optimal",
        *level_lines(context, solution),
        *idle_lines(context, solution),
    ]
    return "\n".join([*head, *answer_lines(context, answers)])


def answer_lines(context: Context, answers: Answers) -> list[str]:
    """Each question's answer after a blank line."""
    lines: list[str] = []
    for one in answers.why:
        lines += ["", *why_lines(context, one)]
    for other in answers.why_not:
        lines += ["", *why_not_lines(context, other)]
    if answers.best:
        lines += ["", *best_lines(context, answers)]
    if answers.front is not None:
        lines += ["", *front_lines(context, answers.front)]
    return lines


# ----------------------------------------------------------------------- why


def why_lines(context: Context, why: Why) -> list[str]:
    """The chain of reasons of one flag."""
    program = context.resolver.program
    lines = [f"why {written(why.key, why.given, program)}"]
    if why.given is None:
        lines.append(f"  in force: {say(why.in_force)}")
    elif say(why.in_force) != say(why.given):
        lines.append(f"  given {say(why.given)}; in force: {say(why.in_force)}")
    lines += wrapped(_reason(why), "  ")
    if why.kind == "pin":
        lines.append(f"  what another value would cost: --why-not {shown(why.key, program).lstrip('-')}=VALUE")
    for cause in why.causes:
        lines += _cause_lines(context, cause)
    if why.others:
        lines.append("  other values, each with the best launch that has it")
        lines += [text for other in why.others for text in wrapped(_other(why.key, other), "    ")]
    if why.rests_on:
        lines.append("  it rests on")
        lines += [f"    {text}" for below in why.rests_on for text in _below(context, below)]
    return lines


def _reason(why: Why) -> str:
    return f"chosen for {why.by}; with all else as it is, {why.text}" if why.kind == "goal" else why.text


def _below(context: Context, why: Why) -> list[str]:
    lines = wrapped(f"{written(why.key, why.given, context.resolver.program)}: {_reason(why)}", "")
    lines += [text for cause in why.causes for text in _cause_lines(context, cause)]
    return lines + [f"  {text}" for below in why.rests_on for text in _below(context, below)]


def _cause_lines(context: Context, cause: Cause) -> list[str]:
    head = f"{cause.rule}: {cause.title}" if cause.rule != cause.title else cause.rule
    if cause.writes:
        head += f" (from {say(cause.before)} to {say(cause.after)})"
    lines = wrapped(head, "  ")
    facts = [_fact(context, fact) for fact in cause.because]
    return lines + (wrapped(f"because {', '.join(facts)}", "    ") if facts else [])


def _fact(context: Context, fact: Fact) -> str:
    space, name = fact.name.split(".", 1)
    if space in ("flag", "given", "env"):
        key = f"{'flag' if space == 'given' else space}.{name}"
        by = "given" if fact.origin == "given" else f"by {fact.origin}"
        return f"{shown(key, context.resolver.program)} is {say(fact.value)} ({by})"
    return f"{fact.name} is {say(fact.value)}"


def _other(key: str, other: Other) -> str:
    what = "left out" if other.value is None else say(other.value)
    refused = f"; with all else as it is, refused by {listed(other.refused)}" if other.refused else ""
    if not other.possible:
        return f"{what}: no launch within the request can have it{refused}"
    if other.level is None:
        return f"{what}: as good; the fixed order of preference decides{refused}"
    change = other.level
    there, here = (amount(change, value) for value in (change.after, change.before))
    return f"{what}: {change.title} {there} instead of {here}{_rules(change)}{refused}"


# ------------------------------------------------------------------- why not


def why_not_lines(context: Context, found: WhyNot) -> list[str]:
    """What would have to give, and what it would cost."""
    lines = [f"why not {found.demand.text}"]
    if found.status == "given":
        by = found.by if found.by not in (None, "default") else _who(None)
        return [*lines, *wrapped(f"it is already so in the answer: {by}", "  ")]
    if found.status == "in force":
        return [*lines, *wrapped(f"it is already in force without being given: {_who(found.by)}", "  ")]
    if found.pin is not None:
        pin = written(found.demand.key, found.pin, context.resolver.program)
        lines += wrapped(f"your own {pin} has to go first", "  ")
    if found.conflict is not None:
        lines.append("  impossible as things stand")
        return lines + [f"  {text}".rstrip() for text in conflict_lines(context, found.conflict)]
    assert found.cost is not None
    lines += wrapped(f"possible; {_verdict(found, found.cost)}", "  ")
    return lines + [f"  {text}".rstrip() for text in rival_lines(context, found.cost, "with it")]


def _verdict(found: WhyNot, cost: Rival) -> str:
    """What speaks against it, or for it."""
    left = found.unasked or ("it is your own pin that stands against it" if found.pin is not None else "")
    if cost.decided and not cost.better:
        return f"what speaks against it: {cost.decided}" + (f"; {found.unasked}" if found.unasked else "")
    if cost.better:
        return f"better for the goal in {cost.decided}" + (f"; {left}" if left else "")
    return f"as good for the goal; {left or 'the fixed order of preference decided'}"


def _who(by: str | None) -> str:
    return "it is the engine's own default" if by in (None, "default", "given") else f"set by {by}"


def rival_lines(context: Context, rival: Rival, name: str) -> list[str]:
    """How another launch differs from the answer: flags, levels, figures, rules; then its command."""
    program = context.resolver.program
    rows = [(f"  {shown(m.key, program)}", _value(m.before), _value(m.after)) for m in rival.flags]
    rows += [(f"  {shown(m.key, program)}, in force", say(m.before), say(m.after)) for m in rival.effects]
    lines = table(rows, ("  flag", "answer", name)) if rows else ["  no flag changes"]
    levels = [c for c in rival.levels if c.difference is None or abs(c.difference) > 1e-6]
    lines += (
        table(
            [(f"  {c.title}{_rules(c)}", amount(c, c.before), amount(c, c.after), difference(c)) for c in levels],
            ("  level of the goal", "answer", name, "difference"),
        )
        if levels
        else ["  no level of the goal changes"]
    )
    if rival.gained:
        lines += wrapped(f"then also: {listed(rival.gained)}", "  ")
    if rival.lost:
        lines += wrapped(f"then no longer: {listed(rival.lost)}", "  ")
    figures = [figure(m, rival.metrics[m]) for m in METRICS[:2]]
    if idle := rival.metrics["idle_gpus"]:
        figures.append(f"{idle} GPUs stay idle")
    lines += wrapped(f"its figures: {', '.join(figures)}", "  ")
    return lines + [f"  {text}" for text in _command(context, rival)]


def _command(context: Context, rival: Rival) -> list[str]:
    facts = rival.facts
    return shell_of(argv_of(facts.given, context.resolver.program.flags), facts.env).splitlines()


# ------------------------------------------------------------- best answers


def best_lines(context: Context, answers: Answers) -> list[str]:
    """The best answers in order, each held against the first."""
    best = answers.best
    what = f"the {len(best)} best answers that differ in something that matters"
    proof = "no others differ" if len(best) < answers.asked_for else "none that was passed over is better"
    lines = [f"{what}; {proof}"]
    lines.append("1. the answer above")
    for place, rival in enumerate(best[1:], 2):
        behind = f"behind the first in {rival.decided}" if rival.decided else "as good as the first"
        lines += wrapped(f"{place}. {behind}", "")
        lines += [f" {text}" for text in rival_lines(context, rival, "here")]
    return lines


# --------------------------------------------------------------------- front


def front_lines(context: Context, front: Front) -> list[str]:
    """The front as a table, then the command of each point."""
    first, second = front.metrics
    program = context.resolver.program
    lines = wrapped(
        f"the front of {first.title} and {second.title}: no valid launch within the request beats one of these in both",
        "",
    )
    rows = [
        (f"  {number}", *place_words(front, point.values), "the answer" if point.is_answer else "")
        for number, point in enumerate(front.points, 1)
    ]
    if not rows:
        return [*lines, "  nothing has a place here: one of the two is not known for any of them"]
    lines += table(rows, ("  point", first.title, second.title, ""))
    if not any(p.is_answer for p in front.points):
        lines += wrapped(_answer_place(front), "  ")
    for number, point in enumerate(front.points, 1):
        if not point.is_answer:
            moved = ", ".join(_change(m, program) for m in point.launch.flags)
            lines += wrapped(f"{number}. against the answer: {moved or 'nothing given differs'}", "  ")
            if point.launch.gained:
                lines += wrapped(f"then also: {listed(point.launch.gained)}", "     ")
            lines += [f"     {text}" for text in _command(context, point.launch)]
    return lines


def _answer_place(front: Front) -> str:
    if front.answer is None:
        return "the answer has no place here: one of the two is not known for it"
    place = " and ".join(place_words(front, front.answer))
    return f"the answer is not among them ({place}): its goal puts other things first"


def place_words(front: Front, place: Pair) -> tuple[str, ...]:
    """Both metrics with their units."""
    pairs = zip(front.metrics, place, strict=True)
    return tuple(figure(m.figure, v) if m.figure in FIGURES else f"{v:,.10g}" for m, v in pairs)


# --------------------------------------------------------------------- words


def written(key: str, value: Any, program: Program) -> str:
    """A flag with its value as it is typed; a flag that is not given alone."""
    space, name = key.split(".", 1)
    if value is None:
        return f"no {shown(key, program)}"
    if space == "env":
        return f"{name}={value if isinstance(value, str) else int(value) if isinstance(value, bool) else value}"
    return " ".join(flag_words(program.flags[name], value)) or f"no {shown(key, program)}"


def _value(value: Any) -> str:
    return "left out" if value is None else say(value)


def _change(moved: Moved, program: Program) -> str:
    return written(moved.key, moved.after, program)


def amount(change: LevelChange, value: float | None) -> str:
    """What a level costs, with its unit where it has one."""
    if value is None:
        return "unknown"
    return figure(change.figure, value) if change.figure in FIGURES else f"{value:g}"


def difference(change: LevelChange) -> str:
    """How much more or less, and the share of it."""
    if change.difference is None:
        return "unknown"
    sign = "+" if change.difference > 0 else ""
    share = f" ({sign}{100 * change.difference / abs(change.before):.1f}%)" if change.before else ""
    return f"{sign}{amount(change, change.difference)}{share if change.figure else ''}"


def _rules(change: LevelChange) -> str:
    return f" ({listed(change.rules)})" if change.rules else ""
