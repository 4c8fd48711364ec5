"""Effective values and traits -> the computed figures that rules and goals name as `estimate.x`, each with its inputs.

What an argument of a formula is made of (`knowledge/sglang/estimates.yaml`) is data; what is computed from them is in
`formulas`. A figure is Unknown while something that it needs is, and null where a measured constant does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from typing import Any

from solver.compiled import Program
from solver.conditions import Evaluator, Unknown, evaluator
from solver.facts import Facts, Keys, State, gatherer, make_room
from solver.formulas import LayoutFormula, MemoryFormula
from solver.index import Index
from solver.nodes import Node, names_in

SILENT = frozenset({"states_short"})
"""Figures that are null, not unknown, while something they take is unknown: what rests on them then says nothing."""

CAUTIOUS = {"kv_dtype": "bf16", "kernel": "auto", "attention": "auto"}
"""What an argument counts as while it is not known: the end that asks for more memory and time (a kernel that nobody
measured takes the slowest line of its format)."""

KEPT_AT_MOST, MEMORY_KEPT_AT_MOST = 256, 1024

Names = tuple[tuple[str, str], ...]


class Expressions:
    """The arguments of one formula in one release; what they need is made when it is first asked for.

    Those that are more than a fact's value are remembered together: launches differ in few of the facts they look at.
    """

    def __init__(self, nodes: Mapping[str, Node], program: Program) -> None:
        self.nodes = nodes
        self._tables, self._known = program.tables, program.flags
        self._kept: dict[Hashable, dict[str, Any]] = {}

    @cached_property
    def _flags(self) -> list[tuple[str, str]]:
        """The arguments that are a flag's value."""
        named = [(argument, node) for argument, node in self.nodes.items() if node[0] == "name"]
        return [(argument, node[2]) for argument, node in named if node[1] == "flag" and node[2] in self._known]

    @cached_property
    def _read(self) -> list[tuple[str, str, str]]:
        """Those that are another fact's, with its namespace and name."""
        flags = dict(self._flags)
        named = [(argument, node) for argument, node in self.nodes.items() if node[0] == "name"]
        return [(argument, node[1], node[2]) for argument, node in named if argument not in flags]

    @cached_property
    def _computed(self) -> dict[str, Evaluator]:
        """The others."""
        return {a: evaluator(node, self._tables) for a, node in self.nodes.items() if node[0] != "name"}

    @cached_property
    def _looked_at(self) -> Callable[[Keys], Hashable]:
        """Gets what the facts that the others look at are compared by."""
        return gatherer(dict.fromkeys(name for a in self._computed for name in names_in(self.nodes[a])))

    @cached_property
    def inputs(self) -> Names:
        return tuple(dict.fromkeys(n for node in self.nodes.values() for n in names_in(node)))

    def arguments(self, state: State) -> Any:
        """The formula's arguments in a state, or Unknown; kept until the next write, since figures are asked for in a
        row."""
        asked = state.asked
        if asked is None or asked[0] is not self:
            asked = state.asked = (self, _or_cautious(self._values(state)))
        return asked[1]

    def _values(self, state: State) -> dict[str, Any]:
        """The arguments in their order."""
        key = self._looked_at(state.keys)
        if key not in self._kept:
            make_room(self._kept)
            computed = {argument: evaluate(state) for argument, evaluate in self._computed.items()}
            self._kept[key] = {argument: computed.get(argument) for argument in self.nodes}
        values = self._kept[key].copy()
        flags = state.spaces["flag"]
        for argument, name in self._flags:
            values[argument] = flags[name]
        for argument, space, name in self._read:
            values[argument] = state.get(space, name)
        return values


def _or_cautious(values: dict[str, Any]) -> Any:
    """The arguments, those not known at their cautious end; Unknown where one has none."""
    if Unknown not in set(map(type, values.values())):
        return values
    values |= {name: cautious for name, cautious in CAUTIOUS.items() if type(values.get(name)) is Unknown}
    unknown = [v for v in values.values() if type(v) is Unknown]
    return Unknown(tuple(dict.fromkeys(n for u in unknown for n in u.names))) if unknown else values


class Figure:
    """One computed figure: callable on a state, with the expressions of its arguments and the facts they look at."""

    __slots__ = ("_expressions", "_name", "formula")

    def __init__(self, name: str, expressions: Expressions, formula: Any) -> None:
        self._name = name
        self._expressions = expressions
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
        return self._expressions.arguments(state)

    def __call__(self, state: State) -> Any:
        arguments = self._expressions.arguments(state)
        value = arguments if type(arguments) is Unknown else self.formula.figure(self._name, arguments)
        return None if type(value) is Unknown and self._name in SILENT else value

    def compute(self, arguments: dict[str, Any]) -> Any:
        """The figure for known arguments; null where they describe no layout."""
        return self.formula.figure(self._name, arguments)


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
_memory: dict[tuple[int, int], MemoryFormula] = {}


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
            self._formulas[kind] = _memory_of(facts) if kind == "memory" else LayoutFormula(index, program, facts)
        figure = self[name] = Figure(name, _expressions_of(program)[kind], self._formulas[kind])
        return figure


def _memory_of(facts: Facts) -> MemoryFormula:
    """The formula of one model and machine, whatever the release."""
    key = (id(facts.model), id(facts.hardware))
    found = _memory.get(key)
    if found is None:
        if len(_memory) >= MEMORY_KEPT_AT_MOST:
            _memory.clear()
        found = _memory[key] = MemoryFormula(facts)  # keeps both, so that their ids stay their own
    return found


def estimates_for(index: Index, program: Program, facts: Facts) -> Figures:
    """The figures of one model, machine and release, kept while the same ones are asked for again.

    Nothing is computed before a rule asks.
    """
    key = (id(index), id(program), id(facts.model), id(facts.hardware), *facts.request.items())
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
