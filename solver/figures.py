"""A context -> the metrics of its launch as data: value, range, unit and inputs."""

from __future__ import annotations

from typing import Any

import msgspec

from solver.batch import each_line
from solver.conditions import Unknown
from solver.context import Context, Options, check_context
from solver.formulas import usable
from solver.perf import latency, wanted
from solver.release import refuse_without_rules
from solver.solve import need_facts, with_link
from solver.store import Store

NO_LAYOUT = "a parallel size below 1"
LAYOUT = ("token_latency_us", "pcie_roundtrips_per_token")


def figures_of(context: Context) -> dict[str, Any]:
    """Latency, round trips and memory of a launch as it would run. Errors: RequestError when too little is known."""
    refuse_without_rules(context.index, context.release)
    context = with_link(context)
    need_facts(context.facts, "estimate")
    other = wanted(context.facts.request)
    result = check_context(context)
    state = result.outcomes[0].state
    figures = context.estimates
    layout = figures["token_latency_us"]
    data: dict[str, Any] = {"release": context.release, "model": context.model_name, "hardware": context.hardware_name}
    data["verdict"] = result.verdict
    data["metrics"] = {name: _estimate(layout, name, state) for name in LAYOUT}
    if other:
        data["metrics"]["token_latency_us"] = msgspec.to_builtins(latency(context, state))
    data["memory"] = _memory(figures["kv_tokens"], state)
    data["throughput_tokens_per_s"] = _throughput(data["metrics"]["token_latency_us"], context)
    data["request"] = {k: v for k, v in context.facts.request.items() if v is not None}
    return data


def _estimate(figure: Any, name: str, state: Any) -> Any:
    arguments = figure.arguments(state)
    if type(arguments) is Unknown:
        return {"unknown": list(arguments.names)}
    if not usable(arguments):
        return {"unknown": [NO_LAYOUT]}
    return msgspec.to_builtins(figure.formula.estimate(name, arguments))


def _memory(figure: Any, state: Any) -> Any:
    arguments = figure.arguments(state)
    if type(arguments) is not Unknown and not usable(arguments):
        return {"unknown": [NO_LAYOUT]}
    memory: Any = arguments if type(arguments) is Unknown else figure.formula.memory(arguments)
    if type(memory) is Unknown:
        return {"unknown": list(memory.names)}
    return {**memory.figures(), "unit": "GiB per GPU, tokens", "inputs": arguments}


def _throughput(latency: Any, context: Context) -> Any:
    """Tokens per second of all requests together, from the latency of one."""
    value = latency.get("value")
    return round(context.facts.request["concurrency"] * 1e6 / value, 1) if value else None


def estimate_lines(store: Store, path: str, options: Options) -> int:
    """The figures of each line of a file; returns the worst line's exit status."""
    return each_line(store, path, options, lambda context: (figures_of(context), False))
