"""Writes a tree of files like a deployment repository: scripts, manifests, images, units and pages, some with launches.

usage: python benchmarks/tree_of_files.py FOLDER [--files 1000] [--launches 300]
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

MODELS = ("Qwen/Qwen3-8B", "Qwen/Qwen3-32B", "meta-llama/Llama-3.1-8B-Instruct", "deepseek-ai/DeepSeek-R1-0528",
          "openai/gpt-oss-120b", "Qwen/Qwen3-235B-A22B", "zai-org/GLM-4.6", "Qwen/Qwen3-30B-A3B")  # fmt: skip
MACHINES = ("8xh100-sxm", "8xb200", "8xh200", "4xh100-sxm")
EXTRAS = (
    ("--mem-fraction-static", "0.85"), ("--chunked-prefill-size", "8192"), ("--kv-cache-dtype", "fp8_e4m3"),
    ("--enable-metrics",), ("--trust-remote-code",), ("--context-length", "32768"), ("--schedule-policy", "lpm"),
    ("--enable-torch-compile",), ("--attention-backend", "flashinfer"), ("--log-level", "warning"),
)  # fmt: skip


SERVICES = 30
"""Sets of arguments, each tuned for one machine; the files are their variants, with a port and a name of their own."""


def services(chance: random.Random) -> list[list[str]]:
    """The arguments of each service."""
    found = []
    for _ in range(SERVICES):
        words = ["--model-path", chance.choice(MODELS), "--tp", str(chance.choice((1, 2, 4, 8)))]
        for extra in chance.sample(EXTRAS, chance.randint(2, 5)):
            words += extra
        found.append(words)
    return found


def arguments(service: list[str], number: int) -> list[str]:
    """The arguments of one launch."""
    return [*service, "--host", "0.0.0.0", "--port", str(30000 + number), "--served-model-name", f"service-{number}"]


def script(words: list[str]) -> str:
    return "#!/usr/bin/env bash\nset -euo pipefail\nexport NCCL_DEBUG=WARN\n\n" + (
        "python3 -m sglang.launch_server \\\n  " + " \\\n  ".join(paired(words)) + "\n"
    )


def paired(words: list[str]) -> list[str]:
    """Each flag with its value."""
    lines: list[str] = []
    for word in words:
        if word.startswith("--"):
            lines.append(word)
        else:
            lines[-1] += f" {word}"
    return lines


def pod(words: list[str], number: int) -> str:
    args = "\n".join(f'        - "{word}"' for word in words)
    return f"""apiVersion: apps/v1
kind: Deployment
metadata: {{name: service-{number}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: service-{number}}}}}
  template:
    metadata: {{labels: {{app: service-{number}}}}}
    spec:
      containers:
      - name: engine
        image: lmsysorg/sglang:v0.5.12
        command: ["python3", "-m", "sglang.launch_server"]
        args:
{args}
        resources: {{limits: {{nvidia.com/gpu: "8"}}}}
"""


def compose(words: list[str], number: int) -> str:
    return f"""services:
  service-{number}:
    image: lmsysorg/sglang:v0.5.12
    environment: {{NCCL_DEBUG: WARN}}
    command: >
      python3 -m sglang.launch_server
      {" ".join(words)}
"""


def image(words: list[str]) -> str:
    argv = json.dumps(["python3", "-m", "sglang.launch_server", *words])
    return f"FROM lmsysorg/sglang:v0.5.12\nENV NCCL_DEBUG=WARN\nCMD {argv}\n"


def unit(words: list[str]) -> str:
    lines = " \\\n  ".join(paired(words))
    return f"[Service]\nEnvironment=NCCL_DEBUG=WARN\nExecStart=/usr/bin/python3 -m sglang.launch_server \\\n  {lines}\n"


def page(words: list[str]) -> str:
    return f"# Serving\n\nStart it:\n\n```bash\n{script(words)}```\n\nThen ask it.\n"


def write(folder: Path, files: int, launches: int) -> None:
    """Write the tree; the same arguments give the same bytes."""
    chance = random.Random(files * 1000 + launches)
    kinds = ["sh", "pod", "compose", "image", "unit", "page"]
    known = services(chance)
    chosen = set(chance.sample(range(files), launches))
    for number in range(files):
        service = chance.randrange(SERVICES)
        place = folder / ("deploy", "scripts", "docs", "charts")[number % 4] / MACHINES[service % len(MACHINES)]
        place.mkdir(parents=True, exist_ok=True)
        kind = kinds[number % len(kinds)]
        words = arguments(known[service], number)
        texts = {
            "sh": (f"start-{number}.sh", script(words)),
            "pod": (f"pod-{number}.yaml", pod(words, number)),
            "compose": (f"compose-{number}.yml", compose(words, number)),
            "image": (f"Dockerfile.{number}", image(words)),
            "unit": (f"engine-{number}.service", unit(words)),
            "page": (f"page-{number}.md", page(words)),
        }
        name, text = texts[kind]
        if number not in chosen:
            text = text.replace("sglang.launch_server", "http.server").replace("lmsysorg/sglang", "registry/other")
            text = "".join(line for line in text.splitlines(keepends=True) if "model-path" not in line)
        (place / name).write_text(text)
    settings = "".join(f'[[files]]\npaths = ["**/{m}/**"]\nhardware = "{m}"\n' for m in sorted(set(MACHINES)))
    (folder / "flagwise.toml").write_text(settings)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--launches", type=int, default=300)
    options = parser.parse_args()
    write(options.folder, options.files, options.launches)


if __name__ == "__main__":
    main()
