"""A command and its options -> `Context`: the release, model and machine that judge it, and how each is known."""

from __future__ import annotations

from typing import Any

import msgspec

from solver.check import Case, Result, check, opened, verdict_of
from solver.compiled import Program
from solver.decisions import Resolver
from solver.estimates import Figures, estimates_for
from solver.facts import Facts
from solver.index import Index
from solver.inputs import file_text
from solver.launch import Launch
from solver.problems import Problem
from solver.reading import Reading, read_flags
from solver.release import FORK, Assumed, choose_release
from solver.store import Store
from solver.traits.find import Lookup
from solver.unknown import env_problems, place_unknown, read_env

__all__ = ["Assumed", "Context", "Lookup", "Options", "build", "check_context", "choose_release", "resolver_for"]

REQUEST_DEFAULTS = {"context": 4096, "concurrency": 1}


class Context(msgspec.Struct, frozen=True):
    """Everything that one request is judged by."""

    store: Store
    resolver: Resolver
    facts: Facts
    launch: Launch | None
    reading: Reading
    problems: tuple[Problem, ...]
    release: str
    release_from: str
    model_name: str | None
    hardware_name: str | None
    assumed: tuple[Assumed, ...]

    @property
    def estimates(self) -> Figures:
        return estimates_for(self.index, self.resolver.program, self.facts)

    @property
    def index(self) -> Index:
        return self.store.index


class Options(msgspec.Struct, frozen=True):
    """The context options of every verb."""

    model: str | None = None
    hardware: str | None = None
    engine_version: str | None = None
    request: dict[str, Any] = {}


_resolvers: dict[tuple[int, str], Resolver] = {}


def resolver_for(store: Store, release: str, fork: str | None = None) -> Resolver:
    """The resolver of a release, or of a fork that rests on it, kept for the life of the process."""
    key = (id(store), fork or release)
    if key not in _resolvers:
        program = store.program(release)
        _resolvers[key] = Resolver(_of_fork(program, fork) if fork else program)
    return _resolvers[key]


def _of_fork(program: Program, name: str) -> Program:
    from solver.forks import applied, find_fork

    fork = find_fork(name)
    return applied(program, fork) if fork else program


def build(store: Store, launch: Launch | None, options: Options, lookup: Lookup | None = None) -> Context:
    """Settle release, model and machine, and read the command's flags. Errors: RequestError.

    `lookup` is shared by the launches of a batch.
    """
    release, release_from, notes = choose_release(store.index, options.engine_version, launch)
    resolver = resolver_for(store, release, options.engine_version if release_from == FORK else None)
    resolver.more_follow = resolver.more_follow or lookup is not None
    lookup = lookup or Lookup(store.index)
    program = resolver.program
    words = launch.words if launch else ()
    reading = read_flags(
        words,
        program.flags,
        serve=launch is not None and launch.entry == "serve",
        features=program.tables.get("launcher_features") or (),
        read_file=_read_text,
        known=program.options,
    )
    reading = place_unknown(store.index, program, reading)
    model_name, model, assumed = lookup.model(options.model, reading.given.get("model_path"))
    overrides = reading.given.get("json_model_override_args")
    if overrides is not None:
        from solver.traits.overrides import overridden

        path = options.model or reading.given.get("model_path")
        model = overridden(store.index, path if isinstance(path, str) else None, model, overrides)
    hardware, unread = lookup.machine(options.hardware)
    notes += [*assumed, *unread]
    facts = Facts(
        release=release,
        given=reading.given,
        env=read_env(program, launch),
        model=model,
        hardware=hardware,
        request={**REQUEST_DEFAULTS, **options.request},
        doubtful=reading.unknown,
        spans=reading.spans,
        domains=store.index.domains,
    )
    stated = options.model is not None or launch is None
    problems = (*_without_model_demand(reading.problems, stated), *env_problems(store.index, program, launch))
    return Context(
        store,
        resolver,
        facts,
        launch,
        reading,
        problems,
        release,
        release_from,
        model_name,
        options.hardware,
        tuple(notes),
    )


def is_open(launch: Launch | None) -> bool:
    """Whether a command has arguments that show only when it runs, so that it may give any flag."""
    return launch is not None and any(word.unknown and word.splits for word in launch.words)


def check_context(context: Context, fragment: bool = False) -> Result:
    """Check the launch of a context. `fragment`: it is a part of a command, so that any flag may be given besides."""
    result = check(
        context.store,
        context.resolver,
        context.facts,
        context.estimates,
        context.problems,
        lambda: machine_cases(context.index),
    )
    if not fragment and not is_open(context.launch):
        return result
    findings = opened(result.findings)
    return msgspec.structs.replace(result, findings=findings, verdict=verdict_of(findings))


def _without_model_demand(problems: tuple[Problem, ...], stated: bool) -> tuple[Problem, ...]:
    """A command without a model path is complete when the model was stated beside it."""
    return tuple(p for p in problems if not (stated and p.kind == "missing-required" and p.flag == "model_path"))


def _read_text(path: str) -> str:
    """The text of a `--config` file. Errors: RequestError when it cannot be read."""
    return file_text(path, "the --config file")


def machine_cases(index: Index) -> tuple[Case, ...]:
    """The machines that an unknown one could be: each vendor, SM and link of the catalogue once."""
    from solver.traits.hardware import EQUAL

    found: dict[tuple[Any, ...], Case] = {}
    for entry in (e for e in index.hardware.values() if not e.rare):
        traits = {k: entry.traits.get(k) for k in ("vendor", "sm", "gfx", "link")}
        key = tuple(traits.values())
        label = f"SM{traits['sm']}" if traits["sm"] else str(traits["gfx"] or traits["vendor"])
        case = Case(f"{label} ({traits['link'] or 'link unknown'})", {**traits, **EQUAL})
        found.setdefault(key, case)
    return tuple(sorted(found.values(), key=lambda c: (str(c.hardware["vendor"]), c.hardware["sm"] or 0, c.name)))
