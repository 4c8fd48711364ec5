"""Knowledge + a release's wheel -> every place that refuses or rewrites, with the rule that covers it or why none does.

A rule covers a place when it is in force in the release, cites the function, and is about it: it writes the argument
that is written there, or is about one of the arguments that the nearest condition there reads. What is set aside stands
in `knowledge/sglang/coverage/*.yaml`, one line each with its reason.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from solver.coverage_sites import Site, sites
from solver.grammar import parse
from solver.knowledge import Knowledge, holds, read_yaml
from solver.nodes import names_in
from solver.records import Rule, Strict

State = Literal["covered", "set aside", "open"]


class SetAside(Strict, frozen=True):
    """Places no rule is wanted for. All keys given have to match; `guard`: a name that a condition around it reads."""

    why: str
    file: str | None = None
    symbol: str | None = None
    flag: str | None = None
    guard: str | None = None
    kind: str | None = None
    versions: str = ">=0.5.9"


class Judged(msgspec.Struct, frozen=True):
    """One place with what is known of it. `by`: the covering rule, or the reason it is set aside."""

    site: Site
    topic: str
    state: State
    by: str | None


class _Cover(msgspec.Struct, frozen=True):
    """What a rule can cover: the functions it cites, the arguments it writes, and those it is about."""

    rule: str
    topic: str
    symbols: frozenset[str]
    writes: frozenset[str]
    about: frozenset[str]
    refuses: bool


def coverage(knowledge: Knowledge, release: str, wheel: Path) -> list[Judged]:
    """Every site of the release with its state, in the order of the files."""
    ids = flag_ids(knowledge, release)
    folders = {p.stem: p.parent.name for p in (Path(knowledge.root) / "sglang" / "rules").rglob("*.yaml")}
    covers = [_cover(r, folders[r.id]) for r in knowledge.rules.values() if _in_force(r, release)]
    by_symbol: dict[str, list[_Cover]] = {}
    for cover in covers:
        for symbol in cover.symbols:
            by_symbol.setdefault(symbol, []).append(cover)
    topics = _topics(covers)
    aside = [a for a in set_aside(Path(knowledge.root)) if holds(a.versions, release)]
    parts = written_as(Path(knowledge.root))
    found = []
    for site in sites(wheel, ids):
        flags = tuple(part for f in site.flags for part in (ids[f], *parts.get(ids[f], ())))
        by = next((c for c in by_symbol.get(_bare(site.symbol), ()) if _covers(c, site, flags)), None)
        reason = None if by else next((a.why for a in aside if _matches(a, site)), None)
        topic = by.topic if by else next((topics[f] for f in flags if f in topics), "other")
        state: State = "covered" if by else "set aside" if reason else "open"
        found.append(Judged(site, topic, state, by.rule if by else reason))
    return found


def flag_ids(knowledge: Knowledge, release: str) -> dict[str, str]:
    """The release's own names of its arguments -> canonical ids; the record may use either."""
    forms = [(i, form) for i, flag in knowledge.flags.items() for form in flag.forms if holds(form.versions, release)]
    forms = [(i, form) for i, form in forms if not form.into]
    return {i: i for i, _ in forms} | {form.dest: i for i, form in forms if form.dest}


def set_aside(root: Path) -> list[SetAside]:
    """The lists of what is set aside."""
    paths = sorted((root / "sglang" / "coverage").glob("*.yaml"))
    return [msgspec.convert(item, SetAside) for path in paths for item in read_yaml(path) or ()]


def written_as(root: Path) -> dict[str, tuple[str, ...]]:
    """Arguments that are one record in the engine -> the flags by which the rules know its parts."""
    path = root / "sglang" / "coverage" / "written_as.json"
    return {name: tuple(parts) for name, parts in json.loads(path.read_text(encoding="utf-8")).items()}


def _in_force(rule: Rule, release: str) -> bool:
    return not rule.withdrawn and holds(rule.versions, release)


def _bare(symbol: str) -> str:
    """Handlers lost their underscore and their class when they moved to files of their own."""
    return symbol.rsplit(".", 1)[-1].lstrip("_")


def _cover(rule: Rule, topic: str) -> _Cover:
    writes = {n for values in (rule.set, *(c.set for c in rule.cases)) for n in values}
    texts = [*rule.when, *rule.require, *rule.forbid, *rule.let.values(), *(t for c in rule.cases for t in c.when)]
    about = {n for text in texts for space, n in names_in(parse(text)) if space in ("flag", "given")}
    symbols = frozenset(_bare(s.symbol) for s in rule.sources if s.symbol)
    refuses = rule.severity == "error"
    return _Cover(rule.id, topic, symbols, frozenset(writes), frozenset(about) | frozenset(rule.about), refuses)


def _covers(cover: _Cover, site: Site, flags: tuple[str, ...]) -> bool:
    if site.kind == "write":
        return any(f in cover.writes for f in flags)
    return cover.refuses and (not flags or any(f in cover.about for f in flags))


def _matches(aside: SetAside, site: Site) -> bool:
    wanted = (
        (aside.file, site.file.endswith(aside.file or "")),
        (aside.symbol, _bare(site.symbol) == _bare(aside.symbol or "")),
        (aside.flag, aside.flag in site.flags),
        (aside.guard, aside.guard in site.guards),
        (aside.kind, site.kind == aside.kind),
    )
    return all(right for key, right in wanted if key is not None)


def _topics(covers: Iterable[_Cover]) -> dict[str, str]:
    """The topic in which most rules speak of an argument."""
    counts: dict[str, Counter[str]] = {}
    for cover in covers:
        for flag in cover.writes | cover.about:
            counts.setdefault(flag, Counter())[cover.topic] += 1
    return {flag: count.most_common(1)[0][0] for flag, count in counts.items()}


# -------------------------------------------------------------------- output


def table(found: Iterable[Judged]) -> dict[str, Counter[str]]:
    """Topic -> how many of its sites are in each state; the last line is the sum."""
    topics: dict[str, Counter[str]] = {}
    for judged in found:
        for topic in (judged.topic, "all"):
            topics.setdefault(topic, Counter())[judged.state] += 1
    return dict(sorted(topics.items(), key=lambda item: (item[0] == "all", item[0])))


def share(counts: Mapping[str, int]) -> float:
    """The part of sites that is not open."""
    return 1 - counts.get("open", 0) / max(sum(counts.values()), 1)


def as_text(release: str, found: list[Judged]) -> str:
    """A table per topic, and the open sites below it."""
    lines = [f"{release}: {'topic':16} {'covered':>8} {'set aside':>10} {'open':>6} {'known':>7}"]
    for topic, counts in table(found).items():
        numbers = f"{counts['covered']:8} {counts['set aside']:10} {counts['open']:6} {share(counts):7.1%}"
        lines.append(f"{'':{len(release)}}  {topic:16} {numbers}")
    return "\n".join([*lines, *_open_lines(found)])


def _open_lines(found: Iterable[Judged]) -> Iterator[str]:
    for judged in sorted((j for j in found if j.state == "open"), key=lambda j: (j.topic, j.site.file, j.site.line)):
        site = judged.site
        yield f"open {judged.topic}: {site.kind} {site.file}:{site.line} {site.symbol} ({', '.join(site.flags)})"


def as_data(release: str, found: list[Judged]) -> dict[str, Any]:
    """The same as plain data."""
    return {
        "release": release,
        "topics": {t: {**c, "known": round(share(c), 4)} for t, c in table(found).items()},
        "sites": [{**msgspec.to_builtins(j.site), "topic": j.topic, "state": j.state, "by": j.by} for j in found],
    }
