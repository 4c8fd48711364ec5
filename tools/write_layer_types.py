"""Unpacked releases and the Transformers they pin -> knowledge/sglang/tables/layer_types.yaml.

usage: python tools/write_layer_types.py RELEASES TRANSFORMERS > knowledge/sglang/tables/layer_types.yaml
RELEASES and TRANSFORMERS are as in tools/write_model_types.py. Nothing of either is imported.

Older versions of Transformers compare the names of `layer_types` with a fixed list in some configuration classes only
(`layer_type_validation`), later ones in every class that has no `validate_layer_type` of its own. A class that a
release derives from one of theirs without an `__init__` gets one that checks nothing.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from packaging.version import Version
from write_architectures import FIRST_WITH_RULES
from write_model_types import mapped, pinned, table

CHECK = "validate_layer_type"
READERS = "utils/hf_transformers/*.py"
OLD_CHECK = "layer_type_validation"
OTHERS = "*"
NAMES = ("ALLOWED_ATTN_LAYER_TYPES", "ALLOWED_ATTENTION_LAYER_TYPES", "ALLOWED_LAYER_TYPES")
"""Lists of names, the narrowest first."""
RENAMED = "_LEGACY_LAYER_TYPE_REMAP"
READ = "Names in `layer_types` that the Transformers of a release reads, by type of the text model; * for all others"
FIRST = "Names in `layer_types` that the Transformers of a release reads, by the releases that read more than before"


class Plain(yaml.SafeDumper):
    """No anchors: equal lists are written out."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def accepted(release: Path, transformers: Path) -> dict[str, list[str] | None]:
    """Model type -> names that its class reads, null where the class has a check of its own or none."""
    base = ast.parse((transformers / "configuration_utils.py").read_text("utf-8"))
    names = allowed(base)
    if not any(CHECK in _methods(c) for c in _classes(base)):
        return dict.fromkeys(sorted(_types(transformers, _calls_old_check)), names)
    own = set(_types(transformers, lambda c: CHECK in _methods(c)))
    own |= set(unchecked(release)) - mapped(transformers)
    return {**dict.fromkeys(sorted(own), None), OTHERS: names}


def unchecked(release: Path) -> Iterator[str]:
    """The types of a release's own classes that have no `__init__`."""
    source = release / "sglang" / "srt"
    for path in (*source.glob("configs/*.py"), *source.glob("utils/hf_transformers*.py"), *source.glob(READERS)):
        for node in ast.walk(ast.parse(path.read_text("utf-8-sig"))):
            if isinstance(node, ast.ClassDef) and "__init__" not in _methods(node):
                yield from _model_type(node)


def allowed(base: ast.Module) -> list[str]:
    """The fixed list, with the older names that are rewritten before the check."""
    assigned = [(n.targets[0], n.value) for n in base.body if isinstance(n, ast.Assign)]
    nodes = {target.id: value for target, value in assigned if isinstance(target, ast.Name)}
    listed = ast.literal_eval(next(nodes[name] for name in NAMES if name in nodes))
    renamed = ast.literal_eval(nodes[RENAMED]) if RENAMED in nodes else {}
    return sorted({*listed, *renamed})


def _classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    return (n for n in tree.body if isinstance(n, ast.ClassDef))


def _methods(node: ast.ClassDef) -> set[str]:
    return {n.name for n in node.body if isinstance(n, ast.FunctionDef)}


def _calls_old_check(node: ast.ClassDef) -> bool:
    """Whether a class checks `layer_types`, and not only the kinds of its feed-forward layers."""
    calls = (n for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))
    return any(c.func.id == OLD_CHECK and "mlp" not in ast.unparse(c) for c in calls if isinstance(c.func, ast.Name))


def _types(transformers: Path, checks: Any) -> Iterator[str]:
    for path in sorted((transformers / "models").glob("*/configuration_*.py")):
        for node in filter(checks, _classes(ast.parse(path.read_text("utf-8")))):
            yield from _model_type(node)


def _model_type(node: ast.ClassDef) -> Iterator[str]:
    for part in node.body:
        target = part.targets[0] if isinstance(part, ast.Assign) else getattr(part, "target", None)
        value = getattr(part, "value", None)
        if isinstance(target, ast.Name) and target.id == "model_type" and isinstance(value, ast.Constant):
            yield str(value.value)


def main() -> None:
    releases, transformers = map(Path, sys.argv[1:3])
    folders = {Version(p.name): p for p in releases.iterdir() if Version(p.name) >= FIRST_WITH_RULES}
    read = {v: accepted(p, transformers / pinned(p) / "transformers") for v, p in sorted(folders.items())}
    more: dict[str, list[str]] = {}
    seen: set[str] = set()
    for version, types in read.items():
        names = types.get(OTHERS) or next(iter(types.values())) or []
        if not set(names) <= seen:
            seen |= set(names)
            more[str(version)] = names
    every = table("layer_types_by_release", FIRST, {min(folders): more}, folders)
    print("# Generated by tools/write_layer_types.py from wheel metadata and the pinned Transformers.")
    tables = [table("layer_types_read", READ, read, folders), every]
    print(yaml.dump(tables, Dumper=Plain, sort_keys=False, width=120, default_flow_style=None), end="")


if __name__ == "__main__":
    main()
