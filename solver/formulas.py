"""One model and machine -> what `fitting` and `cost` say to the arguments of a figure, each worked out once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from solver.compiled import Program
from solver.conditions import Unknown
from solver.facts import Facts, make_room
from solver.index import Index
from solver.memory import BYTES, resolved_kv_dtype

DRAFT_METHOD = "mtp"
DRAFT = ("draft_steps", "draft_tokens")
"""Arguments that say how much is drafted."""

SIZES = ("tp", "pp", "dp", "ep", "attention_dp")
"""Arguments that count GPUs: a launch with fewer than one of them has no figures (and errors of its own)."""

UNMEASURED = "a kernel that nobody measured"


class MemoryFormula:
    """solver/fitting.py on one model and machine."""

    def __init__(self, facts: Facts) -> None:
        from solver.fitting import Settings, fits, fitting_tp

        self.facts = facts
        self._fits, self._smallest_tp, self._form = fits, fitting_tp, Settings
        self._missing = missing_for_memory(facts)
        self._kept: dict[tuple[Any, ...], Any] = {}
        self._last: tuple[Any, Any] = (None, None)
        self._fitting: tuple[Any, int | None] = (None, None)

    def figure(self, name: str, arguments: dict[str, Any]) -> Any:
        """One field of the `Memory` record; null where the arguments describe no layout."""
        memory = self.memory(arguments)
        if type(memory) is Unknown and name == "short":
            return self._short_anyway(arguments) or memory
        if memory is None or type(memory) is Unknown:
            return memory
        return self._fitting_tp(arguments) if name == "fitting_tp" else memory.figure(name)

    def _fitting_tp(self, arguments: dict[str, Any]) -> int | None:
        if arguments is not self._fitting[0]:
            found = self._smallest_tp(self.facts.model, self.facts.hardware, self._settings(arguments))
            self._fitting = (arguments, found)
        return self._fitting[1]

    def _short_anyway(self, arguments: dict[str, Any]) -> str | None:
        """What is too large whatever the draft weighs that nobody sized."""
        without = self.memory({**arguments, "mtp_draft": False})
        return None if type(without) is Unknown or without.short not in ("weights", "kv cache") else str(without.short)

    def memory(self, arguments: dict[str, Any]) -> Any:
        """The `Memory` record, Unknown when the model's shape or the machine is not known, null without a layout."""
        if arguments is not self._last[0]:  # figures are asked for in a row
            key = tuple(arguments.values())
            if key not in self._kept:
                make_room(self._kept)
                self._kept[key] = self._sized(arguments)
            self._last = (arguments, self._kept[key])
        return self._last[1]

    def _sized(self, arguments: dict[str, Any]) -> Any:
        if not usable(arguments):
            return None
        if missing := self._missing or _unsized(self.facts, arguments):
            return Unknown(missing)
        return self._fits(self.facts.model, self.facts.hardware, self._settings(arguments))

    def _settings(self, arguments: dict[str, Any]) -> Any:
        return self._form(**{k: v for k, v in arguments.items() if v is not None})


def usable(arguments: Mapping[str, Any]) -> bool:
    """Whether the arguments describe a layout at all."""
    for size in SIZES:
        value = arguments.get(size)
        if value is not None and value < 1:
            return False
    return True


def _unsized(facts: Facts, arguments: dict[str, Any]) -> tuple[str, ...]:
    """A KV cache dtype whose size per value is not known, or a draft of the checkpoint's own whose size is not."""
    if resolved_kv_dtype(facts.model, arguments.get("kv_dtype") or "auto") not in BYTES:
        return ("flag.kv_cache_dtype",)
    drafts = arguments.get("draft_tokens") and arguments.get("mtp_draft") and facts.model.get("mtp_layers")
    return ("model.mtp_gib",) if drafts and facts.model.get("mtp_gib") is None else ()


STATE_TRAITS = (
    "linear_k_heads",
    "linear_v_heads",
    "linear_k_head_dim",
    "linear_v_head_dim",
    "conv_kernel",
    "ssm_state_elems",
)
"""What the size of a recurrent state takes besides."""


def missing_for_memory(facts: Facts) -> tuple[str, ...]:
    """The traits without which memory cannot be computed and that are not known."""
    needed = ["layers", "hidden", "other_gib", "kv_lora_rank" if facts.model.get("mla") else "kv_heads"]
    needed += STATE_TRAITS if facts.model.get("linear_layers") else ()
    model = tuple(f"model.{n}" for n in needed if facts.model.get(n) is None)
    known = facts.hardware.get("memory_mib") or facts.hardware.get("memory_gib")
    return model + (() if known else ("hardware.memory_gib",))


class LayoutFormula:
    """solver/cost.py on one model and machine under one release."""

    def __init__(self, index: Index, program: Program, facts: Facts) -> None:
        self.index, self.program, self.facts = index, program, facts
        self._prepared: Any = None
        self._accepted: dict[int, Any] = {}
        self._best: dict[tuple[Any, ...], float | None] = {}
        self._kept: dict[Any, Any] = {}
        self._figures: dict[tuple[Any, ...], Any] = {}
        self._settings: dict[tuple[Any, ...], Any] = {}

    def figure(self, name: str, arguments: dict[str, Any]) -> Any:
        """One figure; null where the arguments describe no layout."""
        key = (name, *arguments.values())
        if key not in self._figures:
            make_room(self._figures)
            self._figures[key] = self._figure(name, arguments) if usable(arguments) else None
        return self._figures[key]

    def _figure(self, name: str, arguments: dict[str, Any]) -> Any:
        used = arguments["tp"] * arguments["pp"] * arguments["dp"]
        if name == "gpus_used":
            return used
        if name == "idle_gpus":
            return self.facts.hardware["gpus"] - used if "gpus" in self.facts.hardware else Unknown(("hardware.gpus",))
        missing = tuple(f"model.{n}" for n in ("layers", "hidden") if self.facts.model.get(n) is None)
        missing = missing or _unsized(self.facts, arguments)
        if missing:
            return Unknown(missing)
        if name == "accepted_tokens":
            accepted = self.accepted(arguments["draft_steps"]) if arguments["draft_steps"] else 1.0
            return accepted if isinstance(accepted, float | None) else accepted.value
        if name == "draft_latency_ratio":
            return self._ratio(arguments)
        if name == "pcie_roundtrips_per_token":
            estimate = self.estimate(name, arguments)
            return estimate.value if estimate.known else None
        us = self.central(arguments)
        if name == "throughput":
            return self.setting(arguments).concurrency * 1e6 / us if us else None
        return us

    def central(self, arguments: dict[str, Any]) -> float | None:
        """The time per token without its range."""
        from solver.cost import token_us

        setting = self.setting(arguments)
        if setting not in self._kept:
            self._kept[setting] = token_us(self.prepared(), setting, self.accepted(setting.draft_steps))
        found: float | None = self._kept[setting]
        return found

    def estimate(self, name: str, arguments: dict[str, Any]) -> Any:
        """The full `Estimate` of a metric, with range and inputs."""
        from solver import cost

        formulas = {"token_latency_us": cost.token_latency, "throughput": cost.throughput}
        setting = self.setting(arguments)
        key = (name, setting)
        if key not in self._kept:
            formula = formulas.get(name, cost.round_trips)
            self._kept[key] = formula(self.prepared(), setting, self.accepted(setting.draft_steps))
        return self._kept[key]

    def setting(self, arguments: dict[str, Any]) -> Any:
        """The cost model's layout record."""
        key = tuple(arguments.values())
        if key not in self._settings:
            from solver.cost import Setting

            values = {k: v for k, v in arguments.items() if v is not None and k != "kv_dtype"}
            width = BYTES[resolved_kv_dtype(self.facts.model, arguments.get("kv_dtype") or "auto")]
            self._settings[key] = Setting(**values, kv_dtype_bytes=width)
        return self._settings[key]

    def like(self, argument: str) -> Callable[[Any], Any] | None:
        """What stands for a value of an argument in the formula: kernels without a measured line all count alike."""
        if argument not in ("kernel", "attention"):
            return None
        measured = {line.kernel for line in self.prepared().costs.kernels}
        return lambda value: value if value in measured or not value else UNMEASURED

    def prepared(self) -> Any:
        if self._prepared is None:
            from solver.constants import load_costs
            from solver.cost import prepare

            data = self.index.data
            gpu, sm, kind = (self.facts.hardware.get(name) for name in ("gpu", "sm", "link"))
            every = [v for k, v in data.items() if k.startswith("links/")]
            like = {entry["like"] for entry in data["sglang/costs"]["stand_ins"] if entry["link"] == kind}
            own = [v for v in every if gpu in v["gpus"]]
            measured = max((rate["gpus"] for v in own for rate in v["rates"]), default=0)
            borrowed = measured < min(8, self.facts.hardware.get("gpus", 8))
            links = [*own, *(v for v in every if borrowed and v["id"] in like and v not in own)]
            acceptance = [v for k, v in data.items() if k.startswith("acceptance/")]
            kernels = [k for k in data["sglang/kernels"] if gpu in k.get("gpus", ()) or sm in k.get("sm", ())]
            costs = load_costs(data["sglang/costs"], kernels, links, acceptance)  # of this machine: quicker to convert
            self._prepared = prepare(self.facts.model, self.facts.hardware, costs, self.program.release)
        return self._prepared

    def accepted(self, steps: int) -> Any:
        """Accepted tokens for a number of draft steps: stated in the request (a pass yields no more than its drafts and
        one), else the measured row, else None."""
        from solver.acceptance import accepted_tokens

        if not steps:
            return None
        stated = self.facts.request.get("accept_length")
        if stated:
            return min(float(stated), steps + 1.0)
        if steps not in self._accepted:
            rows = self.prepared().costs.acceptance
            self._accepted[steps] = accepted_tokens(self.facts.model, steps, rows, DRAFT_METHOD)
        return self._accepted[steps]

    def _ratio(self, arguments: dict[str, Any]) -> Any:
        """Latency here over the best latency with any measured number of draft steps in the same layout."""
        here = self.figure("token_latency_us", arguments)
        if not here:
            return None
        layout = tuple([value for name, value in arguments.items() if name not in DRAFT])
        if layout not in self._best:
            self._best[layout] = self._best_latency(arguments)
        return here / min(here, self._best[layout] or here)

    def _best_latency(self, arguments: dict[str, Any]) -> float | None:
        """The best latency over the measured numbers of draft steps, none among them."""
        from solver.acceptance import measured_steps

        measured = measured_steps(self.facts.model, self.prepared().costs.acceptance, DRAFT_METHOD)
        drafts = [(0, 0), *((steps, steps + 1) for steps in measured)]
        tries = [{**arguments, "draft_steps": steps, "draft_tokens": tokens} for steps, tokens in drafts]
        return min([v for t in tries if (v := self.figure("token_latency_us", t))], default=None)
