"""Texts keep the way back into their file, through every style of scalar and every list of arguments."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.gate.arguments import Argument, arguments_of, joined
from solver.gate.json_nodes import document
from solver.gate.nodes import Node
from solver.gate.scalars import scalar_text
from solver.gate.text import Builder, Piece, Text
from solver.gate.yaml_nodes import documents
from solver.launch import read_argv, read_command
from solver.records import Span

LETTERS = st.sampled_from("ab-/=:#'\"\\ \n\t$é{}[],&*!|>%@`.0€😀")
TEXTS = st.text(LETTERS, max_size=40)


def scalars_of(node: Node) -> list[Node]:
    if node.kind == "scalar":
        return [node]
    children = node.value if node.kind == "list" else [child for pair in node.value for child in pair]
    return [found for child in children for found in scalars_of(child)]


def check(node: Node, source: str) -> Text:
    """The text is the value, and each piece that is literal shows the same characters in the source."""
    text = scalar_text(node, Text.whole(source))
    assert text.text == node.value
    for piece in text.pieces:
        assert node.start <= piece.start <= piece.end <= len(source)
        shown = source[piece.start : piece.end]
        said = text.text[piece.at : piece.at + piece.length]
        assert shown == said or piece.length != piece.end - piece.start or shown.isspace() or shown[0] in "\\'\n"
    return text


@settings(max_examples=300, deadline=None)
@given(
    values=st.lists(TEXTS, min_size=1, max_size=4),
    style=st.sampled_from([None, "'", '"', "|", ">"]),
    width=st.sampled_from([10, 80]),
    flow=st.booleans(),
    ends=st.sampled_from(["\n", "\r\n"]),
)
def test_every_character_of_a_yaml_scalar_knows_its_place(
    values: list[str], style: Any, width: int, flow: bool, ends: str
) -> None:
    data = {"outer": [{"key": value} for value in values]}
    source = yaml.safe_dump(data, default_style=style, width=width, default_flow_style=flow, allow_unicode=True)
    source = source.replace("\n", ends)
    for root in documents(source):
        for node in scalars_of(root):
            check(node, source)


@settings(max_examples=200, deadline=None)
@given(values=st.lists(TEXTS, max_size=5), ascii_only=st.booleans(), indent=st.sampled_from([None, 1]))
def test_every_character_of_a_json_string_knows_its_place(
    values: list[str], ascii_only: bool, indent: int | None
) -> None:
    source = json.dumps({"a": values}, ensure_ascii=ascii_only, indent=indent)
    nodes = scalars_of(document(source))
    assert [node.value for node in nodes] == ["a", *values]
    for node in nodes:
        check(node, source)


@settings(max_examples=200, deadline=None)
@given(values=st.lists(st.text(LETTERS, min_size=1, max_size=12), max_size=5))
def test_arguments_put_together_are_read_as_the_same_arguments(values: list[str]) -> None:
    """What the shell reader makes of the joined text are the elements of the list, each in its place."""
    words = ["sglang", "serve", "--x", *values]
    source = Text.whole(json.dumps(words))
    text, items = joined(arguments_of(document(source.text).value, source))
    launch = read_command(text.text)
    assert [word.text for word in launch.words] == [word.text for word in read_argv(words).words]
    places = {item.at: item.place for item in items}
    for word, value in zip(launch.words, words[2:], strict=True):
        assert word.span is not None
        place = places[word.span]
        assert json.loads(source.text[place.start : place.end]) == value


def test_a_text_of_stretches_finds_its_way_back() -> None:
    source = Text.whole("0123456789")
    builder = Builder(source)
    builder.take(2, 4)
    builder.compute("xx")
    builder.replace(5, 7, "y")
    builder.add(Text("z", (Piece(0, 1, 9, 10),)))
    text = builder.finish()
    assert text.text == "23xxyz"
    expected = {(0, 1): (2, 3), (1, 3): (3, 4), (2, 4): None, (3, 5): (5, 7), (4, 6): (5, 10), (0, 6): (2, 10)}
    for (start, end), place in expected.items():
        found = text.place(Span(start, end))
        assert (found and (found.start, found.end)) == place
    assert text.cut(1, 5).text == "3xxy"
    assert text.cut(1, 5).place(Span(0, 4)) == Span(3, 7)
    assert text.place(Span(3, 3)) is None


@pytest.mark.parametrize("raw", [True, False])
def test_shell_text_among_arguments_is_split(raw: bool) -> None:
    source = Text.whole("sglang serve --tp 2")
    text, items = joined([Argument(None, source, Span(0, 19), raw)])
    assert len(items) == (not raw)
    assert (text.text == source.text) is raw
