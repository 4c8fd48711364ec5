"""A folder of YAML files -> `Knowledge`: strict records, with the file named in every complaint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from solver.errors import KnowledgeError
from solver.records import Compare, EnvVar, Evidence, Flag, FormatWords, Release, Rule, Steps, Table, TraitForm, Traits
from solver.signatures import LogPattern, Logs, Phase, Place, Signature

Record = TypeVar("Record")
ENGINE = "sglang"
COMPARE = "compare.yaml"
"""Beside the evidence: how launches are held against it."""


class Guard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that no answer may be: `refuse` holds for it. `says` puts it into words with this request's figures."""

    title: str
    refuse: str
    says: str | None = None


class Goal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An ordered list of levels, each with an optional slack over the best, and what every answer has to respect."""

    id: str
    title: str
    description: str
    levels: tuple[Any, ...]
    """Names of levels.yaml, `{use: name, …}` with other keys, or whole levels; once loaded, whole levels only."""
    levers: tuple[str, ...]
    """What the solver may change for this goal: names or groups of levers; once loaded, names only."""
    trades: tuple[str, ...] = ()
    """The two metrics of levels.yaml that pull against each other here: what `--front` shows unless told otherwise."""
    guards: tuple[Guard, ...] = ()
    write_out: tuple[tuple[str, ...], ...] = ()
    """Groups of flags whose effective values an answer writes out even where the engine would choose them itself."""


class Lever(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing the solver may change, and the values it may take.

    `values: choices` takes the release's own choices. `gives_up` marks what the solver never does unasked: it costs
    the user something the engine does by default, so it appears in repairs only. `beside`: the flag without which it
    means nothing, so that it is never given alone.
    """

    name: str
    values: Any
    group: str
    versions: str = ">=0.5.9"
    gives_up: str | None = None
    beside: str | None = None
    when: tuple[str, ...] = ()
    without: tuple[Any, ...] = ()


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the arguments of a formula (`memory`, `layout`) are made of: argument -> expression."""

    formula: str
    versions: str
    arguments: dict[str, str]


class Knowledge(msgspec.Struct, frozen=True):
    """All that is known about one engine, as loaded."""

    root: str
    releases: tuple[Release, ...]
    flags: dict[str, Flag]
    env: dict[str, EnvVar]
    steps: tuple[Steps, ...]
    tables: dict[str, Table]
    rules: dict[str, Rule]
    goals: dict[str, Goal]
    levers: tuple[Lever, ...]
    arguments: tuple[Arguments, ...]
    models: dict[str, Traits]
    hardware: dict[str, Traits]
    traits: dict[str, TraitForm]
    format_words: FormatWords
    logs: Logs
    evidence: tuple[Evidence, ...]
    compare: Compare
    data: dict[str, Any]
    """Everything else (links, acceptance, costs) by its path below the root, without the ending."""


class _Loader(yaml.CSafeLoader):
    """Safe YAML in which a key that stands twice is an error."""


def _unique_mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [loader.construct_object(k) for k, _ in node.value]
    for key in keys:
        if keys.count(key) > 1:
            raise KnowledgeError(f"key {key!r} stands twice, line {node.start_mark.line + 1}")
    return dict(zip(keys, [loader.construct_object(v, deep=True) for _, v in node.value], strict=True))


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique_mapping)


def read_yaml(path: Path) -> Any:
    """Read one YAML file with the safe loader; dates stay text."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except yaml.YAMLError as error:
        raise KnowledgeError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    except KnowledgeError as error:
        raise KnowledgeError(f"{path}: {error}") from None


# a date such as 2026-11-29 stays the text it was written as
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _record(kind: type[Record], value: Any, path: Path) -> Record:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise KnowledgeError(f"{path}: {error}") from None


def _records(kind: type[Record], path: Path) -> tuple[Record, ...]:
    """A file holding a list of records of one kind."""
    content = read_yaml(path) if path.exists() else None
    return tuple(_record(kind, item, path) for item in content or ())


def _files(folder: Path) -> Iterator[Path]:
    return iter(sorted(folder.rglob("*.yaml")))


def _by_file_name(kind: type[Record], folder: Path) -> dict[str, Record]:
    """One record a file; its id has to be the file name."""
    found: dict[str, Record] = {}
    for path in _files(folder):
        record = _record(kind, read_yaml(path), path)
        name = getattr(record, "id")  # noqa: B009  # every kind here has an id; the type variable cannot say so
        if name != path.stem:
            raise KnowledgeError(f"{path}: id {name!r} is not the file name")
        if name in found:
            raise KnowledgeError(f"{path}: a second file with id {name!r}")
        found[name] = record
    return found


def _catalogue(kind: type[Record], folder: Path, key: str, skip: tuple[str, ...] = ()) -> dict[str, Record]:
    """Files that hold lists of records, merged by `key`."""
    found: dict[str, Record] = {}
    for path in _files(folder):
        if path.name in skip:
            continue
        for record in _records(kind, path):
            found[getattr(record, key)] = record
    return found


def load(folder: Path | str) -> Knowledge:
    """Load a knowledge folder. Errors: KnowledgeError with the file and what was expected."""
    root = Path(folder)
    engine = root / ENGINE
    if not engine.is_dir():
        raise KnowledgeError(f"{root}: no knowledge here (expected a folder {ENGINE}/)")
    return Knowledge(
        root=str(root),
        releases=_records(Release, engine / "releases.yaml"),
        flags=_catalogue(Flag, engine / "flags", "id", skip=("renames.yaml",)),
        env=_catalogue(EnvVar, engine / "env", "name"),
        steps=_records(Steps, engine / "stages.yaml"),
        tables=_catalogue(Table, engine / "tables", "id"),
        rules=_by_file_name(Rule, engine / "rules"),
        goals=_goals(engine),
        levers=_records(Lever, engine / "levers.yaml"),
        arguments=_records(Arguments, engine / "estimates.yaml"),
        models=_by_file_name(Traits, root / "models"),
        hardware=_by_file_name(Traits, root / "hardware"),
        traits={t.name: t for t in _records(TraitForm, root / "traits.yaml")},
        format_words=_whole_file(FormatWords, root / "formats.yaml"),
        logs=_logs(engine),
        evidence=_evidence(engine / "evidence"),
        compare=_compare(engine / "evidence" / COMPARE),
        data=_data(root),
    )


def _whole_file(kind: type[Record], path: Path) -> Record:
    """A file that is one record; what is not there is empty."""
    return _record(kind, read_yaml(path) if path.exists() else {}, path)


def _logs(engine: Path) -> Logs:
    """What is known about logs: signatures by topic, and the files beside them."""
    signatures = [s for path in _files(engine / "signatures") for s in _records(Signature, path)]
    twice = sorted({s.id for s in signatures if sum(s.id == o.id for o in signatures) > 1})
    if twice:
        raise KnowledgeError(f"{engine / 'signatures'}: ids that stand twice: {', '.join(twice)}")
    modules = _whole_file(dict[str, tuple[str, ...]], engine / "modules.yaml")
    messages = _whole_file(dict[str, dict[str, tuple[int, ...]]], engine / "messages.yaml")
    return Logs(
        signatures=tuple(signatures),
        phases=_records(Phase, engine / "log_phases.yaml"),
        patterns=_records(LogPattern, engine / "log_facts.yaml"),
        places=_records(Place, engine / "log_places.yaml"),
        modules=modules,
        messages=messages,
    )


def _evidence(folder: Path) -> tuple[Evidence, ...]:
    return tuple(e for path in _files(folder) if path.name != COMPARE for e in _records(Evidence, path))


def _compare(path: Path) -> Compare:
    return _record(Compare, read_yaml(path), path) if path.exists() else Compare()


def _goals(engine: Path) -> dict[str, Goal]:
    """The goals with the levels and levers that they name."""
    path = engine / "levels.yaml"
    levels = {level["id"]: level for level in (read_yaml(path) if path.exists() else None) or ()}
    groups: dict[str, list[str]] = {}
    for lever in _records(Lever, engine / "levers.yaml"):
        groups.setdefault(lever.group, []).append(lever.name)
    found = {}
    for name, goal in _by_file_name(Goal, engine / "goals").items():
        try:
            whole = tuple(_level(level, levels) for level in goal.levels)
        except KeyError as error:
            raise KnowledgeError(f"goal {name}: no level {error} in levels.yaml") from None
        if any(metric not in levels for metric in goal.trades):
            raise KnowledgeError(f"goal {name} trades {', '.join(goal.trades)}: expected two metrics of levels.yaml")
        levers = tuple(name for word in goal.levers for name in groups.get(word, [word]))
        found[name] = msgspec.structs.replace(goal, levels=whole, levers=levers)
    return found


def _level(level: Any, known: dict[str, Any]) -> dict[str, Any]:
    if isinstance(level, str):
        return dict(known[level])
    used = known[level["use"]] if "use" in level else {}
    return {**used, **{k: v for k, v in level.items() if k != "use"}}


def _data(root: Path) -> dict[str, Any]:
    """Link, acceptance and cost files as they are; the modules that use them check their shape."""
    paths = [
        *_files(root / "links"),
        *_files(root / "acceptance"),
        root / ENGINE / "costs.yaml",
        root / ENGINE / "kernels.yaml",
        root / ENGINE / "levels.yaml",
        root / ENGINE / "forks.yaml",
    ]
    return {str(p.relative_to(root).with_suffix("")): read_yaml(p) for p in paths if p.exists()}


def holds(versions: str, release: str) -> bool:
    """Whether a release lies in a range; post and pre-releases fall where one expects (0.5.10.post1 < 0.5.11)."""
    return _range(versions).contains(Version(release), prereleases=True)


_ranges: dict[str, SpecifierSet] = {}


def _range(versions: str) -> SpecifierSet:
    if versions not in _ranges:
        _ranges[versions] = SpecifierSet(versions)
    return _ranges[versions]


def form_in(forms: Mapping[str, Any] | tuple[Any, ...], release: str) -> Any:
    """The form (of a flag, a variable, a table, the steps) that holds in a release, or None."""
    items = forms.values() if isinstance(forms, Mapping) else forms
    return next((form for form in items if holds(form.versions, release)), None)
