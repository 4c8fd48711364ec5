"""A command and its options -> `Context`: the release, model and machine that judge it, and how each is known."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from solver.check import Case, Result, check
from solver.compiled import Index, Program, Store
from solver.errors import RequestError
from solver.estimates import Figure, estimates_for
from solver.facts import Facts
from solver.launch import Launch
from solver.pipeline import Resolver
from solver.problems import Problem
from solver.reading import Reading, read_flags
from solver.records import FlagForm

REQUEST_DEFAULTS = {"context": 4096, "concurrency": 1}
ENV_PREFIXES = ("SGLANG_", "SGL_")


class Assumed(msgspec.Struct, frozen=True):
    """Something that was not stated and had to be taken from elsewhere."""

    what: str
    value: str
    why: str


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


_resolvers: dict[tuple[int, str], Resolver] = {}


def resolver_for(store: Store, release: str) -> Resolver:
    """The resolver of a release, kept for the life of the process."""
    key = (id(store), release)
    if key not in _resolvers:
        _resolvers[key] = Resolver(store.program(release))
    return _resolvers[key]


def build(store: Store, launch: Launch | None, options: Options) -> Context:
    """Settle release, model and machine, and read the command's flags. Errors: RequestError."""
    release, release_from, notes = choose_release(store.index, options.engine_version, launch)
    resolver = resolver_for(store, release)
    words = launch.words if launch else ()
    reading = read_flags(
        words,
        resolver.program.flags,
        serve=launch is not None and launch.entry == "serve",
        features=resolver.program.tables.get("launcher_features") or (),
        read_file=_read_text,
    )
    reading = place_unknown(store.index, resolver.program, reading)
    model_name, model = find_model(store.index, options.model, reading.given.get("model_path"), notes)
    hardware = find_hardware(store.index, options.hardware)
    env = {k: v for k, v in (launch.env if launch else {}).items() if v is not None}
    facts = Facts(
        release=release,
        given=reading.given,
        env=env,
        model=model,
        hardware=hardware,
        request={**REQUEST_DEFAULTS, **options.request},
        doubtful=reading.unknown,
        spans=reading.spans,
        domains=_domains(store.index),
    )
    stated = options.model is not None or launch is None
    problems = (*_without_model_demand(reading.problems, stated), *env_problems(store.index, resolver.program.env, env))
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


def place_unknown(index: Index, program: Program, reading: Reading) -> Reading:
    """Unknown flags that another release has: renamed here (its value still counts), or not in this release."""
    problems = []
    given = dict(reading.given)
    for problem in reading.problems:
        known = index.known_flags.get(problem.given) if problem.kind == "unknown-flag" else None
        if known is None:
            problems.append(problem)
            continue
        flag_id, releases = known
        form = program.flags.get(flag_id)
        span = f"{releases[0]} to {releases[-1]}" if len(releases) > 1 else releases[0]
        detail = {**problem.detail, "releases": span}
        if form is None:
            problems.append(Problem("other-release-flag", None, problem.given, detail, problem.span))
            continue
        value = _moved_value(form, problem.detail.get("values") or ())
        if value is not None:
            given.setdefault(flag_id, value)
            detail["write"] = {flag_id: value}
        detail["now"] = next(s for s in form.spellings if s.startswith("--"))
        problems.append(Problem("renamed-flag", flag_id, problem.given, detail, problem.span))
    return msgspec.structs.replace(reading, given=given, problems=tuple(problems))


def _moved_value(form: FlagForm, texts: Sequence[str]) -> Any:
    """What a renamed flag's words mean under the form it has now, or None."""
    from solver.values import convert

    if form.type == "flag":
        return form.const
    try:
        value = convert(form.type, texts[0]) if len(texts) == 1 else None
    except ValueError:
        return None
    return value if not form.choices or value in form.choices else None


def _read_text(path: str) -> str:
    """The text of a `--config` file. Errors: RequestError when it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"cannot read the --config file {path}: {error}") from None


# ------------------------------------------------------------------- release


def choose_release(index: Index, wanted: str | None, launch: Launch | None) -> tuple[str, str, list[Assumed]]:
    """The release to judge by: given, else the image tag, else the installed engine, else the newest verified."""
    known = [r.version for r in index.releases]
    if wanted is not None:
        if wanted not in known:
            raise RequestError(f"unknown release {wanted!r}; known are {', '.join(known)}")
        return wanted, "given", []
    tag = _image_version(launch.image) if launch and launch.image else None
    for version, origin in ((tag, "image"), (_installed_version(), "installed")):
        if version:
            release, notes = _nearest(known, version)
            return release, origin, notes
    newest = [r.version for r in index.releases if r.verified][-1]
    why = "no --engine-version, image tag or installed engine; this is the newest verified release"
    return newest, "assumed", [Assumed("release", newest, why)]


def _image_version(image: str) -> str | None:
    match = re.search(r":v?(\d+\.\d+\.\d+(?:\.?(?:post|rc|dev|a|b)\d+)?)", image)
    return match[1] if match and "sglang" in image else None


def _installed_version() -> str | None:
    """The version of an installed engine, found by the name of its metadata folder (no import)."""
    import sys

    for folder in sys.path:
        if folder and os.path.isdir(folder):
            for name in os.listdir(folder):
                match = re.fullmatch(r"sglang-(\d[^-]*)\.dist-info", name)
                if match:
                    return match[1]
    return None


def _nearest(known: list[str], version: str) -> tuple[str, list[Assumed]]:
    if version in known:
        return version, []
    from packaging.version import InvalidVersion, Version

    try:
        wanted = Version(version)
    except InvalidVersion:
        raise RequestError(f"cannot read the engine version {version!r}; give --engine-version") from None
    below = [k for k in known if Version(k) <= wanted]
    release = below[-1] if below else known[0]
    why = f"{version} is not a known release; judged by the nearest one below it" if below else "older than all known"
    return release, [Assumed("release", release, why)]


# --------------------------------------------------------------------- model


def find_model(index: Index, wanted: str | None, path: Any, notes: list[Assumed]) -> tuple[str | None, dict[str, Any]]:
    """Traits of the model: a directory, a catalogue id, a hub id, or a path whose last part is a known hub name."""
    name = wanted if wanted is not None else path if isinstance(path, str) else None
    if name is None:
        return None, {}
    if os.path.isdir(name):
        from pathlib import Path

        from solver.traits.model import read_checkpoint

        return name, read_checkpoint(Path(name))
    models = index.models
    entry = models.get(name) or models.get(index.hub_ids.get(name.lower(), ""))
    if entry is None:
        entry = _by_last_part(index, name)
        if entry is not None:
            notes.append(Assumed("model", entry.id, f"{name} ends like the hub name of this catalogue entry"))
    if entry is not None:
        return entry.id, {"id": entry.id, "family": entry.family, **entry.traits}
    if wanted is not None:
        from difflib import get_close_matches

        near = get_close_matches(wanted.lower(), [*index.models, *index.hub_ids], 3, 0.4)
        hint = f"; near are {', '.join(near)}" if near else ""
        raise RequestError(f"unknown model {wanted!r}: no directory and no catalogue id{hint}")
    return name, {}


def _by_last_part(index: Index, name: str) -> Any:
    last = name.rstrip("/").rsplit("/", 1)[-1].lower()
    ids = {i for hub, i in index.hub_ids.items() if hub.rsplit("/", 1)[-1] == last}
    return index.models[ids.pop()] if len(ids) == 1 else None


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


def _domains(index: Index) -> dict[str, tuple[Any, ...]]:
    return {name: t.domain for name, t in index.traits.items() if t.domain is not None}


# --------------------------------------------------------------- environment


def env_problems(index: Index, known: Mapping[str, Any], env: Mapping[str, str]) -> list[Problem]:
    """Variables of the engine's name space that this release does not read."""
    problems = []
    for name in env:
        if name in known or not name.startswith(ENV_PREFIXES):
            continue
        releases = index.known_env.get(name, ())
        detail: dict[str, Any] = {"variable": True, "remove": True}
        if releases:
            detail["releases"] = f"{releases[0]} to {releases[-1]}" if len(releases) > 1 else releases[0]
            problems.append(Problem("env-not-read", None, name, detail, None))
        else:
            from difflib import get_close_matches

            near = get_close_matches(name, known, 1, 0.8)
            detail["nearest"] = near[0] if near else None
            problems.append(Problem("env-unknown", None, name, detail, None))
    return problems
