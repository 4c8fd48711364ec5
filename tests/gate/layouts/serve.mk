FLAGS = --tp 4 \
  --enable-metrics

run-%:
	CUDA_VISIBLE_DEVICES=0 python -m sglang.launch_server --model-path "$(MODELS)/$*" --tp 1
