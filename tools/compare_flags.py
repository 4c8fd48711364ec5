"""Dump of a release's real argparse (oracle.py --flags) + the catalogue -> differences; exit 1 when there are any.

python tools/compare_flags.py flags-0.5.10.json [more.json ...] [--catalogue knowledge/sglang]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from solver.learn_files import read_catalogue
from solver.learn_merge import Catalogue
from solver.records import FlagForm

KEYS = ("spellings", "dest", "type", "nargs", "choices", "default", "const", "required", "action", "deprecated")
ACTIONS = {"_StoreAction": "store", "_StoreTrueAction": "store_true", "_StoreFalseAction": "store_false"}
STORES_LATER = {"DeprecatedStoreConstAction"}
"""Actions whose stored value argparse does not show as `const`, since the action writes it by itself."""


def dumped(row: Mapping[str, Any]) -> dict[str, Any]:
    """One argparse action of the dump in the catalogue's words."""
    nargs = row["nargs"] or None
    kind = "flag" if row["nargs"] == 0 else "json" if row["type"] == "loads" else row["type"] or "str"
    names = [row["name"], *row["aliases"]]
    off = {f"--no-{n[2:]}" for n in names} if row["action"] == "BooleanOptionalAction" else set()
    return {
        **{k: row[k] for k in ("dest", "choices", "default", "const", "required")},
        "spellings": sorted(set(names) - off),
        "type": kind,
        "nargs": nargs,
        "action": ACTIONS.get(row["action"], row["action"]),
        "deprecated": row["deprecated"] and "Deprecated" in row["action"],
    }


def catalogued(flag_id: str, form: FlagForm) -> dict[str, Any]:
    """One form of the catalogue as the dump shows it."""
    return {
        **{k: getattr(form, k) for k in ("type", "nargs", "default", "required", "action")},
        "spellings": sorted(form.spellings),
        "dest": form.dest or flag_id,
        "choices": None if form.choices is None else list(form.choices),
        "const": None if form.action in STORES_LATER else form.const,
        "deprecated": form.deprecated is not None and "Deprecated" in form.action,
    }


def differences(dump: Mapping[str, Any], catalogue: Catalogue) -> Iterator[tuple[str, str, Any, Any]]:
    """(spelling, key, in the dump, in the catalogue) wherever the two disagree."""
    version = dump["sglang_version"]
    real = {tuple(d["spellings"]): d for d in map(dumped, dump["flags"])}
    held = {i: forms[version] for i, forms in catalogue.flags.items() if version in forms}
    ours = {tuple(c["spellings"]): c for c in (catalogued(i, f) for i, f in held.items())}
    for names in sorted(real.keys() | ours.keys()):
        if names not in real or names not in ours:
            yield " ".join(names), "spellings", names in real, names in ours
            continue
        for key in KEYS:
            left, right = real[names][key], ours[names][key]
            if left != right or type(left) is not type(right):
                yield " ".join(names), key, left, right


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare dumps of real argument parsers with the catalogue.")
    parser.add_argument("dumps", nargs="+", type=Path)
    parser.add_argument("--catalogue", type=Path, default=Path("knowledge/sglang"))
    options = parser.parse_args()
    catalogue = read_catalogue(options.catalogue)
    failed = False
    for path in options.dumps:
        dump = json.loads(path.read_text(encoding="utf-8"))
        found = list(differences(dump, catalogue))
        failed = failed or bool(found)
        for spelling, key, left, right in found:
            print(f"{dump['sglang_version']} {spelling}: {key} is {left!r}, catalogue has {right!r}")
        counts = Counter(key for _, key, _, _ in found)
        shares = ", ".join(f"{k} {100 * (1 - counts[k] / dump['n_flags']):.1f}%" for k in KEYS)
        print(f"{dump['sglang_version']}: {dump['n_flags']} arguments; equal: {shares}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
