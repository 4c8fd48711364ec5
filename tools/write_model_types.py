"""Unpacked releases and the Transformers they pin -> knowledge/sglang/tables/new_model_types.yaml.

usage: python tools/write_model_types.py RELEASES TRANSFORMERS > knowledge/sglang/tables/new_model_types.yaml
RELEASES holds one unpacked wheel per release (RELEASES/0.5.10/sglang/…, with its dist-info), TRANSFORMERS one per
pinned version (TRANSFORMERS/5.3.0/transformers/…). Nothing of either is imported.

A release reads a `model_type` when the Transformers of its own wheel metadata maps it, when a class of its own registry
has it, or when the module that reads configurations names it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import yaml
from packaging.version import Version
from write_architectures import FIRST_WITH_RULES, later

CONFIGS = "sglang/srt/configs/model_config.py"
NEW = "Model types that the Transformers of a release cannot read, each with the first that can"
REMOTE = "Model types of the catalogue that neither a release nor a later one reads: the checkpoint's own code has to"
ANY = "Model types that some release reads; of any other, the checkpoint's own code has to make sense"


def mapped(transformers: Path) -> set[str]:
    """The types that AutoConfig maps to a class of Transformers."""
    files = (transformers / "models" / "auto").glob("*auto*.py")
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    named = [n for tree in trees for n in tree.body if isinstance(n, ast.Assign | ast.AnnAssign)]
    return {text for node in named if _target(node) == "CONFIG_MAPPING_NAMES" for text in _keys(node)}


def _target(node: ast.Assign | ast.AnnAssign) -> str:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return target.id if isinstance(target, ast.Name) else ""


def _keys(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        first = part.elts[0] if isinstance(part, ast.Tuple) and len(part.elts) == 2 else None
        if isinstance(first, ast.Constant):
            yield str(first.value)
        if isinstance(part, ast.Dict):
            yield from (str(k.value) for k in part.keys if isinstance(k, ast.Constant))


def own(release: Path) -> set[str]:
    """The types of a release's own configuration classes, and those that its reader names."""
    texts = [p.read_text(encoding="utf-8-sig") for p in (release / "sglang/srt/configs").glob("*.py")]
    found = {m for text in texts for m in re.findall(r'^    model_type(?:: str)? = "([\w-]+)"', text, re.MULTILINE)}
    for text in readers(release):
        found |= {
            n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant) and isinstance(n.value, str)
        }
    return found


def registered(release: Path) -> set[str]:
    """The types of those own classes that the reader, or their own module, puts into a registry."""
    names = "\n".join(readers(release))
    found = set()
    for path in (release / "sglang/srt/configs").glob("*.py"):
        text = path.read_text(encoding="utf-8-sig")
        for node in (n for n in ast.parse(text).body if isinstance(n, ast.ClassDef)):
            if "CONFIG_MAPPING" in text or re.search(rf"\b{node.name}\b", names):
                values = [item.value for item in node.body if _names_type(item)]
                found |= {str(v.value) for v in values if isinstance(v, ast.Constant)}
    return found


def _names_type(item: Any) -> bool:
    target = item.targets[0] if isinstance(item, ast.Assign) else getattr(item, "target", None)
    return isinstance(target, ast.Name) and target.id == "model_type"


def readers(release: Path) -> list[str]:
    """The sources that read configurations."""
    utils = release / "sglang/srt/utils"
    paths = (*utils.glob("hf_transformers_utils.py"), *(utils / "hf_transformers").glob("c*.py"))
    return [path.read_text(encoding="utf-8-sig") for path in paths]


def pinned(release: Path) -> str:
    """The Transformers version of the wheel's metadata."""
    text = next(release.glob("sglang-*.dist-info/METADATA")).read_text(encoding="utf-8")
    return re.findall(r"^Requires-Dist: transformers==(\S+)", text, re.MULTILINE)[0]


def main() -> None:
    releases, transformers = map(Path, sys.argv[1:3])
    folders = {Version(p.name): p for p in releases.iterdir() if Version(p.name) >= FIRST_WITH_RULES}
    every = {v: mapped(transformers / pinned(p) / "transformers") for v, p in folders.items()}
    catalogued = {t for path in Path("knowledge/models").glob("*.yaml") if (t := _type(path))}
    types = catalogued.union(*every.values())
    known = {v: every[v] | (own(p) & types) for v, p in folders.items()}
    read = set().union(
        *every.values(), *map(registered, folders.values()), *((own(p) & catalogued) for p in folders.values())
    )
    own_code = {v: sorted(t for t in catalogued if not any(t in k for w, k in known.items() if w >= v)) for v in known}
    tables = [
        table("new_model_types", NEW, {v: later(known, v) for v in known}, folders),
        table("remote_model_types", REMOTE, own_code, folders),
        table("model_types", ANY, dict.fromkeys(known, sorted(read)), folders),
    ]
    print("# Generated by tools/write_model_types.py from wheel metadata and the pinned Transformers.")
    print(yaml.safe_dump(tables, sort_keys=False, width=120), end="")


def _type(path: Path) -> str | None:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))["traits"].get("model_type")
    return None if found is None else str(found)


def table(name: str, description: str, values: dict[Version, Any], folders: dict[Version, Path]) -> dict[str, Any]:
    """A table with one form for each run of releases that have the same value."""
    ordered = [(v, values[v]) for v in sorted(values)]
    groups = [next(group) for _, group in groupby(ordered, key=lambda pair: pair[1])]
    forms = []
    for (version, value), following in pairwise([*groups, None]):
        ends = f",<{following[0]}" if following else ""
        note = f"wheel metadata pins transformers {pinned(folders[version])}"
        source = {"release": str(version), "file": CONFIGS, "symbol": "ModelConfig", "note": note}
        forms.append({"versions": f">={version}{ends}", "value": value, "sources": [source]})
    return {"id": name, "description": description, "forms": forms}


if __name__ == "__main__":
    main()
