"""What a log says, a command and options -> the `Context` that a log is judged by; options come before the log."""

from __future__ import annotations

from typing import Any

import msgspec

from solver.context import Context, Options, build, check_context
from solver.errors import RequestError
from solver.index import Index
from solver.launch import Launch, read_command
from solver.log_facts import LogFacts, releases_with
from solver.records import Traits
from solver.release import Assumed, nearest
from solver.store import Store
from solver.traits.find import NOTHING_READ, find_model

FROM_LOG = "log"
ENOUGH_ARGUMENTS = 100
"""Every known release prints more than twice as many; a shorter list was made by hand and tells no release."""


def settle(store: Store, facts: LogFacts, command: Launch | None, options: Options) -> tuple[Context, bool]:
    """The context of a log, and whether a command is known (given, shown in the log, or from its arguments)."""
    launch = command or _shown(facts)
    release, origin, notes = _release(store.index, facts, launch, options)
    context = build(store, launch, msgspec.structs.replace(options, engine_version=release or options.engine_version))
    if release:
        context = msgspec.structs.replace(context, release_from=origin, assumed=(*notes, *context.assumed))
    if options.model is None and facts.model and context.facts.model in ({}, NOTHING_READ):
        context = _with_model(context, facts.model)
    if launch is None and facts.arguments:
        context = _with_arguments(context, facts.arguments)
    if options.hardware is None and facts.gpu:
        context = _with_machine(context, facts.gpu)
    return context, launch is not None or bool(facts.arguments)


def _shown(facts: LogFacts) -> Launch | None:
    """The launch line that the log shows, where the release's arguments do not stand in it anyway."""
    if facts.command is None or facts.arguments:
        return None
    try:
        return read_command(facts.command)
    except RequestError:
        return None


# ------------------------------------------------------------------- release


def _release(
    index: Index, facts: LogFacts, launch: Launch | None, options: Options
) -> tuple[str | None, str, list[Assumed]]:
    """The release that the log names or whose arguments it prints; None leaves the choice to the usual order."""
    known = [r.version for r in index.releases]
    if options.engine_version is not None or (launch is not None and launch.image):
        return None, "", []
    if facts.release:
        release, notes = nearest(known, facts.release)
        return release, FROM_LOG, notes
    if facts.complete and len(facts.arguments) >= ENOUGH_ARGUMENTS:
        like = releases_with(facts.arguments, index.known_flags, known)
        release = [*like, *(r.version for r in index.releases if r.verified and r.version in like)][-1]
        why = f"the log's arguments are those of {like[0]}" + (f" to {like[-1]}" if len(like) > 1 else "")
        return release, FROM_LOG, [Assumed("release", release, why)]
    return None, "", []


# ----------------------------------------------------------- model and machine


def _with_model(context: Context, path: str) -> Context:
    notes: list[Assumed] = []
    name, traits = find_model(context.index, None, path, notes)
    facts = msgspec.structs.replace(context.facts, model=traits)
    return msgspec.structs.replace(context, facts=facts, model_name=name, assumed=(*context.assumed, *notes))


def _with_machine(context: Context, gpu: str) -> Context:
    """The GPU that the log names, as many as the parallel sizes need; an unknown GPU leaves the machine open."""
    from solver.traits.hardware import find, machine_traits

    try:
        entry: Traits = find(gpu.replace("_", " ").strip(), context.index.hardware)
    except RequestError:
        return context
    given = context.facts.given
    sizes = [given.get(name) or 1 for name in ("tp_size", "pp_size")]
    if not all(isinstance(s, int) for s in sizes):
        sizes = [1, 1]
    count = sizes[0] * sizes[1]
    traits = machine_traits(entry.traits, entry.id, count, 1)
    if "tp_size" not in given:  # nobody said how many there are
        traits = {k: v for k, v in traits.items() if k not in ("gpus", "id", "link")}
    facts = msgspec.structs.replace(context.facts, hardware=traits)
    name = str(traits.get("id") or entry.id)
    note = Assumed("hardware", name, "the log names the GPU, the command how many it needs")
    return msgspec.structs.replace(context, facts=facts, hardware_name=name, assumed=(*context.assumed, note))


# ----------------------------------------------------------------- arguments


def _with_arguments(context: Context, arguments: dict[str, Any]) -> Context:
    """The launch behind printed arguments: values that neither default nor resolution would give were given."""
    effective = by_id(context, arguments)
    flags = context.resolver.program.flags
    differs = {k: v for k, v in effective.items() if v != flags[k].default and v not in (None, [], ())}
    written = {
        s.name for rule in context.resolver.program.rules for b in rule.branches for s in b.sets if s.space == "flag"
    }
    base = {k: v for k, v in differs.items() if k not in written}
    trial = msgspec.structs.replace(context, facts=msgspec.structs.replace(context.facts, given=base))
    resolved = check_context(trial).resolved
    rest = {k: v for k, v in differs.items() if k in written and not (k in resolved and resolved[k].value == v)}
    given = {k: v for k, v in {**base, **rest}.items() if not flags[k].computed}
    return msgspec.structs.replace(context, facts=msgspec.structs.replace(context.facts, given=given))


def by_id(context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    """Printed arguments under the flags' ids; what the release's command line does not have is left out."""
    names: dict[str, str] = {}
    for ident, form in context.resolver.program.flags.items():
        for name in (ident, *(s.lstrip("-").replace("-", "_") for s in form.spellings), form.dest or ident):
            names.setdefault(name, ident)
    for ident, form in context.resolver.program.flags.items():
        if form.dest:
            names[form.dest] = ident
    return {names[n]: v for n, v in arguments.items() if n in names and not n.startswith("_")}
