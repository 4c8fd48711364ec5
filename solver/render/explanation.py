"""A rule, flag, goal, log signature or launch on record -> what it is, why, since when, how we know, what to do."""

from __future__ import annotations

import difflib
from typing import Any

from solver import options
from solver.compiled import Program
from solver.decisions import mentioned
from solver.errors import RequestError
from solver.index import Index
from solver.records import Example, Rule
from solver.render.evidence import record_lines
from solver.render.text import fix_text, source_text, wrapped
from solver.signatures import Signature, worded
from solver.store import Store
from solver.words import say


def explain(store: Store, program: Program, name: str) -> str:
    """The explanation of a rule id, a flag (any spelling or id), a goal, a signature or a record of evidence.

    Errors: RequestError with near names.
    """
    rule = store.rule(name)
    if rule is not None:
        tied = [s for s in store.index.logs.signatures if rule.id in s.rules]
        in_log = [line for s in tied for line in wrapped(f"in a log: {s.id}: {s.title}", "  ")]
        return "\n".join([*rule_lines(rule, program), *in_log])
    flag = flag_id(program, store.index, name)
    if flag is not None:
        return "\n".join(flag_lines(store, program, flag))
    if name in store.index.goals:
        return "\n".join(goal_lines(store.index.goals[name]))
    signatures = {s.id: s for s in store.index.logs.signatures}
    if name in signatures:
        return "\n".join(signature_lines(signatures[name], program))
    ran = store.index.record(name)
    if ran is not None:
        first, *rest = record_lines(ran, store.program(ran.release))
        return "\n".join([first, *(text for line in rest for text in wrapped(line, "  "))])
    known = [*store.rule_ids(), *program.flags, *store.index.goals, *signatures]
    near = difflib.get_close_matches(name.lstrip("-").replace("_", "-"), known, 3, 0.4)
    hint = f"; near are {', '.join(near)}" if near else ""
    raise RequestError(f"no rule, flag, goal or signature is called {name!r}{hint}")


def flag_id(program: Program, index: Index, name: str) -> str | None:
    """The canonical id of a flag by id, spelling (also of another release) or abbreviation."""
    if name in program.flags:
        return name
    for ident, form in program.flags.items():
        if name in form.spellings or f"--{name}" in form.spellings:
            return ident
    known = index.known_flags.get(name) or index.known_flags.get(f"--{name}")
    if known:
        return known[0]
    spellings = options.index(program.flags).spellings
    option = options.find_option(f"--{name.lstrip('-')}", spellings)
    short = spellings.get(option.spelling) if option else None
    return short if short in program.flags else None


def rule_lines(rule: Rule, program: Program) -> list[str]:
    """What, when, why, what to do, how we know."""
    lines = [f"{rule.id}: {rule.title}"]
    if rule.withdrawn:
        lines += wrapped(f"withdrawn: {rule.withdrawn}", "  ")
    step = rule.step if isinstance(rule.step, str | None) else " or ".join(rule.step)
    lines.append(f"  {rule.severity or 'sets values'}, stage {rule.stage}" + (f", step {step}" if step else ""))
    lines.append(f"  releases {rule.versions}; known from {rule.status}, checked {rule.checked}")
    lines += [f"  let {name} = {text}" for name, text in rule.let.items()]
    lines += [f"  when {text}" for text in rule.when]
    lines += [f"  requires {text}" for text in rule.require]
    lines += [f"  forbids {text}" for text in rule.forbid]
    for number, case in enumerate(rule.cases):
        condition = " and ".join(case.when) or "otherwise"
        lines.append(f"  {'if' if not number else 'else if'} {condition}: {_sets(case.set)}")
    if rule.set:
        lines.append(f"  sets {_sets(rule.set)}")
    if rule.message:
        lines += wrapped(f"says: {rule.message}", "  ")
    for fix in rule.fix:
        lines += wrapped(f"fix: {fix_text(fix, program)}" + (f" if {fix.only_if}" if fix.only_if else ""), "  ")
    for word, examples in (("fails", rule.examples.fail), ("passes", rule.examples.pass_)):
        lines += [f"  {word}: {_example(e)}" for e in examples]
    return lines + [f"  source: {source_text(s)}" + (f" ({s.note})" if s.note else "") for s in rule.sources]


def signature_lines(signature: Signature, program: Program) -> list[str]:
    """How a problem looks in a log, what it means, what to do, which rules know it, how we know."""
    lines = [f"{signature.id}: {signature.title}"]
    lines.append(f"  {signature.severity}, stage {signature.stage}; {signature.role} in a log")
    lines.append(f"  releases {signature.versions}; known from {signature.status}")
    for fragments in signature.match:
        lines += wrapped(f"recognised by {' and '.join(fragments)}", "  ")
    lines += wrapped(f"says: {signature.message}", "  ")
    for fix in signature.fix:
        text = fix_text(worded(fix), program) + (f" if {fix.only_if}" if fix.only_if else "")
        lines += wrapped(f"fix: {text}", "  ")
    lines += [f"  rule: {name}" for name in signature.rules]
    return lines + [f"  source: {source_text(s)}" + (f" ({s.note})" if s.note else "") for s in signature.sources]


def _sets(values: dict[str, Any]) -> str:
    texts = (f"{n} = {v['expr'] if isinstance(v, dict) and set(v) == {'expr'} else say(v)}" for n, v in values.items())
    return ", ".join(texts)


def _example(example: Example) -> str:
    where = " on ".join(x for x in (example.model, example.hardware) if x)
    env = "".join(f"{n}={v} " for n, v in example.env.items())
    where += "".join(f", {name} {say(value)}" for name, value in example.traits.items())
    return f"{example.release} {where}: {env}{example.args}".rstrip(": ")


def flag_lines(store: Store, program: Program, flag: str) -> list[str]:
    """A flag's form in the release, and the rules that set or look at it."""
    form = program.flags.get(flag)
    if form is None:
        spellings = [s for s, (ident, _) in store.index.known_flags.items() if ident == flag]
        releases = store.index.known_flags[spellings[0]][1]
        return [f"{flag}: not in SGLang {program.release}; {' '.join(spellings)} is in {releases[0]} to {releases[-1]}"]
    lines = [f"{' '.join(form.spellings)} ({flag}) in SGLang {program.release}"]
    lines.append(f"  type {form.type}, default {say(form.default)}")
    if form.choices:
        lines += wrapped(f"choices {say(list(form.choices))}", "  ")
    if form.deprecated:
        lines.append(f"  deprecated: write {form.deprecated}")
    for rule in program.rules:
        sets = any(s.name == flag for b in rule.branches for s in b.sets)
        if sets or ("flag", flag) in mentioned(rule) or ("given", flag) in mentioned(rule):
            found = store.rule(rule.id)
            word = "set by" if sets else "demanded of by" if rule.severity == "error" else "looked at by"
            lines.append(f"  {word} {rule.id}: {found.title if found else ''}")
    return lines


def goal_lines(goal: dict[str, Any]) -> list[str]:
    """A goal's levels in order."""
    lines = [f"{goal['id']}: {goal['title']}", *wrapped(goal["description"], "  ")]
    for number, level in enumerate(goal["levels"], 1):
        best = "most" if "maximise" in level else "least"
        what = level.get("amount") or level.get("maximise") or level.get("count") or " or ".join(level["count_if"])
        slack = f"; later levels may be worse by {level['slack']:.0%}" if level.get("slack") else ""
        lines.append(f"  {number}. {best} {level['title']} ({what}){slack}")
    lines += [f"  never: {guard['refuse']} ({guard['title']})" for guard in goal.get("guards", ())]
    return lines
