"""A solve answer -> lines for a terminal: the command, why each flag is there, the figures, the trade-off."""

from __future__ import annotations

from typing import Any

import msgspec

from solver.compiled import Program
from solver.conditions import Unknown
from solver.conflict import Impossible
from solver.context import Context
from solver.handoff.command import argv_of, shell_of
from solver.render.data import dumps, emit_data, impossible_data, shown, solution_data
from solver.render.text import conditional_lines, evidence_lines, finding_lines, judged_by, paint, table, wrapped
from solver.solve import Point, Solution
from solver.words import figure, fill, listed, say

METRICS = ("token_latency_us", "pcie_roundtrips_per_token", "accepted_tokens", "weights_gib", "kv_tokens", "idle_gpus")


STEPS = range(1, 6)
"""Draft steps that are looked for among measured ones."""
LAYOUT = ("flag.tp_size", "flag.pp_size", "flag.dp_size")
"""What says how many GPUs a launch uses."""
POINTS = 3
"""Other points of the trade-off that are shown."""


def heading(context: Context, goal: str, answer: Solution) -> list[str]:
    """What was solved by what, and the command."""
    lines = [f"{paint('solved', 'valid')} for {goal}: {judged_by(context)}"]
    lines += [f"  assumed {a.what} {a.value}: {a.why}" for a in context.assumed]
    return [*lines, "", shell_of(argv_of(answer.given, context.resolver.program.flags), answer.env)]


def solution(context: Context, goal: str, answer: Solution) -> str:
    """What `solve` prints when there is an answer."""
    program = context.resolver.program
    lines = [*heading(context, goal, answer), "", "why each flag is there"]
    rows = [(f"  {shown(r.flag, program)}", say(r.value), r.text) for r in answer.reasons if r.value is not None]
    lines += table(rows, ("  flag", "value", "reason"))
    gone = [(f"  {shown(r.flag, program)}", r.text) for r in answer.reasons if r.value is None]
    if gone:
        lines += ["", "left out of the starting command", *table(gone, ("  flag", "with it"))]
    lines += ["", "figures (estimates; docs/cost-model.md)"]
    figures = [(f"  {m.replace('_', ' ')}", figure(m, answer.before[m]), figure(m, answer.after[m])) for m in METRICS]
    lines += table(figures, ("  figure", "as asked", "solved"))
    lines += open_lines(answer)
    lines += [*stand_in_lines(context, answer), *draft_lines(context, answer)]
    lines += ["", "proven optimal" if answer.proven else "not proven optimal"]
    lines += [*level_lines(context, answer), *idle_lines(context, answer)]
    lines += _trade_off(answer.alternatives[:POINTS], program)
    notes = [f for f in answer.result.findings if not f.conditional_on]
    for finding in notes:
        lines += ["", *finding_lines(finding, program)]
    lines += conditional_lines([f for f in answer.result.findings if f.conditional_on])
    lines += evidence_lines(msgspec.structs.replace(context, facts=answer.facts), answer.result)
    return "\n".join(lines)


def open_lines(answer: Solution) -> list[str]:
    """What keeps figures of the answer unknown, and that memory is among them."""
    state = answer.result.outcomes[0].state
    values = [state.get("estimate", metric) for metric in METRICS]
    names = dict.fromkeys(name for value in values if type(value) is Unknown for name in value.names)
    if not names:
        return []
    lines = wrapped(f"unknown is what rests on {listed(tuple(names))}, which nobody stated", "  ")
    if type(state.get("estimate", "weights_gib")) is Unknown:
        lines += wrapped(
            "whether it fits into memory was therefore not looked at: give --model DIR with config.json", "  "
        )
    return lines


def stand_in_lines(context: Context, answer: Solution) -> list[str]:
    """How far off the time may be where the GPUs' link stands for one that nobody measured, and what else stands in."""
    if answer.after["token_latency_us"] is None:
        return []
    layout = context.estimates["token_latency_us"]
    estimate = layout.formula.estimate("token_latency_us", layout.arguments(answer.result.outcomes[0].state))
    stand_ins = estimate.inputs.get("stand_ins", "")
    if not stand_ins.startswith("links"):
        return []
    low, high = (figure("token_latency_us", us).split(" ")[0] for us in (estimate.low, estimate.high))
    return wrapped(f"latency {low} to {high} ms; not measured here, so reckoned with stand-ins: {stand_ins}", "  ")


def draft_lines(context: Context, answer: Solution) -> list[str]:
    """That the model can draft and does not, since nobody measured how many of its drafts are accepted."""
    state = answer.result.outcomes[0].state
    if not context.facts.model.get("mtp_layers") or state.get("flag", "speculative_algorithm") is not None:
        return []
    layout = context.estimates["token_latency_us"].formula
    if any(layout.accepted(steps) is not None for steps in STEPS):
        return []
    said = f"{context.model_name} brings a draft layer, but how many of its drafts are accepted was never measured"
    return wrapped(f"speculation was not reckoned with: {said}; --accept-length TOKENS takes your own figure", "  ")


def figures(context: Context, data: dict[str, Any]) -> str:
    """What `estimate` prints: each figure with its range and inputs."""
    lines = [f"{data['verdict']}: {judged_by(context)}"]
    for name, estimate in data["metrics"].items():
        if estimate.get("value") is None:
            lines.append(f"  {name}: unknown ({say(estimate.get('missing') or estimate.get('unknown'))})")
            continue
        spread = "no range given"
        if estimate["low"] is not None:
            spread = "range {} to {}".format(*(figure(name, estimate[end]).split(" ")[0] for end in ("low", "high")))
        lines.append(f"  {name}: {figure(name, estimate['value'])}, {spread}")
        lines += wrapped("from " + ", ".join(f"{k} {say(v)}" for k, v in estimate["inputs"].items()), "    ")
    if data["throughput_tokens_per_s"]:
        lines.append(f"  throughput: {data['throughput_tokens_per_s']} tokens per second for all requests")
    memory = data["memory"]
    if "unknown" in memory:
        return "\n".join([*lines, f"  memory: unknown ({say(memory['unknown'])})"])
    verdict = "fits" if memory["fits"] else f"does not fit: {memory['short']}"
    lines.append(
        f"  memory: {verdict}; needs {memory['need_gib']} of {memory['have_gib']} GiB per GPU, bounds of an estimate"
    )
    names = (
        "static_gib",
        "weights_gib",
        "draft_gib",
        "kv_pool_gib",
        "state_pool_gib",
        "kv_tokens",
        "state_slots",
        "requests",
    )
    lines += wrapped("from " + ", ".join(f"{n} {say(memory[n])}" for n in names), "    ")
    return "\n".join(lines)


def level_lines(context: Context, answer: Solution) -> list[str]:
    """What the levels say of what they cost, such as that not all requests find room at once."""
    asked = {f"request.{name}": value for name, value in context.facts.request.items()}
    costs = zip(answer.levels, answer.costs, strict=True)
    return [fill(level.says, {**asked, "cost": cost}) for level, cost in costs if level.says and cost]


def idle_lines(context: Context, answer: Solution) -> list[str]:
    """That GPUs have nothing to do, where that is so, and what of the request that rests on."""
    idle = answer.after.get("idle_gpus")
    asked = {r.flag: r.value for r in answer.reasons if r.kind == "pin" and r.flag in LAYOUT}
    program = context.resolver.program
    given = [f"{shown(flag, program)} {say(value)}" for flag, value in asked.items()]
    under = f"with {listed(given)} as you gave it, " if given else ""
    return [f"{idle} GPUs stay idle: {under}no layout that uses them is better for this goal"] if idle else []


def _trade_off(points: tuple[Point, ...], program: Program) -> list[str]:
    """Other layouts with their figures; a layout that another beats in both says so."""
    if not points:
        return []
    names = [n for n in points[0].given if any(p.given[n] not in (1, None) for p in points)]
    head = [*(shown(f"flag.{n}", program) for n in names), "round trips", "latency ms", ""]
    rows = []
    for point in points:
        cells = [say(point.given[n]) for n in names]
        cells += [
            f"{point.metrics['pcie_roundtrips_per_token']:.1f}",
            f"{point.metrics['token_latency_us'] / 1000:.2f}",
        ]
        rows.append((f"  {cells[0]}", *cells[1:], "" if point.on_front else "worse in both than another"))
    return ["", "other points of the trade-off", *table(rows, (f"  {head[0]}", *head[1:]))]


def impossible(context: Context, goal: str, answer: Impossible) -> str:
    """What `solve` prints when nothing satisfies the request: who wants what, and the ways out."""
    lines = [f"{paint('impossible', 'invalid')} for {goal}: {judged_by(context)}", ""]
    return "\n".join([*lines, *conflict_lines(context, answer)])


def conflict_lines(context: Context, answer: Impossible) -> list[str]:
    """What cannot hold together, and the ways out with their launches."""
    lines = ["these cannot hold together"]
    lines += table(
        [(f"  {m.who}", m.text + (f" [{m.rule}]" if m.rule else "")) for m in answer.members], ("  who", "asks or says")
    )
    lines += ["", "ways out, best for the goal first" if answer.repairs else "no repair was found"]
    for number, repair in enumerate(answer.repairs, 1):
        figures = ", ".join(figure(m, repair.metrics[m]) for m in METRICS[:2])
        lines += wrapped(f"{number}. {'; '.join(repair.changes) or 'complete it as below'}: {figures}", "  ")
        release = context.release if repair.release == context.release else repair.release
        program = _program(context, release)
        lines += [f"     {text}" for text in shell_of(argv_of(repair.given, program.flags), repair.env).splitlines()]
    return lines


def output(context: Context, goal: str, answer: Solution, form: str, emit: str | None) -> str:
    """The answer in the form that was asked for; `emit` gives the solution alone."""
    if emit == "json":
        return dumps(emit_data(context, answer))
    if emit is not None:
        from solver.handoff.forms import handed_over

        return handed_over(emit, context, answer)
    return dumps(solution_data(context, goal, answer)) if form == "json" else solution(context, goal, answer)


def conflict_output(context: Context, goal: str, answer: Impossible, form: str) -> str:
    """The conflict in the form that was asked for."""
    return dumps(impossible_data(context, goal, answer)) if form == "json" else impossible(context, goal, answer)


def _program(context: Context, release: str) -> Program:
    from solver.context import resolver_for

    return resolver_for(context.store, release).program
