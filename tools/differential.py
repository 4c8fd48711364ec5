"""Launches of our own -> what each release's own argument code says to them, kept in tests/oracle/launches.jsonl.

usage: python tools/differential.py run --harness ORACLE.py --envs DIR --models DIR --in LAUNCHES.jsonl --out FILE
       python tools/differential.py keep FILE...        # what the release decided, into tests/oracle/launches.jsonl
       python tools/differential.py compare [FILE] [--release X] [--models DIR]

Launches come from tools/generate_launches.py. `run` wants one environment per release (DIR/v0.5.10/bin/python) and one
folder per checkpoint (org--name with config.json). It groups by machine and environment, since each new pair costs an
import of the engine. `keep` and `compare` need neither; with `--models` each line of FILE is one launch with the
verdicts of several releases (`oracle/expected/cases.jsonl`).
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml
from confirm_rules import Copies

from solver.differential import Comparison, Expected, Judge, Recorded
from solver.store import Store, default_root
from solver.traits.find import find_hardware

VERDICTS = Path("tests/oracle/launches.jsonl")
FIELDS = Path("tests/oracle/fields.yaml")
OF_THE_HOST = (
    "sglang/srt/utils/hf_transformers",
    "validate_ib_devices",
    "_launch_weight_cache_daemons",
    "not found:",
    "not installed",
    "huggingface.co",
)
"""Places and words of refusals that the harness's machine decides: its transformers, devices, files and packages."""
OF_THE_MACHINE = (
    "ModuleNotFoundError",
    "ImportError",
    "FileNotFoundError",
    "LocalEntryNotFoundError",
    "OSError",
    "ConnectionError",
)
"""Errors that say something about the machine of the harness (a package, a file, the network), not about the launch."""


def main() -> None:
    parser = argparse.ArgumentParser()
    verbs = parser.add_subparsers(dest="verb", required=True)
    runs = verbs.add_parser("run")
    for name in ("--harness", "--envs", "--models", "--in", "--out"):
        runs.add_argument(name, type=Path, required=True)
    runs.add_argument("--jobs", default="1")
    keeps = verbs.add_parser("keep")
    keeps.add_argument("files", type=Path, nargs="+")
    compares = verbs.add_parser("compare")
    compares.add_argument("file", type=Path, nargs="?", default=VERDICTS)
    compares.add_argument("--release")
    compares.add_argument("--models", type=Path)
    options = parser.parse_args()
    if options.verb == "run":
        run(options)
    elif options.verb == "keep":
        keep(options.files)
    else:
        rows = read_expected(options.file, options.models) if options.models else read(options.file)
        report([r for r in rows if options.release in (None, r.release)])


# ----------------------------------------------------------------------- run


def run(options: Any) -> None:
    """Ask each release for its verdict on each launch."""
    store = Store(default_root())
    launches = [json.loads(line) for line in getattr(options, "in").read_text(encoding="utf-8").splitlines()]
    fields = compared_fields()
    with tempfile.TemporaryDirectory() as scratch, options.out.open("w", encoding="utf-8") as out:
        copies = Copies(options.models, Path(scratch), store)
        for release in sorted({launch["release"] for launch in launches}):
            asked = {launch["id"]: launch for launch in launches if launch["release"] == release}
            cases = [case_of(launch, copies, store) for launch in asked.values()]
            python = options.envs / f"v{release}" / "bin" / "python"
            for answer in ask(python, options.harness, options.jobs, cases):
                out.write(json.dumps(recorded(asked[answer["id"]], answer, fields), sort_keys=True) + "\n")
                out.flush()


def case_of(launch: dict[str, Any], copies: Copies, store: Store) -> dict[str, Any]:
    """The launch in the harness's words."""
    machine = find_hardware(store.index, launch["hardware"])
    folder = copies.of(launch["model"])
    if folder is None:
        sys.exit(f"no folder for the checkpoint of {launch['model']}")
    mib = machine.get("memory_mib") or machine["memory_gib"] * 1024
    return {
        "id": launch["id"],
        "argv": [
            "python", "-m", "sglang.launch_server", "--model-path", str(folder),
            *shlex.split(launch["args"]),
        ],
        "env": launch["env"],
        "hardware": {
            "sm": f"{machine['sm'] // 10}.{machine['sm'] % 10}",
            "gpus": machine["gpus"],
            "memory_gib": mib / 1024,
            "name": machine.get("name") or f"NVIDIA {machine['gpu']}".upper(),
            "cuda": machine["cuda"],
            "nvlink": machine.get("link") == "nvlink",
        },
    }  # fmt: skip


def ask(python: Path, harness: Path, jobs: str, cases: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The harness's answers, in the order of the cases."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as text:
        text.write("".join(json.dumps(c) + "\n" for c in cases))
        text.seek(0)
        process = subprocess.Popen(
            [str(python), str(harness), "--jobs", jobs], stdin=text, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            yield json.loads(line)
        if process.wait():
            sys.exit(f"the harness failed with {python}")


def recorded(launch: dict[str, Any], answer: dict[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    """One line of the verdict file. `why` is for whoever looks into it, and is not kept with the project."""
    error = answer.get("error") or {}
    row = {**launch, "verdict": _verdict(answer, error)}
    if not row["env"]:
        del row["env"]
    if row["verdict"] != "accept":
        where = (error.get("at") or "").split(":")[0]
        row |= {k: v for k, v in (("file", where), ("in", error.get("in"))) if v}
        row["why"] = f"{error.get('type')}: {str(error.get('message'))[:160]}"
        return row
    changed = {k: after for k, (_, after) in answer["changed"].items() if k in fields}
    return row | ({"resolved": changed} if changed else {})


def _verdict(answer: dict[str, Any], error: dict[str, Any]) -> str:
    kind = answer["verdict"]
    if kind == "accept":
        return "accept"
    if kind == "reject-parse":
        return "refuse-parse"
    inside_library = str(error.get("innermost")).startswith("transformers/")
    if kind == "reject-resolve" and error.get("type") not in OF_THE_MACHINE and not inside_library:
        return "refuse"
    return "artefact"


def keep(files: list[Path]) -> None:
    """Collect what the releases decided, without words of theirs."""
    rows = {}
    for line in (line for path in files for line in path.read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        text = " ".join(str(row.get(k)) for k in ("file", "in", "why"))
        if row["verdict"] != "artefact" and not any(words in text for words in OF_THE_HOST):
            row.pop("why", None)
            rows[row["id"]] = json.dumps(row, sort_keys=True, separators=(",", ":"))
    VERDICTS.parent.mkdir(parents=True, exist_ok=True)
    VERDICTS.write_text("".join(rows[i] + "\n" for i in sorted(rows)), encoding="utf-8")
    print(f"{len(rows)} launches in {VERDICTS}")


# ------------------------------------------------------------------- compare


def compared_fields() -> tuple[str, ...]:
    return tuple(yaml.safe_load(FIELDS.read_text(encoding="utf-8"))["fields"])


def read(path: Path) -> list[Recorded]:
    """The recorded launches that the release itself decided."""
    rows = [msgspec.json.decode(line, type=Recorded) for line in path.read_bytes().splitlines()]
    return [r for r in rows if r.verdict != "artefact"]


def read_expected(path: Path, models: Path) -> list[Recorded]:
    """The same from a file with the verdicts of several releases a line."""
    lines = [msgspec.json.decode(line, type=Expected) for line in path.read_bytes().splitlines()]
    return [r for line in lines for r in line.recorded(str(models)) if r.verdict != "artefact"]


def report(rows: list[Recorded]) -> None:
    """Print the ratios of each release and every disagreement, the most frequent kind first."""
    judge = Judge(Store(default_root()), compared_fields())
    sites: set[tuple[str | None, str | None]] = set()
    for release in sorted({r.release for r in rows}, key=lambda v: [int(p) for p in v.split(".")[:3]]):
        mine = [(r, judge.compare(r)) for r in rows if r.release == release]
        sites |= {(r.file, r.symbol) for r, _ in mine if r.symbol}
        print(f"== {release}: {ratios([c for _, c in mine])}")
        kinds: dict[str, list[str]] = {}
        for row, found in mine:
            for kind in disagreements(row, found):
                kinds.setdefault(kind, []).append(row.id)
        for kind, ids in sorted(kinds.items(), key=lambda item: -len(item[1])):
            print(f"   {len(ids):3} {kind}   {' '.join(ids[:3])}")
    print(f"refused by {len(sites)} different functions")


def ratios(found: list[Comparison]) -> str:
    """The figures of one release in a line."""
    refused = [c for c in found if c.refused]
    pairs = [(c, v) for c in found for v in c.values]
    changed = [(c, v) for c, v in pairs if v[3]]
    counts: Counter[str] = Counter()
    counts["verdict"] = sum(c.same_verdict for c in found)
    counts["site"] = sum(c.site_named for c in refused)
    counts["clean"] = sum(not c.errors for c in found if not c.refused)
    counts["values"] = sum(v[0] not in c.wrong for c, v in pairs)
    counts["changed"] = sum(v[0] not in c.wrong for c, v in changed)
    totals = {"verdict": len(found), "site": len(refused), "clean": len(found) - len(refused)}
    totals |= {"values": len(pairs), "changed": len(changed)}
    return "; ".join(f"{k} {counts[k]}/{n} {counts[k] / max(n, 1):.2%}" for k, n in totals.items())


def disagreements(row: Recorded, found: Comparison) -> Iterator[str]:
    """Each disagreement of one launch in words."""
    if not found.same_verdict:
        if found.refused:
            yield f"missed: {row.verdict} in {row.symbol}"
        else:
            yield f"false: {', '.join(f.rule for f in found.errors)}"
    elif found.refused and not found.site_named:
        yield f"other site: {row.symbol}, ours {', '.join(f.rule for f in found.errors)}"
    for name, engine, ours, _ in found.values:
        if name in found.wrong:
            yield f"value: {name} is {engine!r}, ours {str(ours)[:60]}"


if __name__ == "__main__":
    main()
