#!/usr/bin/env bash
set -euo pipefail

MODEL="Qwen/Qwen3-8B"
PORT=${PORT:-30000}

start() {
  local tp=$1
  shift
  CUDA_VISIBLE_DEVICES=0,1 python3 -m sglang.launch_server --model-path "$MODEL" --tp "$tp" "$@" &
}

wait_for() {
  until curl -sf "http://localhost:$1/health"; do sleep 2; done
}

start 2 --port "$PORT" --mem-fraction-static 0.8
wait_for "$PORT"
