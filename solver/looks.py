"""The rules of a release -> the flags and variables whose value they look at, and those of which a condition is enough.

Working it out means a walk over every condition of the release, so it is compiled and kept beside the program.
"""

# no deferred annotations here, as in `compiled`
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from solver.conditions import evaluator
from solver.nodes import Node
from solver.screening import Only, is_false, screening_of

if TYPE_CHECKING:
    from solver.compiled import Program

Name = tuple[str, str]
"""Namespace and name of a fact; a given value goes by the name of its flag."""
ALWAYS = -1


class Looks(msgspec.Struct, frozen=True, array_like=True):
    """What the rules of a program look at.

    `values`: namespace, name, and the rules that look at the value itself (bits, little-endian; None: it always
    counts). `conditions`: flags of which it may count only which conditions hold, and the rules that each rules out
    while it is not given. `fixed`: those of them that no rule writes.
    """

    values: tuple[tuple[str, str, bytes | None], ...]
    conditions: tuple[tuple[str, bytes], ...]
    fixed: tuple[str, ...]


def looks_of(program: "Program") -> Looks:
    """What the rules of a program look at."""
    values: dict[Name, int] = {}
    conditions: set[str] = set()
    written: set[str] = set()

    def add(names: Iterable[Name], rules: int) -> None:
        for space, name in names:
            key = plain_name(space, name)
            values[key] = values.get(key, 0) | rules

    for place, rule in enumerate(program.rules):
        targets = [(s.space, s.name) for b in rule.branches for s in b.sets]
        written.update([name for _, name in targets], rule.leaves_open)
        add(targets, ALWAYS)
        acts = [*rule.require, *rule.forbid, *(n for b in rule.branches for n in b.when)]
        for nodes in (*([node] for node in rule.when), acts):
            names = names_of(nodes)
            conditions.update([name for space, name in names if space in ("flag", "given")])
            if len(names) > 1 or ("env" in {space for space, _ in names}):
                add(names, 1 << place)
        computed = [n for n in rule.fix_when if n is not None] + [s.value for b in rule.branches for s in b.sets]
        add(names_of([*computed, *(node for _, node in rule.let)]), 1 << place)
    add(names_of([node for arguments in program.arguments.values() for node in arguments.values()]), ALWAYS)
    size = len(program.rules) // 8 + 1
    unset = _ruled_out(program, sorted(conditions))
    return Looks(
        tuple((*name, None if m == ALWAYS else m.to_bytes(size, "little")) for name, m in sorted(values.items())),
        tuple((flag, mask.to_bytes(size, "little")) for flag, mask in unset.items()),
        tuple(sorted(conditions - written)),
    )


def _ruled_out(program: "Program", flags: Iterable[str]) -> dict[str, int]:
    """The rules that each flag rules out while it is not given."""
    found = dict.fromkeys(flags, 0)
    for test in (program.screening or screening_of(program)).tests:
        if test.name in found and test.space in ("flag", "given"):
            value = program.unset_flags.get(test.name) if test.space == "flag" else None
            if is_false(evaluator(test.node, program.tables)(Only(value))):
                for place in test.rules:
                    found[test.name] |= 1 << place
    return found


def names_of(nodes: Sequence[Node]) -> set[Name]:
    """The facts that some nodes name, `let` names among them."""
    found: set[Name] = set()
    rest: list[Any] = list(nodes)
    while rest:
        item = rest.pop()
        if item and item[0] == "name":
            found.add((item[1], item[2]))
        elif not item or item[0] != "lit":
            rest += [child for child in item if type(child) is list]
    return found


def plain_name(space: str, name: str) -> Name:
    """The name of a fact, a given value under its flag's."""
    return ("flag" if space == "given" else space), name
