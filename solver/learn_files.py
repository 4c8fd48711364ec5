"""Catalogue folder (releases.yaml, flags/, env/) <-> `Catalogue`. Same releases, same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml
from packaging.version import Version

from solver.learn_merge import RETIRED, Catalogue, Rename, ranges, topic_of
from solver.records import EnvVar, Flag, Release, Strict

_HEADER = (
    "# Generated from the releases' own source by `python -m solver.learn WHEEL... --write knowledge/sglang`.\n"
    "# What the keys mean and how far the reading goes: docs/catalogues.md.\n"
)
_RENAMES = (
    "# Names that a value had in earlier releases. `python -m solver.learn` adds what spellings prove and keeps\n"
    "# every other entry; a rename without a shared spelling is added here by hand, with a note.\n"
)
_SPANS = ("a-c", "d", "e-g", "h-l", "m-n", "o", "p-s", "t-z")
_WIDTH = 150


Record = TypeVar("Record", bound=Strict)


class _Flow(dict[str, Any]):
    """A mapping written on one line."""


class _Range(str):
    """A text written in double quotes."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


_Dumper.add_representer(_Flow, lambda d, v: d.represent_mapping("tag:yaml.org,2002:map", v.items(), flow_style=True))
_Dumper.add_representer(_Range, lambda d, v: d.represent_scalar("tag:yaml.org,2002:str", str(v), style='"'))


def read_catalogue(folder: Path) -> Catalogue:
    """What a catalogue folder holds; an empty or absent folder gives an empty catalogue."""
    releases = _records(folder / "releases.yaml", Release)
    versions = [r.version for r in releases]
    flags: dict[str, dict[str, Any]] = {}
    topics: dict[str, str] = {}
    for path in sorted((folder / "flags").glob("*.yaml")):
        if path.name != "renames.yaml":
            for flag in _records(path, Flag):
                flags[flag.id] = _unfolded(flag.forms, versions)
                if path.stem != RETIRED:
                    topics[flag.id] = path.stem
    variables = [v for p in sorted((folder / "env").glob("*.yaml")) for v in _records(p, EnvVar)]
    env = {v.name: _unfolded(v.forms, versions) for v in variables}
    return Catalogue(releases, flags, env, topics, _records(folder / "flags" / "renames.yaml", Rename))


def write_catalogue(catalogue: Catalogue, folder: Path, verified: Sequence[str] = ()) -> None:
    """Write all files of the catalogue, and remove generated ones that no flag or variable belongs in any more."""
    releases = [msgspec.structs.replace(r, verified=r.verified or r.version in verified) for r in catalogue.releases]
    (folder / "flags").mkdir(parents=True, exist_ok=True)
    (folder / "env").mkdir(parents=True, exist_ok=True)
    _write(folder / "releases.yaml", _HEADER, (_Flow(_quoted(_builtins(r), "version", "date")) for r in releases))
    renames = ({k: _plainly(v) for k, v in _quoted(_builtins(r), "since").items()} for r in catalogue.renames)
    _write(folder / "flags" / "renames.yaml", _RENAMES, renames)
    pages: dict[Path, list[dict[str, Any]]] = {}
    flags, env = ranges(catalogue)
    for flag in flags:
        path = folder / "flags" / f"{topic_of(catalogue, flag)}.yaml"
        pages.setdefault(path, []).append({"id": flag.id, "forms": _forms(flag)})
    for variable in env:
        path = folder / "env" / f"{_page(variable.name)}.yaml"
        pages.setdefault(path, []).append({"name": variable.name, "forms": _forms(variable)})
    for path in {*folder.glob("flags/*.yaml"), *folder.glob("env/*.yaml")} - pages.keys():
        if path.name != "renames.yaml":
            path.unlink()
    for path, items in pages.items():
        _write(path, _HEADER, items)


def _page(name: str) -> str:
    """Variables of the engine by the letters after its prefix; those of other software together."""
    if not name.startswith(("SGLANG_", "SGL_")):
        return "others"
    first = name.split("_", 2)[1][:1].lower() if "_" in name else "a"
    return next(f"sglang-{span}" for span in _SPANS if span[0] <= first <= span[-1])


def _forms(item: Flag | EnvVar) -> list[_Flow]:
    return [_Flow(_quoted(_builtins(f), "versions")) for f in item.forms]


def _builtins(record: Strict) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(record)
    return found


def _quoted(mapping: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {k: _Range(v) if k in keys else v for k, v in mapping.items()}


def _plainly(value: Any) -> Any:
    return [_Flow(_quoted(v, "release")) for v in value] if isinstance(value, list | tuple) else value


def _write(path: Path, header: str, items: Iterable[Any]) -> None:
    body = yaml.dump(list(items), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    path.write_text(header + body, encoding="utf-8")


def _records(path: Path, kind: type[Record]) -> tuple[Record, ...]:
    if not path.exists():
        return ()
    items = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader) or []
    return tuple(msgspec.convert(item, kind) for item in items)


def _unfolded(forms: Sequence[Any], versions: list[str]) -> dict[str, Any]:
    """Ranges -> one form a release."""
    found: dict[str, Any] = {}
    for form in forms:
        for version in versions:
            if _within(version, form.versions):
                found[version] = msgspec.structs.replace(form, versions="")
    return found


def _within(version: str, bounds: str) -> bool:
    """Only `>=` and `<` occur, joined by commas."""
    at = Version(version)
    return all(at >= Version(b[2:]) if b.startswith(">=") else at < Version(b[1:]) for b in bounds.split(","))
