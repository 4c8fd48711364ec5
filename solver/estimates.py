"""Effective values and traits -> the computed figures that rules and goals name as `estimate.x`, each with its inputs.

What an argument of a formula is made of (`knowledge/sglang/estimates.yaml`) is data; the formulas are in `fitting` and
`cost`. A figure is Unknown while something that it needs is, and null where a measured constant does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from typing import Any

from solver.compiled import Program
from solver.conditions import Evaluator, Unknown, evaluator
from solver.facts import Facts, Keys, State, gatherer, make_room
from solver.index import Index
from solver.nodes import Node, names_in

DRAFT_METHOD = "mtp"
DRAFT = ("draft_steps", "draft_tokens")
"""Arguments that say how much is drafted."""

SIZES = ("tp", "pp", "dp", "ep", "attention_dp")
"""Arguments that count GPUs: a launch with fewer than one of them has no figures (and errors of its own)."""

UNMEASURED = "a kernel that nobody measured"

SILENT = frozenset({"states_short"})
"""Figures that are null, not unknown, while something they take is unknown: what rests on them then says nothing."""

KEPT_AT_MOST = 256

Names = tuple[tuple[str, str], ...]


class Expressions:
    """The arguments of one formula in one release; what they need is made when it is first asked for."""

    def __init__(self, nodes: Mapping[str, Node], program: Program) -> None:
        self.nodes = nodes
        self._program = program
        self._worked_out: tuple[Hashable, Any] = (None, None)
        self._kept: dict[Hashable, dict[str, Any]] = {}

    @cached_property
    def _computed(self) -> dict[str, Evaluator]:
        """Of the arguments that are more than a fact's value."""
        nodes = ((argument, node) for argument, node in self.nodes.items() if node[0] != "name")
        return {argument: evaluator(node, self._program.tables) for argument, node in nodes}

    @cached_property
    def _looked_up(self) -> list[tuple[str, str, str]]:
        return [(argument, *node[1:]) for argument, node in self.nodes.items() if node[0] == "name"]

    @cached_property
    def _decisive(self) -> Callable[[Keys], Hashable]:
        """Gets what the computed arguments look at."""
        computed = (node for argument, node in self.nodes.items() if argument in self._computed)
        return gatherer(dict.fromkeys(name for node in computed for name in names_in(node)))

    @cached_property
    def inputs(self) -> Names:
        return tuple(dict.fromkeys(n for node in self.nodes.values() for n in names_in(node)))

    @cached_property
    def gather(self) -> Callable[[Keys], Hashable]:
        """Gets what `inputs` are compared by."""
        return gatherer(self.inputs)

    def arguments(self, state: State, inputs: Hashable) -> Any:
        """The formula's arguments in a state, or Unknown; the last are kept, since figures are asked for in a row."""
        if self._worked_out[0] != inputs:
            values = dict.fromkeys(self.nodes)
            values.update(self._values(state))
            for argument, space, name in self._looked_up:
                values[argument] = state.get(space, name)
            unknown = [v for v in values.values() if type(v) is Unknown]
            names = tuple(dict.fromkeys(n for u in unknown for n in u.names))
            self._worked_out = (inputs, Unknown(names) if unknown else values)
        return self._worked_out[1]

    def _values(self, state: State) -> dict[str, Any]:
        """The computed arguments: launches differ in few of the facts that these look at."""
        key = self._decisive(state.keys)
        found = self._kept.get(key)
        if found is None:
            make_room(self._kept)
            found = self._kept[key] = {name: run(state) for name, run in self._computed.items()}
        return found


class Figure:
    """One computed figure: callable on a state, with the expressions of its arguments and the facts they look at."""

    __slots__ = ("_expressions", "_kept", "_name", "_values", "formula")

    def __init__(self, name: str, expressions: Expressions, formula: Any) -> None:
        self._name = name
        self._expressions = expressions
        self._kept: dict[tuple[Any, ...], Any] = {}
        self._values: dict[Hashable, Any] = {}
        self.formula = formula

    @property
    def nodes(self) -> Mapping[str, Node]:
        return self._expressions.nodes

    @property
    def inputs(self) -> Names:
        return self._expressions.inputs

    def like(self, argument: str) -> Callable[[Any], Any] | None:
        """A function to the value that stands for each value of an argument, with the same figure; None: its own."""
        found = getattr(self.formula, "like", None)
        return found(argument) if found else None

    def arguments(self, state: State) -> Any:
        """The formula's arguments in a state, or Unknown."""
        return self._expressions.arguments(state, self._expressions.gather(state.keys))

    def __call__(self, state: State) -> Any:
        inputs = self._expressions.gather(state.keys)
        try:
            return self._values[inputs]
        except KeyError:
            make_room(self._values)
            value = self._values[inputs] = self._value(state, inputs)
            return value

    def _value(self, state: State, inputs: Hashable) -> Any:
        arguments = self._expressions.arguments(state, inputs)
        value = arguments if type(arguments) is Unknown else self.compute(arguments)
        return None if type(value) is Unknown and self._name in SILENT else value

    def compute(self, arguments: dict[str, Any]) -> Any:
        """The figure for known arguments; null where they describe no layout."""
        if not usable(arguments):
            return None
        key = tuple(arguments.values())
        if key not in self._kept:
            make_room(self._kept)
            self._kept[key] = self.formula.figure(self._name, arguments)
        return self._kept[key]


def usable(arguments: Mapping[str, Any]) -> bool:
    """Whether the arguments describe a layout at all."""
    return all(arguments.get(size) is None or arguments[size] >= 1 for size in SIZES)


NAMES: dict[str, str] = {
    "weights_gib": "memory",
    "static_gib": "memory",
    "have_gib": "memory",
    "need_gib": "memory",
    "kv_pool_gib": "memory",
    "state_pool_gib": "memory",
    "kv_tokens": "memory",
    "state_slots": "memory",
    "states_short": "memory",
    "slots_per_request": "memory",
    "requests": "memory",
    "short": "memory",
    "fitting_tp": "memory",
    "token_latency_us": "layout",
    "pcie_roundtrips_per_token": "layout",
    "draft_latency_ratio": "layout",
    "accepted_tokens": "layout",
    "throughput": "layout",
    "idle_gpus": "layout",
    "gpus_used": "layout",
}
"""Figure -> the formula whose arguments it takes."""
FORMULAS = tuple(dict.fromkeys(NAMES.values()))


_expressions: dict[int, tuple[Program, dict[str, Expressions]]] = {}
_figures: dict[tuple[Any, ...], Figures] = {}


class Figures(dict[str, Figure]):
    """The figures of one model, machine and release by name, each made when it is first asked for."""

    def __init__(self, index: Index, program: Program, facts: Facts) -> None:
        super().__init__()
        self._about = (index, program, facts)
        self._formulas: dict[str, Any] = {}

    def __missing__(self, name: str) -> Figure:
        index, program, facts = self._about
        kind = NAMES[name]
        if kind not in self._formulas:
            self._formulas[kind] = _Memory(facts) if kind == "memory" else _Layout(index, program, facts)
        figure = self[name] = Figure(name, _expressions_of(program)[kind], self._formulas[kind])
        return figure


def estimates_for(index: Index, program: Program, facts: Facts) -> Figures:
    """The figures of one model, machine and release, kept while the same ones are asked for again.

    Nothing is computed before a rule asks.
    """
    key = (id(index), id(program), id(facts.model), id(facts.hardware), *sorted(facts.request.items()))
    found = _figures.get(key)
    if found is None:
        if len(_figures) >= KEPT_AT_MOST:
            _figures.clear()
        found = _figures[key] = Figures(index, program, facts)  # keeps all these, so that their ids stay their own
    return found


def _expressions_of(program: Program) -> dict[str, Expressions]:
    if id(program) not in _expressions:
        made = {f: Expressions(program.arguments.get(f, {}), program) for f in FORMULAS}
        _expressions[id(program)] = (program, made)  # the program is kept, so that its id stays its own
    return _expressions[id(program)][1]


class _Memory:
    """solver/fitting.py on one model and machine."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._kept: dict[tuple[Any, ...], Any] = {}

    def figure(self, name: str, arguments: dict[str, Any]) -> Any:
        memory = self.memory(arguments)
        if type(memory) is Unknown:
            return memory
        if name == "fitting_tp":
            from solver.fitting import fitting_tp

            return fitting_tp(self.facts.model, self.facts.hardware, _settings(arguments))
        return getattr(memory, name)

    def memory(self, arguments: dict[str, Any]) -> Any:
        """The `Memory` record, or Unknown when the model's shape or the machine is not known."""
        missing = missing_for_memory(self.facts) or _unsized(self.facts, arguments)
        if missing:
            return Unknown(missing)
        key = tuple(arguments.values())
        if key not in self._kept:
            from solver.fitting import fits

            self._kept[key] = fits(self.facts.model, self.facts.hardware, _settings(arguments))
        return self._kept[key]


def _settings(arguments: dict[str, Any]) -> Any:
    from solver.fitting import Settings

    return Settings(**{k: v for k, v in arguments.items() if v is not None})


def _unsized(facts: Facts, arguments: dict[str, Any]) -> tuple[str, ...]:
    """A KV cache dtype whose size per value is not known, or a draft of the checkpoint's own whose size is not."""
    from solver.memory import BYTES, resolved_kv_dtype

    if resolved_kv_dtype(facts.model, arguments.get("kv_dtype") or "auto") not in BYTES:
        return ("flag.kv_cache_dtype",)
    drafts = arguments.get("draft_tokens") and arguments.get("mtp_draft") and facts.model.get("mtp_layers")
    return ("model.mtp_gib",) if drafts and facts.model.get("mtp_gib") is None else ()


MEMORY_TRAITS = ("layers", "hidden", "other_gib", "kv_heads")


def missing_for_memory(facts: Facts) -> tuple[str, ...]:
    """The traits without which memory cannot be computed and that are not known."""
    model = tuple(f"model.{n}" for n in MEMORY_TRAITS if facts.model.get(n) is None)
    known = facts.hardware.get("memory_mib") or facts.hardware.get("memory_gib")
    return model + (() if known else ("hardware.memory_gib",))


class _Layout:
    """solver/cost.py on one model and machine under one release."""

    def __init__(self, index: Index, program: Program, facts: Facts) -> None:
        self.index, self.program, self.facts = index, program, facts
        self._prepared: Any = None
        self._accepted: dict[int, Any] = {}
        self._best: dict[tuple[Any, ...], float | None] = {}
        self._kept: dict[Any, Any] = {}
        self._settings: dict[tuple[Any, ...], Any] = {}

    def figure(self, name: str, arguments: dict[str, Any]) -> Any:
        missing = tuple(f"model.{n}" for n in ("layers", "hidden") if self.facts.model.get(n) is None)
        missing = missing or _unsized(self.facts, arguments)
        if missing:
            return Unknown(missing)
        used = arguments["tp"] * arguments["pp"] * arguments["dp"]
        if name == "gpus_used":
            return used
        if name == "idle_gpus":
            return self.facts.hardware["gpus"] - used if "gpus" in self.facts.hardware else Unknown(("hardware.gpus",))
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
            from solver.memory import BYTES, resolved_kv_dtype

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
            gpu, sm = self.facts.hardware.get("gpu"), self.facts.hardware.get("sm")
            links = [v for k, v in data.items() if k.startswith("links/") and gpu in v["gpus"]]
            acceptance = [v for k, v in data.items() if k.startswith("acceptance/")]
            kernels = [k for k in data["sglang/kernels"] if gpu in k.get("gpus", ()) or sm in k.get("sm", ())]
            costs = load_costs(data["sglang/costs"], kernels, links, acceptance)  # of this machine: quicker to convert
            self._prepared = prepare(self.facts.model, self.facts.hardware, costs, self.program.release)
        return self._prepared

    def accepted(self, steps: int) -> Any:
        """Accepted tokens for a number of draft steps: stated in the request, else the measured row, else None."""
        from solver.acceptance import accepted_tokens

        if not steps:
            return None
        stated = self.facts.request.get("accept_length")
        if stated:
            return stated
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
