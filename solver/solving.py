"""Parsed options of `solve` -> goal with the wishes of the request, pins and starting command -> the answer, printed.

Errors: RequestError, which the command line turns into one line and exit status 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from solver.context import Context, build
from solver.errors import RequestError
from solver.facts import typed_env
from solver.goals import Goal, find_goal, guarded, minimised
from solver.index import Index
from solver.verbs import FINDINGS, options_of, read, store

if TYPE_CHECKING:
    from solver.solve import Solution


def solve(values: dict[str, Any]) -> int:
    """Complete a partial request into a full valid flag set; what the command says is kept."""
    from solver.answer import solve as answer_of
    from solver.conflict import Impossible
    from solver.render import solution
    from solver.render.perf import judged_by_other, judged_elsewhere

    where = store()
    goal = _wished(where.index, values)
    keep = _keeper(values)  # refuses before any work is done
    context, kept = _contexts(where, values)
    elsewhere = judged_by_other(context, values)
    goal = {**goal, "bans": _bans(context, values["ban"]), "keep": kept}
    name = goal["id"]
    asked = next((option for option in QUESTIONS if values[option]), None)
    if asked is not None:
        if elsewhere:
            option = f"--{asked.replace('_', '-')}"
            raise RequestError(f"{option} is answered from our own estimates: leave out --perf or {option}")
        from solver.questions import ask

        return ask(context, goal, values, keep)
    answer = answer_of(context, goal)
    if isinstance(answer, Impossible):
        print(solution.conflict_output(context, name, answer, values["format"]))
        return FINDINGS
    keep(context, name, answer)
    text = solution.output(context, name, answer, values["format"], values["emit"])
    print(judged_elsewhere(context, answer, values, text) if elsewhere else text)
    return 0


QUESTIONS = ("why", "why_not", "top", "front", "front_svg")
"""The options that ask something about the answer."""


def _keeper(values: dict[str, Any]) -> Callable[[Context, str, Solution], None]:
    """What keeps the answer in a file, where that is asked for."""
    if values["lock"] is None:
        return lambda context, goal, answer: None
    from solver.compare.lock import keeper

    return keeper(values["lock"], values["overwrite"], options_of(values))


def _wished(index: Index, values: dict[str, Any]) -> Goal:
    """The goal with other metrics and guards, as the request says."""
    known = {level["id"]: level for level in index.data["sglang/levels"]}
    names = [name for text in values["minimise"] for name in text.split(",")]
    return guarded(minimised(find_goal(index.goals, values["goal"]), names, known), values["guard"], known)


def _contexts(where: Any, values: dict[str, Any]) -> tuple[Context, dict[str, Any]]:
    """The context of the pins, and the flags and variables of the starting command that they leave open."""
    options = options_of(values)
    if values["keep"] is None:
        return _readable(build(where, read(values["command"], bare=True), options), values["model"]), {}
    start = _readable(build(where, read([values["keep"]], bare=True), options), values["model"])
    path = start.facts.given.get("model_path")
    options = msgspec.structs.replace(options, model=values["model"] or path)
    if not any(a.what == "release" for a in start.assumed):
        options = msgspec.structs.replace(options, engine_version=start.release)
    context = _readable(build(where, read(values["command"], bare=True), options), options.model)
    facts, program = start.facts, context.resolver.program
    kept = {f"flag.{n}": v for n, v in facts.given.items() if n in program.flags and n != "model_path"}
    kept |= {f"env.{n}": typed_env(program.env[n], text) for n, text in facts.env.items() if n in program.env}
    whole = {k: v for k, v in kept.items() if isinstance(v, list | dict)}  # never changed: they join the pins
    given = {**{k[5:]: v for k, v in whole.items()}, **context.facts.given}
    context = msgspec.structs.replace(context, facts=msgspec.structs.replace(context.facts, given=given))
    return context, {k: v for k, v in kept.items() if k not in whole and v is not None}


def _readable(context: Context, model: str | None) -> Context:
    """Pins that the release's parser would refuse are a wrong request; a launch needs a model path."""
    from solver.solve import with_link

    _refuse_unreadable(context)
    return with_link(with_model_path(context, model))


def _bans(context: Context, texts: Sequence[str]) -> tuple[tuple[str, str, str], ...]:
    """(space, name, value or "") of each `FLAG[=VALUE]`. Errors: RequestError for what the release does not know."""
    if not texts:
        return ()
    from solver.asking import named

    found = []
    for text in texts:
        head, _, value = text.partition("=")
        space, name = named(context, "--ban", head)
        given = context.facts.given if space == "flag" else context.facts.env
        if name in given and not value:
            raise RequestError(f"--ban {text!r}: the request itself gives {head}; leave one of the two out")
        found.append((space, name, value))
    return tuple(found)


def _refuse_unreadable(context: Context) -> None:
    """Pins that the release's parser would refuse are a wrong request."""
    from solver.findings import reading_findings

    refused = [p for p in context.problems if p.refuses and p.flag != "model_path"]
    if refused:
        found = reading_findings(context.store, context.resolver.program, refused)
        raise RequestError(found[0].message if found else f"{refused[0].given}: {refused[0].kind}")


def with_model_path(context: Context, model: str | None) -> Context:
    """The launch needs a model path: the one given, else the catalogue entry's hub id, else what `--model` said."""
    facts = context.facts
    if "model_path" in facts.given:
        return context
    entry = context.index.models.get(str(facts.model.get("id")))
    path = model if model and Path(model).is_dir() else entry.hub_ids[0] if entry and entry.hub_ids else model
    if path is None:
        return context
    return msgspec.structs.replace(
        context, facts=msgspec.structs.replace(facts, given={"model_path": path, **facts.given})
    )
