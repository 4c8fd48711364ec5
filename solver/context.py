"""A command and its options -> `Context`: the release, model and machine that judge it, and how each is known."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from solver.check import Case, Result, check
from solver.compiled import Program
from solver.decisions import Resolver
from solver.errors import RequestError
from solver.estimates import Figure, estimates_for
from solver.facts import Facts
from solver.index import Index
from solver.launch import Launch
from solver.problems import Problem
from solver.reading import Reading, read_flags
from solver.records import Traits
from solver.release import FORK, Assumed, choose_release
from solver.store import Store
from solver.unknown import env_problems, place_unknown, read_env

__all__ = ["Assumed", "Context", "Options", "build", "check_context", "choose_release", "resolver_for"]

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
    def estimates(self) -> dict[str, Figure]:
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


class Lookup:
    """Traits of models and machines by the name they are asked for, each looked up once."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._models: dict[tuple[str | None, Any], tuple[str | None, dict[str, Any], list[Assumed]]] = {}
        self._machines: dict[str | None, dict[str, Any]] = {}

    def model(self, wanted: str | None, path: Any) -> tuple[str | None, dict[str, Any], list[Assumed]]:
        """Name, traits and what was assumed (see `find_model`)."""
        key = (wanted, path if isinstance(path, str) else None)
        if key not in self._models:
            notes: list[Assumed] = []
            self._models[key] = (*find_model(self.index, *key, notes), notes)
        return self._models[key]

    def machine(self, wanted: str | None) -> dict[str, Any]:
        """Traits of a machine (see `find_hardware`)."""
        if wanted not in self._machines:
            self._machines[wanted] = find_hardware(self.index, wanted)
        return self._machines[wanted]


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
    notes += assumed
    hardware = lookup.machine(options.hardware)
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


def check_context(context: Context) -> Result:
    """Check the launch of a context."""
    return check(
        context.store,
        context.resolver,
        context.facts,
        context.estimates,
        context.problems,
        lambda: machine_cases(context.index),
    )


def _without_model_demand(problems: tuple[Problem, ...], stated: bool) -> tuple[Problem, ...]:
    """A command without a model path is complete when the model was stated beside it."""
    return tuple(p for p in problems if not (stated and p.kind == "missing-required" and p.flag == "model_path"))


def _read_text(path: str) -> str:
    """The text of a `--config` file. Errors: RequestError when it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"cannot read the --config file {path}: {error}") from None


# --------------------------------------------------------------------- model


def find_model(index: Index, wanted: str | None, path: Any, notes: list[Assumed]) -> tuple[str | None, dict[str, Any]]:
    """Traits of the model: a directory, a catalogue id, a hub id, or a path a part of which is a known hub name."""
    name = wanted if wanted is not None else path if isinstance(path, str) else None
    if name is None:
        return None, {}
    if os.path.isdir(name):
        return name, read_directory(index, name)
    models = index.models
    entry = models.get(name) or models.get(index.hub_ids.get(name.lower(), ""))
    if entry is None:
        entry = _named_in_path(index, name)
        if entry is not None:
            notes.append(Assumed("model", entry.id, f"a part of {name} is the hub name of this catalogue entry"))
    if entry is not None:
        return entry.id, {**entry.traits, **_identity(entry)}
    if wanted is not None:
        from difflib import get_close_matches

        near = get_close_matches(wanted.lower(), [*index.models, *index.hub_ids], 3, 0.4)
        hint = f"; near are {', '.join(near)}" if near else ""
        raise RequestError(f"unknown model {wanted!r}: no directory and no catalogue id{hint}")
    return name, {}


def read_directory(index: Index, name: str) -> dict[str, Any]:
    """Traits of a checkpoint directory; what only documentation tells comes from the catalogue entry of that name.

    The entry counts only when architecture and quantisation are those of the directory.
    """
    from pathlib import Path

    from solver.traits.model import read_checkpoint

    read = read_checkpoint(Path(name))
    entry = _named_in_path(index, os.path.abspath(name))
    if entry is None or any(entry.traits.get(k) != read.get(k) for k in ("architecture", "quant_method")):
        return read
    return {**entry.traits, **read, **_identity(entry)}


def _identity(entry: Traits) -> dict[str, Any]:
    return {"id": entry.id, "family": entry.family, "hub_id": entry.hub_ids[0] if entry.hub_ids else None}


def _named_in_path(index: Index, name: str) -> Traits | None:
    """The entry whose hub name is a part of a path, the last one first; hub caches write `models--owner--name`."""
    by_name: dict[str, set[str]] = {}
    for hub, ident in index.hub_ids.items():
        by_name.setdefault(hub.rsplit("/", 1)[-1], set()).add(ident)
    for part in reversed(name.lower().split("/")):
        found = by_name.get(part.rpartition("--")[2], set())
        if len(found) == 1:
            return index.models[next(iter(found))]
    return None


# ------------------------------------------------------------------- machine


def find_hardware(index: Index, wanted: str | None) -> dict[str, Any]:
    """Traits of the machine: a catalogue id such as `8xrtx-pro-6000`, a YAML file, or nothing known."""
    if wanted is None:
        return {}
    from solver.traits.hardware import hardware_of, read_hardware_file

    if wanted.endswith((".yaml", ".yml")) or os.sep in wanted:
        from pathlib import Path

        return read_hardware_file(Path(wanted), index.hardware)
    return hardware_of(wanted, index.hardware)


def machine_cases(index: Index) -> tuple[Case, ...]:
    """The machines that an unknown one could be: each vendor, SM and link of the catalogue once."""
    found: dict[tuple[Any, ...], Case] = {}
    for entry in index.hardware.values():
        traits = {k: entry.traits.get(k) for k in ("vendor", "sm", "gfx", "link")}
        label = f"SM{traits['sm']}" if traits["sm"] else str(traits["gfx"] or traits["vendor"])
        found.setdefault(tuple(traits.values()), Case(f"{label} ({traits['link'] or 'link unknown'})", traits))
    return tuple(sorted(found.values(), key=lambda c: (str(c.hardware["vendor"]), c.hardware["sm"] or 0, c.name)))
