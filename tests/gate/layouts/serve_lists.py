"""Start with: python -m sglang.launch_server --model-path in/a-docstring"""

import os
import subprocess
import sys

MODEL = "Qwen/Qwen3-8B"
os.environ["SGLANG_LOG_MS"] = "1"


def start(tp: int, port: int, more: list[str]) -> None:
    command = [
        sys.executable, "-m", "sglang.launch_server",
        "--model-path", MODEL,  # one constant in the whole file
        "--tp", str(tp), "--port", f"{port}",
        "--mem-fraction-static=" + str(0.85),
        *more,
    ]  # fmt: skip
    command += ["--enable-metrics"]
    if tp > 1:
        command.append("--enable-p2p-check")
    command.extend(["--log-level", "info"])
    subprocess.Popen(command)
    if not command:
        raise RuntimeError("first run python -m sglang.launch_server --model-path in/a-message")
    print("python -m sglang.launch_server --model-path in/print")
    subprocess.run(["pkill", "-f", "sglang.launch_server"], check=False)


def both() -> None:
    for command in (["sglang", "serve", "--model-path", MODEL], ["sglang", "serve", "--model-path", "a/b", "--tp", "2"]):
        subprocess.run(command, env={**os.environ, "CUDA_VISIBLE_DEVICES": "0"}, check=True)
