"""Conflicts and repairs on generated rules: minimal, smallest, complete, judged by enumeration alone."""

from __future__ import annotations

import itertools
import random
from typing import NamedTuple

import pytest

from solver.conflict import smallest
from solver.constraints import Ban, Definition, Lazy, Model, Variable, evaluate
from solver.engines.sat import SatEngine
from solver.repairs import MOST_DROPPED, corrections

CHUNKS = 20
EACH = 50


class Base(NamedTuple):
    """Generated choices, rules and wishes, and which demands each full assignment meets."""

    model: Model
    soft: dict[str, tuple[str, object]]
    met: list[frozenset[str]]

    def possible(self, demands: frozenset[str]) -> bool:
        return any(demands <= each for each in self.met)


def generated(seed: int) -> Base:
    """Choices of two or three values; rules forbid what tables and formulas say of them; wishes pin values."""
    dice = random.Random(seed)
    variables = {f"b{i}": Variable(f"b{i}", tuple(range(dice.choice((2, 2, 3))))) for i in range(dice.randint(4, 6))}
    names = tuple(variables)
    definitions: dict[str, Definition] = {}
    bans: list[Ban] = []
    for number in range(dice.randint(4, 9)):
        inputs = tuple(dice.sample(names, dice.randint(2, 3)))
        bad = {n: dice.choice(variables[n].domain) for n in inputs}
        if dice.random() < 0.25:
            bans.append(Ban(Lazy(inputs, lambda v, bad=bad: all(v[n] == x for n, x in bad.items())), f"r{number}"))  # type: ignore[misc]
            continue
        rows = {
            combo: combo == tuple(bad.values()) or dice.random() < 0.1
            for combo in itertools.product(*(variables[n].domain for n in inputs))
        }
        if len(set(rows.values())) == 2:
            definitions[f"d{number}"] = Definition(f"d{number}", inputs, rows)
            bans.append(Ban(f"d{number}", f"r{dice.choice((number, number, 0))}"))  # now and then one rule, two clauses
    for name in definitions:
        variables[name] = Variable(name, tuple(dict.fromkeys(definitions[name].rows.values())))
    model = Model(variables, names, definitions, tuple(bans), (), {})
    soft: dict[str, tuple[str, object]] = {f"pin:{n}": (n, dice.choice(variables[n].domain)) for n in names}
    return Base(model, soft, [met(model, soft, dict(zip(names, c, strict=True))) for c in assignments(model)])


def assignments(model: Model) -> itertools.product[tuple[int, ...]]:
    return itertools.product(*(model.variables[n].domain for n in model.base))


def met(model: Model, soft: dict[str, tuple[str, object]], base: dict[str, object]) -> frozenset[str]:
    values = evaluate(model, base)
    broken = {b.rule for b in model.bans if (values[b.what] if isinstance(b.what, str) else b.what.run(values))}
    rules = {f"rule:{b.rule}" for b in model.bans if b.rule not in broken}
    return frozenset(rules | {name for name, (variable, value) in soft.items() if base[variable] == value})


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_conflicts_are_minimal_and_the_shown_one_is_smallest(chunk: int) -> None:
    for seed in range(chunk * EACH, (chunk + 1) * EACH):
        base = generated(seed)
        with SatEngine(base.model, base.soft) as engine:
            every = frozenset(engine.selectors)
            if base.possible(every):
                assert engine.solve(engine.selectors.values()) is not None
                continue
            shown = frozenset(smallest(engine, engine.selectors))
            assert not base.possible(shown), seed
            assert all(base.possible(shown - {member}) for member in shown), seed
            for fewer in itertools.combinations(sorted(every), len(shown) - 1):
                assert base.possible(frozenset(fewer)), seed


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_each_repair_works_no_part_of_it_does_and_none_is_missing(chunk: int) -> None:
    for seed in range(chunk * EACH, (chunk + 1) * EACH):
        base = generated(seed)
        with SatEngine(base.model, base.soft) as engine:
            rules = frozenset(n for n in engine.selectors if n.startswith("rule:"))
            if base.possible(frozenset(engine.selectors)):
                continue
            found = {frozenset(c) for c in corrections(engine, tuple(base.soft))}
            wishes = frozenset(base.soft)
            sizes = range(1, MOST_DROPPED + 1)
            works = [
                frozenset(c) for n in sizes for c in itertools.combinations(wishes, n)
                if base.possible(rules | (wishes - frozenset(c)))
            ]  # fmt: skip
            assert found == {c for c in works if not any(o < c for o in works)}, seed


def test_many_generated_bases_hold_a_conflict() -> None:
    conflicting = sum(not b.possible(frozenset().union(*b.met)) for b in map(generated, range(CHUNKS * EACH)))
    assert CHUNKS * EACH == 1000
    assert conflicting > 300
