"""A context and a goal -> `Solution`: the model of a request, its optimum, and the launch that follows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from solver.check import Result
from solver.conditions import Unknown, evaluator
from solver.constraints import Assignment, Level, Model
from solver.context import Context, check_context
from solver.engines.optimum import optimise
from solver.engines.sat import SatEngine
from solver.errors import RequestError
from solver.facts import Facts, State, env_text
from solver.goals import Goal, find_goal, guards_of, levels_of
from solver.grammar import fold_release, parse
from solver.nearness import count_differences, counts_evidence, records_near, widened
from solver.symbolic import Builder, Choice

NEEDED = ("hardware.vendor", "hardware.sm", "hardware.link", "hardware.gpus", "model.architecture", "model.layers")
TRADED = ("token_latency_us", "pcie_roundtrips_per_token")
"""The two metrics whose trade-off an answer shows."""
MEMORY = ("hardware.memory_gib", "hardware.memory_mib")


class Reason(msgspec.Struct, frozen=True):
    """Why a flag is in the answer. `kind`: pin, rule, goal, default; `by`: who or what; `text`: in words."""

    flag: str
    value: Any
    kind: str
    by: str
    text: str


class Point(msgspec.Struct, frozen=True):
    """One layout of the trade-off, with its metrics. `on_front`: no other layout is better in both."""

    given: dict[str, Any]
    metrics: dict[str, Any]
    on_front: bool


class Solution(msgspec.Struct, frozen=True):
    """The answer to a solve request that has one."""

    given: dict[str, Any]
    env: dict[str, str]
    facts: Facts
    result: Result
    levels: tuple[Level, ...]
    costs: tuple[float, ...]
    before: dict[str, Any]
    after: dict[str, Any]
    reasons: tuple[Reason, ...]
    alternatives: tuple[Point, ...]
    proven: bool


class Problem(msgspec.Struct, frozen=True):
    """A request turned into a model."""

    context: Context
    goal: dict[str, Any]
    choices: tuple[Choice, ...]
    kept: tuple[Choice, ...]
    model: Model
    builder: Any
    pins: dict[str, Any]
    figures: dict[str, Any]
    """Metric of the trade-off -> its variable, or a plain value."""


def need_facts(facts: Facts) -> None:
    """Refuse a request whose model or machine is not known well enough. Errors: RequestError naming what is missing."""
    missing = [n for n in NEEDED if n.split(".")[1] not in getattr(facts, n.split(".")[0])]
    if not any(facts.hardware.get(n.split(".")[1]) for n in MEMORY):
        missing.append("hardware.memory_gib")
    if missing:
        options = [o for o, space in (("--model ID|DIR", "model."), ("--hardware 8xrtx-pro-6000|FILE", "hardware."))
                   if any(m.startswith(space) for m in missing)]  # fmt: skip
        raise RequestError(f"solve needs {', '.join(missing)}: give {' and '.join(options)}")


def choices_of(context: Context, levers: Iterable[str]) -> tuple[tuple[Choice, ...], tuple[Choice, ...]]:
    """What the solver may choose, and what it never gives up unasked (open for repairs only)."""
    program, facts = context.resolver.program, context.facts
    free: list[Choice] = []
    kept: list[Choice] = []
    state = State(program, facts, {})
    wanted = set(levers)
    for lever in program.levers:
        if lever["name"] not in wanted:
            continue
        space, name = ("env", lever["name"][4:]) if lever["name"].startswith("env.") else ("flag", lever["name"])
        known = program.env if space == "env" else program.flags
        given = facts.env if space == "env" else facts.given
        if name not in known or name in given or not _applies(lever, state, program):
            continue
        values = _domain(lever, known[name], space, state, program)
        if len(values) > 1:
            (kept if lever.get("gives_up") else free).append(Choice(space, name, values))
    return tuple(free), tuple(kept)


def _applies(lever: dict[str, Any], state: State, program: Any) -> bool:
    return all(_evaluate(text, state, program) is True for text in lever.get("when", ()))


def _evaluate(text: str, state: State, program: Any) -> Any:
    from packaging.version import Version

    value = evaluator(fold_release(parse(text), Version, program.release), program.tables)(state)
    return value if type(value) is Unknown or not isinstance(value, bool | int) else bool(value)


def _domain(lever: dict[str, Any], form: Any, space: str, state: State, program: Any) -> tuple[Any, ...]:
    values = lever["values"]
    if values == "choices":
        values = list(form.choices or ())
    elif isinstance(values, dict):
        from packaging.version import Version

        node = fold_release(parse(values["expr"]), Version, program.release)
        values = evaluator(node, program.tables)(state)
        values = (
            []
            if values is None or type(values) is Unknown
            else list(values)
            if isinstance(values, list | tuple)
            else [values]
        )
    allowed = form.choices if space == "flag" and form.choices else None
    default = form.default if space == "flag" else None
    kept = [v for v in values if v not in lever.get("without", ()) and (allowed is None or v in allowed)]
    return (None, *(v for v in dict.fromkeys(kept) if v is not None and (v != default or type(v) is not type(default))))


def goal_of(context: Context, goal: str | Goal) -> Goal:
    """A goal by name, or as the wishes of a request have made it."""
    return find_goal(context.index.goals, goal) if isinstance(goal, str) else goal


def problem_of(
    context: Context, goal: str | Goal, free_pins: Iterable[Choice] = (), drop: Iterable[str] = ()
) -> Problem:
    """Build the model. `free_pins`: pins made choosable (for conflicts); `drop`: given flags left out."""
    goal = goal_of(context, goal)
    need_facts(context.facts)
    free_pins, drop = tuple(free_pins), set(drop)
    drop |= {c.key for c in free_pins}
    facts = without(context.facts, drop)
    pruned = msgspec.structs.replace(context, facts=facts)
    choices, kept = choices_of(pruned, goal["levers"])
    free_pins += near(pruned, goal, choices)
    taken = {c.key for c in free_pins} | {f"{space}.{name}" for space, name, text in goal.get("bans", ()) if not text}
    choices = (*free_pins, *(c for c in choices if c.key not in taken))
    records = records_near(pruned) if counts_evidence(goal) else ()
    choices = widened(pruned, choices, kept, records) if records else choices
    builder = Builder(context.resolver, facts, context.estimates, choices)
    builder.run()
    if records:
        count_differences(builder, pruned, records)
    for name, value in guards_of(builder, goal):
        builder.refuse(name, value)
    levels = levels_of(builder, goal)
    figures = {name: builder.expression(f"estimate.{name}") for name in TRADED}
    model = builder.model(levels)
    pins = {f"flag.{k}": v for k, v in facts.given.items()} | {f"env.{k}": v for k, v in facts.env.items()}
    return Problem(pruned, goal, choices, kept, model, builder, pins, figures)


def near(context: Context, goal: Goal, free: tuple[Choice, ...]) -> tuple[Choice, ...]:
    """The flags and variables of a starting command that the pins leave open: as they are, left out, or changed."""
    facts, program = context.facts, context.resolver.program
    values = {c.key: c.values for c in free}
    found = []
    for key, kept in goal.get("keep", {}).items():
        space, name = key.split(".", 1)
        known, pinned = (program.flags, facts.given) if space == "flag" else (program.env, facts.env)
        if name in known and name not in pinned:
            others = [v for v in values.get(key, ()) if v is not None and v != kept]
            found.append(Choice(space, name, (kept, None, *others)))
    return tuple(found)


def with_kept(facts: Facts, goal: Goal) -> Facts:
    """The starting command as it stands, under the pins."""
    kept = goal.get("keep", {})
    given = {k[5:]: v for k, v in kept.items() if k.startswith("flag.")}
    env = {k[4:]: env_text(v) for k, v in kept.items() if k.startswith("env.")}
    return msgspec.structs.replace(facts, given={**given, **facts.given}, env={**env, **facts.env})


def without(facts: Facts, keys: Iterable[str]) -> Facts:
    """The facts without some given flags (`flag.x`) and variables (`env.X`)."""
    gone = set(keys)
    return msgspec.structs.replace(
        facts,
        given={k: v for k, v in facts.given.items() if f"flag.{k}" not in gone},
        env={k: v for k, v in facts.env.items() if f"env.{k}" not in gone},
    )


def best_of(problem: Problem) -> tuple[Assignment, tuple[float, ...]] | None:
    """The optimum of a problem, or None when it has no solution."""
    if problem.model.fixed_violations:
        return None
    with SatEngine(problem.model) as engine:
        return optimise(engine)


def completed(problem: Problem, assignment: Assignment) -> Facts:
    """The launch of an assignment: pins, choices, and the values that the goal wants written out."""
    facts = problem.context.facts
    given, env = dict(facts.given), dict(facts.env)
    for choice in problem.choices:
        value = assignment[choice.key]
        if value is not None:
            if choice.space == "flag":
                given[choice.name] = value
            else:
                env[choice.name] = env_text(value)
    return msgspec.structs.replace(facts, given=given, env=env)


def written_out(problem: Problem, facts: Facts) -> tuple[Facts, dict[str, str]]:
    """Write out effective values that a rule chose, where that changes nothing else; flag -> the rule that chose it."""
    context = problem.context
    flags = context.resolver.program.flags
    before = checked(context, facts)
    state = before.outcomes[0].state
    chosen: dict[str, str] = {}
    for group in problem.goal.get("write_out", ()):
        values = {n: state.spaces["flag"].get(n) for n in group if n in flags and n not in facts.given}
        values = {n: v for n, v in values.items() if _worth_writing(flags[n], v)}
        trial = msgspec.structs.replace(facts, given={**facts.given, **values})
        after = checked(context, trial) if values else before
        if values and _same_values(before, after) and len(after.findings) <= len(before.findings):
            facts = trial
            chosen |= {name: state.origin("flag", name) for name in values}
    return facts, chosen


def _worth_writing(form: Any, value: Any) -> bool:
    settled = value is not None and type(value) is not Unknown and value not in ("auto", "none")
    return settled and value != form.default and (not form.choices or value in form.choices)


def _same_values(before: Result, after: Result) -> bool:
    return all(
        a.state.spaces["flag"] == b.state.spaces["flag"] and a.state.spaces["env"] == b.state.spaces["env"]
        for a, b in zip(before.outcomes, after.outcomes, strict=True)
    )


def checked(context: Context, facts: Facts) -> Result:
    """Check a completed launch with the same validator that `validate` uses."""
    return check_context(msgspec.structs.replace(context, facts=facts, problems=()))


def metrics_of(context: Context, result: Result) -> dict[str, Any]:
    """The figures of a launch, with ranges where they are estimates."""
    state = result.outcomes[0].state
    names = (
        "token_latency_us",
        "pcie_roundtrips_per_token",
        "accepted_tokens",
        "kv_tokens",
        "weights_gib",
        "idle_gpus",
        "throughput",
        "gpus_used",
    )
    found = {}
    for name in names:
        value = state.get("estimate", name)
        found[name] = None if type(value) is Unknown else round(value, 4) if isinstance(value, float) else value
    return found


def errors_in(result: Result) -> tuple[str, ...]:
    """The unconditional errors of a result."""
    return tuple(f.rule for f in result.findings if f.severity == "error" and not f.conditional_on and not f.after)
