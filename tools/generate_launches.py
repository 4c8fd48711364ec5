"""Catalogues, rules and tools/launch_plan.yaml -> launches of our own, as JSON lines.

usage: python tools/generate_launches.py --release 0.5.23 --seed 7 --count 250 --models DIR

A launch is a checkpoint of the catalogue that has a folder in DIR, a machine, an environment and flags. Three in ten
are what people write together (`combos`) with one or two edits; four in ten hold pairs of flags that stand in the same
rule, the least tried pair first; the rest add any flag of the release. The same seed gives the same launches.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from solver.compiled import Program
from solver.nodes import Node, names_in, walk
from solver.records import FlagForm
from solver.store import Store, default_root

PLAN = Path(__file__).with_name("launch_plan.yaml")
WRONG_SHARE = 0.03
"""How many launches hold a word that the release's parser refuses."""
MACHINES = 4
"""Machines of one seed; each pair of machine and environment costs an import of the engine."""
PLAIN_SHARE = 6
"""Launches without variables to one with them."""


class Launch(NamedTuple):
    """One launch: catalogue ids and the words after the entry point."""

    id: str
    release: str
    model: str
    hardware: str
    args: str
    env: dict[str, str]


class Pool(NamedTuple):
    """What launches of one release are drawn from."""

    program: Program
    values: dict[str, list[Any]]
    pairs: list[tuple[str, str]]
    """Flags that stand in the same rule."""
    names: dict[str, str]
    """The release's own name of a value, or its canonical id -> canonical id."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--release", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--models", type=Path, required=True)
    options = parser.parse_args()
    store = Store(default_root())
    plan = yaml.safe_load(PLAN.read_text(encoding="utf-8"))
    models = with_folder(store, options.models)
    for launch in generate(store, plan, models, options.release, options.seed, options.count):
        print(json.dumps(launch._asdict()))


def with_folder(store: Store, folder: Path) -> list[str]:
    """The catalogue's models whose checkpoint has a folder here."""
    return [
        i
        for i in store.index.models
        if any((folder / h.replace("/", "--")).is_dir() for h in store.index.models[i].hub_ids)
    ]


def generate(
    store: Store, plan: dict[str, Any], models: list[str], release: str, seed: int, count: int
) -> Iterator[Launch]:
    """`count` launches of one release."""
    rng = random.Random(f"{release}/{seed}")
    pool = pool_of(store.program(release), plan)
    models = [m for m in models if not m.startswith(tuple(plan["unreadable"].get(release, ())))]
    machines = rng.sample(plan["machines"], MACHINES)
    envs = [{}] * PLAIN_SHARE + [rng.choice(plan["environments"])]
    tried: Counter[tuple[str, str]] = Counter()
    for number in range(count):
        hardware = rng.choice(machines)
        given = draw(pool, plan, rng, tried, int(hardware.split("x")[0]))
        words = [w for name in given for w in spelled(pool.program.flags[name], given[name], rng)]
        if rng.random() < WRONG_SHARE:
            words += rng.choice((["--no-such-flag"], ["--tp", "two"], ["--dtype", "float8"], ["--mem-fraction-static"]))
        name = f"g{release.replace('.', '')}-{seed}-{number:04d}"
        yield Launch(name, release, rng.choice(models), hardware, shlex.join(words), rng.choice(envs))


# ---------------------------------------------------------------------- pool


def pool_of(program: Program, plan: dict[str, Any]) -> Pool:
    """The values of each flag and the pairs of flags of one release."""
    literals, pairs = _named_in_rules(program)
    names = {form.dest or i: i for i, form in program.flags.items()} | {i: i for i in program.flags}
    planned = {names[n]: v for n, v in {**plan["values"], **plan["sizes"]}.items() if n in names}
    values: dict[str, list[Any]] = {}
    for flag_id, form in program.flags.items():
        if flag_id in plan["left_out"] or form.into or form.refused:
            continue
        found = _values_of(form, planned.get(flag_id), literals.get(flag_id, []))
        if found:
            values[flag_id] = found
    return Pool(program, values, sorted(p for p in pairs if p[0] in values and p[1] in values), names)


def _values_of(form: FlagForm, planned: list[Any] | None, literals: list[Any]) -> list[Any]:
    if form.type == "flag":
        return [form.const]
    if form.choices is not None:
        return [c for c in form.choices if c is not None]
    if planned is not None:
        return planned
    kind = {"int": int, "float": float}.get(form.type, str)
    return [v for v in dict.fromkeys(literals) if type(v) is kind]


def _named_in_rules(program: Program) -> tuple[dict[str, list[Any]], set[tuple[str, str]]]:
    """The values that rules compare each flag with, and the pairs of flags of each rule."""
    literals: dict[str, list[Any]] = {}
    pairs: set[tuple[str, str]] = set()
    for rule in program.rules:
        nodes = [*rule.when, *rule.require, *rule.forbid, *(n for b in rule.branches for n in b.when)]
        nodes += [node for _, node in rule.let]
        flags = {n for node in nodes for s, n in names_in(node) if s in ("flag", "given")}
        pairs |= set(itertools.combinations(sorted(flags), 2))
        for node in (n for top in nodes for n in walk(top) if n[0] == "cmp"):
            _note_literals(node, literals)
    return literals, pairs


def _note_literals(node: Node, literals: dict[str, list[Any]]) -> None:
    _, _, left, right = node
    if left[0] == "name" and left[1] in ("flag", "given"):
        items = right[1] if right[0] == "list" else [right]
        literals.setdefault(left[2], []).extend(i[1] for i in items if i[0] == "lit" and i[1] is not None)


# ---------------------------------------------------------------------- draw


def draw(
    pool: Pool, plan: dict[str, Any], rng: random.Random, tried: Counter[tuple[str, str]], gpus: int
) -> dict[str, Any]:
    """The flags of one launch."""
    given: dict[str, Any] = {"tp_size": rng.choice([1, 2, gpus, gpus, gpus])}
    kind = rng.random()
    if kind < 0.3:
        combos = [c for c in plan["combos"] if all(n in pool.names for n in c)]
        for combo in rng.sample(combos, rng.choice([1, 1, 2])):
            given.update({pool.names[n]: v for n, v in combo.items()})
        extra = rng.choice([0, 1, 2])
    elif kind < 0.7:
        candidates = rng.sample(pool.pairs, 12)
        for pair in sorted(candidates, key=lambda p: tried[p])[: rng.choice([1, 1, 2])]:
            tried[pair] += 1
            given.update({n: rng.choice(pool.values[n]) for n in pair})
        extra = rng.choice([0, 0, 1])
    else:
        extra = rng.choice([1, 2, 3])
    for name in rng.sample(sorted(pool.values), extra):
        given[name] = rng.choice(pool.values[name])
    return given


def spelled(form: FlagForm, value: Any, rng: random.Random) -> list[str]:
    """The words that give a flag this value in this release."""
    spellings = [s for s in form.spellings if s.startswith("--")] or list(form.spellings)
    name = spellings[0] if rng.random() < 0.8 else rng.choice(spellings)
    if form.type == "flag":
        return [name]
    if isinstance(value, list):
        return [name, *map(str, value)]
    return [name, str(value)]


if __name__ == "__main__":
    main()
