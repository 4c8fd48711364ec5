"""Measured kernel latencies (aiconfigurator's sweeps of the engine's kernels) in; knowledge/sglang/kernels.yaml out.

Usage: python tools/fit_kernels.py SYSTEMS_DATA [OUTPUT.yaml]
SYSTEMS_DATA is the folder `systems/data` of ai-dynamo/aiconfigurator (Apache-2.0) at the commit named below, with its
parquet files; reading them needs pyarrow, which nothing else here does.

Each operation gets one line over what it moves, fitted on relative errors at the batch sizes of decoding:

    experts    us = base + byte_factor * bytes / B + item_us * experts touched     routed experts of one layer
    dense      us = base + byte_factor * bytes / B                                 one matrix
    attention  us = base + byte_factor * KV bytes / B                              keys and values of one layer
    latent     us = base + byte_factor * KV bytes / B                              latent attention of one layer
    a2a        us = base + mb_us * MB                                              dispatch and combine of one layer

B is the nominal bandwidth of the GPU in the catalogue. `gflop_us` is the cost of arithmetic once that is the limit: of
prompts, and of many heads on one latent cache.
`low` and `high` are the tenth and ninetieth percentile of measured over predicted. Lines that describe nothing (a
ninetieth percentile above 2, a median more than a quarter off, or bytes that cost over five times their transfer, as
where a sweep converted the whole cache) are left out: the cost model then falls back and widens its range.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parent.parent
SOURCE = "https://github.com/ai-dynamo/aiconfigurator/blob/095f58a5/aic-core/src/aiconfigurator_core/systems/data/"
SYSTEMS = {
    "a100_sxm": ("a100-sxm-80g", [80]),
    "l40s": ("l40s", [89]),
    "h100_sxm": ("h100-sxm", []),
    "h200_sxm": ("h200-sxm", [90]),
    "b200_sxm": ("b200-sxm", [100]),
    "b300_sxm": ("b300-sxm", [103]),
    "rtx_pro_6000_server": ("rtx-pro-6000-server", [120, 121]),
}
"""System folder -> the GPU whose bandwidth counts, and the SM numbers it stands for (none: only for itself)."""
VERSIONS = {"0.5.9": "<0.5.10", "0.5.10": ">=0.5.10,<0.5.14", "0.5.14": ">=0.5.14", "0.5.12": ""}
KERNELS = {
    "sglang_fused_moe_triton": "triton",
    "sglang_flashinfer_trtllm_moe": "flashinfer_trtllm",
    "sglang_mxfp4_flashinfer_trtllm_moe": "flashinfer_mxfp4",
    "sglang_flashinfer_mxfp4_moe": "flashinfer_mxfp4",
    "sglang_flashinfer_cutlass_moe": "flashinfer_cutlass",
    "sglang_flashinfer_cutedsl_moe": "flashinfer_cutedsl",
    "sglang_marlin_moe": "marlin",
    "flash_attention": "fa3",
}
FORMATS = {
    "bfloat16": "bf16",
    "fp8_block": "fp8",
    "nvfp4": "nvfp4",
    "int4_wo": "int4",
    "w4a8_mxfp4_mxfp8": "mxfp4",
    "w4a16_mxfp4": "mxfp4_bf16",
    "fp8": "fp8_tensor",
}
CACHE_FORMATS = {"bfloat16": "bf16", "fp8": "fp8"}
BYTES = {"bf16": 2.0, "fp8": 1.0, "fp8_tensor": 1.0, "nvfp4": 0.5625}
BYTES |= dict.fromkeys(("int4", "mxfp4", "mxfp4_bf16"), 0.53125)
DECODE_TOKENS = 256
PROMPT_TOKENS = 2048
LATENT_HEADS = 16  # 128 heads over eight GPUs
LATENT_WIDTH = 576
LATENT_RANK = 512
MANY_HEADS = 64
MANY_KEYS = 262_144
LEAST_ROWS = 60

Row = dict[str, Any]


class Point(NamedTuple):
    """One measured row: features, the time they should give, and the 10^9 operations where these are the limit."""

    features: tuple[float, ...]
    us: float
    gflop: float = 0.0


def read(path: Path) -> list[Row]:
    import pyarrow.parquet as parquet  # type: ignore[import-not-found]  # needed for this tool alone

    return list(parquet.read_table(path).to_pylist())


def experts(path: Path, bandwidth: float) -> Iterator[tuple[str, str, Point]]:
    """Routed experts split by width, under the sweep's skewed routing; touched experts as even routing gives them."""
    for row in read(path):
        count, active, tokens = row["num_experts"], row["topk"], row["num_tokens"]
        width = row["inter_size"] // row["moe_tp_size"]
        split = row["moe_ep_size"] == 1 and width >= 96 and row["distribution"] == "power_law_1.01"
        if row["kernel_source"] not in KERNELS or not split:
            continue
        form = FORMATS[row["moe_dtype"]]
        touched = count * (1 - (1 - active / count) ** tokens)
        each = 3 * row["hidden_size"] * width
        load = touched * each * BYTES[form] / bandwidth
        gflop = 2 * each * tokens * active / 1e9 if tokens >= PROMPT_TOKENS else 0.0
        if tokens <= DECODE_TOKENS or gflop:
            yield KERNELS[row["kernel_source"]], form, Point((1.0, load, touched), row["latency"] * 1e3, gflop)


def dense(path: Path, bandwidth: float) -> Iterator[tuple[str, str, Point]]:
    for row in read(path):
        tokens, n, k = row["m"], row["n"], row["k"]
        form = FORMATS.get(row["gemm_dtype"])
        small = tokens <= DECODE_TOKENS // 4 and 256 <= n <= 16384 and 512 <= k <= 16384
        if form and (small or (tokens >= PROMPT_TOKENS and n >= 1024 and k >= 1024)):
            load = n * k * BYTES[form] / bandwidth
            gflop = 0.0 if small else 2 * tokens * n * k / 1e9
            yield "", form, Point((1.0, load), row["latency"] * 1e3, gflop)


def attention(path: Path, bandwidth: float) -> Iterator[tuple[str, str, Point]]:
    for row in read(path):
        if row["batch_size"] <= 128 and row["step"] >= 500 and row["head_dim"] in (128, 256):
            form = CACHE_FORMATS[row["kv_cache_dtype"]]
            elements = row["batch_size"] * row["step"] * 2 * row["num_key_value_heads"] * row["head_dim"]
            kernel = KERNELS.get(row["kernel_source"], str(row["kernel_source"]))
            yield kernel, form, Point((1.0, elements * BYTES[form] / bandwidth), row["latency"] * 1e3)


def latent(path: Path, bandwidth: float) -> Iterator[tuple[str, str, Point]]:
    """Decoding with few heads is bound by the cache; with many heads over many tokens by the arithmetic."""
    for row in read(path):
        keys, many = row["batch_size"] * row["step"], row["num_heads"] >= MANY_HEADS
        few = row["batch_size"] <= 128 and row["step"] >= 500 and row["num_heads"] == LATENT_HEADS
        if few or (many and keys >= MANY_KEYS):
            form = CACHE_FORMATS[row["kv_cache_dtype"]]
            gflop = 2e-9 * row["num_heads"] * keys * (LATENT_WIDTH + LATENT_RANK) if many else 0.0
            kernel = KERNELS.get(row["kernel_source"], str(row["kernel_source"]))
            yield kernel, form, Point((1.0, keys * LATENT_WIDTH * BYTES[form] / bandwidth), row["latency"] * 1e3, gflop)


def exchange(path: Path, bandwidth: float) -> Iterator[tuple[str, str, Point]]:
    """Dispatch and combine of one layer on one node of eight GPUs; MB leave each GPU in BF16."""
    del bandwidth
    for row in read(path):
        if row["node_num"] == 1 and row["num_token"] <= DECODE_TOKENS:
            size = row["num_token"] * row["num_topk"] * row["hidden_size"] * 2 / 1e6
            yield "deepep", "", Point((1.0, size), row["combine_avg_t_us"] + row["dispatch_avg_t_us"])


OPERATIONS = {
    "experts": ("moe", "moe_perf.parquet", experts),
    "dense": ("gemm", "gemm_perf.parquet", dense),
    "attention": ("attention", "generation_attention_perf.parquet", attention),
    "latent": ("mla", "generation_mla_perf.parquet", latent),
    "a2a": ("comm", "wideep_deepep_ll_perf.parquet", exchange),
}


def solve(matrix: list[list[float]], right: list[float]) -> list[float] | None:
    """Gauss with pivots; None where the columns are not independent."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        if abs(rows[i][i]) < 1e-12:
            return None
        for r in range(size):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [x - factor * y for x, y in zip(rows[r], rows[i], strict=True)]
    return [rows[i][size] / rows[i][i] for i in range(size)]


def fit(points: list[Point]) -> list[float]:
    """Least squares on relative errors without negative coefficients: the best of all subsets of columns."""
    width = len(points[0].features)
    best: tuple[float, list[float]] | None = None
    for size in range(1, width + 1):
        for chosen in combinations(range(width), size):
            matrix = [[sum(p.features[i] * p.features[j] / p.us**2 for p in points) for j in chosen] for i in chosen]
            found = solve(matrix, [sum(p.features[i] / p.us for p in points) for i in chosen])
            if found is None or min(found) < 0:
                continue
            line = [0.0] * width
            for column, value in zip(chosen, found, strict=True):
                line[column] = value
            error = sum((predict(line, p) / p.us - 1) ** 2 for p in points)
            if best is None or error < best[0] - 1e-9:
                best = (error, line)
    assert best is not None
    return best[1]


def predict(line: list[float], point: Point) -> float:
    return sum(a * x for a, x in zip(line, point.features, strict=True))


def entry(op: str, kernel: str, form: str, points: list[Point]) -> Row | None:
    """One line with its range, or None where the rows are too few or too far from any line."""
    decode = [p for p in points if not p.gflop]
    if len(decode) < LEAST_ROWS:
        return None
    line = fit(decode)
    ratios = sorted(p.us / predict(line, p) for p in decode)
    low, middle, high = (ratios[int(len(ratios) * share)] for share in (0.1, 0.5, 0.9))
    if high > 2 or not 0.75 <= middle <= 1.25 or (op != "a2a" and line[1] > 5):
        return None
    names = ("base_us", "mb_us") if op == "a2a" else ("base_us", "byte_factor", "item_us")
    found: Row = {"op": op, "kernel": kernel, "format": form} | dict(
        zip(names, (round(value, 3) for value in line), strict=False)
    )
    if prompts := sorted(p.us / p.gflop for p in points if p.gflop):
        found["gflop_us"] = round(prompts[len(prompts) // 2], 4)
    return found | {"low": round(min(low, 1.0), 2), "high": round(max(high, 1.0), 2), "rows": len(decode)}


def lines(data: Path) -> list[Row]:
    """Every line of every system, by operation."""
    found: list[Row] = []
    for op, (folder, name, rows_of) in OPERATIONS.items():
        for system, (gpu, sms) in SYSTEMS.items():
            for version, versions in VERSIONS.items():
                path = data / system / folder / "sglang" / version / name
                if path.exists():
                    found += _entries(op, path, rows_of, gpu, sms, versions)
    return found


def _entries(op: str, path: Path, rows_of: Any, gpu: str, sms: list[int], versions: str) -> Iterator[Row]:
    groups: dict[tuple[str, str], list[Point]] = defaultdict(list)
    for kernel, form, point in rows_of(path, _bandwidth(gpu)):
        groups[kernel, form].append(point)
    where: Row = {"sm": sms} if sms else {"gpus": [gpu]}
    if versions:
        where["versions"] = Quoted(versions)
    for (kernel, form), points in sorted(groups.items()):
        if made := entry(op, kernel, form, points):
            url = SOURCE + "/".join(path.parts[-5:])
            yield {k: v for k, v in made.items() if v != ""} | where | {"sources": [{"url": url}]}


def _bandwidth(gpu: str) -> float:
    """Bytes per us."""
    traits = yaml.safe_load((ROOT / "knowledge" / "hardware" / f"{gpu}.yaml").read_text("utf-8"))["traits"]
    return float(traits["bandwidth_gbs"]) * 1e3


class Quoted(str):
    """A text that is written in quotes, as version ranges must be."""


class Dumper(yaml.SafeDumper):
    """Each entry on lines of its own, without anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


Dumper.add_representer(Quoted, lambda d, text: d.represent_scalar("tag:yaml.org,2002:str", str(text), style='"'))


def main(argv: list[str]) -> int:
    if not argv or not Path(argv[0]).is_dir():
        print("expected the folder systems/data of aiconfigurator; give its path first", file=sys.stderr)
        return 2
    output = Path(argv[1]) if len(argv) > 1 else ROOT / "knowledge" / "sglang" / "kernels.yaml"
    text = yaml.dump(lines(Path(argv[0])), Dumper=Dumper, sort_keys=False, width=140, default_flow_style=None)
    output.write_text("# Generated by tools/fit_kernels.py; change it there.\n" + text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
