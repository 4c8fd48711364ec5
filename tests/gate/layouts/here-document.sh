#!/bin/sh
cat > /tmp/run.sh <<'END'
export NCCL_DEBUG=INFO
sglang serve --model-path Qwen/Qwen3-8B \
  --port 30001
END
ssh gpu-1 'bash -s' < /tmp/run.sh
ssh gpu-2 "cd /srv && nohup python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 4 > log 2>&1 &"
