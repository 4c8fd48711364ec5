"""A context -> its findings, worked out once for launches that differ only in what makes no difference to a rule.

Most launches of a tree differ in port, host and name. Two launches have the same findings if they agree on what the
rules of the release look at, but for what messages, reasons and fixes mention besides. Where the rules that can act
at all look at a flag alone, it is enough that the same conditions hold.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any, NamedTuple

from solver.check import check
from solver.context import Context, machine_cases
from solver.decisions import Resolver
from solver.gate.shapes import Shapes
from solver.looks import ALWAYS, Name, plain_name
from solver.records import Finding
from solver.store import Store
from solver.words import holes


class Counting:
    """Which flags and variables of a launch make a difference in a release, as bit masks of rules (see `Looks`)."""

    def __init__(self, store: Store, resolver: Resolver) -> None:
        self.resolver = resolver  # kept, so that its id stays its own
        looks = store.looks(resolver.program.release)
        self.values: dict[Name, int] = {
            (space, name): ALWAYS if rules is None else int.from_bytes(rules, "little")
            for space, name, rules in looks.values
        }
        self._fixed = looks.fixed
        self.unset = {flag: int.from_bytes(rules, "little") for flag, rules in looks.conditions}
        """Flag -> the rules that it rules out while it is not given."""
        if resolver.program.screening is None:  # a fork, whose defaults may be others
            self.unset = {flag: self.mask(flag, {}) for flag in self.unset}

    def mask(self, flag: str, given: dict[str, Any]) -> int:
        """The rules that a flag's value rules out."""
        value = given.get(flag, self.resolver.program.unset_flags.get(flag))
        screen = self.resolver.screen
        return screen.mask(("flag", flag), value) | screen.mask(("given", flag), given.get(flag))

    def dead_without(self, named: Container[str]) -> int:
        """The rules that cannot act because flags are not given that no rule writes: all but the ones named."""
        found = 0
        for flag in self._fixed:
            if flag not in named:
                found |= self.unset[flag]
        return found

    def dead(self, context: Context) -> int:
        """The rules that cannot act in a launch, because of flags that no rule writes."""
        given, doubtful = context.facts.given, context.facts.doubtful
        found = self.dead_without({*given, *doubtful})
        for flag in self._fixed:
            if flag in given and flag not in doubtful:
                found |= self.mask(flag, given)
        return found

    def of(self, context: Context) -> Iterator[tuple[str, object]]:
        """What is given and counts: with its value, or with the rules that its value rules out."""
        given, dead = context.facts.given, self.dead(context)
        for flag in sorted(given):
            if self.values.get(("flag", flag), 0) & ~dead:
                yield flag, repr(given[flag])
            elif flag in self.unset and (mask := self.mask(flag, given)) != self.unset[flag]:
                yield flag, mask
        for name, value in sorted(context.facts.env.items()):
            if ("env", name) in self.values:
                yield name, value


class Kept(NamedTuple):
    """Findings, and the values besides that they depend on."""

    besides: dict[Name, str]
    findings: tuple[Finding, ...]


class Alike:
    """The findings of rules, kept while launches agree on what these look at."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._known: dict[int, Counting] = {}
        self._shapes: dict[int, Shapes] = {}
        self._kept: dict[Any, list[Kept]] = {}

    def findings(self, context: Context) -> Kept:
        """The findings of a context's rules; those of its reading are not among them."""
        counting = self.counting(context.resolver)
        facts = context.facts
        key = (
            context.resolver.program.release,
            id(context.resolver),
            context.model_name,
            context.hardware_name,
            facts.hardware.get("gpus"),
            tuple(counting.of(context)),
            facts.doubtful,
        )
        kept = self._kept.setdefault(key, [])
        for found in kept:
            if all(_value(context, name) == value for name, value in found.besides.items()):
                return found
        result = check(
            context.store, context.resolver, facts, context.estimates, (), lambda: machine_cases(context.index)
        )
        besides = {name: _value(context, name) for f in result.findings for name in self._said(f)}
        kept.append(Kept(besides, result.findings))
        return kept[-1]

    def counting(self, resolver: Resolver) -> Counting:
        """What counts for a resolver's rules."""
        known = self._known.get(id(resolver))
        if known is None:
            known = self._known[id(resolver)] = Counting(self.store, resolver)
        return known

    def shapes(self, resolver: Resolver) -> Shapes:
        """What tells launches from each other before they are read."""
        known = self._shapes.get(id(resolver))
        if known is None:
            known = self._shapes[id(resolver)] = Shapes(self.counting(resolver))
        return known

    def _said(self, finding: Finding) -> list[Name]:
        """The flags and variables of a finding's reasons, of its rule's message, and of what its fixes drop."""
        rule = self.store.rule(finding.rule)
        said = [fact.name for fact in finding.because] + list(holes(rule.message) if rule else ())
        found = [plain_name(space, name) for space, _, name in (text.partition(".") for text in said) if name]
        found += [(space, n) for fix in (rule.fix if rule else ()) for n in fix.unset for space in ("flag", "env")]
        return [name for name in found if name[0] in ("flag", "env")]


def _value(context: Context, name: Name) -> str:
    values = context.facts.given if name[0] == "flag" else context.facts.env
    return repr(values.get(name[1]))
