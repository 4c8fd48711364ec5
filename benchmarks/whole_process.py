"""Whole-process times of flagwise as ratios to `python -c pass`, both measured in one run, in turn.

usage: python benchmarks/whole_process.py [--runs N] [--check]
`--check` exits 1 when a median ratio is above its limit (validate and inspect 8, solve 20, gate 25). Questions about an
answer and requests that have none are held against a solve on the same machine and release instead (limit 2).
`inspect model DIR` reads a directory made for the run: the config of a hybrid mixture of experts, and a safetensors
header of 6,000 tensors. The gate looks at a tree of 1,000 files with 300 launches (benchmarks/tree_of_files.py); the
most memory that one of the processes had is printed too.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tree_of_files

CASE = (
    "SGLANG_ENABLE_SPEC_V2=1 python -m sglang.launch_server --model-path nvidia/Qwen3.5-397B-A17B-NVFP4 --tp 8 "
    "--quantization modelopt_fp4 --moe-runner-backend flashinfer_cutlass --fp4-gemm-backend flashinfer_cudnn "
    "--enable-mscclpp --speculative-algorithm NEXTN --speculative-num-draft-tokens 2 --speculative-eagle-topk 1 "
    "--reasoning-parser qwen3 --tool-call-parser qwen3_coder --trust-remote-code"
)
WHERE = ("--hardware", "8xrtx-pro-6000", "--engine-version", "0.5.10")
MODEL = ("--model", "qwen3.5-397b-a17b-nvfp4")
CONFIG = {
    "architectures": ["Qwen3NextForCausalLM"],
    "model_type": "qwen3_next",
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "full_attention_interval": 4,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "moe_intermediate_size": 512,
    "vocab_size": 151936,
    "max_position_embeddings": 262144,
}
TENSORS = 6000
FLAGWISE = str(Path(sys.executable).with_name("flagwise"))
CHECKPOINT = tempfile.TemporaryDirectory()
COMMANDS = {
    "validate": ([FLAGWISE, "validate", CASE, *WHERE], 8.0),
    "solve": ([FLAGWISE, "solve", "--goal", "min-pcie-roundtrips", *MODEL, *WHERE, "--", "--tp", "8"], 20.0),
    "inspect model DIR": ([FLAGWISE, "inspect", "model", CHECKPOINT.name], 8.0),
    "solve, no pins": ([FLAGWISE, "solve", "--goal", "min-pcie-roundtrips", *MODEL, *WHERE], 20.0),
}
BASELINE = [sys.executable, "-c", "pass"]
SOLVE = [FLAGWISE, "solve", *MODEL, *WHERE]
H100 = [FLAGWISE, "solve", *MODEL, "--hardware", "8xh100-sxm", "--engine-version"]
WISH = ("--speculative-algorithm", "NEXTN", "--mamba-scheduler-strategy", "no_buffer")
AGAINST_SOLVE = {
    "why not another size": ([*SOLVE, "--why-not", "tp=4", "--", "--tp", "8"], [*SOLVE, "--", "--tp", "8"]),
    "why not, impossible": (
        [*SOLVE, "--why-not", "mamba-scheduler-strategy=no_buffer", "--", "--tp", "8", *WISH[:2]],
        [*SOLVE, "--", "--tp", "8", *WISH[:2]],
    ),
    "impossible pins": ([*SOLVE, "--", *WISH], [*SOLVE, "--", *WISH[:2]]),
    "impossible model": ([*H100, "0.5.10", "--", "--tp", "8"], [*H100, "0.5.23", "--", "--tp", "8"]),
}
"""Name -> a command, and the solve that it may take twice as long as."""
TWICE = 2.0


def write_checkpoint(folder: Path) -> None:
    """A config and one safetensors file: a header of `TENSORS` experts' weights, and a hole where they would lie."""
    (folder / "config.json").write_text(json.dumps(CONFIG))
    size = 1024 * 1024
    header = {
        f"model.layers.{i % 48}.mlp.experts.{i // 48}.up_proj.weight": {
            "dtype": "BF16", "shape": [512, 1024], "data_offsets": [i * size, (i + 1) * size]
        }
        for i in range(TENSORS)
    }  # fmt: skip
    raw = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(raw).to_bytes(8, "little") + raw)
        file.truncate(8 + len(raw) + TENSORS * size)


def seconds(command: list[str]) -> float:
    """Wall time of one process from start to end."""
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - start


def ratios(command: list[str], runs: int, baseline: list[str] = BASELINE) -> list[float]:
    """Pair by pair: the command's time over the baseline's."""
    seconds(command)
    seconds(baseline)
    return [seconds(command) / seconds(baseline) for _ in range(runs)]


def row(name: str, found: list[float], limit: float) -> bool:
    """Print one line; whether the median is above the limit."""
    median = statistics.median(found)
    print(f"{name:22}  {median:8.1f} {min(found):8.1f} {max(found):8.1f} {limit:8.0f}")
    return median > limit


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    worst = 0
    write_checkpoint(Path(CHECKPOINT.name))
    print("times `python -c pass`    median    least    most    limit")
    with tempfile.TemporaryDirectory() as folder:
        tree_of_files.write(Path(folder), 1000, 300)
        gate = [FLAGWISE, "gate", folder]
        for name, (command, limit) in {**COMMANDS, "gate, 1,000 files": (gate, 25.0)}.items():
            worst |= row(name, ratios(command, options.runs), limit)
    print("times a solve")
    for name, (command, solve) in AGAINST_SOLVE.items():
        worst |= row(name, ratios(command, options.runs, solve), TWICE)
    print(f"most memory of one process: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MiB")
    return int(options.check and worst)


if __name__ == "__main__":
    sys.exit(main())
