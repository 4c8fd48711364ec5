import modal

image = modal.Image.from_registry("lmsysorg/sglang:v0.5.9")
BASE = ["python", "-m", "sglang.launch_server"]
COMMANDS = [
    "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 1",
    "python -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 2",
]


def command(model, extra=()):
    return ["python", "-m", "sglang.launch_server", "--model-path", model, "--host", "0.0.0.0"] + list(extra)
