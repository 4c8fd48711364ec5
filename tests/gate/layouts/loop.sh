for tp in 1 2 4; do
  docker run --rm --gpus all -e HF_TOKEN -e NCCL_DEBUG=WARN \
    lmsysorg/sglang:v0.5.12-cu130 \
    python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp $tp
done
# python3 -m sglang.launch_server --model-path commented/out
echo "start python3 -m sglang.launch_server by hand"
