"""A goal (data) and a request's wishes + a model being built -> guards and objective levels over its variables.

A goal is a dict as knowledge/sglang/goals gives it. Wishes change it: other metrics (`minimised`), other guards
(`guarded`), values that must not be (`bans`), a starting command to stay near (`keep`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from solver.constraints import Lazy, Level
from solver.errors import RequestError
from solver.symbolic import Builder
from solver.variables import DOUBT, Var, lazily, settled
from solver.words import listed, say

Goal = dict[str, Any]
Counted = tuple[list[str], float]
"""Variables that count when true, and what counts whatever is chosen."""


def find_goal(goals: Mapping[str, Any], name: str) -> Goal:
    """A goal by id. Errors: RequestError with the goals there are."""
    if name not in goals:
        raise RequestError(f"unknown goal {name!r}; known are {', '.join(sorted(goals))}")
    return dict(goals[name])


# -------------------------------------------------------------------- wishes


def minimised(goal: Goal, names: Iterable[str], known: Mapping[str, Any]) -> Goal:
    """The goal with these metrics, in order, in place of its own. Errors: RequestError with the metrics there are.

    What must not be comes first, also where the goal looks at its own metrics before: an unknown figure counts nothing.
    Levels that say whether the request is served at all stay.
    """
    wanted = [dict(find_metric(name, known)) for name in names]
    if not wanted:
        return goal
    levels = list(goal["levels"])
    first = next((i for i, level in enumerate(levels) if is_metric(level) and not level.get("serves")), len(levels))
    rest = [level for level in levels[first:] if not is_metric(level)]
    avoided = [level for level in rest if "count_if" in level]
    counted = {text for level in (*levels[:first], *avoided) for text in level.get("count_if", ())}
    before = [level for level in levels[:first] if level.get("id") not in {level["id"] for level in wanted}]
    texts = {level["id"]: f"{level.get('amount') or level['maximise']} is unset" for level in wanted}
    avoided += [
        {"title": f"{level['title']}: not known", "count_if": [texts[level["id"]]]}
        for level in wanted
        if texts[level["id"]].startswith("estimate.") and texts[level["id"]] not in counted
    ]
    rest = [level for level in rest if "count_if" not in level]
    trades = tuple(dict.fromkeys((*(level["id"] for level in wanted), *goal.get("trades", ()))))[:2]
    return {**goal, "levels": [*before, *avoided, *wanted, *rest], "trades": trades}


def guarded(goal: Goal, texts: Iterable[str], known: Mapping[str, Any]) -> Goal:
    """The goal with guards `METRIC=SHARE` (how much worse than its best a metric may be) and `METRIC<=N`, `METRIC>=N`.

    Errors: RequestError for anything else.
    """
    levels, guards = [dict(level) for level in goal["levels"]], list(goal["guards"])
    for text in texts:
        found = re.fullmatch(r"([\w-]+)\s*(<=|>=|=)\s*([0-9.]+)(%?)", text.strip())
        if not found or (found[4] and found[2] != "="):
            raise RequestError(f"guard {text!r}: expected METRIC<=NUMBER, METRIC>=NUMBER or METRIC=SHARE%")
        level, number = find_metric(found[1], known), float(found[3])
        if found[2] == "=":
            mine = next((o for o in levels if o.get("id") == level["id"]), None)
            if mine is None:
                names = dict.fromkeys(o["id"] for o in levels if is_metric(o) and not o.get("serves"))
                only = f"only {listed(tuple(names))}" if names else "nor any other"
                raise RequestError(
                    f"guard {text!r}: {goal['id']} has no such metric, {only}; "
                    f"give a bound such as {level['id']}<=NUMBER, or --minimise {level['id']} beside it"
                )
            mine |= {"slack": number / 100 if found[4] else number, "title": f"{level['title']} (guard {text})"}
        else:
            value = f"({level.get('amount') or level['maximise']})"
            guards.append({"title": f"guard {text}", "unless": f"{value} {found[2]} {found[3]}", "wish": True})
    return {**goal, "levels": levels, "guards": guards}


def is_metric(level: Mapping[str, Any]) -> bool:
    """Whether a level is an amount rather than a count of things to avoid."""
    return "amount" in level or "maximise" in level


def find_metric(name: str, known: Mapping[str, Any]) -> Mapping[str, Any]:
    """A level with an amount, by its id. Errors: RequestError with the metrics there are."""
    if name not in known or not is_metric(known[name]):
        names = sorted(n for n, level in known.items() if is_metric(level))
        raise RequestError(f"unknown metric {name!r}; known are {', '.join(names)}")
    found: Mapping[str, Any] = known[name]
    return found


# -------------------------------------------------------------------- levels


def levels_of(builder: Builder, goal: Goal) -> tuple[Level, ...]:
    """The objective levels of a goal, in order, over the builder's final values."""
    levels = [_level(builder, spec) for spec in goal["levels"]]
    if goal.get("keep"):
        first = next((i for i, spec in enumerate(goal["levels"]) if not spec.get("serves")), len(levels))
        levels.insert(first, _changes(builder, goal["keep"]))
    return tuple(levels)


def _level(builder: Builder, spec: Mapping[str, Any]) -> Level:
    counts: list[str] = []
    constant = 0.0
    if "count" in spec:
        count = COUNTS.get(spec["count"])
        counts, constant = count(builder) if count else builder.nearness.get(spec["count"], ([], 0.0))
    if is_metric(spec):
        return _amount(builder, spec)
    amounts: list[Lazy] = []
    for text in spec.get("count_if", ()):
        value = builder.expression(text)
        value = builder.pool.truth(value) if type(value) is Var else value
        if type(value) is Var:
            counts.append(value.name)
        elif type(value) is Lazy:
            amounts.append(value)
        else:
            constant += bool(settled(value))
    if counts and amounts:
        amounts += [Lazy((name,), lambda values, name=name: bool(values[name])) for name in counts]  # type: ignore[misc]
        counts = []
    flags = spec.get("count") == GIVEN
    return Level(spec["title"], tuple(counts), tuple(amounts), spec.get("slack"), constant, claims=True, flags=flags)


def _amount(builder: Builder, spec: Mapping[str, Any]) -> Level:
    """A metric: what is to be large counts negatively, and what is not known nothing, or what the level says."""
    text = spec.get("amount") or spec["maximise"]
    sign = -1.0 if "maximise" in spec else 1.0
    value = builder.expression(text)
    unknown = settled(builder.expression(spec["otherwise"])) if "otherwise" in spec else 0.0

    def counted(amount: Any) -> Any:
        return sign * amount if isinstance(amount, int | float) else unknown

    varies = type(value) in (Var, Lazy)
    amounts = (lazily(counted, value),) if varies else ()
    constant = 0.0 if varies else counted(value)
    figure = figure_of(spec)
    slack, serves = spec.get("slack"), bool(spec.get("serves"))  # what is asked for is served by most answers
    return Level(
        *(spec["title"], (), amounts, slack, constant),
        claims=serves,
        figure=figure,
        maximised=sign < 0,
        says=spec.get("says"),
    )


def figure_of(spec: Mapping[str, Any]) -> str:
    """The name under which a metric's unit is known."""
    text = str(spec.get("amount") or spec["maximise"])
    return text.removeprefix("estimate.") if text.startswith("estimate.") else str(spec["title"])


def _warnings(builder: Builder) -> Counted:
    return [name for name, _ in builder.warnings], float(len(builder.fixed_warnings))


def _quality(builder: Builder) -> Counted:
    fixed = sum(rule.stage == "quality" for rule in builder.fixed_warnings)
    return [name for name, rule in builder.warnings if rule.stage == "quality"], float(fixed)


def _given(builder: Builder) -> Counted:
    names = (name for name in builder.base if name not in builder.pinned)
    return [v.name for v in map(builder.chosen, names) if v], 0.0


GIVEN = "given"
COUNTS: dict[str, Callable[[Builder], Counted]] = {"warnings": _warnings, "quality": _quality, GIVEN: _given}
"""What a level's `count` can name."""


def _changes(builder: Builder, keep: Mapping[str, Any]) -> Level:
    """How many flags and variables of the starting command are dropped or changed."""
    names = []
    for key, kept in keep.items():
        if key in builder.base:
            changed = builder.pool.table(f"{key} changed", (key,), lambda v, kept=kept: v != kept)
            if type(changed) is Var:
                names.append(changed.name)
    return Level("changes to the starting command", tuple(names), claims=True)


# -------------------------------------------------------------------- guards


def guards_of(builder: Builder, goal: Goal) -> list[tuple[str, Any]]:
    """What no answer may be: (name, value that must not be true), with the bans of the request."""
    found = [
        (
            guard["title"],
            _not_surely(builder, guard["unless"]) if "unless" in guard else builder.expression(guard["refuse"]),
        )
        for guard in goal["guards"]
    ]
    for space, name, text in goal.get("bans", ()):
        if text:
            held = builder.state.get(space, name)
            found.append((ban_name((space, name, text)), _equals(builder, held, text)))
        elif f"{space}.{name}" in builder.base:  # open only where one asks what would be without the ban
            found.append((ban_name((space, name, text)), builder.chosen(f"{space}.{name}")))
    return found


def _not_surely(builder: Builder, text: str) -> Any:
    """Whether an expression does not hold, or nobody can say: a bound of the request counts as met only where it is."""
    value = builder.expression(text)
    if type(value) is Var:
        return builder.pool.table(f"not surely {text}", (value.name,), lambda holds: holds is DOUBT or not holds)
    if type(value) is Lazy:
        return lazily(lambda holds: settled(holds) is DOUBT or not holds, value)
    return settled(value) is DOUBT or not value


def lone(builder: Builder, goal: Goal) -> list[tuple[str, Any]]:
    """Flags of a starting command, each without the one beside which alone it means something."""
    found = []
    for lever in builder.resolver.program.levers:
        other, key = lever.get("beside"), f"flag.{lever['name']}"
        given = builder.chosen(key) if other and key in goal.get("keep", {}) and key in builder.base else None
        if given:
            alone = builder.expression(f"given.{other} is unset")
            found.append((f"{lever['name']} beside {other}", builder.pool.junction("and", [given, alone], key)))
    return found


def ban_name(ban: tuple[str, str, str]) -> str:
    """What a ban is called in conflicts and repairs."""
    _, name, text = ban
    return f"ban {name}={text}" if text else f"ban {name}"


def _equals(builder: Builder, value: Any, text: str) -> Any:
    """Whether the value in force reads like the text."""
    if type(value) is Lazy:
        return Lazy(value.inputs, lambda values: reads_like(value.run(values), text))
    if type(value) is Var:
        return builder.pool.table(f"{value.name} is {text}", (value.name,), lambda v: reads_like(v, text))
    return reads_like(value, text)


def reads_like(value: Any, text: str) -> bool:
    """Whether a value is what a banned text says."""
    return say(value).lower() == text.lower() or (isinstance(value, bool) and str(int(value)) == text)
