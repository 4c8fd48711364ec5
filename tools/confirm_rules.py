"""Rule examples -> the verdicts of the releases' own argument code, kept in tests/oracle/verdicts.jsonl.

usage: python tools/confirm_rules.py --harness ORACLE.py --envs DIR --models DIR [--only TEXT] [--dry]

ENVS holds one environment per release (DIR/v0.5.10/bin/python), MODELS one folder per checkpoint (org--name with
config.json). Every example of a rule of the stages that argument code decides is run; a model without a folder is
skipped and listed. Slow (about 10 s per release, machine and environment), so its results are committed, and
tests/test_oracle.py checks that they are fresh and that the rules agree with them.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from solver.knowledge import load
from solver.oracle import DECIDED, example_key
from solver.records import Example, Rule
from solver.store import Store, default_root
from solver.traits.find import find_hardware

NOT_ARGUMENTS = ("hf_transformers/config.py", "hf_transformers_utils.py")
"""Files that fail because a draft or remote code cannot be fetched: the environment decided, not the arguments."""
VERDICTS = Path("tests/oracle/verdicts.jsonl")


def examples(rules: list[Rule]) -> Iterator[tuple[Rule, bool, Example]]:
    """Every example that argument code can judge."""
    for rule in rules:
        if rule.stage in DECIDED and not rule.withdrawn:
            for fail, group in ((True, rule.examples.fail), (False, rule.examples.pass_)):
                for example in group:
                    yield rule, fail, example


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--harness", type=Path, required=True)
    parser.add_argument("--envs", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--dry", action="store_true", help="print, write nothing")
    options = parser.parse_args()
    root = default_root()
    store = Store(root)
    known = {} if options.dry or not VERDICTS.exists() else _read(VERDICTS)
    wanted: dict[str, dict[str, dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        copies = Copies(options.models, Path(scratch), store)
        keep: set[str] = set()
        for rule, _, example in examples(list(load(root).rules.values())):
            key = example_key(example)
            keep.add(key)
            if options.only not in rule.id or (key in known and not options.only):
                continue
            python = options.envs / f"v{example.release}" / "bin" / "python"
            folder = copies.of(example.model)
            foreign = find_hardware(store.index, example.hardware).get("vendor") == "amd"  # the harness fakes NVIDIA
            if not python.exists() or folder is None or foreign or example.traits:
                print(f"skipped: {rule.id} at {example.release} with {example.model}", file=sys.stderr)
                continue
            wanted.setdefault(str(python), {})[key] = _case(key, example, folder, store)
        for python, cases in sorted(wanted.items()):
            known.update(_run(python, options.harness, list(cases.values())))
    if options.dry:
        for row in known.values():
            print(json.dumps(row, sort_keys=True))
        return
    VERDICTS.parent.mkdir(parents=True, exist_ok=True)
    rows = [known[k] for k in sorted(known) if k in keep]
    VERDICTS.write_text("".join(json.dumps(r, sort_keys=True) + "\n" for r in rows), encoding="utf-8")
    print(f"{len(rows)} verdicts in {VERDICTS}")


class Copies:
    """Checkpoint folders without remote code, which is not on this machine."""

    def __init__(self, models: Path, scratch: Path, store: Store) -> None:
        self.models, self.scratch, self.store = models, scratch, store

    def of(self, model: str | None) -> Path | None:
        entry = self.store.index.models.get(model or "")
        for hub in entry.hub_ids if entry else ():
            source = self.models / hub.replace("/", "--")
            if source.is_dir():
                return self._copy(source)
        return None

    def _copy(self, source: Path) -> Path:
        target = self.scratch / source.name
        if not target.exists():
            shutil.copytree(source, target, copy_function=shutil.copyfile)
            config = json.loads((target / "config.json").read_text(encoding="utf-8"))
            config.pop("auto_map", None)
            (target / "config.json").write_text(json.dumps(config), encoding="utf-8")
        return target


def _case(key: str, example: Example, folder: Path, store: Store) -> dict[str, Any]:
    traits = find_hardware(store.index, example.hardware)
    sm = traits.get("sm") or 90
    return {
        "id": key,
        "argv": ["python", "-m", "sglang.launch_server", "--model-path", str(folder), *shlex.split(example.args)],
        "env": example.env,
        "hardware": {
            "sm": f"{sm // 10}.{sm % 10}",
            "gpus": traits.get("gpus", 8),
            "memory_gib": traits.get("memory_gib", 80),
            "name": traits.get("name") or "NVIDIA H100 80GB HBM3",
            "cuda": traits.get("cuda") or "12.9",
            "nvlink": traits.get("link") == "nvlink",
        },
    }


def _run(python: str, harness: Path, cases: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    text = "".join(json.dumps(c) + "\n" for c in cases)
    done = subprocess.run([python, str(harness), "--jobs", "2"], input=text, capture_output=True, text=True, check=True)
    return {row["id"]: _verdict(row) for line in done.stdout.splitlines() if (row := json.loads(line))}


def _verdict(row: dict[str, Any]) -> dict[str, Any]:
    error = row.get("error") or {}
    changed = {k: v[1] for k, v in sorted(row.get("changed", {}).items()) if not isinstance(v[1], list | dict)}
    for noisy in ("random_seed", "model_path", "tokenizer_path", "served_model_name", "nccl_port", "port"):
        changed.pop(noisy, None)
    return {
        "id": row["id"],
        "verdict": "artefact" if (error.get("at") or "").split(":")[0].endswith(NOT_ARGUMENTS) else row["verdict"],
        "in": error.get("in"),
        "at": (error.get("at") or "").split(":")[0] or None,
        "changed": changed,
    }


def _read(path: Path) -> dict[str, dict[str, Any]]:
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {row["id"]: row for row in rows}


if __name__ == "__main__":
    main()
