FROM lmsysorg/sglang:v0.5.9 AS base
ENV SGLANG_ENABLE_SPEC_V2=1
ENTRYPOINT ["python3", "-m", "sglang.launch_server"]

FROM base AS warm
RUN --mount=type=cache,target=/root/.cache \
    python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --port 1 & sleep 60

FROM base
CMD ["--model-path", "Qwen/Qwen3-8B", "--tp", "2"]
