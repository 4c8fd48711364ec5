"""Launches a second of `validate --batch` on one core, and what one costs as a share of `python -c pass`.

usage: python benchmarks/batch.py [--runs N] [--lines N] [--check]
The launches are the recorded ones (`tests/oracle/launches.jsonl`): four releases, all models and machines, each once,
as shell text. Times are CPU times of the whole process, its start included. `--check` exits 1 when a launch costs more
than a twentieth of an empty Python (the median of the runs, both measured in turn).
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

LAUNCHES = Path(__file__).parent.parent / "tests" / "oracle" / "launches.jsonl"
FLAGWISE = str(Path(sys.executable).with_name("flagwise"))
LIMIT = 1 / 20


def write_batch(path: Path, lines: int) -> int:
    """Write up to so many launches as a batch file, spread evenly over the recorded ones; how many they are."""
    rows = [json.loads(line) for line in LAUNCHES.read_text(encoding="utf-8").splitlines()]
    step = max(1, len(rows) // lines)
    with path.open("w", encoding="utf-8") as file:
        for row in rows[::step][:lines]:
            command = f"python -m sglang.launch_server --model-path /models/{row['model']} {row['args']}"
            where = {"model": row["model"], "hardware": row["hardware"], "engine_version": row["release"]}
            file.write(json.dumps({"id": row["id"], "command": command, "env": row.get("env", {}), **where}) + "\n")
    return len(rows[::step][:lines])


def cpu_seconds(command: list[str]) -> float:
    """CPU time of one process from start to end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--lines", type=int, default=6000)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "batch.jsonl"
        count = write_batch(path, options.lines)
        command, baseline = [FLAGWISE, "validate", "--batch", str(path)], [sys.executable, "-c", "pass"]
        cpu_seconds(command)
        pairs = [(cpu_seconds(command), cpu_seconds(baseline)) for _ in range(options.runs)]
    share = statistics.median(batch / count / empty for batch, empty in pairs)
    rates = sorted(count / batch for batch, _ in pairs)
    print(f"{count} launches: {statistics.median(rates):.0f} a second ({rates[0]:.0f} to {rates[-1]:.0f});")
    print(f"one costs 1/{1 / share:.0f} of `python -c pass` (limit 1/{1 / LIMIT:.0f})")
    return int(options.check and share > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
