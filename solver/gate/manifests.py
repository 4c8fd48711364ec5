"""YAML and JSON texts -> the launches in them: containers, services, script blocks, argument lists, flag mappings.

One walk serves all. A mapping that says what is started is read as one command; a list that names the engine as
arguments or as lines of a script; any other text that names it as shell text. Each text is read once.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from solver.errors import RequestError
from solver.gate import compose, containers, flag_mappings, templates
from solver.gate.arguments import Argument, arguments_of, joined, launches_in
from solver.gate.flag_mappings import FlagNames
from solver.gate.found import Finds, Item, Kind, Slot, Unreadable
from solver.gate.nodes import Node, get, pairs, scalars
from solver.gate.scalars import scalar_text
from solver.gate.scope import Scope, narrowed, with_env
from solver.gate.slots import slot_in
from solver.gate.text import Builder, Text
from solver.records import Span

ReadBeside = Callable[[str], str | None]

_LAUNCH = re.compile(r"launch_server|sglang(?:\.cli\.main)?['\"\s,]+serve\b")
MOST_ARGUMENTS = 5_000
"""Elements of a list of arguments; a longer one is data."""
_FILES = (".yaml", ".yml")
_WORKFLOW = ("jobs", "steps", "stages", "pipelines", "before_script", "pool")


def find_yaml(source: Text, flags: FlagNames, read_beside: ReadBeside) -> Finds:
    """The launches of a YAML text. Errors: Unreadable."""
    finds, problem = _find_yaml(source, flags, read_beside)
    if problem.startswith("not YAML") and ("{{" in source.text or "{%" in source.text):
        finds, rest = _find_yaml(templates.rendered(source), flags, read_beside)
        finds.found = [msgspec.structs.replace(found, partial=True, fragment=True) for found in finds.found]
        if not rest:
            return finds
        problem += "; a template has to be rendered first: `helm template … | flagwise gate -`"
    if problem:
        finds.problems.append(problem)
        if not finds.found:
            raise Unreadable(problem)
    return finds


def _find_yaml(source: Text, flags: FlagNames, read_beside: ReadBeside) -> tuple[Finds, str]:
    """The launches of the documents up to one that cannot be read, and what is wrong with that one."""
    from solver.gate.yaml_nodes import documents

    finds = Finds()
    try:
        for node in documents(source.text):
            _find(node, source, flags, read_beside, "yaml", finds)
    except Unreadable as error:
        return finds, str(error)
    return finds, ""


def find_json(source: Text, flags: FlagNames, read_beside: ReadBeside) -> Finds:
    """The launches of a JSON text. Errors: Unreadable."""
    from solver.gate.json_nodes import document

    return _find(document(source.text), source, flags, read_beside, "json", Finds())


def _find(node: Node, source: Text, flags: FlagNames, read_beside: ReadBeside, other: Kind, finds: Finds) -> Finds:
    """Add the launches of one document."""
    if entries := flag_mappings.flags_in(node, flags, 2, underscores=other == "yaml"):
        finds.found.append(flag_mappings.found(entries, source, is_file=True))
    else:
        _Walk(kind_of(node, other), source, flags, read_beside, finds).visit(node, Scope())
    return finds


def kind_of(node: Node, other: Kind) -> Kind:
    """What a document is for, by the keys it has."""
    if get(node, "apiVersion") and get(node, "kind"):
        return "kubernetes"
    if (services := get(node, "services")) and services.kind == "map":
        return "compose"
    if any(get(node, key) for key in _WORKFLOW) or any(get(value, "script") for _, _, value in pairs(node)):
        return "workflow"
    return other


class _Walk:
    """One document under way."""

    def __init__(self, kind: Kind, source: Text, flags: FlagNames, read_beside: ReadBeside, finds: Finds) -> None:
        self.kind = kind
        self.source = source
        self.flags = flags
        self.read_beside = read_beside
        self.finds = finds
        self.seen: set[int] = set()

    def visit(self, node: Node, scope: Scope) -> None:
        if id(node) in self.seen:
            return
        self.seen.add(id(node))
        if node.kind == "map":
            self._mapping(node, scope)
        elif node.kind == "scalar":
            self._script([node], scope)
        elif (
            (items := scalars(node))
            and len(items) <= MOST_ARGUMENTS
            and _LAUNCH.search(" ".join(item.value for item in items))
        ):
            self.seen.update(map(id, items))
            if any(" " in item.value and _LAUNCH.search(item.value) for item in items):
                self._script(items, scope)
            else:
                self._read(*joined(arguments_of(items, self.source)), scope, node)
        else:
            for item in node.value:
                self.visit(item, scope)

    def _mapping(self, node: Node, scope: Scope) -> None:
        if entries := flag_mappings.flags_in(node, self.flags):
            self.finds.found.append(flag_mappings.found(entries, self.source))
            return
        if started := self._started(node, scope):
            self._command(*started, node)
        scope = self._inner(node, scope)
        for name, _, value in pairs(node):
            if name.endswith(_FILES) and value.kind == "scalar" and id(value) not in self.seen:
                self._file(value)
            self.visit(value, scope)

    def _started(self, node: Node, scope: Scope) -> tuple[list[Argument], Scope] | None:
        """The command of a mapping that says what is started, and what its process gets."""
        if self.kind == "compose":
            return compose.command_of(node, self.source, scope, self.read_beside)
        return containers.command_of(node, self.source, scope)

    def _command(self, arguments: list[Argument], scope: Scope, node: Node) -> None:
        text, items = joined(arguments)
        bare = text.text.startswith("-") and "sglang" in (scope.hints.image or "")
        if bare or _LAUNCH.search(text.text.replace("'", " ")):
            self.seen.update(id(argument.node) for argument in arguments)
            self.seen.update(id(value) for key in containers.KEYS if (value := get(node, key)))
            slot = slot_in(node, self.source, "environment" if self.kind == "compose" else "env")
            before = len(self.finds.found)
            self._read(text, items, scope, node, slot=slot, bare=bare)
            if self.kind == "yaml" and get(node, "args") is None:  # a template puts it together with what is elsewhere
                found = self.finds.found[before:]
                self.finds.found[before:] = [msgspec.structs.replace(launch, partial=True) for launch in found]

    def _inner(self, node: Node, scope: Scope) -> Scope:
        """What holds below a mapping. A workflow hands its variables down; a container's are its own."""
        scope = narrowed(scope, node)
        if self.kind == "kubernetes":
            return scope
        for key in ("env", "variables"):
            if key in node.fields:
                scope = with_env(scope, get(node, key), self.source)
        return scope

    def _file(self, node: Node) -> None:
        """A YAML file that a manifest brings along."""
        try:
            finds = find_yaml(scalar_text(node, self.source), self.flags, lambda path: None)
        except Unreadable:
            return  # it may be no YAML at all; it is read as a script then
        if finds.found:
            self.seen.add(id(node))
            self.finds.found += finds.found

    def _script(self, nodes: list[Node], scope: Scope) -> None:
        """Scalars that are shell text, one line after the other."""
        if not any(_LAUNCH.search(node.value) for node in nodes):
            return
        builder = Builder(self.source)
        for node in nodes:
            builder.add(scalar_text(node, self.source))
            if len(nodes) > 1:
                builder.compute("\n")
        self._read(builder.finish(), (), scope, nodes[0])

    def _read(
        self,
        text: Text,
        items: tuple[Item, ...],
        scope: Scope,
        node: Node,
        slot: Slot | None = None,
        bare: bool = False,
    ) -> None:
        fallback = self.source.place(Span(node.start, node.end)) or Span(node.start, node.end)
        try:
            self.finds.found += launches_in(
                self.kind, text, fallback, env=scope.env, env_places=scope.places, hints=scope.hints, items=items,
                slot=slot, bare=bare,
            )  # fmt: skip
        except RequestError as error:
            line = self.source.text.count("\n", 0, node.start) + 1
            self.finds.problems.append(f"{error} (in the text that starts on line {line})")
