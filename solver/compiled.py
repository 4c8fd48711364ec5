"""`Knowledge` -> one `Program` per release: its flags, variables, tables, and its rules parsed and in order.

`store` keeps what is made here in a cache.
"""

# no deferred annotations here: msgspec would compile each one again when a program is first decoded
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from solver.nodes import Node
from solver.records import EnvForm, FlagForm, FormatWords, Release, Rule, TraitForm
from solver.screening import Screening, screening_of

if TYPE_CHECKING:
    from solver.facts import Unset
    from solver.knowledge import Knowledge
    from solver.options import Index

STAGE_RANK = {"parse": 0, "resolve": 1, "config": 2, "load": 3, "capture": 4, "run": 5, "quality": 6, "host": 7}


class Set(msgspec.Struct, frozen=True, array_like=True):
    """One value a rule writes."""

    space: str
    name: str
    value: Node


class Branch(msgspec.Struct, frozen=True, array_like=True):
    """The first branch whose conditions hold writes its values."""

    when: tuple[Node, ...]
    sets: tuple[Set, ...]


class CompiledRule(msgspec.Struct, frozen=True, array_like=True):
    """One rule in a release, at its place in the engine's order, with conditions parsed and releases folded away."""

    id: str
    severity: str | None
    stage: str
    report: str
    let: tuple[tuple[str, Node], ...]
    when: tuple[Node, ...]
    require: tuple[Node, ...]
    forbid: tuple[Node, ...]
    branches: tuple[Branch, ...]
    leaves_open: tuple[str, ...]
    about: tuple[str, ...]
    fix_when: tuple[Node | None, ...]
    """The condition of each fix of the rule, in order."""


class Program(msgspec.Struct, frozen=True, dict=True):
    """All that a release needs at run time: its flags, variables, tables, and rules in order."""

    release: str
    flags: dict[str, FlagForm]
    env: dict[str, EnvForm]
    tables: dict[str, Any]
    rules: tuple[CompiledRule, ...]
    problems: dict[str, str]
    """Kind of reading problem -> rule id."""
    levers: tuple[Any, ...]
    arguments: dict[str, dict[str, Node]]
    """Formula -> argument -> expression."""
    screening: Screening | None = None
    """Its rules by the facts that they look at (None: not worked out)."""

    @cached_property
    def options(self) -> "Index":
        """How its parser finds a flag by what was typed."""
        from solver.options import index

        return index(self.flags)

    @cached_property
    def unset_flags(self) -> dict[str, Any]:
        """Every flag with its value when it is not given."""
        return {flag_id: form.default for flag_id, form in self.flags.items()}

    @cached_property
    def unset_env(self) -> dict[str, Any]:
        """Every variable with its value when it is not set."""
        return {name: form.default for name, form in self.env.items()}

    @cached_property
    def unset(self) -> "Unset":
        """What these values are compared by, of flags and variables by dotted name."""
        from solver.facts import Unset, keys_of

        return Unset({**keys_of("flag", self.unset_flags), **keys_of("env", self.unset_env)}, {})

    @cached_property
    def long_spellings(self) -> dict[str, str]:
        """Flag -> its first long spelling."""
        found = ((i, next((s for s in form.spellings if s.startswith("--")), None)) for i, form in self.flags.items())
        return {flag_id: spelling for flag_id, spelling in found if spelling}


class Core(msgspec.Struct, frozen=True):
    """The small part of what does not depend on the release."""

    hash: str
    releases: tuple[Release, ...]
    traits: dict[str, TraitForm]
    goals: dict[str, Any]
    hub_ids: dict[str, str]
    format_words: FormatWords
    gpu_names: dict[str, str]
    """Alias, or name as nvidia-smi prints it, in small letters -> GPU id."""
    evidence: tuple[str, ...]
    """The architectures that evidence is about."""


# ------------------------------------------------------------------ compile


def compile_rule(rule: Rule, release: str) -> CompiledRule:
    """Parse a rule's conditions for one release."""
    from packaging.version import Version

    from solver.grammar import fold_release, literal, parse

    settled: dict[str, Node] = {}

    def node(text: str) -> Node:
        return fold_release(parse(text), Version, release, settled)

    def value(raw: Any) -> Node:
        return fold_release(literal(raw), Version, release, settled)

    lets = []
    for name, text in rule.let.items():
        lets.append((name, node(text)))
        if lets[-1][1][0] == "lit":
            settled[name] = lets[-1][1]

    def sets(values: dict[str, Any]) -> tuple[Set, ...]:
        return tuple(Set(*_target(name), value(raw)) for name, raw in values.items())

    branches = tuple(Branch(tuple(map(node, c.when)), sets(c.set)) for c in rule.cases)
    if rule.set:
        branches = (Branch((), sets(rule.set)),)
    return CompiledRule(
        id=rule.id,
        severity=rule.severity,
        stage=rule.stage,
        report=rule.report,
        let=tuple(lets),
        when=tuple(map(node, rule.when)),
        require=tuple(map(node, rule.require)),
        forbid=tuple(map(node, rule.forbid)),
        branches=branches,
        leaves_open=rule.leaves_open,
        about=rule.about,
        fix_when=tuple(node(f.only_if) if f.only_if else None for f in rule.fix),
    )


def _target(name: str) -> tuple[str, str]:
    return ("env", name[4:]) if name.startswith("env.") else ("flag", name)


def compile_release(knowledge: "Knowledge", release: str) -> Program:
    """The program of one release: rules that hold there, in the engine's own order."""
    from packaging.version import Version

    from solver.grammar import fold_release, parse
    from solver.knowledge import form_in, holds

    steps = form_in(knowledge.steps, release)
    place = {name: i for i, name in enumerate(steps.steps)} if steps else {}

    def position(rule: Rule) -> tuple[int, int, int, str]:
        names = (rule.step,) if isinstance(rule.step, str) else rule.step or ()
        found = next((place[n] for n in names if n in place), len(place))
        return STAGE_RANK[rule.stage], found, rule.order, rule.id

    rules = [r for r in knowledge.rules.values() if not r.withdrawn and holds(r.versions, release)]
    with_rules = {r.version for r in knowledge.releases if r.rules}
    ordered = sorted((r for r in rules if not r.problem and release in with_rules), key=position)
    program = Program(
        release=release,
        flags={i: f for i, flag in knowledge.flags.items() if (f := form_in(flag.forms, release))},
        env={n: f for n, var in knowledge.env.items() if (f := form_in(var.forms, release))},
        tables={i: f.value for i, table in knowledge.tables.items() if (f := form_in(table.forms, release))},
        rules=tuple(compile_rule(r, release) for r in ordered),
        problems={r.problem: r.id for r in rules if r.problem},
        levers=tuple(msgspec.to_builtins(lever) for lever in knowledge.levers if holds(lever.versions, release)),
        arguments={
            a.formula: {name: fold_release(parse(text), Version, release) for name, text in a.arguments.items()}
            for a in knowledge.arguments
            if holds(a.versions, release)
        },
    )
    return msgspec.structs.replace(program, screening=screening_of(program))


def index_parts(knowledge: "Knowledge", content_hash: str, evidence: tuple[str, ...]) -> dict[str, Any]:
    """The parts of `Index`, to be written."""
    from solver.known import known_of

    return {
        "core": Core(
            hash=content_hash,
            releases=knowledge.releases,
            traits=knowledge.traits,
            goals={g.id: msgspec.to_builtins(g) for g in knowledge.goals.values()},
            hub_ids={hub.lower(): m.id for m in knowledge.models.values() for hub in m.hub_ids},
            format_words=knowledge.format_words,
            gpu_names={
                name.lower(): gpu.id
                for gpu in knowledge.hardware.values()
                for name in (*gpu.aliases, gpu.traits.get("name"))
                if name
            },
            evidence=evidence,
        ),
        "known": known_of(knowledge),
        "models": knowledge.models,
        "hardware": knowledge.hardware,
        "data": knowledge.data,
        "logs": knowledge.logs,
    }
