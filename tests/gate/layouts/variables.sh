#!/bin/bash
MODEL=$1
CMD="python3 -m sglang.launch_server --model-path $MODEL --tp ${TP:-4}"
if [ "$MODE" = spec ]; then
  CMD="$CMD --speculative-algorithm EAGLE"
fi
CMD+=" --port 30000"
echo "$CMD"
eval "$CMD" &

ENGINE=(sglang serve --model-path Qwen/Qwen3-8B)
"${ENGINE[@]}" --port 30001 2>&1 | tee log
kubectl exec pod -- sh -c "exec ${ENGINE[*]} --port 30002"
