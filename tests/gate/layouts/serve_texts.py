import os
import subprocess

MODEL = "Qwen/Qwen3-8B"
PORTS = (30000, 30001)


def start(tp, options):
    subprocess.run(
        f"CUDA_VISIBLE_DEVICES=0 python3 -m sglang.launch_server --model-path {MODEL} "
        f"--tp {tp} --json-model-override-args '{{\"rope_theta\": 1000000}}' \\\n"
        "  --enable-metrics",
        shell=True,
    )
    os.system("sglang serve --model-path %s --tp %d" % (MODEL, tp))  # noqa: UP031
    os.system("sglang serve --model-path {} --port {port}".format("a/b", port=PORTS[0]))  # noqa: UP032
    lines = ["python -m sglang.launch_server \\", f"  --model-path {MODEL} \\", "  --tp 4"]
    subprocess.run(["bash", "-c", "\n".join(lines)])
    words = ["python -m sglang.launch_server", "--model-path", MODEL, "--tp 8"]
    return " ".join(words) + options
