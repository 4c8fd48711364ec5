"""Arguments and a release's flags -> typed values and problems, held to argparse itself."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.expansion import Word
from solver.launch import read_argv, read_command
from solver.reading import Problem, Reading, read_flags
from solver.records import FlagForm


def form(*spellings: str, **fields: Any) -> FlagForm:
    return FlagForm(versions="", spellings=spellings, **fields)


def switch(*spellings: str, **fields: Any) -> FlagForm:
    return form(*spellings, type="flag", **{"action": "store_true", "const": True, **fields})


FLAGS = {
    "model_path": form("--model-path", "--model", required=True),
    "tp_size": form("--tensor-parallel-size", "--tp-size", type="int"),
    "port": form("--port", type="int"),
    "pp_size": form("--pp-size", type="int"),
    "pp_depth": form("--pp-depth", type="int"),
    "kv_cache_dtype": form("--kv-cache-dtype", choices=("auto", "fp8_e4m3")),
    "log_requests_level": form("--log-requests-level", type="int", choices=(0, 1, 2)),
    "mem_fraction_static": form("--mem-fraction-static", type="float"),
    "cuda_graph_bs": form("--cuda-graph-bs", type="int", nargs="+"),
    "prefixes": form("--prefixes", nargs="*"),
    "model_checksum": form("--model-checksum", nargs="?", const=""),
    "pair": form("--pair", type="int", nargs=2),
    "override": form("--override", type="json"),
    "context_length": form("--context-length", type="human_readable_int"),
    "param_path": form("--param-path", type="nullable_str"),
    "trust_remote_code": switch("--trust-remote-code"),
    "outer_loras": switch("--outer-loras", "--no-outer-loras", action="BooleanOptionalAction", const=None),
    "lora_paths": form("--lora-paths", nargs="*", action="LoRAPathAction"),
    "streaming": switch("--streaming", dest="streaming"),
    "stream_output": switch(
        "--stream-output", action="DeprecatedStoreTrueAction", dest="streaming", deprecated="streaming"
    ),
    "backend": form(
        "--old-backend", action="DeprecatedStoreConstAction", const=True, choices=("amd",), deprecated="new"
    ),
    "gone": switch("--gone", action="DeprecatedAction", const=None, deprecated="none"),
    "hook": form("--hook", action="append"),
    "config": form("--config"),
}


def read(text: str, **options: Any) -> Reading:
    return read_flags(read_command(f"--model-path m {text}", bare=True).words, FLAGS, **options)


def kinds(reading: Reading) -> list[str]:
    return [problem.kind for problem in reading.problems]


def only(reading: Reading) -> Problem:
    (problem,) = reading.problems
    return problem


@pytest.mark.parametrize(
    ("text", "flag", "value"),
    [
        ("--tp 8", "tp_size", 8),
        ("--tp=8", "tp_size", 8),
        ("--tensor-par 8", "tp_size", 8),
        ("--port -1", "port", -1),
        ("--port ' 7 '", "port", 7),
        ("--mem-frac -.5", "mem_fraction_static", -0.5),
        ("--mem-fraction-static=-1e3", "mem_fraction_static", -1000.0),
        ("--kv-cache-dtype fp8_e4m3", "kv_cache_dtype", "fp8_e4m3"),
        ("--log-requests-level 2", "log_requests_level", 2),
        ("--cuda-graph-bs 1 2 4", "cuda_graph_bs", [1, 2, 4]),
        ("--cuda-graph-bs=1", "cuda_graph_bs", [1]),
        ("--prefixes", "prefixes", []),
        ("--prefixes a '-b c'", "prefixes", ["a", "-b c"]),
        ("--model-checksum", "model_checksum", ""),
        ("--model-checksum abc", "model_checksum", "abc"),
        ("--pair 1 2", "pair", [1, 2]),
        ("--override '{\"a\": [1]}'", "override", {"a": [1]}),
        ("--context-length 25.6k", "context_length", 25600),
        ("--context-length 1Ki", "context_length", 1024),
        ("--context-length 4096", "context_length", 4096),
        ("--param-path None", "param_path", None),
        ("--trust-remote-code", "trust_remote_code", True),
        ("--outer-loras", "outer_loras", True),
        ("--no-outer-loras", "outer_loras", False),
        (
            '--lora-paths a=b \'{"lora_name": 1, "lora_path": 2}\'',
            "lora_paths",
            ["a=b", {"lora_name": 1, "lora_path": 2}],
        ),
        ("--hook a --hook b", "hook", ["a", "b"]),
    ],
)
def test_values_are_typed_as_the_parser_types_them(text: str, flag: str, value: object) -> None:
    reading = read(text)
    assert (reading.given[flag], kinds(reading)) == (value, [])
    assert type(reading.given[flag]) is type(value)


@pytest.mark.parametrize(
    ("text", "kind", "flag", "given", "detail"),
    [
        (
            "--tensor-paralel-size 8",
            "unknown-flag",
            None,
            "--tensor-paralel-size",
            {"nearest": ["--tensor-parallel-size"], "values": ["8"]},
        ),
        (
            "--pp 2",
            "ambiguous-abbreviation",
            None,
            "--pp",
            {"candidates": ["--pp-size", "--pp-depth"], "values": ["2"]},
        ),
        ("--tp", "missing-value", "tp_size", "--tp", {"expected": "an integer", "count": 1}),
        ("--tp --trust-remote-code", "missing-value", "tp_size", "--tp", {"expected": "an integer", "count": 1}),
        ("--pair 1", "missing-value", "pair", "--pair", {"expected": "an integer", "count": 2}),
        (
            "--trust-remote-code=true",
            "unexpected-value",
            "trust_remote_code",
            "true",
            {"spelled": "--trust-remote-code"},
        ),
        ("--trust-remote-code true", "unexpected-value", None, "true", {"spelled": ""}),
        ("--tp many", "invalid-type", "tp_size", "many", {"spelled": "--tp", "expected": "an integer"}),
        ("--tp=", "invalid-type", "tp_size", "", {"spelled": "--tp", "expected": "an integer"}),
        ("--override '{a}'", "invalid-type", "override", "{a}", {"spelled": "--override", "expected": "JSON"}),
        (
            "--kv-cache-dtype int8",
            "invalid-choice",
            "kv_cache_dtype",
            "int8",
            {"spelled": "--kv-cache-dtype", "choices": ["auto", "fp8_e4m3"]},
        ),
        ("--tp_size 8", "underscore-spelling", "tp_size", "--tp_size", {"instead": "--tp-size"}),
        (
            "--trust-remote_code",
            "underscore-spelling",
            "trust_remote_code",
            "--trust-remote_code",
            {"instead": "--trust-remote-code"},
        ),
        (
            "--mem_frac=0.5",
            "underscore-spelling",
            "mem_fraction_static",
            "--mem_frac",
            {"instead": "--mem-fraction-static"},
        ),
        ("--port 1 --port 2", "repeated-flag", "port", "--port", {"values": [1, 2], "kept": 2}),
        ("--stream-output", "deprecated-spelling", "stream_output", "--stream-output", {"instead": "streaming"}),
        ("--config=a.yaml", "config-ignored", "config", "--config=a.yaml", {}),
        ("--help", "help", None, "--help", {}),
        ("-tp 8", "unknown-flag", None, "-tp", {"nearest": [], "values": ["8"]}),
        ("$EXTRA", "unknown-words", None, "$EXTRA", {}),
    ],
)
def test_each_problem_names_what_was_typed(
    text: str, kind: str, flag: str | None, given: str, detail: dict[str, object]
) -> None:
    problem = only(read(text))
    assert (problem.kind, problem.flag, problem.given, problem.detail) == (kind, flag, given, detail)


def test_reading_goes_on_after_a_problem() -> None:
    reading = read("--tp many --nonsense 1 2 --port 3 --kv-cache-dtype int8 stray")
    assert kinds(reading) == ["invalid-type", "unknown-flag", "invalid-choice", "unexpected-value"]
    assert reading.given == {"model_path": "m", "port": 3}


def test_a_missing_required_flag_is_named() -> None:
    problem = only(read_flags(read_command("--tp 8", bare=True).words, FLAGS))
    assert (problem.kind, problem.flag, problem.given) == ("missing-required", "model_path", "--model-path")


def test_unknown_arguments_may_hold_the_required_flag() -> None:
    assert kinds(read_flags(read_command("--tp 8 $ARGS", bare=True).words, FLAGS)) == ["unknown-words"]


def test_underscore_spelling_is_read_as_the_flag_it_means() -> None:
    assert read("--tp_size 8").given["tp_size"] == 8


def test_the_last_of_repeated_flags_wins_and_equal_ones_are_fine() -> None:
    assert read("--port 1 --port 2").given["port"] == 2
    assert kinds(read("--port 1 --port 1")) == []


def test_a_flag_that_shares_a_field_is_given_under_the_id_of_that_field() -> None:
    assert read("--stream-output").given["streaming"] is True


def test_retired_flags_store_what_their_action_stores() -> None:
    assert read("--old-backend amd").given["backend"] is True
    assert "gone" not in read("--gone").given


def test_an_expansion_of_unknown_value_makes_the_flag_unknown() -> None:
    reading = read("--tp $TP --port=$P --cuda-graph-bs 1 $N --kv-cache-dtype $(x)")
    assert reading.unknown == ("tp_size", "port", "cuda_graph_bs", "kv_cache_dtype")
    assert (reading.given, kinds(reading)) == ({"model_path": "m"}, [])


def test_spans_cover_flag_and_values() -> None:
    launch = read_command("sglang serve --model-path m --cuda-graph-bs 1 2 --port=3")
    reading = read_flags(launch.words, FLAGS)
    shown = {flag: launch.text[span.start : span.end] for flag, span in reading.spans.items()}
    assert shown == {"model_path": "--model-path m", "cuda_graph_bs": "--cuda-graph-bs 1 2", "port": "--port=3"}
    assert reading.spelled["port"] == "--port"


def test_serve_takes_a_positional_model_only_where_the_release_does() -> None:
    words = read_command("sglang serve org/model --model-type llm --tp 8").words
    features = ("serve-model-type", "serve-positional-model", "serve-model-alias")
    reading = read_flags(words, FLAGS, serve=True, features=features)
    assert (reading.given, kinds(reading)) == ({"model_path": "org/model", "tp_size": 8}, [])
    older = read_flags(words, FLAGS, serve=True, features=("serve-model-type",))
    assert kinds(older) == ["unexpected-value", "missing-required"]


def test_serve_of_early_releases_does_not_see_the_model_alias() -> None:
    words = read_command("sglang serve --model m").words
    problem = only(read_flags(words, FLAGS, serve=True))
    assert (problem.kind, problem.detail, problem.refuses) == ("serve-model-unseen", {"instead": "--model-path"}, True)
    assert kinds(read_flags(words, FLAGS, serve=True, features=("serve-model-alias",))) == []


CONFIG = "tp-size: 8\ntrust-remote-code: true\ncuda-graph-bs: [1, 2]\nprefixes: []\nport: 1\n"


def test_config_file_goes_in_front_of_the_arguments() -> None:
    reading = read("--config a.yaml --port 2", read_file={"a.yaml": CONFIG}.__getitem__)
    assert reading.given == {
        "model_path": "m",
        "tp_size": 8,
        "trust_remote_code": True,
        "cuda_graph_bs": [1, 2],
        "port": 2,
    }
    assert kinds(reading) == []


def test_config_file_that_is_not_read_leaves_everything_open() -> None:
    reading = read_flags(read_command("--config a.yaml --tp 8", bare=True).words, FLAGS)
    assert (kinds(reading), reading.given) == (["config-unread"], {"tp_size": 8})


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("tp_size: 8", "underscore-spelling"),
        ("outer-loras: true", "config-refused"),
        ("- a", "config-refused"),
        ("a: [", "config-refused"),
        ("override: {a: 1}", "invalid-type"),
        ("trust-remote-code: false", None),
        ("", None),
    ],
)
def test_config_keys_are_merged_as_the_engine_merges_them(content: str, kind: str | None) -> None:
    assert kinds(read("--config a.yaml", read_file=lambda path: content)) == ([kind] if kind else [])


def test_later_releases_convert_more_of_a_config_file() -> None:
    features = ("config-mappings", "config-spellings")
    reading = read("--config a.yaml", read_file=lambda path: "override: {a: 1}\nhook: x\n", features=features)
    assert (reading.given["override"], reading.given["hook"], kinds(reading)) == ({"a": 1}, ["x"], [])


@pytest.mark.parametrize(
    "text", ["--config", "--config a.txt", "--config a.yaml --config b.yaml", "--config none.yaml"]
)
def test_unusable_config_files_are_refused(text: str) -> None:
    def missing(path: str) -> str:
        raise FileNotFoundError(path)

    assert only(read(text, read_file=missing)).refuses


# The same flags in a real parser must accept, refuse and store the same.

NAMES = [
    "--tp",
    "--tp-size",
    "--tp-size-max",
    "--t",
    "--model",
    "--model-path",
    "--no-x",
    "--x",
    "--x-y",
    "--help-me",
    "--a_b",
]
VALUES = [
    "1",
    "-1",
    "-1.5",
    "-.5",
    "-",
    "",
    "a",
    "auto",
    "a b",
    "-a b",
    "--a b",
    "1_0",
    " 2 ",
    "1e3",
    "-1e3",
    "[1]",
    '{"a": 1}',
]
CHOICES: dict[str, list[tuple[Any, ...] | None]] = {
    "str": [None, ("auto", "a", "1")],
    "int": [None, (1, 10)],
    "float": [None, (1.0, -1.5)],
    "json": [None],
}


@st.composite
def valued(draw: st.DrawFn, names: tuple[str, ...]) -> FlagForm:
    kind = draw(st.sampled_from(sorted(CHOICES)))
    nargs = draw(st.sampled_from([None, None, "?", "*", "+", 1, 2]))
    action = draw(st.sampled_from(["store", "store", "append", "extend"])) if nargs in ("*", "+", 2) else "store"
    const = draw(st.sampled_from([None, "1"])) if nargs == "?" and kind == "int" else None
    return form(
        *names,
        type=kind,
        nargs=nargs,
        action=action,
        choices=draw(st.sampled_from(CHOICES[kind])),
        const=1 if const else None,
        required=draw(st.integers(0, 14)) == 0,
    )


@st.composite
def parsers(draw: st.DrawFn) -> dict[str, FlagForm]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True))
    flags: dict[str, FlagForm] = {}
    while names:
        taken = tuple(names[: draw(st.integers(1, 2))])
        names = names[len(taken) :]
        action = draw(st.sampled_from(["store", "store", "store_true", "store_false", "BooleanOptionalAction"]))
        if action == "store":
            flags[taken[0]] = draw(valued(taken))
        elif action == "BooleanOptionalAction" and {"--x", "--no-x"} & set(taken):
            flags[taken[0]] = switch(*taken)  # its `--no-x` could be another flag's spelling
        else:
            const = {"store_true": True, "store_false": False}.get(action)
            flags[taken[0]] = form(*taken, type="flag", action=action, const=const)
    return {flag.lstrip("-").replace("-", "_"): made for flag, made in flags.items()}


GOOD = {"int": ["1", "-1", "10", " 2 ", "1_0"], "float": ["1", "-1.5", "-.5"], "json": ["[1]", '{"a": 1}', "-1", "1e3"]}


@st.composite
def group(draw: st.DrawFn, flags: dict[str, FlagForm]) -> list[str]:
    """One option as people type it, mostly right."""
    made = draw(st.sampled_from(list(flags.values())))
    name = draw(st.sampled_from(made.spellings))
    if draw(st.integers(0, 5)) == 0:
        name = name[: draw(st.integers(3, len(name)))]
    good = GOOD.get(made.type, ["a", "auto", "a b", "-a b", "", "-"])
    value = st.sampled_from(good if draw(st.integers(0, 9)) else VALUES)
    few = {None: 1, "?": draw(st.integers(0, 1)), "+": draw(st.integers(1, 3))}.get(made.nargs, made.nargs)
    count = 0 if made.type == "flag" else few if isinstance(few, int) else draw(st.integers(0, 3))
    if draw(st.integers(0, 9)) == 0:
        count += draw(st.sampled_from([-1, 1]))
    values = [draw(value) for _ in range(count)]
    return [f"{name}={values[0]}", *values[1:]] if values and draw(st.integers(0, 3)) == 0 else [name, *values]


@st.composite
def arguments(draw: st.DrawFn, flags: dict[str, FlagForm]) -> list[str]:
    noise = ["--zz", "-z", "-h", "--tp_size", "--t", "--he", "--x=1", "--no", *NAMES, *VALUES]
    if sys.version_info < (3, 12):  # later versions drop a `--` in more places
        noise.append("--")
    words = [word for part in draw(st.lists(group(flags), max_size=4)) for word in part]
    if draw(st.integers(0, 2)) == 0:
        words.insert(draw(st.integers(0, len(words))), draw(st.sampled_from(noise)))
    return words


CASES = parsers().flatmap(lambda flags: st.tuples(st.just(flags), arguments(flags)))


def parse(flags: dict[str, FlagForm], argv: list[str]) -> dict[str, Any] | None:
    """What argparse stores for the flags that were given; None where it refuses (or prints its help)."""
    parser = argparse.ArgumentParser(prog="p")
    types = {"int": int, "float": float, "json": json.loads, "str": str}
    for flag, made in flags.items():
        common: dict[str, Any] = {"dest": flag, "default": argparse.SUPPRESS, "required": made.required}
        if made.action == "BooleanOptionalAction":
            parser.add_argument(*made.spellings, action=argparse.BooleanOptionalAction, **common)
        elif made.type == "flag":
            parser.add_argument(*made.spellings, action=made.action, **common)
        else:
            common |= {"type": types[made.type], "nargs": made.nargs, "choices": made.choices, "const": made.const}
            common = {k: v for k, v in common.items() if k != "const" or v is not None}
            parser.add_argument(*made.spellings, action=made.action, **common)
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            return vars(parser.parse_args(argv))
        except SystemExit:
            return None


@settings(max_examples=4000, derandomize=True, deadline=None)
@given(CASES)
def test_argparse_is_the_judge(case: tuple[dict[str, FlagForm], list[str]]) -> None:
    flags, argv = case
    expected = parse(flags, argv)
    reading = read_flags([Word(text) for text in argv], flags)
    refused = any(problem.refuses for problem in reading.problems)
    assert refused == (expected is None), reading.problems
    if expected is not None:
        assert reading.given == expected
        assert list(map(repr, reading.given.values())) == [repr(expected[flag]) for flag in reading.given]


@settings(max_examples=500, derandomize=True, deadline=None)
@given(st.lists(st.text(max_size=8), max_size=8))
def test_any_arguments_are_read(argv: list[str]) -> None:
    read_flags(read_argv(["sglang", "serve", *argv]).words, FLAGS, serve=True, read_file=lambda path: "a: 1")
