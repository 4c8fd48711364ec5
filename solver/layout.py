"""One layout of a launch, as the cost model looks at it."""

from __future__ import annotations

from typing import Literal

import msgspec

AllReduce = Literal["nccl", "custom", "mscclpp", "symm_mem", "fusion", "pcie_oneshot", "pcie_ipc"]


class Setting(msgspec.Struct, frozen=True):
    """One layout. `dp` counts whole replicas that share the requests, `attention_dp` attention replicas inside one
    tensor-parallel group, `dcp` ranks that share the KV cache of one request.

    `kernel`, `attention`, `a2a`: MoE runner, attention backend and expert exchange in force; `sparse`: the backend
    reads only what the model's indexer picks. `prompt` and `output`: tokens of a request; with both, a token also
    waits for the prompts of the other requests.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    attention_dp: int = 1
    dcp: int = 1
    draft_steps: int = 0
    draft_tokens: int = 0
    allreduce: AllReduce = "nccl"
    overlap: bool = True
    cuda_graph: bool = True
    concurrency: int = 1
    context: int = 4096
    kv_dtype_bytes: float = 2.0
    kernel: str = ""
    attention: str = ""
    a2a: str = "none"
    sparse: bool = False
    prompt: int = 0
    output: int = 0

    @property
    def verified(self) -> int:
        """Tokens of one request that the target model verifies at once."""
        return max(self.draft_tokens, self.draft_steps + 1) if self.draft_steps else 1

    @property
    def requests(self) -> int:
        """Requests in a batch of the busiest replica."""
        return -(-self.concurrency // self.dp)

    @property
    def rank_requests(self) -> int:
        """Requests of the busiest attention replica."""
        return -(-self.requests // self.attention_dp)

    @property
    def attention_tp(self) -> int:
        """Ranks of one attention replica."""
        return max(1, self.tp // self.attention_dp)


def cache_format(setting: Setting) -> str:
    """The nearest cache format that was measured."""
    return "fp8" if setting.kv_dtype_bytes <= 1 else "bf16"
