"""A graph -> DOT, SVG (through the dot program) or Mermaid, with a legend; what is violated stands out."""

from __future__ import annotations

import re

from solver.errors import RequestError
from solver.graph import Edge, Graph, Node

SHAPES = {"flag": "box", "env": "cds", "model": "ellipse", "hardware": "octagon", "rule": "note"}
MERMAID_SHAPES = {
    "flag": ("[", "]"), "env": ("[/", "/]"), "model": ("([", "])"), "hardware": ("{{", "}}"), "rule": (">", "]"),
}  # fmt: skip
FILLS = {"flag": "#e8f0fe", "env": "#e0f7fa", "model": "#e6f4ea", "hardware": "#fef7e0", "rule": "#f5f5f5"}
STATES = {
    "violated": ("#c5221f", "#fce8e6"),
    "warned": ("#b06000", "#feefc3"),
    "noted": ("#1967d2", "#f5f5f5"),
    "set": ("#137333", None),
    "given": ("#174ea6", None),
    "unknown": ("#9334e6", "#f3e8fd"),
}
"""State -> border colour, and fill where it replaces that of the kind."""
BOLD = ("violated", "given")
EDGES = {"needs": ("#80868b", "solid"), "sets": ("#137333", "bold"), "refuses": ("#c5221f", "bold")}
LEGEND = (
    Node("legend.flag", "flag", "flag\ngiven by you", "given"),
    Node("legend.set", "flag", "flag\nset by a rule", "set"),
    Node("legend.env", "env", "variable", "default"),
    Node("legend.model", "model", "model trait", "trait"),
    Node("legend.hardware", "hardware", "machine trait", "trait"),
    Node("legend.rule", "rule", "rule that applies", "applies"),
    Node("legend.violated", "rule", "rule violated", "violated"),
    Node("legend.warned", "rule", "rule warns", "warned"),
)
LEGEND_EDGES = (
    Edge("legend.model", "legend.rule", "needs"),
    Edge("legend.rule", "legend.set", "sets"),
    Edge("legend.flag", "legend.violated", "refuses"),
)


def dot(graph: Graph) -> str:
    """The graph in Graphviz's language."""
    from graphviz import Digraph

    out = Digraph("flagwise")
    out.attr(
        rankdir="LR",
        label=graph.title,
        labelloc="t",
        fontname="Helvetica",
        fontsize="16",
        nodesep="0.15",
        ranksep="0.9",
    )
    out.attr("node", fontname="Helvetica", fontsize="10", style="filled", margin="0.12,0.06")
    out.attr("edge", fontname="Helvetica", fontsize="8", arrowsize="0.6")
    _draw(out, graph.nodes, graph.edges)
    with out.subgraph(name="cluster_legend") as legend:
        legend.attr(label="legend", style="dashed", color="#9aa0a6", fontsize="11")
        _draw(legend, LEGEND, LEGEND_EDGES)
    return str(out.source)


def _draw(out: object, nodes: tuple[Node, ...], edges: tuple[Edge, ...]) -> None:
    for node in nodes:
        border, fill = STATES.get(node.state, ("#9aa0a6", None))
        out.node(  # type: ignore[attr-defined]  # graphviz ships no types
            node.id.replace(":", "_"), label=node.label, shape=SHAPES[node.kind], color=border, tooltip=node.detail,
            fillcolor=fill or FILLS[node.kind], penwidth="2.4" if node.state in BOLD else "1.2",
        )  # fmt: skip
    for edge in edges:
        colour, style = EDGES[edge.kind]
        out.edge(edge.source, edge.target, color=colour, style=style, tooltip=edge.kind)  # type: ignore[attr-defined]


def svg(graph: Graph) -> str:
    """The picture as SVG. Errors: RequestError without the dot program, naming the package that has it."""
    from graphviz import ExecutableNotFound, Source

    try:
        return str(Source(dot(graph)).pipe(format="svg", encoding="utf-8"))
    except ExecutableNotFound:
        raise RequestError(
            "SVG needs the program `dot`: install the package graphviz (apt-get install graphviz), "
            "or use --format dot or --format mermaid"
        ) from None


def mermaid(graph: Graph) -> str:
    """The graph as a Mermaid flowchart."""
    lines = ["flowchart LR"]
    names = {n.id: f"n{i}" for i, n in enumerate((*graph.nodes, *LEGEND))}
    lines += [f"  {_mermaid_node(n, names[n.id])}" for n in graph.nodes]
    lines += [f"  {_mermaid_edge(e, names)}" for e in graph.edges]
    lines += ["  subgraph legend", *(f"    {_mermaid_node(n, names[n.id])}" for n in LEGEND)]
    lines += [*(f"    {_mermaid_edge(e, names)}" for e in LEGEND_EDGES), "  end"]
    for state, (border, fill) in STATES.items():
        lines.append(f"  classDef {state} stroke:{border},stroke-width:2px" + (f",fill:{fill}" if fill else ""))
    for state in STATES:
        members = [names[n.id] for n in (*graph.nodes, *LEGEND) if n.state == state]
        if members:
            lines.append(f"  class {','.join(members)} {state}")
    return "\n".join(lines)


def _mermaid_node(node: Node, name: str) -> str:
    left, right = MERMAID_SHAPES[node.kind]
    text = re.sub(r'["#;`<>]', "'", node.label).replace("\n", "<br/>")
    return f'{name}{left}"{text}"{right}'


def _mermaid_edge(edge: Edge, names: dict[str, str]) -> str:
    arrow = {"needs": "-->", "sets": "==>", "refuses": "-.->|refused|"}[edge.kind]
    return f"{names[edge.source]} {arrow} {names[edge.target]}"


FORMS = {"svg": svg, "dot": dot, "mermaid": mermaid}
"""Form -> the function that draws it."""
