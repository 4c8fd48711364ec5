"""Knowledge -> the pages under docs/rules: one per rule and signature topic, and the indexes that lead to them.

Used by tools/write_docs.py, which writes what is made here and keeps it fresh.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from solver.compiled import Program
from solver.findings import spelling
from solver.grammar import parse
from solver.knowledge import Knowledge, holds, load
from solver.nodes import Node, names_in, walk
from solver.records import Example, Fix, Rule
from solver.render.text import fix_text, source_text
from solver.signatures import Signature, worded
from solver.store import Store, default_root
from solver.words import say

FOLDER = Path("docs/rules")
SEVERITY = {
    "error": "error: refuses to start, crashes or gives wrong output",
    "warning": "warning: changes what was asked to its harm, or costs accuracy or much speed",
    "note": "note",
    None: "none: says what the engine sets",
}
MARK = {"error": "E", "warning": "W", "note": "N", None: "S"}
MADE = "<!-- made by tools/write_docs.py from the knowledge; change the rule instead -->"
INDEXES = {
    "flags": "By flag and variable",
    "models": "By model trait",
    "hardware": "By hardware trait",
    "releases": "By release",
    "signatures": "What a log shows",
}


def pages() -> dict[Path, str]:
    """Path below the repository -> text of every page."""
    knowledge, store = load(default_root()), Store(default_root())
    topics = topics_of(knowledge)
    programs = {r.version: store.program(r.version) for r in knowledge.releases}
    found = {FOLDER / topics[r.id] / f"{r.id}.md": page(r, knowledge, programs) for r in knowledge.rules.values()}
    found[FOLDER / "index.md"] = index(knowledge, topics)
    for name, lines in (
        ("flags", by_names(knowledge, topics, ("flag", "env"))),
        ("models", by_names(knowledge, topics, ("model",))),
        ("hardware", by_names(knowledge, topics, ("hardware",))),
        ("releases", by_release(knowledge, topics)),
        ("signatures", signatures(knowledge, topics, programs)),
    ):
        found[FOLDER / f"{name}.md"] = _text(f"# {INDEXES[name]}", MADE, *lines)
    return found


def topics_of(knowledge: Knowledge) -> dict[str, str]:
    """Rule id -> the folder it lies in."""
    return {p.stem: p.parent.name for p in (Path(knowledge.root) / "sglang" / "rules").rglob("*.yaml")}


def _text(*blocks: str) -> str:
    return "\n\n".join(b for b in blocks if b) + "\n"


# ------------------------------------------------------------------ one rule


def page(rule: Rule, knowledge: Knowledge, programs: dict[str, Program]) -> str:
    """What, since when, how we know, when, why, what to do, how it looks in a log, where it is written."""
    program = programs[_newest(rule, knowledge)]
    head = [
        ("severity", SEVERITY[rule.severity]),
        ("stage", rule.stage),
        ("releases", f"`{rule.versions}`"),
        ("known from", f"{rule.status}, checked {rule.checked}"),
        ("about", " ".join(f"`{spelling(program, n)}`" for n in rule.about)),
        ("withdrawn", rule.withdrawn or ""),
    ]
    return _text(
        f"# {rule.id}",
        MADE,
        rule.title,
        "\n".join(["| | |", "|---|---|", *(f"| {name} | {_cell(value)} |" for name, value in head if value)]),
        _listed("Where", (f"let `{n} = {t}`" for n, t in rule.let.items()), (f"`{t}`" for t in rule.when)),
        _listed("It has to hold that", (f"`{t}`" for t in rule.require)),
        _listed("It must not hold that", (f"`{t}`" for t in rule.forbid)),
        _listed("Then the engine sets", _sets(rule)),
        f"> {rule.message}" if rule.message else "",
        _listed("What to do", (_fix(f, program) for f in rule.fix)),
        _listed("In a log", (_in_log(s) for s in knowledge.logs.signatures if rule.id in s.rules)),
        _listed("Fails", map(_example, rule.examples.fail)),
        _listed("Passes", map(_example, rule.examples.pass_)),
        _listed("Sources", (source_text(s) + (f" ({s.note})" if s.note else "") for s in rule.sources)),
    )


def _newest(rule: Rule, knowledge: Knowledge) -> str:
    """The newest release in which a rule holds, whose spellings its page uses."""
    inside = [r.version for r in knowledge.releases if holds(rule.versions, r.version)]
    return (inside or [knowledge.releases[-1].version])[-1]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _listed(title: str, *items: Iterable[str]) -> str:
    lines = [f"- {item}" for group in items for item in group]
    return "\n".join([f"**{title}**", "", *lines]) if lines else ""


def _sets(rule: Rule) -> Iterator[str]:
    for case in rule.cases:
        condition = " and ".join(case.when) or "otherwise"
        yield f"{_values(case.set)} if `{condition}`" if case.when else f"{_values(case.set)} otherwise"
    if rule.set:
        yield _values(rule.set)


def _values(values: dict[str, Any]) -> str:
    texts = (f"{n} = {v['expr'] if isinstance(v, dict) and set(v) == {'expr'} else say(v)}" for n, v in values.items())
    return ", ".join(f"`{t}`" for t in texts)


def _fix(fix: Fix, program: Program) -> str:
    return fix_text(fix, program) + (f", if `{fix.only_if}`" if fix.only_if else "")


def _example(example: Example) -> str:
    where = " on ".join(x for x in (example.model, example.hardware) if x)
    env = "".join(f"{n}={v} " for n, v in example.env.items())
    return f"{example.release} {where}: `{env}{example.args}`".replace("``", "no arguments")


def _in_log(signature: Signature) -> str:
    return f"[{signature.id}](../signatures.md#{signature.id}): {signature.title}"


# ------------------------------------------------------------------- indexes


def index(knowledge: Knowledge, topics: dict[str, str]) -> str:
    """All rules by topic, and the other ways in."""
    by_topic: dict[str, list[Rule]] = defaultdict(list)
    for rule in sorted(knowledge.rules.values(), key=lambda r: r.id):
        by_topic[topics[rule.id]].append(rule)
    ways = " · ".join(f"[{title}]({name}.md)" for name, title in INDEXES.items())
    marks = "E error, W warning, N note, S sets values"
    return _text(
        "# Rules",
        MADE,
        f"{len(knowledge.rules)} rules in {len(by_topic)} topics ({marks}). {ways}",
        *(f"## {topic}\n\n" + "\n".join(map(_line(topics), rules)) for topic, rules in sorted(by_topic.items())),
    )


def _line(topics: dict[str, str]) -> Any:
    return lambda rule: f"- {_link(rule, topics)}: {rule.title}"


def _link(rule: Rule, topics: dict[str, str]) -> str:
    return f"{MARK[rule.severity]} [{rule.id}]({topics[rule.id]}/{rule.id}.md)"


def by_names(knowledge: Knowledge, topics: dict[str, str], spaces: tuple[str, ...]) -> Iterator[str]:
    """Each flag, variable or trait with the rules that look at it or write it."""
    found: dict[tuple[str, str], list[Rule]] = defaultdict(list)
    for rule in sorted(knowledge.rules.values(), key=lambda r: r.id):
        names = {(name, "") for space, name in mentioned(rule) if space in spaces}
        compared = {(name, value) for space, name, value in values_of(rule) if space in spaces}
        for key in (names - {(name, "") for name, _ in compared}) | compared:
            found[key].append(rule)
    for (name, value), rules in sorted(found.items(), key=lambda item: (item[0][0].isupper(), item[0])):
        yield f"**{name}{value}** " + ", ".join(_link(r, topics) for r in rules)


def conditions(rule: Rule) -> list[Node]:
    """Every condition of a rule, parsed."""
    texts = (*rule.when, *rule.require, *rule.forbid, *rule.let.values(), *(t for c in rule.cases for t in c.when))
    return [parse(text) for text in texts]


def values_of(rule: Rule) -> set[tuple[str, str, str]]:
    """The traits that a rule compares with what: namespace, name, and the comparison as text."""
    found = set()
    for node in (n for condition in conditions(rule) for n in walk(condition)):
        if node[0] == "cmp" and node[2][0] == "name" and node[2][1] in ("hardware", "model"):
            if node[3][0] == "table":
                found.add((*node[2][1:3], f" {node[1]} @{node[3][1]}"))
            elif node[3][0] == "lit" and not isinstance(node[3][1], float):
                found.add((*node[2][1:3], f" {node[1]} {node[3][1]}"))
            elif node[3][0] == "list":
                found |= {(*node[2][1:3], f" {node[1]} {item[1]}") for item in node[3][1] if item[0] == "lit"}
    return {(space, name, text.replace(" in ", " == ") if "@" not in text else text) for space, name, text in found}


def mentioned(rule: Rule) -> set[tuple[str, str]]:
    """Every name of a rule with its namespace; a flag given and a flag in force are the same here."""
    names = {(s, n) for node in conditions(rule) for s, n in names_in(node)}
    written = [n for values in (rule.set, *(c.set for c in rule.cases)) for n in values]
    names |= {("env", n[4:]) if n.startswith("env.") else ("flag", n) for n in (*written, *rule.about)}
    return {("flag" if space == "given" else space, name) for space, name in names}


def by_release(knowledge: Knowledge, topics: dict[str, str]) -> Iterator[str]:
    """For each release the rules that begin or cease to hold with it."""
    known = [r.version for r in knowledge.releases]
    for before, release in zip([None, *known], known, strict=False):
        now = {r.id for r in knowledge.rules.values() if holds(r.versions, release)}
        then = {r.id for r in knowledge.rules.values() if before is not None and holds(r.versions, before)}
        yield f"## {release}\n\n{len(now)} rules hold."
        for word, ids in (("New", now - then), ("Gone", then - now)):
            if ids and before is not None:
                yield f"{word}: " + ", ".join(_link(knowledge.rules[i], topics) for i in sorted(ids))


def signatures(knowledge: Knowledge, topics: dict[str, str], programs: dict[str, Program]) -> Iterator[str]:
    """Each signature: what it recognises, what it means, what to do, and the rules tied to it."""
    yield "`flagwise diagnose` recognises these in a server log: all fragments of a line stand in one message."
    program = programs[knowledge.releases[-1].version]
    for item in sorted(knowledge.logs.signatures, key=lambda s: s.id):
        rules = ", ".join(_link(knowledge.rules[r], topics) for r in item.rules)
        about = " ".join(f"`{n if n.isupper() else spelling(program, n)}`" for n in item.about)
        yield _text(
            f"## {item.id}",
            f"{item.title} ({item.severity}, {item.role})",
            _listed("Recognised by", (" and ".join(f"`{f}`" for f in fragments) for fragments in item.match)),
            f"> {item.message}",
            _listed("What to do", (_fix(worded(f), program) for f in item.fix)),
            f"About {about}" if about else "",
            f"Rules: {rules}" if rules else "",
            _listed("Sources", (source_text(s) for s in item.sources)),
        ).rstrip()
