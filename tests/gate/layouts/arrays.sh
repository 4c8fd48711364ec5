#!/bin/bash
export SGLANG_ENABLE_SPEC_V2=1
ARGS=(
  --model-path deepseek-ai/DeepSeek-R1-0528   # the checkpoint
  --tp 8
  --trust-remote-code
)
if [[ -n "${DEBUG:-}" ]]; then
  ARGS+=(--log-level debug)
fi
ARGS+=(--port 30000)
exec python -m sglang.launch_server "${ARGS[@]}"
