"""A folder with a wheel -> the wheel installed into a fresh environment outside the checkout, and tried there.

usage: python tools/try_wheel.py DIST
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

CASE = "python -m sglang.launch_server --model-path nvidia/Qwen3.5-397B-A17B-NVFP4 --tp 8 --speculative-algorithm NEXTN"
WHERE = ("--hardware", "8xrtx-pro-6000", "--engine-version", "0.5.10")
EXAMPLE = Path(__file__).parent.parent / "docs" / "gate" / "example"
TRIES = (
    (("validate", CASE, *WHERE), 1, "spec-on-hybrid-needs-extra-buffer"),
    (("validate", f"{CASE} --mamba-scheduler-strategy extra_buffer", *WHERE), 0, "valid"),
    (("solve", "--model", "qwen3.5-397b-a17b-nvfp4", *WHERE, "--", "--tp", "8"), 0, "proven optimal"),
    (("gate", str(EXAMPLE)), 1, "4 launches in 4 files, 3 errors"),
)
"""Arguments, the exit status they must have, and a word of the output."""


def main(dist: Path) -> int:
    wheel = max(dist.resolve().glob("flagwise-*.whl"), key=lambda p: p.stat().st_mtime)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "env", with_pip=True)
        binaries = home / "env" / "bin"
        subprocess.run(
            [binaries / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel], check=True
        )
        env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "FLAGWISE_KNOWLEDGE")}
        env["FLAGWISE_CACHE"] = str(home / "cache")
        for args, status, word in TRIES:
            done = subprocess.run(
                [binaries / "flagwise", *args], cwd=home, env=env, capture_output=True, text=True, check=False
            )
            if done.returncode != status or word not in done.stdout:
                print(f"the wheel fails: flagwise {' '.join(args)}\n{done.stdout}{done.stderr}")
                return 1
        if (home / "cache").exists():
            print("the wheel's sealed knowledge was not used: a cache was written")
            return 1
    print(f"{wheel.name}: installed outside the checkout, {len(TRIES)} commands as expected")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
