"""Knowledge + its compiled form -> complaints: what is wrong with which rule, in one line each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import msgspec

from solver.check import Result
from solver.context import Options, build, check_context
from solver.errors import ConditionError, RequestError
from solver.estimates import NAMES
from solver.evidence_lint import evidence_complaints
from solver.grammar import parse
from solver.knowledge import Knowledge, holds
from solver.launch import Launch, read_argv
from solver.lint_signatures import lint_signatures
from solver.nodes import Node, names_in, walk
from solver.records import Example, Rule
from solver.repair import apply_fix
from solver.store import Store
from solver.words import holes

RANGE = re.compile(r"(>=|<)\d+\.\d+\.\d+(\.post\d+)?(,<\d+\.\d+\.\d+(\.post\d+)?)?$")
OPEN_TRAITS = ("software",)


def lint(knowledge: Knowledge, store: Store, only: str | None = None) -> list[str]:
    """All complaints, sorted. `only` limits rule checks to ids that contain it."""
    found: list[str] = []
    for rule in knowledge.rules.values():
        if only and only not in rule.id:
            continue
        complaints = [*_shape(rule, knowledge), *_names(rule, knowledge)]
        if not complaints and not rule.withdrawn:
            complaints = list(_examples(rule, knowledge, store))
        found += [f"{rule.id}: {c}" for c in complaints]
    return sorted([*found, *lint_signatures(knowledge, only), *evidence_complaints(knowledge, store, only)])


# --------------------------------------------------------------------- shape


def _shape(rule: Rule, knowledge: Knowledge) -> Iterator[str]:
    writes = bool(rule.set or rule.cases)
    demands = bool(rule.require or rule.forbid)
    if sum((writes, demands, bool(rule.problem))) != 1:
        yield "has to have exactly one of require/forbid, set/cases, problem"
    if rule.set and rule.cases:
        yield "has set and cases; put the set into a last case"
    if demands and rule.severity is None:
        yield "requires something and has no severity"
    if rule.severity and not rule.message:
        yield "has a severity and no message"
    if not rule.sources:
        yield "has no source"
    if not rule.problem and (not rule.examples.fail or not rule.examples.pass_):
        yield "needs a failing and a passing example"
    if rule.stage == "resolve" and not rule.step:
        yield "stage resolve needs a step"
    if not RANGE.match(rule.versions):
        yield f"versions {rule.versions!r}: only >= and < of whole releases"
    yield from _sources(rule, knowledge)


def _sources(rule: Rule, knowledge: Knowledge) -> Iterator[str]:
    known = {r.version for r in knowledge.releases}
    for source in rule.sources:
        if not source.url and not (source.release and source.file):
            yield "a source is a url, or a release with a file"
        if source.release and source.release not in known:
            yield f"source names the unknown release {source.release}"
    for release in _releases(rule, knowledge):
        steps = next((s.steps for s in knowledge.steps if holds(s.versions, release)), ())
        wanted = (rule.step,) if isinstance(rule.step, str) else rule.step or ()
        if wanted and not any(w in steps for w in wanted):
            yield f"release {release} has no step {' or '.join(wanted)}"


def _releases(rule: Rule, knowledge: Knowledge) -> list[str]:
    return [r.version for r in knowledge.releases if holds(rule.versions, r.version)]


# --------------------------------------------------------------------- names


def _texts(rule: Rule) -> Iterator[str]:
    yield from rule.when
    yield from rule.require
    yield from rule.forbid
    yield from rule.let.values()
    yield from (f.only_if for f in rule.fix if f.only_if)
    for case in rule.cases:
        yield from case.when
    for values in (rule.set, *(c.set for c in rule.cases)):
        yield from (v["expr"] for v in values.values() if isinstance(v, dict) and set(v) == {"expr"})


def _names(rule: Rule, knowledge: Knowledge) -> Iterator[str]:
    nodes: list[Node] = []
    for text in _texts(rule):
        try:
            nodes.append(parse(text))
        except ConditionError as error:
            yield str(error)
    releases = _releases(rule, knowledge)
    for node in nodes:
        yield from (c for s, n in names_in(node) if (c := _unknown_name(s, n, rule, knowledge, releases)))
        for table in (n[1] for n in walk(node) if n[0] == "table"):
            missing = [r for r in releases if not _has_table(knowledge, table, r)]
            if missing:
                yield f"table @{table} has no form in {', '.join(missing)}"
    for name in _flags_named(rule):
        if name not in knowledge.flags:
            yield f"names the unknown flag {name}"
    for hole in holes(rule.message):
        space, _, name = hole.partition(".")
        if space not in ("release", "spell", "problem") and _unknown_name(space, name, rule, knowledge, releases):
            yield f"message names {hole}, which is not known"
    yield from _unguarded(rule, nodes, knowledge)


def _has_table(knowledge: Knowledge, table: str, release: str) -> bool:
    entry = knowledge.tables.get(table)
    return entry is not None and any(holds(f.versions, release) for f in entry.forms)


def _unknown_name(space: str, name: str, rule: Rule, knowledge: Knowledge, releases: list[str]) -> str | None:
    known: dict[str, Any] = {
        "flag": knowledge.flags,
        "given": knowledge.flags,
        "env": knowledge.env,
        "let": rule.let,
        "estimate": NAMES,
        "request": {"context": 0, "concurrency": 0},
    }
    if space in known:
        return None if name in known[space] else f"names the unknown {space}.{name}"
    if space in OPEN_TRAITS or f"{space}.{name}" in knowledge.traits:
        return None
    return f"names the unknown trait {space}.{name}"


def _flags_named(rule: Rule) -> list[str]:
    names = [*rule.about, *rule.leaves_open]
    for values in (rule.set, *(c.set for c in rule.cases), *(f.set for f in rule.fix)):
        names += [n for n in values if not n.startswith("env.")]
    return names


def _unguarded(rule: Rule, nodes: list[Node], knowledge: Knowledge) -> Iterator[str]:
    """Ordering or arithmetic on a flag whose default is null, without `is set` or an equality that excludes null."""
    inner = [n for node in nodes for n in walk(node)]
    guarded = {tuple(n[1][1:3]) for n in inner if n[0] == "set" and n[1][0] == "name"}
    guarded |= {tuple(n[2][1:3]) for n in inner if n[0] == "cmp" and n[1] in ("==", "in") and n[2][0] == "name"}
    for node in inner:
        ordering = node[0] == "cmp" and node[1] in ("<", "<=", ">", ">=")
        if not ordering and node[0] != "bin":
            continue
        for operand in node[2:]:
            if operand[0] == "name" and operand[1] in ("flag", "given") and tuple(operand[1:3]) not in guarded:
                forms = knowledge.flags[operand[2]].forms if operand[2] in knowledge.flags else ()
                if any(f.default is None for f in forms):
                    yield f"orders or computes with {operand[1]}.{operand[2]}, which can be null, without `is set`"


# ------------------------------------------------------------------ examples


def run_example(store: Store, example: Example) -> tuple[Launch, Result, Any]:
    """Check an example's launch; also returns its context. Errors: RequestError."""
    launch = read_argv(shlex.split(example.args), env=example.env)
    options = Options(model=example.model, hardware=example.hardware, engine_version=example.release)
    context = build(store, launch, options)
    if example.traits:
        facts = context.facts
        stated = {"model": dict(facts.model), "hardware": dict(facts.hardware)}
        for name, value in example.traits.items():
            space, _, trait = name.partition(".")
            if name not in store.index.traits or space not in stated:
                raise RequestError(f"unknown trait {name!r}")
            stated[space][trait] = value
        context = msgspec.structs.replace(context, facts=msgspec.structs.replace(facts, **stated))
    return launch, check_context(context), context


def fires(rule: Rule, result: Result) -> bool:
    """Whether the rule made an unconditional finding, or (without severity) wrote something."""
    if rule.severity or rule.problem:
        return any(f.rule == rule.id and not f.conditional_on and not f.after for f in result.findings)
    return any(w.rule == rule.id for outcome in result.outcomes for w in outcome.writes)


def _examples(rule: Rule, knowledge: Knowledge, store: Store) -> Iterator[str]:
    for wanted, examples in ((True, rule.examples.fail), (False, rule.examples.pass_)):
        for example in examples:
            word = "failing" if wanted else "passing"
            if not holds(rule.versions, example.release) and wanted:
                yield f"failing example at {example.release}, where the rule does not hold"
                continue
            try:
                _, result, context = run_example(store, example)
            except RequestError as error:
                yield f"{word} example cannot be read: {error}"
                continue
            right = fires(rule, result) is wanted
            if right and example.todo:
                yield f"{word} example is marked todo and behaves: take the mark off"
            if not right and not example.todo:
                yield f"{word} example at {example.release} ({example.args}) {'does not fire' if wanted else 'fires'}"
            if right and wanted and rule.severity == "error":
                yield from _fixes(rule, example, result, context, store)


def _fixes(rule: Rule, example: Example, result: Result, context: Any, store: Store) -> Iterator[str]:
    """Each fix, applied to the failing example, removes the finding and adds no error."""
    before = {f.rule for f in result.findings if f.severity == "error"}
    for finding in (f for f in result.findings if f.rule == rule.id):
        for number, fix in enumerate(finding.fixes, 1):
            if fix.upgrade or fix.checkpoint:
                continue
            facts = apply_fix(context.facts, fix)
            after = check_context(msgspec.structs.replace(context, facts=facts, problems=()))
            errors = {f.rule for f in after.findings if f.severity == "error" and not f.conditional_on and not f.after}
            if rule.id in errors:
                yield f"fix {number} does not remove the finding"
            if errors - before:
                yield f"fix {number} adds {', '.join(sorted(errors - before))}"


def show(store: Store, release: str, model: str, hardware: str, args: str) -> str:
    """All findings and written values of one launch, for whoever writes rules."""
    example = Example(release=release, args=args, model=model or None, hardware=hardware or None)
    _, result, context = run_example(store, example)
    lines = [f"{f.severity} {f.stage} {f.rule} {' '.join(f.conditional_on)}: {f.message}" for f in result.findings]
    lines += [f"  {n} = {r.value!r} ({r.origin}; {', '.join(r.because)})" for n, r in sorted(result.resolved.items())]
    return "\n".join([f"{result.verdict} at {context.release}", *lines])


def main(argv: list[str]) -> int:
    """`python -m solver.lint [TEXT]` or `--show RELEASE MODEL HARDWARE ARGS`."""
    from solver.knowledge import load
    from solver.store import default_root

    root = default_root()
    store = Store(root)
    if argv[:1] == ["--show"]:
        print(show(store, *argv[1:5]))
        return 0
    complaints = lint(load(root), store, argv[0] if argv else None)
    print("\n".join(complaints) or "no complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
