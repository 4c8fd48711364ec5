"""The rules of a release, sorted by the single facts that their conditions look at -> what `screen` needs at run time.

It is compiled into the release's program; a program with other rules or flags has it worked out anew.
"""

# no deferred annotations here, as in `compiled`
from typing import TYPE_CHECKING, Any

import msgspec

from solver.conditions import Unknown, evaluator
from solver.nodes import Node, inlined, names_in

if TYPE_CHECKING:
    from solver.compiled import CompiledRule, Program

READ_AT_ONCE = ("flag", "given", "env", "model", "hardware", "software", "request")
"""Namespaces whose values are there; an estimate would have to be computed first."""
OF_TRAITS = ("model", "hardware")


class Test(msgspec.Struct, frozen=True, array_like=True):
    """A condition on one fact, or on several traits of the model or the machine (`name` null), and whose it is.

    `rules`: places in the program.
    """

    space: str
    name: str | None
    node: Node
    rules: tuple[int, ...]


class Screening(msgspec.Struct, frozen=True, array_like=True):
    """`blockers`: a byte a rule, how many facts rule it out while nothing is given.

    `asleep`: a byte a rule, 1 where it does nothing on any model and machine until one of its flags or variables is not
    as it is when nothing is given; `wakes`: those flags and variables, and the places of their rules.
    """

    tests: tuple[Test, ...]
    blockers: bytes
    asleep: bytes
    wakes: tuple[tuple[str, str, tuple[int, ...]], ...]


def screening_of(program: "Program") -> Screening:
    """The conditions of a program that look at one fact, and what they rule out while no flag or variable is given."""
    found: dict[bytes, tuple[str, str | None, Node, dict[int, None]]] = {}
    never = []
    for place, rule in enumerate(program.rules):
        for node in conditions_of(rule):
            names = names_in(node)
            spaces = {space for space, _ in names}
            if not names:
                never += [place] if is_false(evaluator(node, program.tables)(Only(None))) else []
            elif len(spaces) == 1 and names[0][0] in (READ_AT_ONCE if len(names) == 1 else OF_TRAITS):
                name = names[0][1] if len(names) == 1 else None
                kept = found.setdefault(msgspec.msgpack.encode(node), (names[0][0], name, node, {}))
                kept[3][place] = None
    tests = tuple(Test(space, name, node, tuple(rules)) for space, name, node, rules in found.values())
    wakes = tuple(_wakes(program))
    asleep = bytearray(len(program.rules))
    for *_, places in wakes:
        for place in places:
            asleep[place] = 1
    return Screening(tests, _blockers(program, tests, never), bytes(asleep), wakes)


def _wakes(program: "Program") -> list[tuple[str, str, tuple[int, ...]]]:
    from solver.decisions import Ready

    state = _Unset(program)
    sleeping: dict[int, list[tuple[str, str]]] = {}
    written: set[tuple[str, str]] = set()
    for place, rule in enumerate(program.rules):
        names = [name for name in names_of(rule) if name[0] in state.values]
        if names and Ready(rule, program.tables).decide(state) is None:  # type: ignore[arg-type]  # reads it the same way
            sleeping[place] = names
        else:
            written |= {(item.space, item.name) for branch in rule.branches for item in branch.sets}
    found: dict[tuple[str, str], list[int]] = {}
    for place, names in sleeping.items():
        if written.isdisjoint(names):  # what nearly every launch would wake need not be put to sleep
            for name in names:
                found.setdefault(name, []).append(place)
    return [(space, name, tuple(places)) for (space, name), places in found.items()]


class _Unset:
    """The state of a launch that gives nothing, on a model and a machine of which nothing is known."""

    def __init__(self, program: "Program") -> None:
        self.values: dict[str, dict[str, Any]] = {"flag": program.unset_flags, "given": {}, "env": program.unset_env}
        self.spaces: dict[str, dict[str, Any]] = {**self.values, "let": {}}

    def get(self, space: str, name: str) -> Any:
        return self.spaces[space].get(name) if space in self.spaces else Unknown((f"{space}.{name}",))


def names_of(rule: "CompiledRule") -> tuple[tuple[str, str], ...]:
    """All facts that a rule reads."""
    branches = (node for b in rule.branches for node in (*b.when, *(s.value for s in b.sets)))
    nodes = (*(node for _, node in rule.let), *rule.when, *rule.require, *rule.forbid, *branches)
    return tuple(dict.fromkeys(name for node in nodes for name in names_in(node) if name[0] != "let"))


def _blockers(program: "Program", tests: tuple[Test, ...], never: list[int]) -> bytes:
    values = _Unset(program).values
    ruled_out: dict[tuple[str, str], set[int]] = {("", ""): set(never)}
    for test in tests:
        if test.space in values and test.name is not None:
            state = Only(values[test.space].get(test.name))
            if is_false(evaluator(test.node, program.tables)(state)):
                ruled_out.setdefault((test.space, test.name), set()).update(test.rules)
    found = bytearray(len(program.rules))
    for places in ruled_out.values():
        for place in places:
            found[place] += 1
    return bytes(found)


def bits(places: tuple[int, ...]) -> int:
    """The bit mask of some places."""
    found = 0
    for place in places:
        found |= 1 << place
    return found


def is_false(value: Any) -> bool:
    return type(value) is not Unknown and not value


class Only:
    """A state of which only one value is ever asked."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def get(self, space: str, name: str) -> Any:
        return self.value


def lets_of(rule: "CompiledRule") -> dict[str, Node]:
    """The intermediate values of a rule, each in terms of facts alone."""
    lets: dict[str, Node] = {}
    for name, node in rule.let:
        lets[name] = inlined(node, lets)
    return lets


def conditions_of(rule: "CompiledRule") -> list[Node]:
    """Conditions without which the rule neither writes nor fires, `let` names replaced by what they stand for."""
    lets = lets_of(rule)
    if rule.branches:
        acts: Node = ["or", [["and", list(b.when)] for b in rule.branches]]
    else:
        acts = ["or", [*(["not", n] for n in rule.require), *rule.forbid]]
    nodes = (*rule.when, acts)
    return [part for node in nodes for part in _conjuncts(inlined(node, lets) if lets else node)]


def _conjuncts(node: Node) -> list[Node]:
    """The parts of a condition all of which must hold."""
    inner = node[1]
    if node[0] == "and":
        return [part for n in inner for part in _conjuncts(n)]
    if node[0] == "or" and len(inner) == 1:
        return _conjuncts(inner[0])
    if node[0] == "not" and inner[0] == "or":
        return [part for n in inner[1] for part in _conjuncts(["not", n])]
    if node[0] == "not" and inner[0] == "not":
        return _conjuncts(inner[1])
    return [node]
