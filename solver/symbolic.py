"""A release's rules + what may change -> a finite-domain `Model` in which effective values are functions of choices.

The same rules that `pipeline.run` executes are executed here over variables: each write makes a new variable (single
assignment form), each condition that depends on a choice becomes a boolean variable, everything else folds to a value
at once. What does not depend on a choice never reaches the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from math import prod
from typing import Any

import msgspec

from solver.bound import Frozen, reopened
from solver.compiled import CompiledRule
from solver.conditions import Unknown, evaluator
from solver.constraints import Ban, Lazy, Level, Model
from solver.decisions import Resolver
from solver.estimates import CAUTIOUS
from solver.facts import Facts, State
from solver.grammar import fold_release, parse
from solver.nodes import Node, names_in
from solver.screen import FREE
from solver.variables import DOUBT, MAX_ROWS, Var, Variables, differs, lazily, same, settled


class Choice(msgspec.Struct, frozen=True):
    """Something the solver may choose: a flag or `env.X`, and the values it may be given (None: leave it alone).

    `pinned`: the request gives it, with the first value; it is open only to see what would be without.
    """

    space: str
    name: str
    values: tuple[Any, ...]
    pinned: bool = False

    @property
    def key(self) -> str:
        return f"{self.space}.{self.name}"


class Builder:
    """Runs the rules over variables and collects the model."""

    def __init__(
        self, resolver: Resolver, facts: Facts, estimates: Mapping[str, Any], choices: tuple[Choice, ...]
    ) -> None:
        self.resolver = resolver
        self._facts = facts
        self.state = State(resolver.program, facts, estimates)
        self.pool = Variables()
        self.base: list[str] = []
        self.bans: list[Ban] = []
        self.fixed: list[str] = []
        self.warnings: list[tuple[str, CompiledRule]] = []
        self.fixed_warnings: list[CompiledRule] = []
        self.nearness: dict[str, tuple[list[str], float]] = {}
        self.binding: dict[str, Any] = {}
        self._figures: dict[tuple[Any, ...], tuple[Any, Any]] = {}
        self._told: dict[tuple[str, str], Any] = {}
        self._first: dict[tuple[str, str], Any] = {}
        self._choices = {(c.space, c.name): c for c in choices}
        self.pinned = frozenset(c.key for c in choices if c.pinned)
        for choice in choices:
            self._choose(choice)

    # ------------------------------------------------------------ variables

    def _choose(self, choice: Choice) -> None:
        name = choice.key
        self.pool.add(name, choice.values)
        self.base.append(name)
        spaces = self.state.spaces
        default = self.state.get(choice.space, choice.name)
        if choice.space == "env":
            spaces["env"][choice.name] = self.pool.table(f"{name}#0", (name,), lambda v: default if v is None else v)
        else:
            spaces["given"][choice.name] = Var(name)
            spaces["flag"][choice.name] = (
                Var(name)
                if default is None
                else self.pool.table(f"{name}#0", (name,), lambda v: default if v is None else v)
            )
        self._first[(choice.space, choice.name)] = spaces[choice.space][choice.name]

    # ----------------------------------------------------------- evaluation

    def get(self, space: str, name: str) -> Any:
        """State access for evaluators: variables read their value from the current binding."""
        return reopened(self._held(space, name), self.binding, f"{space}.{name}")

    def origin(self, space: str, name: str) -> str:
        return self.state.origin(space, name)

    def _inputs(self, names: tuple[tuple[str, str], ...]) -> tuple[tuple[str, ...], bool]:
        """The variables that a list of names depends on right now, and whether one of them is computed on demand."""
        found: dict[str, None] = {}
        lazy = False
        for space, name in names:
            value = self._held(space, name)
            if type(value) is Var:
                found[value.name] = None
            elif type(value) is Lazy:
                found.update(dict.fromkeys(value.inputs))
                lazy = True
        return tuple(found), lazy

    def _held(self, space: str, name: str) -> Any:
        """What a name stands for now: a plain value, a variable or something lazy."""
        return self._figure(name) if space == "estimate" else self.state.get(space, name)

    def _figure(self, name: str) -> Any:
        """A figure over its arguments, each of which is a variable of its own where it depends on choices."""
        figure = self.state.estimates[name]
        now = (name, *(id(self.state.get(s, n)) for s, n in figure.inputs))
        if now not in self._figures:
            arguments = {a: self._argument(figure, name, a, node) for a, node in figure.nodes.items()}
            parts = tuple(arguments.values())

            def compute(*values: Any) -> Any:
                known = dict(zip(arguments, values, strict=True))
                if Unknown in (kinds := set(map(type, values))) or type(DOUBT) in kinds:
                    doubted = [name for name, value in known.items() if settled(value) is DOUBT]
                    if not CAUTIOUS.keys() >= set(doubted):
                        return DOUBT
                    known |= {name: CAUTIOUS[name] for name in doubted}
                found = figure.compute(known)
                return DOUBT if type(found) is Unknown else found

            lazy = any(type(p) in (Var, Lazy) for p in parts)
            held = [self.state.get(s, n) for s, n in figure.inputs]  # kept, so that their ids stay theirs
            self._figures[now] = (lazily(compute, *parts) if lazy else compute(*parts), held)
        return self._figures[now][0]

    def _argument(self, figure: Any, name: str, argument: str, node: Node) -> Any:
        """One argument of a figure, values that count alike in it made one: so much less to look at."""
        value = self.value(node, f"{name}.{argument}")
        like = figure.like(argument) if type(value) is Var else None
        return self.pool.table(f"{value.name} or alike", (value.name,), like) if like else value

    def value(self, node: Node, stem: str) -> Any:
        """A node's value: plain where it depends on no choice, a variable, or `Lazy`."""
        if node[0] in ("and", "or"):
            return self.pool.junction(node[0], [self.value(n, stem) for n in node[1]], stem)
        if node[0] == "not":
            return self._denied(node[1], stem)
        if node[0] == "name":
            held = self._held(node[1], node[2])
            if type(held) in (Var, Lazy):
                return held
        inputs, lazy = self._inputs(names_in(node))
        run = evaluator(node, self.resolver.program.tables)
        if not inputs:
            return run(self)
        if lazy or prod(len(self.pool.variables[i].domain) for i in inputs) > MAX_ROWS:
            figures = {name: self._figure(name) for space, name in names_in(node) if space == "estimate"}
            return Lazy(inputs, self._on_demand(run, figures))
        rows = {}
        for combo in product(*(self.pool.variables[i].domain for i in inputs)):
            self.binding = dict(zip(inputs, combo, strict=True))
            rows[combo] = settled(run(self))
        return self.pool.define(stem, inputs, rows)

    def _denied(self, node: Node, stem: str) -> Any:
        """Whether a node surely does not hold: what is in doubt, however deep in it, is not denied."""
        if node[0] in ("and", "or"):
            other = "or" if node[0] == "and" else "and"
            return self.pool.junction(other, [self._denied(n, stem) for n in node[1]], stem)
        if node[0] == "not":
            return self.value(node[1], stem)
        return self.pool.junction("and", [self.value(node, stem)], stem, negate=True)

    def _on_demand(self, run: Any, figures: dict[str, Any]) -> Any:
        """`run` against the values as they stand now, whatever is written later."""
        spaces = {space: dict(self.state.values(space)) for space in ("flag", "env", "let")}
        frozen = Frozen(self.state, {**self.state.spaces, **spaces, "estimate": figures})

        def compute(values: Mapping[str, Any]) -> Any:
            return settled(run(frozen.bound(values)))

        return compute

    def chosen(self, name: str) -> Var | None:
        """A boolean variable for "the solver gives this choice a value"; None when it has no alternative."""
        given = self.pool.table(f"{name} given", (name,), lambda v: v is not None)
        return given if type(given) is Var else None

    @property
    def release(self) -> str:
        return self.resolver.program.release

    def expression(self, text: str) -> Any:
        """The value of an expression over the values as they stand now."""
        from packaging.version import Version

        return self.value(fold_release(parse(text), Version, self.release), text)

    # ---------------------------------------------------------------- rules

    def run(self) -> None:
        """Execute every rule of the release in order, until one is violated whatever is chosen."""
        rules = self.resolver.program.rules
        chosen = [(c.space, c.name) for c in self._choices.values()]
        given = [("given", name) for space, name in chosen if space == "flag"]
        self._told = dict.fromkeys([*chosen, *given], FREE)
        self._watch = self.resolver.screen.start(self._facts, self.state, self._told)
        for place in self._watch:
            rule = rules[place]
            if self.fixed:
                return
            if not rule.branches and rule.severity not in ("error", "warning"):
                continue
            lets: dict[str, Any] = {}
            self.state.spaces["let"] = lets
            applies = self._applies(rule, lets)
            if applies is False:
                continue
            if rule.branches:
                self._write(rule, applies)
            else:
                self._demand(rule, applies)

    def _applies(self, rule: CompiledRule, lets: dict[str, Any]) -> Any:
        for name, node in rule.let:
            lets[name] = self.value(node, f"{rule.id}.{name}")
        parts = []
        for node in rule.when:
            part = self.value(node, rule.id)
            if type(part) is not Var and not settled(part):
                return False
            parts.append(part)
        return self.pool.junction("and", parts, rule.id)

    def _demand(self, rule: CompiledRule, applies: Any) -> None:
        broken = [self._denied(n, rule.id) for n in rule.require]
        broken += [self.value(n, rule.id) for n in rule.forbid]
        self._record(rule, self.pool.junction("and", [applies, self.pool.junction("or", broken, rule.id)], rule.id))

    def _record(self, rule: CompiledRule, fires: Any) -> None:
        fires = self.pool.truth(fires) if type(fires) is Var else fires
        if type(fires) is Lazy:
            if rule.severity == "error":
                self.bans.append(Ban(fires, rule.id))
            # a warning that needs a formula is shown in the answer, but does not steer it
        elif type(fires) is Var:
            if rule.severity == "error":
                self.bans.append(Ban(fires.name, rule.id))
            else:
                self.warnings.append((fires.name, rule))
        elif settled(fires):
            if rule.severity == "error":
                self.fixed.append(rule.id)
            else:
                self.fixed_warnings.append(rule)

    def _write(self, rule: CompiledRule, applies: Any) -> None:
        targets: dict[tuple[str, str], Any] = {}
        before: dict[tuple[str, str], Any] = {}
        for branch in reversed(rule.branches):
            holds = self.pool.junction("and", [applies, *(self.value(n, rule.id) for n in branch.when)], rule.id)
            if holds is False:
                continue
            touched = {(s.space, s.name): self.value(s.value, rule.id) for s in branch.sets}
            for key in {**targets, **touched}:
                before.setdefault(key, self.state.get(*key))
                old = targets.get(key, before[key])
                new = touched.get(key, before[key])
                targets[key] = self.pool.either(holds, new, old, f"{key[0]}.{key[1]}")
        for key, value in targets.items():
            self.state.spaces[key[0]][key[1]] = value
            self._tell_screen(key, before[key], value)
            if rule.severity in ("error", "warning"):
                self._record(rule, self._reported(rule, key, before[key], value))
            if differs(value, before[key]):
                self.state.origins[key] = rule.id

    def _tell_screen(self, key: tuple[str, str], before: Any, after: Any) -> None:
        """To the screen, a value that depends on choices may be any."""
        told = FREE if type(after) in (Var, Lazy) else after
        self._watch.changed(key, self.resolver.screen.step(key, self._told.get(key, before), told))
        self._told[key] = told

    def _reported(self, rule: CompiledRule, key: tuple[str, str], before: Any, after: Any) -> Any:
        """Whether writing this value makes a finding: it changed, and (unless `report: change`) it was given."""
        if not differs(after, before):
            return False
        changed = self.pool.compare(before, after, f"{rule.id}.changed")
        if rule.report == "change":
            return changed
        choice = self._choices.get(key)
        if type(changed) is Lazy:
            return False if choice else changed
        if choice and same(before, self._first.get(key)):
            return self.pool.junction("and", [changed, self.chosen(choice.key) or True], rule.id)
        return changed if self.state.origin(*key) == "given" else False

    def refuse(self, name: str, value: Any) -> None:
        """What no answer may be, beside the rules: a guard or ban of the request, under its name."""
        value = self.pool.truth(value) if type(value) is Var else value
        if type(value) in (Var, Lazy):
            self.bans.append(Ban(value.name if type(value) is Var else value, name))
        elif settled(value):
            self.fixed.append(name)

    # --------------------------------------------------------------- result

    def model(self, levels: tuple[Level, ...], measured: Iterable[Any] = ()) -> Model:
        """The finished model under the given objective; `measured`: values that are looked at besides."""
        final = {}
        for space in ("flag", "env"):
            for name, value in self.state.values(space).items():
                plain = ("const", value)
                final[f"{space}.{name}"] = value.name if type(value) is Var else value if type(value) is Lazy else plain
        return Model(
            variables=self.pool.variables,
            base=tuple(self.base),
            definitions=self.pool.definitions,
            bans=tuple(self.bans),
            levels=levels,
            final=final,
            fixed_violations=tuple(self.fixed),
            measured=tuple(v.name if type(v) is Var else v for v in measured if type(v) in (Var, Lazy)),
        )
