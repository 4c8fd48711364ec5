"""Whole-process times of flagwise as ratios to `python -c pass`, both measured in one run, in turn.

usage: python benchmarks/whole_process.py [--runs N] [--check]
`--check` exits 1 when a median ratio is above its limit (validate 8, solve 20).
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

CASE = (
    "SGLANG_ENABLE_SPEC_V2=1 python -m sglang.launch_server --model-path nvidia/Qwen3.5-397B-A17B-NVFP4 --tp 8 "
    "--quantization modelopt_fp4 --moe-runner-backend flashinfer_cutlass --fp4-gemm-backend flashinfer_cudnn "
    "--enable-mscclpp --speculative-algorithm NEXTN --speculative-num-draft-tokens 2 --speculative-eagle-topk 1 "
    "--reasoning-parser qwen3 --tool-call-parser qwen3_coder --trust-remote-code"
)
WHERE = ("--hardware", "8xrtx-pro-6000", "--engine-version", "0.5.10")
MODEL = ("--model", "qwen3.5-397b-a17b-nvfp4")
FLAGWISE = str(Path(sys.executable).with_name("flagwise"))
COMMANDS = {
    "validate": ([FLAGWISE, "validate", CASE, *WHERE], 8.0),
    "solve": ([FLAGWISE, "solve", "--goal", "min-pcie-roundtrips", *MODEL, *WHERE, "--", "--tp", "8"], 20.0),
    "solve, no pins": ([FLAGWISE, "solve", "--goal", "min-pcie-roundtrips", *MODEL, *WHERE], 20.0),
}
BASELINE = [sys.executable, "-c", "pass"]


def seconds(command: list[str]) -> float:
    """Wall time of one process from start to end."""
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - start


def ratios(command: list[str], runs: int) -> list[float]:
    """Pair by pair: the command's time over the baseline's."""
    seconds(command)
    seconds(BASELINE)
    return [seconds(command) / seconds(BASELINE) for _ in range(runs)]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    worst = 0
    print("times `python -c pass`    median    least    most    limit")
    for name, (command, limit) in COMMANDS.items():
        found = sorted(ratios(command, options.runs))
        median = statistics.median(found)
        worst |= median > limit
        print(f"{name:22}  {median:8.1f} {found[0]:8.1f} {found[-1]:8.1f} {limit:8.0f}")
    return int(options.check and worst)


if __name__ == "__main__":
    sys.exit(main())
