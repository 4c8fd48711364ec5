"""A batch screens and remembers; what it says must be what a single run says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec
import pytest
from conftest import ROOT

from solver.compiled import Program
from solver.conditions import Unknown
from solver.context import Context, Lookup, Options, build
from solver.decisions import Decision, Resolver
from solver.differential import Recorded
from solver.launch import read_argv
from solver.pipeline import Outcome, run
from solver.screening import conditions_of
from solver.store import Store

LAUNCHES = ROOT / "tests" / "oracle" / "launches.jsonl"
EVERY = 61


class Everything:
    """A watch that looks at every rule."""

    def __init__(self, program: Program, *_: object) -> None:
        self.places = range(len(program.rules))

    def __iter__(self) -> Iterator[int]:
        return iter(self.places)

    def changed(self, name: tuple[str, str], step: object) -> None:
        pass


def contexts(store: Store, *, machine: bool = True) -> Iterator[Context]:
    """Some of the recorded launches, of all releases, models and machines; `machine=False`: on an unknown one."""
    lookup = Lookup(store.index)
    rows = [msgspec.json.decode(line, type=Recorded) for line in LAUNCHES.read_bytes().splitlines()[::EVERY]]
    for row in rows:
        launch = read_argv(["python", "-m", "sglang.launch_server", *row.args.split()], env=row.env)
        yield build(store, launch, Options(row.model, row.hardware if machine else None, row.release), lookup)


def seen(outcome: Outcome) -> str:
    """All that later steps read of a run."""
    fired = [(f.compiled.id, f.names, f.because, f.values) for f in outcome.fired]
    return repr((outcome.writes, fired, sorted(outcome.state.origins.items()), outcome.state.spaces["flag"]))


@pytest.mark.parametrize("machine", [True, False], ids=["known machine", "unknown machine"])
def test_a_screened_run_is_the_same_as_a_plain_one(
    store: Store, machine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    often: dict[str, Resolver] = {}
    for context in contexts(store, machine=machine):
        program = context.resolver.program
        screened = often.setdefault(context.release, Resolver(program))
        screened.more_follow = True
        plain = Resolver(program)
        monkeypatch.setattr(plain, "watch", partial(Everything, program))
        for _ in range(2):  # decided, then remembered
            again = run(screened, context.facts, context.estimates)
            assert seen(again) == seen(run(plain, context.facts, context.estimates)), context.launch


def test_most_rules_need_no_look(store: Store) -> None:
    for context in contexts(store):
        resolver = context.resolver
        state = run(resolver, msgspec.structs.replace(context.facts, given={}, env={}), context.estimates).state
        looked_at = list(resolver.screen.start(context.facts, state))
        assert len(looked_at) < len(resolver.program.rules) / 2


def test_a_rule_is_ruled_out_only_by_a_condition_that_is_false(store: Store) -> None:
    context = next(contexts(store))
    screen, rules = context.resolver.screen, context.resolver.program.rules
    place = next(i for i, r in enumerate(rules) if ["set", ["name", "flag", "speculative_algorithm"]] in r.when)
    name = ("flag", "speculative_algorithm")
    assert ["set", ["name", *name]] in conditions_of(rules[place])
    assert screen.mask(name, None) >> place & 1
    assert not screen.mask(name, "EAGLE") >> place & 1
    assert not screen.mask(name, Unknown(("flag.speculative_algorithm",), (None, "EAGLE"))) >> place & 1


def written(decision: Decision | None) -> list[object]:
    """The values that a rule writes."""
    return [a.value for _, assignments in decision.writes for a in assignments] if decision else []


def test_equal_numbers_of_other_types_are_remembered_apart(store: Store) -> None:
    context = next(contexts(store))
    rule = next(r for r in context.resolver.program.rules if r.id == "static-memory-fraction")
    ready = context.resolver.ready(rule)
    for fraction in (1, 1.0, True):
        state = run(context.resolver, context.facts, context.estimates).state
        state.write(("flag", "mem_fraction_static"), None)
        state.write(("flag", "chunked_prefill_size"), fraction)
        again, decided = ready.remembered(state, state.keys), ready.decide(state)
        assert repr(written(again)) == repr(written(decided))
