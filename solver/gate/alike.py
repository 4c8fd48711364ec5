"""A context -> its findings, worked out once for launches that differ only in what makes no difference to a rule.

Most launches of a tree differ in port, host and name. Two launches have the same findings if they agree on what the
rules of the release look at, but for what messages, reasons and fixes mention besides. Where the rules that can act
at all look at a flag alone, it is enough that the same conditions hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from solver.check import check
from solver.context import Context, machine_cases
from solver.decisions import Resolver
from solver.nodes import Node
from solver.records import Finding
from solver.store import Store
from solver.words import holes

Name = tuple[str, str]


class _Looks:
    """What the rules of a release look at, as bit masks of rules (bit i: rule i of the program)."""

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver  # kept, so that its id stays its own
        self.values: dict[Name, int] = {}
        """Flags and variables whose value counts -> for which rules."""
        self.conditions: set[str] = set()
        """Flags of which it may count only which conditions hold."""
        written: set[str] = set()
        for place, rule in enumerate(resolver.program.rules):
            targets = [(s.space, s.name) for b in rule.branches for s in b.sets]
            written.update([name for _, name in targets], rule.leaves_open)
            self._add(targets, ALWAYS)
            acts = [*rule.require, *rule.forbid, *(n for b in rule.branches for n in b.when)]
            for nodes in (*([node] for node in rule.when), acts):
                names = names_of(nodes)
                self.conditions.update([name for space, name in names if space in ("flag", "given")])
                if len(names) > 1 or ("env" in {space for space, _ in names}):
                    self._add(names, 1 << place)
            computed = [n for n in rule.fix_when if n is not None] + [s.value for b in rule.branches for s in b.sets]
            self._add(names_of([*computed, *(node for _, node in rule.let)]), 1 << place)
        figures = [node for arguments in resolver.program.arguments.values() for node in arguments.values()]
        self._add(names_of(figures), ALWAYS)
        self._fixed = sorted(self.conditions - written)
        self.unset = {flag: self.mask(flag, {}) for flag in self.conditions}

    def _add(self, names: Iterable[Name], rules: int) -> None:
        for space, name in names:
            key = _plain(space, name)
            self.values[key] = self.values.get(key, 0) | rules

    def mask(self, flag: str, given: dict[str, Any]) -> int:
        """The rules that a flag's value rules out."""
        value = given.get(flag, self.resolver.program.unset_flags.get(flag))
        screen = self.resolver.screen
        return screen.mask(("flag", flag), value) | screen.mask(("given", flag), given.get(flag))

    def dead(self, context: Context) -> int:
        """The rules that cannot act in a launch, because of flags that no rule writes."""
        found = 0
        given, doubtful = context.facts.given, context.facts.doubtful
        for flag in self._fixed:
            if flag not in doubtful:
                found |= self.mask(flag, given) if flag in given else self.unset[flag]
        return found


ALWAYS = -1


class _Kept(NamedTuple):
    """Findings, and the values besides that they depend on."""

    besides: dict[Name, str]
    findings: tuple[Finding, ...]


class Alike:
    """The findings of rules, kept while launches agree on what these look at."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._known: dict[int, _Looks] = {}
        self._kept: dict[Any, list[_Kept]] = {}

    def findings(self, context: Context) -> tuple[Finding, ...]:
        """The findings of a context's rules; those of its reading are not among them."""
        looks = self._looks(context.resolver)
        facts = context.facts
        key = (
            context.resolver.program.release,
            id(context.resolver),
            context.model_name,
            context.hardware_name,
            facts.hardware.get("gpus"),
            tuple(_counting(context, looks)),
            facts.doubtful,
        )
        kept = self._kept.setdefault(key, [])
        for found in kept:
            if all(_value(context, name) == value for name, value in found.besides.items()):
                return found.findings
        result = check(
            context.store, context.resolver, facts, context.estimates, (), lambda: machine_cases(context.index)
        )
        besides = {name: _value(context, name) for f in result.findings for name in self._said(f)}
        kept.append(_Kept(besides, result.findings))
        return result.findings

    def _looks(self, resolver: Resolver) -> _Looks:
        known = self._known.get(id(resolver))
        if known is None:
            known = self._known[id(resolver)] = _Looks(resolver)
        return known

    def _said(self, finding: Finding) -> list[Name]:
        """The flags and variables of a finding's reasons, of its rule's message, and of what its fixes drop."""
        rule = self.store.rule(finding.rule)
        said = [fact.name for fact in finding.because] + list(holes(rule.message) if rule else ())
        found = [_plain(space, name) for space, _, name in (text.partition(".") for text in said) if name]
        found += [(space, n) for fix in (rule.fix if rule else ()) for n in fix.unset for space in ("flag", "env")]
        return [name for name in found if name[0] in ("flag", "env")]


def _counting(context: Context, looks: _Looks) -> Iterator[tuple[str, object]]:
    """What is given and counts: with its value, or with the rules that its value rules out."""
    given, dead = context.facts.given, looks.dead(context)
    for flag in sorted(given):
        if looks.values.get(("flag", flag), 0) & ~dead:
            yield flag, repr(given[flag])
        elif flag in looks.conditions and (mask := looks.mask(flag, given)) != looks.unset[flag]:
            yield flag, mask
    for name, value in sorted(context.facts.env.items()):
        if ("env", name) in looks.values:
            yield name, value


def names_of(nodes: Sequence[Node]) -> set[Name]:
    """The facts that some nodes name, `let` names among them; quicker than looking at each node of a tree."""
    found: set[Name] = set()
    rest: list[Any] = list(nodes)
    while rest:
        item = rest.pop()
        if item and item[0] == "name":
            found.add((item[1], item[2]))
        elif not item or item[0] != "lit":
            rest += [child for child in item if type(child) is list]
    return found


def _plain(space: str, name: str) -> Name:
    return ("flag" if space == "given" else space), name


def _value(context: Context, name: Name) -> str:
    values = context.facts.given if name[0] == "flag" else context.facts.env
    return repr(values.get(name[1]))
