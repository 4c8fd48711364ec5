#!/usr/bin/env bash
set -euo pipefail
export SGLANG_ENABLE_SPEC_V2=1

serve() {
  exec python3 -m sglang.launch_server \
    --model-path nvidia/Qwen3.5-397B-A17B-NVFP4 \
    --kv-cache-dtype bf16 \
    --tp 8 "$@"
}

serve --speculative-algorithm NEXTN
