"""The reader on the real catalogues: against argparse on the same flags, the releases' verdicts, and real commands.

`FLAGWISE_EXAMPLES=20000` makes the comparison with argparse the long one.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.expansion import Word
from solver.launch import read_commands
from solver.options import dest_of, index
from solver.reading import Reading, read_flags
from solver.records import FlagForm
from solver.store import Store, default_root
from solver.values import adapter, convert

SHARED = Path(__file__).parent.parent.parent / "shared"
EXAMPLES = int(os.environ.get("FLAGWISE_EXAMPLES", "1000"))
RELEASES = ("0.5.6", "0.5.9", "0.5.12", "0.5.14", "0.5.18", "0.5.23")


@cache
def all_flags(release: str) -> dict[str, FlagForm]:
    return Store(default_root()).program(release).flags


@cache
def flags_in(release: str) -> dict[str, FlagForm]:
    """All flags but `--config`, which is not the parser's business alone."""
    return {i: f for i, f in all_flags(release).items() if i != "config"}


# The same flags in a real parser must accept, refuse and store the same.


class Retired(argparse.Action):
    """Warns and stores nothing; one with a message stops."""

    def __init__(self, option_strings: Any, dest: Any, refused: bool = False, **rest: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **rest)
        self.refused = refused

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        if self.refused:
            parser.error("retired")


class Fixed(argparse.Action):
    """Stores its constant, whatever value it takes."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, self.const)


class Adapters(argparse.Action):
    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        try:
            setattr(namespace, self.dest, [adapter(v) for v in values])
        except ValueError as error:
            parser.error(str(error))


STORES = {"store", "store_true", "store_false", "append", "extend"}


def add(parser: argparse.ArgumentParser, form: FlagForm) -> None:
    """Register one flag as its form says."""
    common: dict[str, Any] = {"dest": dest_of(form), "default": argparse.SUPPRESS}
    takes = {"nargs": form.nargs, "choices": form.choices, "type": lambda text: convert(form.type, text)}
    match form.action:
        case "DeprecatedAction":
            parser.add_argument(*form.spellings, action=Retired, refused=form.refused, **common)
        case "BooleanOptionalAction":
            parser.add_argument(*form.spellings, action=argparse.BooleanOptionalAction, **common)
        case "DeprecatedStoreConstAction":
            own = {"nargs": 0} if form.type == "flag" else takes
            parser.add_argument(*form.spellings, action=Fixed, const=form.const, **own, **common)
        case "LoRAPathAction":
            parser.add_argument(*form.spellings, action=Adapters, nargs=form.nargs, **common)
        case "store_true" | "DeprecatedStoreTrueAction":
            parser.add_argument(*form.spellings, action="store_true", **common)
        case "store" | "DeprecatedAliasStoreAction":
            const = {} if form.const is None else {"const": form.const}
            parser.add_argument(*form.spellings, required=form.required, **takes, **const, **common)
        case other:
            raise AssertionError(f"the test does not know the action {other}")


@cache
def parser_of(release: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="launch")
    for form in flags_in(release).values():
        add(parser, form)
    return parser


def parse(release: str, argv: list[str]) -> dict[str, Any] | None:
    """What argparse stores, by canonical id; None where it refuses or prints its help."""
    owners = index(flags_in(release)).owners
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            return {owners[dest]: value for dest, value in vars(parser_of(release).parse_args(argv)).items()}
        except SystemExit:
            return None


RIGHT = {
    "int": ["1", "-1", "16", " 2 ", "1_0"],
    "float": ["0.5", "-.5", "1e3", "1", "-1e3"],
    "json": ["[1]", '{"a": 1}', "-1"],
    "json_list_type": ["[1, 2]"],
    "human_readable_int": ["8k", "25.6k", "1Ki", "4096"],
    "parse_cuda_graph_config_arg": ['{"decode": {"max_bs": 4}}'],
    "str": ["a", "auto", "a b", "-a b", "", "-", "/models/x"],
}
WRONG = ["x", "1.5Ki", "{a}", "-x", "--", "nan", "-1", "None", "--zz", "a=b"]


@st.composite
def values(draw: st.DrawFn, form: FlagForm) -> list[str]:
    """Values for one flag, mostly right in number and kind."""
    right = list(map(str, form.choices)) if form.choices else RIGHT.get(form.type, RIGHT["str"])
    value = st.sampled_from(right if draw(st.integers(0, 11)) else WRONG)
    few = {None: 1, "?": draw(st.integers(0, 1)), "+": draw(st.integers(1, 3)), "*": draw(st.integers(0, 2))}
    count = 0 if form.type == "flag" else few[form.nargs] if form.nargs in few else int(form.nargs or 1)
    if draw(st.integers(0, 19)) == 0:
        count = max(0, count + draw(st.sampled_from([-1, 1])))
    return [draw(value) for _ in range(count)]


@st.composite
def option(draw: st.DrawFn, release: str) -> list[str]:
    """One flag of the release as people type it."""
    form = draw(st.sampled_from(list(flags_in(release).values())))
    name = draw(st.sampled_from(form.spellings))
    match draw(st.integers(0, 19)):
        case 0 | 1 | 2:
            name = name[: draw(st.integers(3, len(name)))]
        case 3:
            name = f"--{name[2:].replace('-', '_')}"
        case 4 if form.action == "BooleanOptionalAction":
            name = f"--no-{name[2:]}"
    given = draw(values(form))
    glued = given and given[0] != "--" and draw(st.integers(0, 4)) == 0  # Python versions differ on `--flag=--`
    return [f"{name}={given[0]}", *given[1:]] if glued else [name, *given]


@st.composite
def commands(draw: st.DrawFn) -> tuple[str, list[str]]:
    release = draw(st.sampled_from(RELEASES))
    words = ["--model-path", "m"] if draw(st.integers(0, 19)) else []
    for part in draw(st.lists(option(release), max_size=6)):
        words += part
    if draw(st.integers(0, 9)) == 0:
        words.insert(draw(st.integers(0, len(words))), draw(st.sampled_from(WRONG)))
    return release, words


@settings(max_examples=EXAMPLES, derandomize=True, deadline=None)
@given(commands())
def test_argparse_on_the_same_catalogue_is_the_judge(case: tuple[str, list[str]]) -> None:
    release, argv = case
    if "--config" in argv or any(w.startswith("--config=") for w in argv):
        return
    expected = parse(release, argv)
    reading = read_flags([Word(text) for text in argv], flags_in(release))
    refused = [p for p in reading.problems if p.refuses]
    assert bool(refused) == (expected is None), refused
    if expected is not None:
        assert {k: repr(v) for k, v in reading.given.items()} == {k: repr(v) for k, v in expected.items()}


# The releases' own verdicts.


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Any]]:
    path = SHARED / "oracle" / "expected" / "cases.jsonl"
    if not path.exists():
        pytest.skip("the recorded launches are not on this machine")
    return [json.loads(line) for line in path.read_text().splitlines()]


def verdicts(cases: list[dict[str, Any]], release: str) -> Iterator[tuple[str, dict[str, Any], Reading]]:
    flags = all_flags(release)
    for case in cases:
        expected = case["expect"].get(release)
        if expected and expected["verdict"] != "artefact":
            words = [Word(text) for text in ("--model-path", "m", *case["args"])]
            yield case["id"], expected, read_flags(words, flags)


JUDGED = ("0.5.9", "0.5.10", "0.5.12", "0.5.23")


@pytest.mark.parametrize("release", JUDGED)
def test_every_recorded_launch_is_refused_at_parsing_exactly_where_the_release_refuses_it(
    cases: list[dict[str, Any]], release: str
) -> None:
    judged = list(verdicts(cases, release))
    assert len(judged) > 1000
    wrong = [
        name for name, expected, reading in judged
        if (expected["verdict"] == "refuse-parse") != any(p.refuses for p in reading.problems)
    ]  # fmt: skip
    assert wrong == []


@pytest.mark.parametrize("release", JUDGED)
def test_the_flags_that_the_release_complains_about_are_the_ones_blamed(
    cases: list[dict[str, Any]], release: str
) -> None:
    flags = all_flags(release)
    wrong = []
    for name, expected, reading in verdicts(cases, release):
        if expected["verdict"] != "refuse-parse":
            continue
        blamed = {p.given.partition("=")[0] for p in reading.problems if p.refuses}
        blamed |= {s for p in reading.problems if p.refuses and p.flag for s in flags[p.flag].spellings}
        if not set(complained(expected["error"])) <= blamed:
            wrong.append(name)
    assert wrong == []


def complained(error: str) -> list[str]:
    """The flags that the beginning of argparse's message is about: all unrecognised ones, else the first named."""
    named = re.findall(r"(?<![\w-])--[a-z][\w-]*", error)
    assert named, error
    return named if error.startswith("unrecognized") else named[:1]


# Real commands and files.


@pytest.fixture(scope="module")
def corpus() -> list[dict[str, Any]]:
    path = SHARED / "corpus" / "cases.jsonl"
    if not path.exists():
        pytest.skip("the corpus is not on this machine")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_real_command_is_found_and_read(corpus: list[dict[str, Any]]) -> None:
    flags = all_flags("0.5.12")
    texts = [case["command"] for case in corpus if case["command"]]
    assert len(texts) > 50
    for text in texts:
        (launch,) = read_commands(text)
        reading = read_flags(launch.words, flags, serve=launch.entry == "serve")
        assert launch.words
        assert reading.given or reading.unknown


def test_every_real_file_is_read_without_a_traceback(corpus: list[dict[str, Any]]) -> None:
    folder = SHARED / "corpus" / "files"
    for path in sorted(folder.iterdir()):
        if path.suffix in (".sh", ".sbatch"):
            assert read_commands(path.read_text()), path.name
