"""Rules that fired, and problems of the command itself -> `Finding`s in words, with the fixes that apply here."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import msgspec

from solver.compiled import Program
from solver.conditions import Evaluator
from solver.decisions import Ready, Resolver
from solver.facts import Facts, Keys, gatherer, make_room
from solver.nodes import names_in
from solver.pipeline import RULE, Fired, Outcome, plain
from solver.problems import Problem
from solver.records import Fact, Finding, Fix, Rule
from solver.store import Store
from solver.words import fill, holes


def merged(store: Store, resolver: Resolver, outcomes: tuple[Outcome, ...], labels: tuple[str, ...]) -> list[Finding]:
    """One finding per rule: unconditional if every case has it so, else conditional on the cases that have it."""
    seen: dict[str, list[tuple[str, Fired, Outcome]]] = {}
    for outcome, label in zip(outcomes, labels, strict=True):
        for fired in outcome.fired:
            seen.setdefault(fired.compiled.id, []).append((label, fired, outcome))
    found = []
    for rule_id, items in seen.items():
        rule = store.rule(rule_id)
        assert rule is not None
        certain = [item for item in items if not item[1].names]
        label, fired, outcome = (certain or items)[0]
        on: tuple[str, ...] = ()
        if len(certain) != len(outcomes):
            on = tuple(i[0] for i in items) if labels != ("",) and len(items) < len(outcomes) else ()
            on += tuple(dict.fromkeys(n for i in items for n in i[1].names))
        finding = _remembered(rule, fired, outcome, on, resolver)
        if finding:
            found.append(finding)
    return found


def _remembered(rule: Rule, fired: Fired, outcome: Outcome, on: tuple[str, ...], resolver: Resolver) -> Finding | None:
    """The same as `finding_of`, looked up where the same fired before with the same values in its words and fixes."""
    ready = resolver.ready(fired.compiled)
    if rule.id not in resolver.words:
        resolver.words[rule.id] = (_words(rule, ready), [("env", name) for fix in rule.fix for name in fix.unset])
    words, unset = resolver.words[rule.id]
    if words is None or not resolver.more_follow:
        return finding_of(rule, fired, outcome, on, resolver)
    origin = outcome.state.origins.get
    origins = tuple([origin(name) for name in unset]) if unset else ()
    key = (resolver.number, id(fired), on, words(outcome.state.keys), origins)
    kept = ready.findings.get(key)
    if kept is None or kept[0] is not fired:
        make_room(ready.findings)
        kept = ready.findings[key] = (fired, finding_of(rule, fired, outcome, on, resolver))
    finding: Finding | None = kept[1]
    return finding


def _words(rule: Rule, ready: Ready) -> Callable[[Keys], Hashable] | None:
    """Gathers what the words and fixes of a rule read at the end of a run; None where a computed figure is among it."""
    spoken = [hole.split(".", 1) for hole in (*holes(rule.message), *holes(rule.title)) if "." in hole]
    names = [(space, name) for space, name in spoken if space not in ("spell", "let")]
    names += [name for node in ready.rule.fix_when if node is not None for name in names_in(node) if name[0] != "let"]
    names += [("given", name) for fix in rule.fix for name in fix.unset]
    computed = ready.computes or any(space == "estimate" for space, _ in names)
    return None if computed else gatherer(dict.fromkeys(names))


def finding_of(rule: Rule, fired: Fired, outcome: Outcome, on: tuple[str, ...], resolver: Resolver) -> Finding | None:
    """A fired rule in words. None when it is only a guess that rests on another violated rule."""
    left_open = [n.removeprefix(RULE) for n in on if n.startswith(RULE)]
    rest = tuple([n for n in on if not n.startswith(RULE)])
    if left_open and (rule.severity != "error" or not _looks_at_open_flag(fired)):
        return None
    program = resolver.program
    values = _message_values(rule, fired, outcome, program)
    names = flags_of(rule, fired)
    return Finding(
        rule=rule.id,
        severity=rule.severity or "note",
        stage=rule.stage,
        status=rule.status,
        title=rule.title,
        message=fill(rule.message or rule.title, values),
        flags=tuple([spelling(program, n) for n in names]),
        env=tuple([f.name[4:] for f in fired.because if f.name.startswith("env.")]),
        because=fired.because,
        conditional_on=rest,
        after=left_open[0] if left_open else None,
        fixes=fixes_of(rule, resolver.ready(fired.compiled).fix_when, fired, outcome, values),
        sources=rule.sources,
    )


def _looks_at_open_flag(fired: Fired) -> bool:
    """Whether the rule itself reads a flag that a violated rule left without a value (not only through a formula)."""
    values = (f.value for f in fired.because if f.name.startswith("flag."))
    return any(isinstance(v, dict) and any(n.startswith(RULE) for n in v.get("unknown", ())) for v in values)


def flags_of(rule: Rule, fired: Fired) -> tuple[str, ...]:
    """The flags a finding is about: as the rule says, else those it requires or writes, then the given ones."""
    if rule.about:
        return rule.about
    mentioned = [f for f in fired.because if f.name.split(".")[0] in ("flag", "given")]
    written = [s.name for b in fired.compiled.branches for s in b.sets if s.space == "flag"]
    demanded = [n for f in mentioned if (n := f.name.split(".")[1]) and _demands(fired, n)]
    given = [f.name.split(".")[1] for f in mentioned if f.origin == "given"]
    return tuple(dict.fromkeys([*written, *demanded, *given]))


def _demands(fired: Fired, name: str) -> bool:
    return any(name == n for node in (*fired.compiled.require, *fired.compiled.forbid) for _, n in names_in(node))


def spelling(program: Program, flag_id: str) -> str:
    """The canonical long spelling of a flag in a release; an id the release does not have is shown dashed."""
    return program.long_spellings.get(flag_id) or f"--{flag_id.replace('_', '-')}"


def _message_values(rule: Rule, fired: Fired, outcome: Outcome, program: Program) -> dict[str, Any]:
    """What the holes of a message stand for: the values when the rule fired, else those in the end."""
    values: dict[str, Any] = {"release": program.release, **fired.values}
    for hole in (*holes(rule.message), *holes(rule.title)):
        space, _, name = hole.partition(".")
        if space == "spell":
            values[hole] = spelling(program, name)
        elif name and hole not in values:
            values[hole] = plain(outcome.state.get(space, name))
    return values


def fixes_of(
    rule: Rule, conditions: list[Evaluator | None], fired: Fired, outcome: Outcome, values: dict[str, Any]
) -> tuple[Fix, ...]:
    """The rule's fixes that apply here: `only_if` does not fail, only what was given is dropped, holes are filled."""
    spaces = outcome.state.spaces
    spaces["let"] = fired.lets
    found = []
    for fix, only_if in zip(rule.fix, conditions, strict=True):
        if only_if is not None and only_if(outcome.state) is False:
            continue
        if not fix.unset and not fix.upgrade:
            found.append(fix)
            continue
        unset = tuple(n for n in fix.unset if n in spaces["given"] or outcome.state.origins.get(("env", n)) == "given")
        if unset or fix.set or fix.env or fix.upgrade or fix.checkpoint:
            upgrade = fill(fix.upgrade, values) if fix.upgrade else None
            found.append(msgspec.structs.replace(fix, unset=unset, upgrade=upgrade))
    return tuple(found)


def reading_findings(
    store: Store, program: Program, problems: Iterable[Problem], facts: Facts | None = None
) -> list[Finding]:
    """Problems of the command itself, in the words of the rules that name their kind."""
    found = []
    for problem in problems:
        rule = store.rule(program.problems.get(problem.kind, ""))
        if rule is None:
            continue
        values = {"problem.given": problem.given, "release": program.release}
        values.update({f"problem.{key}": value for key, value in problem.detail.items()})
        name = spelling(program, problem.flag) if problem.flag else problem.given
        values["problem.flag"] = name
        is_env = bool(problem.detail.get("variable"))
        found.append(
            Finding(
                rule=rule.id,
                severity=problem.detail.get("severity") or rule.severity or "error",
                stage=rule.stage,
                status=rule.status,
                title=rule.title,
                message=fill(rule.message, values),
                flags=() if is_env else (name,),
                env=(problem.given,) if is_env else (),
                because=(Fact("command", problem.given, "given"),),
                span=problem.span,
                fixes=problem_fixes(problem, facts),
                sources=rule.sources,
            )
        )
    return found


def problem_fixes(problem: Problem, facts: Facts | None) -> tuple[Fix, ...]:
    """What to write instead, where the reader knows it."""
    write = problem.detail.get("write")
    if isinstance(write, dict):
        return (Fix(set=write, unset=(problem.given,)),)
    given = facts.given if facts else {}
    if problem.kind == "underscore-spelling" and problem.flag in given:
        return (Fix(set={problem.flag: given[problem.flag]}, unset=(problem.given,)),)
    nearest = problem.detail.get("nearest")
    if problem.detail.get("variable") and isinstance(nearest, str) and facts and problem.given in facts.env:
        return (Fix(env={nearest: facts.env[problem.given]}, unset=(problem.given,)),)
    if problem.detail.get("remove"):
        return (Fix(unset=(problem.given,)),)
    return ()
