"""A checked launch -> the constraint graph that matters to it: who set what, what is violated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from solver.check import Result
from solver.compiled import CompiledRule
from solver.context import Context
from solver.decisions import mentioned
from solver.findings import spelling
from solver.pipeline import plain
from solver.words import say

if TYPE_CHECKING:
    import networkx as nx

KINDS = ("flag", "env", "model", "hardware", "rule")


class Node(msgspec.Struct, frozen=True):
    """One node. `kind`: one of KINDS; `state`: given, default, set, trait, violated, warned, noted or applies."""

    id: str
    kind: str
    label: str
    state: str
    detail: str = ""


class Edge(msgspec.Struct, frozen=True):
    """`needs`: the rule looks at the fact; `sets`: it writes it; `refuses`: the fact is at fault."""

    source: str
    target: str
    kind: str


class Graph(msgspec.Struct, frozen=True):
    """Nodes and edges, sorted."""

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def build_graph(context: Context, result: Result, around: str | None = None, distance: int = 2) -> Graph:
    """The graph of the rules that applied to this launch, or of what is near one flag (a canonical id)."""
    outcome = result.outcomes[0]
    severities = {f.rule: f.severity for f in result.findings if not f.conditional_on and not f.after}
    written = {w.rule for w in outcome.writes if w.before != w.after or type(w.before) is not type(w.after)}
    rules = context.resolver.program.rules
    chosen = {r.id for r in rules} if around else _relevant(context, severities, written, outcome.state)
    nodes: dict[str, Node] = {}
    edges: dict[Edge, None] = {}
    for rule in rules:
        if rule.id in chosen:
            _add_rule(context, rule, severities, written, outcome.state, nodes, edges)
    graph = Graph(
        _title(context), tuple(sorted(nodes.values(), key=_node_order)), tuple(sorted(edges, key=_edge_order))
    )
    return near(graph, f"flag.{around}", distance) if around else _without_loners(graph)


def _title(context: Context) -> str:
    return f"SGLang {context.release}, {context.model_name or 'any model'}, {context.hardware_name or 'any machine'}"


def _relevant(context: Context, severities: dict[str, Any], written: set[str], state: Any) -> set[str]:
    """The rules with a finding, those that touch a given flag, and those that set what the former read."""
    rules = context.resolver.program.rules
    given = context.facts.given
    found = {r.id for r in rules if r.id in severities}
    for rule in rules:
        touched = {name for space, name in mentioned(rule) if space in ("flag", "given")}
        touched |= {s.name for b in rule.branches for s in b.sets}
        if touched & given.keys() and (rule.id in written or (not rule.branches and _applies(context, rule, state))):
            found.add(rule.id)
    read = {name for rule in rules if rule.id in severities for space, name in mentioned(rule) if space == "flag"}
    return found | {r.id for r in rules if r.id in written and any(s.name in read for b in r.branches for s in b.sets)}


def _applies(context: Context, rule: CompiledRule, state: Any) -> bool:
    return context.resolver.ready(rule).when.hold(_WithLets(context, rule, state)) is True


class _WithLets:
    """The final state with a rule's own intermediate values."""

    def __init__(self, context: Context, rule: CompiledRule, state: Any) -> None:
        self.state = state
        self.lets: dict[str, Any] = {}
        for name, value in context.resolver.ready(rule).let:
            self.lets[name] = value(self)

    def get(self, space: str, name: str) -> Any:
        return self.lets.get(name) if space == "let" else self.state.get(space, name)


def _add_rule(
    context: Context,
    rule: CompiledRule,
    severities: dict[str, Any],
    written: set[str],
    state: Any,
    nodes: dict[str, Node],
    edges: dict[Edge, None],
) -> None:
    me = f"rule.{rule.id}"
    severity = severities.get(rule.id)
    how = {"error": "violated", "warning": "warned", "note": "noted"}.get(severity or "", "")
    text = context.store.rule(rule.id)
    nodes[me] = Node(
        me, "rule", rule.id, how or ("set" if rule.id in written else "applies"), text.title if text else ""
    )
    targets = {(s.space, s.name) for b in rule.branches for s in b.sets}
    for space, name in (*mentioned(rule), *targets):
        if space == "given":
            space = "flag"
        if space not in KINDS:
            continue
        key = f"{space}.{name}"
        fact = _fact_node(context, space, name, state)
        if (space, name) not in targets and not severity and _silent(fact, state.get(space, name)):
            continue
        nodes.setdefault(key, fact)
        if (space, name) in targets:
            edges[Edge(me, key, "sets")] = None
        if (space, name) in mentioned(rule) or ("given", name) in mentioned(rule):
            kind = "refuses" if how == "violated" and space in ("flag", "env") else "needs"
            edges[Edge(key, me, kind)] = None


def _fact_node(context: Context, space: str, name: str, state: Any) -> Node:
    value = say(plain(state.get(space, name)))
    origin = state.origin(space, name)
    label = (
        spelling(context.resolver.program, name) if space == "flag" else name if space == "env" else f"{space}.{name}"
    )
    given = name in (context.facts.given if space == "flag" else context.facts.env)
    how = "given" if given else origin if origin in ("default", "trait", "unknown") else "set"
    by = "you" if given and origin == "given" else f"set by {origin}" if how == "set" or given else how
    return Node(f"{space}.{name}", space, f"{label}\n{_short(value)}", how, by)


def _silent(node: Node, value: Any) -> bool:
    """A switch that nobody touched says nothing where no rule complains."""
    return node.state == "default" and value in (None, False, "none", "null", "auto")


def _short(text: str, limit: int = 40) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _node_order(node: Node) -> tuple[int, str]:
    return KINDS.index(node.kind), node.id


def _edge_order(edge: Edge) -> tuple[str, str, str]:
    return edge.source, edge.target, edge.kind


def _without_loners(graph: Graph) -> Graph:
    """Facts that only rules without effect look at add nothing to the picture."""
    touched = {e.source for e in graph.edges} | {e.target for e in graph.edges}
    return msgspec.structs.replace(graph, nodes=tuple(n for n in graph.nodes if n.id in touched))


# ------------------------------------------------------------- networkx's part


def to_networkx(graph: Graph) -> nx.DiGraph[str]:
    """The graph for analysis and export."""
    import networkx as nx

    out: nx.DiGraph[str] = nx.DiGraph(title=graph.title)
    for node in graph.nodes:
        out.add_node(node.id, kind=node.kind, label=node.label, state=node.state, detail=node.detail)
    for edge in graph.edges:
        out.add_edge(edge.source, edge.target, kind=edge.kind)
    return out


def near(graph: Graph, node: str, distance: int) -> Graph:
    """What lies within a distance of one node, in either direction; empty when the node is not there."""
    import networkx as nx

    whole = to_networkx(graph)
    if node not in whole:
        return msgspec.structs.replace(graph, nodes=(), edges=())
    kept = set(nx.ego_graph(whole, node, radius=distance, undirected=True))
    return msgspec.structs.replace(
        graph,
        nodes=tuple(n for n in graph.nodes if n.id in kept),
        edges=tuple(e for e in graph.edges if e.source in kept and e.target in kept),
    )


def node_link(graph: Graph) -> dict[str, Any]:
    """The node-link form that networkx reads back."""
    import networkx as nx

    data: dict[str, Any] = nx.node_link_data(to_networkx(graph), edges="links")
    return data
