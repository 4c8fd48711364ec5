"""Solving on synthetic knowledge many times today's size, and a peer on the same model, all in one run.

usage: python benchmarks/scale.py [--times 10] [--runs 5] [--check]

Synthetic knowledge is today's compiled program with copies: each rule, flag, variable and lever again under other
names, the copied rules about the copied flags, so that rules, choices, tables and bans all grow alike. What is timed is
a solve of the real case in a process that holds the program: model, proven optimum, and a run of the answer. The peer,
OR-Tools' CP-SAT (needed for nothing else: pip install ortools), gets the finished model of today's knowledge with every
formula as the rows that our engine found possible, which is much of the work; ours starts from the rules. `--check`
exits 1 when the large knowledge takes more than `--times` as long.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec

from solver.compiled import Branch, CompiledRule, Program, Set
from solver.constraints import Lazy, Level, Model, allowed
from solver.context import Context, Options, build
from solver.decisions import Resolver
from solver.engines.optimum import optimise
from solver.engines.sat import SatEngine
from solver.goals import Goal, find_goal
from solver.launch import read_argv
from solver.pipeline import run
from solver.solve import completed, problem_of
from solver.store import Store, default_root

CASE = Options("qwen3.5-397b-a17b-nvfp4", "8xrtx-pro-6000", "0.5.10")
GOAL = "min-pcie-roundtrips"
OURS = ("flag", "given", "env")


def renamed(node: Any, copy: int) -> Any:
    """A condition about the copies of its flags and variables."""
    if not isinstance(node, list | tuple):
        return node
    if len(node) == 3 and node[0] == "name" and node[1] in OURS:
        return type(node)((node[0], node[1], f"{node[2]}~{copy}"))
    return type(node)(renamed(part, copy) for part in node)


def copied(rule: CompiledRule, copy: int) -> CompiledRule:
    """One rule about the copies of its flags."""
    branches = tuple(
        Branch(
            renamed(b.when, copy),
            tuple(
                Set(s.space, f"{s.name}~{copy}" if s.space in OURS else s.name, renamed(s.value, copy)) for s in b.sets
            ),
        )
        for b in rule.branches
    )
    nodes = {name: renamed(getattr(rule, name), copy) for name in ("when", "require", "forbid", "let")}
    return msgspec.structs.replace(rule, id=f"{rule.id}~{copy}", branches=branches, **nodes)


def larger(program: Program, goal: Goal, times: int) -> tuple[Program, Goal]:
    """A program, and the levers of a goal, `times` today's size. What looks at computed figures is there once."""
    copies = range(1, times)
    rules = tuple(r for rule in program.rules for r in (rule, *(copied(rule, c) for c in copies)))
    flags = {f"{n}~{c}" if c else n: f for c in range(times) for n, f in program.flags.items()}
    env = {f"{n}~{c}" if c else n: f for c in range(times) for n, f in program.env.items()}
    levers = tuple({**o, "name": f"{o['name']}~{c}" if c else o["name"]} for c in range(times) for o in program.levers)
    names = [f"{n}~{c}" if c else n for c in range(times) for n in goal["levers"]]
    return msgspec.structs.replace(program, rules=rules, flags=flags, env=env, levers=levers), {**goal, "levers": names}


def solved(context: Context, goal: Goal) -> tuple[float, int, int, tuple[float, ...]]:
    """Seconds, variables and choices of one solve, and the costs of its optimum."""
    start = time.perf_counter()
    problem = problem_of(context, goal)
    with SatEngine(problem.model) as engine:
        found = optimise(engine)
    assert found is not None
    run(context.resolver, completed(problem, found[0]), context.estimates)
    return time.perf_counter() - start, len(problem.model.variables), len(problem.choices), found[1]


def peer(model: Model) -> tuple[float, tuple[float, ...]]:
    """Seconds that CP-SAT takes for the same model, and its costs."""
    from ortools.sat.python import cp_model  # type: ignore[import-not-found]  # for this comparison alone

    with SatEngine(model) as engine:
        lazies = {id(b.what): b.what for b in model.bans if isinstance(b.what, Lazy)}
        lazies |= {id(a): a for level in model.levels for a in level.amounts}
        rows = {key: engine.rows(Level("", amounts=(lazy,)), []) for key, lazy in lazies.items()}
    start = time.perf_counter()
    cp = cp_model.CpModel()
    numbers = {n: cp.NewIntVar(0, len(v.domain) - 1, n) for n, v in model.variables.items()}
    place = {n: {_key(v): i for i, v in enumerate(var.domain)} for n, var in model.variables.items()}
    for name, d in model.definitions.items():
        combos = d.rows.items() if d.kind == "table" else _junction(model, d)
        names = (*d.inputs, name)
        cp.AddAllowedAssignments(
            [numbers[n] for n in names],
            [[place[n][_key(v)] for n, v in zip(names, (*c, value), strict=True)] for c, value in combos],
        )
    for ban in model.bans:
        if isinstance(ban.what, str):
            cp.Add(numbers[ban.what] == place[ban.what][_key(False)])
        else:
            names = ban.what.inputs
            possible = [[place[n][_key(v)] for n, v in zip(names, r, strict=True)] for r in rows[id(ban.what)]]
            cp.AddAllowedAssignments([numbers[n] for n in names], possible)
    costs = []
    for level in model.levels:
        terms = [numbers[c] if model.variables[c].domain == (False, True) else 1 - numbers[c] for c in level.counts]
        for amount in level.amounts:
            found = {row: round(1000 * cost) for row, cost in rows[id(amount)].items()}
            term = cp.NewIntVar(min(found.values()), max(found.values()), f"cost{len(terms)}")
            cp.AddAllowedAssignments(
                [*(numbers[n] for n in amount.inputs), term],
                [
                    [*(place[n][_key(v)] for n, v in zip(amount.inputs, row, strict=True)), c]
                    for row, c in found.items()
                ],
            )
            terms.append(term)
        scale = 1000 if level.amounts else 1
        cp.Minimize(sum(terms))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        assert solver.Solve(cp) == cp_model.OPTIMAL
        best = solver.ObjectiveValue() / scale
        costs.append(level.constant + best)
        cp.Add(sum(terms) <= int(scale * allowed(level, best)) + (1 if level.amounts else 0))
    return time.perf_counter() - start, tuple(costs)


def _junction(model: Model, definition: Any) -> list[tuple[tuple[Any, ...], bool]]:
    from itertools import product

    domains = [model.variables[i].domain for i in definition.inputs]
    return [(combo, definition.value(combo)) for combo in product(*domains)]


def _key(value: Any) -> Any:
    return (type(value).__name__, value)


def median(call: Callable[[], Any], runs: int) -> tuple[float, Any]:
    """The median time of some runs, after one that warms up, with the last answer."""
    call()
    answers = [call() for _ in range(runs)]
    return statistics.median(a[0] for a in answers), answers[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    gc.set_threshold(1_000_000)  # as the command does
    context = build(Store(default_root()), read_argv(["--tp", "8"]), CASE)
    goal = find_goal(context.index.goals, GOAL)
    program, wide = larger(context.resolver.program, goal, options.times)
    big = msgspec.structs.replace(context, resolver=Resolver(program))
    small_s, small = median(lambda: solved(context, goal), options.runs)
    big_s, large = median(lambda: solved(big, wide), options.runs)
    for name, seconds, answer, rules in (
        ("today", small_s, small, context.resolver.program.rules), ("synthetic", big_s, large, program.rules)
    ):  # fmt: skip
        print(f"{name:10} {len(rules):6} rules {answer[2]:4} choices {answer[1]:5} variables  {1e3 * seconds:8.1f} ms")
    print(f"{options.times} times the knowledge takes {big_s / small_s:.1f} times as long")
    model = problem_of(context, goal).model
    try:
        peer_s, (_, peer_costs) = median(lambda: peer(model), options.runs)
    except ModuleNotFoundError:
        print("CP-SAT is not installed (pip install ortools)")
    else:
        same = all(abs(a - b) <= 1e-3 * max(1, abs(a)) for a, b in zip(peer_costs, small[3], strict=True))
        print(
            f"CP-SAT on today's model, formulas as rows  {1e3 * peer_s:8.1f} ms, {'same' if same else 'other'} optimum"
        )
    return int(options.check and big_s / small_s > options.times)


if __name__ == "__main__":
    sys.exit(main())
