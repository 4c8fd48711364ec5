"""A context and a goal -> `Solution`: the model of a request, its optimum, and the launch that follows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from solver.check import Result
from solver.choices import choices_of, idle_levers, joined, near
from solver.conditions import Unknown
from solver.constraints import Assignment, Level, Model
from solver.context import Assumed, Context, check_context
from solver.engines.sat import SatEngine
from solver.errors import RequestError
from solver.facts import Facts, env_text
from solver.goals import Goal, figure_of, find_goal, guards_of, is_metric, levels_of, lone
from solver.nearness import count_differences, counts_evidence, records_near, widened
from solver.symbolic import Builder, Choice
from solver.words import FIGURES

NEEDED = ("hardware.vendor", "hardware.sm", "hardware.link", "hardware.gpus", "model.architecture", "model.layers")
TRADED = ("token_latency_us", "pcie_roundtrips_per_token")
"""The two metrics whose trade-off an answer shows."""
MEMORY = ("hardware.memory_gib", "hardware.memory_mib")


class Reason(msgspec.Struct, frozen=True):
    """Why a flag is in the answer. `kind`: pin, rule, goal, default; `by`: who or what; `text`: in words.

    `value` is null for what a starting command had and the answer has not.
    """

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
    facts: Facts
    """Those of the context, without the pins that a question opens."""
    goal: dict[str, Any]
    choices: tuple[Choice, ...]
    kept: tuple[Choice, ...]
    model: Model
    builder: Any
    figures: dict[str, Any]
    """Metric of the trade-off, or other expression that is wanted -> its variable, or a plain value."""
    closed: tuple[tuple[str, Any], ...] = ()
    """Values of base variables that are there for a question only: the answer itself may not take them."""

    @property
    def pins(self) -> dict[str, Any]:
        """What the request gives."""
        facts = self.context.facts
        return {f"flag.{k}": v for k, v in facts.given.items()} | {f"env.{k}": v for k, v in facts.env.items()}

    def own(self, engine: SatEngine) -> tuple[int, ...]:
        """The literals under which what a question opens is closed: the request as it stands."""
        return tuple(-engine.literal(name, value) for name, value in self.closed)


def need_facts(facts: Facts, verb: str = "solve") -> None:
    """Refuse a request whose model or machine is not known well enough. Errors: RequestError naming what is missing."""
    missing = [n for n in NEEDED if n.split(".")[1] not in getattr(facts, n.split(".")[0])]
    if not any(facts.hardware.get(n.split(".")[1]) for n in MEMORY):
        missing.append("hardware.memory_gib")
    if missing:
        options = [o for o, space in (("--model ID|DIR", "model."), ("--hardware 8xrtx-pro-6000|FILE", "hardware."))
                   if any(m.startswith(space) for m in missing)]  # fmt: skip
        raise RequestError(f"{verb} needs {', '.join(missing)}: give {' and '.join(options)}")


def with_link(context: Context) -> Context:
    """The context with a link between its GPUs: what is not known to be bridged is reckoned as if it were not."""
    hardware = context.facts.hardware
    if "gpus" not in hardware or "vendor" not in hardware or "link" in hardware:
        return context
    why = "bridges between the GPUs are not known; a --hardware FILE with the output of nvidia-smi topo -m names them"
    notes = (Assumed("link", "pcie", why),) if hardware["gpus"] > 1 else ()
    facts = msgspec.structs.replace(context.facts, hardware={**hardware, "link": "pcie"})
    return msgspec.structs.replace(context, facts=facts, assumed=(*context.assumed, *notes))


def goal_of(context: Context, goal: str | Goal) -> Goal:
    """A goal by name, or as the wishes of a request have made it."""
    return find_goal(context.index.goals, goal) if isinstance(goal, str) else goal


class Built(NamedTuple):
    """A request whose rules, guards and bans are in the model, its objective not yet."""

    context: Context
    facts: Facts
    goal: Goal
    choices: tuple[Choice, ...]
    kept: tuple[Choice, ...]
    closed: tuple[tuple[str, Any], ...]
    builder: Builder

    def constraints(self) -> Model:
        """The model as far as it decides whether there is an answer at all."""
        return msgspec.structs.replace(self.builder.model(()), final={})


def built(context: Context, goal: str | Goal, also: Iterable[Choice] = ()) -> Built:
    """Run the rules over what is open. `also`: what a question opens besides the goal's levers (see `joined`), pins
    among them."""
    goal = goal_of(context, goal)
    need_facts(context.facts)
    also = tuple(also)
    facts = without(context.facts, (c.key for c in also if c.pinned))
    choices, kept = choices_of(context, goal["levers"])
    start = near(context, goal, choices)
    taken = {c.key for c in start} | {f"{space}.{name}" for space, name, text in goal.get("bans", ()) if not text}
    choices = (*start, *(c for c in choices if c.key not in taken))
    records = records_near(context) if counts_evidence(goal) else ()
    choices = widened(context, choices, kept, records) if records else choices
    choices, closed = joined(choices, also)
    builder = Builder(context.resolver, facts, context.estimates, choices)
    builder.run()
    if not builder.fixed:  # else there is nothing to choose between
        if records:
            count_differences(builder, context, records)
        for name, value in (*guards_of(builder, goal), *lone(builder, goal)):
            builder.refuse(name, value)
    return Built(context, facts, goal, choices, kept, tuple(closed), builder)


def problem_of(
    context: Context, goal: str | Goal, also: Iterable[Choice] = (), measured: Iterable[str] = ()
) -> Problem:
    """Build the model. `also`: see `built`; `measured`: expressions whose values are wanted beside the levels."""
    return aimed(built(context, goal, also), measured)


def aimed(ready: Built, measured: Iterable[str] = ()) -> Problem:
    """The model with its objective."""
    context, facts, goal, choices, kept, closed, builder = ready
    if builder.fixed:
        return Problem(context, facts, goal, choices, kept, builder.model(()), builder, {}, closed)
    levels = levels_of(builder, goal)
    looked_at = {figure_of(spec) for spec in goal["levels"] if is_metric(spec)} & FIGURES
    figures = {name: builder.expression(f"estimate.{name}") for name in sorted({*TRADED, *looked_at})}
    figures |= {text: builder.expression(text) for text in measured}
    model = builder.model(levels, figures.values() if measured else ())
    return Problem(context, facts, goal, choices, kept, model, builder, figures, closed)


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


def completed(problem: Problem, assignment: Assignment) -> Facts:
    """The launch of an assignment: pins, choices, and the values that the goal wants written out."""
    facts = problem.facts
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
    idle = idle_levers(context)
    chosen: dict[str, str] = {}
    for group in problem.goal.get("write_out", ()):
        values = {n: state.spaces["flag"].get(n) for n in group if n in flags and n not in facts.given}
        values = {n: v for n, v in values.items() if _worth_writing(flags[n], v) and n not in idle}
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
        a.state.values("flag") == b.state.values("flag") and a.state.values("env") == b.state.values("env")
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
