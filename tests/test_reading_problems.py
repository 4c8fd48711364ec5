"""What is said about a command that its release cannot read: every kind of problem, through context and check."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from conftest import Run
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.context import Context, Options, build, check_context
from solver.errors import RequestError
from solver.findings import reading_findings
from solver.forks import Fork
from solver.launch import read_argv, read_command
from solver.learn_files import write_fork
from solver.records import Finding, FlagForm
from solver.store import Store, default_root

kept_store = cache(lambda: Store(default_root()))
LAUNCH = "python -m sglang.launch_server --model-path m"


def read(store: Store, release: str | None, text: str) -> Context:
    return build(
        store, read_command(text if "launch_server" in text else f"{LAUNCH} {text}"), Options(engine_version=release)
    )


def found(context: Context) -> list[Finding]:
    return reading_findings(context.store, context.resolver.program, context.problems, context.facts)


def only(store: Store, release: str, text: str) -> tuple[Finding, str]:
    """The one finding about reading, and the characters that it points at."""
    context = read(store, release, text)
    (finding,) = found(context)
    assert finding in check_context(context).findings
    assert context.launch is not None
    span = finding.span
    return finding, context.launch.text[span.start : span.end] if span else ""


CASES = {
    "unknown-flag": (
        "0.5.10",
        "--grammar-backnd xgrammar",
        "error",
        "--grammar-backnd",
        ["Near to it: --grammar-backend"],
    ),
    "renamed-flag": (
        "0.5.23",
        "--mamba-scheduler-strategy extra_buffer",
        "error",
        "--mamba-scheduler-strategy",
        ["calls --mamba-scheduler-strategy --mamba-radix-cache-strategy"],
    ),
    "other-release-flag": ("0.5.9", "--enable-nvidia-megakernel", "error", "--enable-nvidia-megakernel", ["0.5.23"]),
    "fork-flag": (
        "0.5.10",
        "--enable-pcie-oneshot-allreduce",
        "error",
        "--enable-pcie-oneshot-allreduce",
        ["the fork lukealonso/sglang"],
    ),
    "refused-flag": (
        "0.5.18",
        "--enable-expert-distribution-metrics",
        "error",
        "--enable-expert-distribution-metrics",
        ["--expert-balancedness-report-mode"],
    ),
    "deprecated-spelling": (
        "0.5.10",
        "--stream-output",
        "warning",
        "--stream-output",
        ["--incremental-streaming-output"],
    ),
    "ambiguous-abbreviation": (
        "0.5.10",
        "--speculative-num 2",
        "error",
        "--speculative-num",
        ["--speculative-num-draft-tokens, --speculative-num-steps"],
    ),
    "underscore-spelling": ("0.5.10", "--tp_size 2", "error", "--tp_size", ["write --tp-size"]),
    "invalid-type": ("0.5.10", "--tp eight", "error", "eight", ["takes an integer"]),
    "invalid-choice": (
        "0.5.10",
        "--load-balance-method minimum_tokens",
        "error",
        "minimum_tokens",
        ["total_requests, total_tokens", "Elsewhere it is taken by: 0.5.6 to 0.5.7"],
    ),
    "missing-value": ("0.5.10", "--page-size --tp 2", "error", "--page-size", ["an integer"]),
    "blank-after-backslash": ("0.5.10", "\\  --tp 1 a", "error", "\\ ", ["backslash", "commands of their own"]),
    "unexpected-value": ("0.5.10", "--enable-mscclpp true", "error", "true", ["Nothing takes the value true"]),
    "repeated-flag": (
        "0.5.10",
        "--page-size 1 --page-size=16",
        "note",
        "--page-size=16",
        ["the values 1, 16", "16, counts"],
    ),
    "help": ("0.5.10", "--help", "error", "--help", ["no server starts"]),
    "env-not-read": (
        "0.5.23",
        f"SGLANG_ENABLE_SPEC_V2='1' {LAUNCH}",
        "note",
        "SGLANG_ENABLE_SPEC_V2='1'",
        ["0.5.6 to 0.5.20", "its opposite is --disable-overlap-schedule"],
    ),
    "env-unknown": (
        "0.5.10",
        f"export SGLANG_ENABEL_SPEC_V2=1; {LAUNCH}",
        "warning",
        "SGLANG_ENABEL_SPEC_V2=1",
        ["Near to it: SGLANG_ENABLE_SPEC_V2"],
    ),
    "env-deprecated": (
        "0.5.12",
        f"SGL_ENABLE_JIT_DEEPGEMM=0 {LAUNCH}",
        "note",
        "SGL_ENABLE_JIT_DEEPGEMM=0",
        ["In its place: SGLANG_ENABLE_JIT_DEEPGEMM"],
    ),
    "env-not-exported": (
        "0.5.10",
        f"SGLANG_ENABLE_SPEC_V2=1\n{LAUNCH}",
        "warning",
        "SGLANG_ENABLE_SPEC_V2=1",
        ["never sees it"],
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_each_kind_says_what_to_write_and_points_at_the_place(store: Store, kind: str) -> None:
    release, text, severity, place, words = CASES[kind]
    finding, pointed = only(store, release, text)
    assert (finding.rule, finding.severity, finding.stage, pointed) == (kind, severity, "parse", place)
    for said in words:
        assert said in finding.message
    assert finding.env if kind.startswith("env-") else finding.flags


def test_every_kind_of_problem_has_its_words(store: Store) -> None:
    special = {
        "config-ignored",
        "config-refused",
        "config-unread",
        "missing-required",
        "serve-model-unseen",
        "unknown-words",
    }
    assert set(store.program("0.5.10").problems) == set(CASES) | special
    assert set(store.program("0.5.6").problems) == set(store.program("0.5.23").problems)


@pytest.mark.parametrize(
    ("release", "text", "flag", "value"),
    [
        ("0.5.23", "--mamba-scheduler-strategy extra_buffer", "mamba_radix_cache_strategy", "extra_buffer"),
        ("0.5.10", "--mamba-radix-cache-strategy=extra_buffer", "mamba_radix_cache_strategy", "extra_buffer"),
        ("0.5.23", "--enable-breakable-cuda-graph", "cuda_graph_backend_prefill", "breakable"),
        ("0.5.23", "--stream-output", "incremental_streaming_output", True),
        ("0.5.23", "--cuda-graph-max-bs 64", "cuda_graph_max_bs_decode", 64),
        ("0.5.9", "--cuda-graph-max-bs-decode 64", "cuda_graph_max_bs_decode", 64),
        ("0.5.10", "--tp_size 2", "tp_size", 2),
    ],
)
def test_the_value_of_a_renamed_flag_still_counts(
    store: Store, release: str, text: str, flag: str, value: object
) -> None:
    context = read(store, release, text)
    assert context.facts.given[flag] == value
    assert found(context)[0].severity == "error"


def test_a_renamed_flag_comes_with_its_repair(store: Store) -> None:
    finding, _ = only(store, "0.5.23", "--mamba-scheduler-strategy extra_buffer")
    assert finding.fixes[0].set == {"mamba_radix_cache_strategy": "extra_buffer"}
    assert finding.fixes[0].unset == ("--mamba-scheduler-strategy",)


@pytest.mark.parametrize(
    ("release", "text", "written"),
    [
        ("0.5.15", "--nsa-prefill-backend fa3", {"dsa_prefill_backend": "fa3"}),
        ("0.5.15", "--disable-piecewise-cuda-graph", {"cuda_graph_backend_prefill": "disabled"}),
        (
            "0.5.23",
            "--disable-cuda-graph",
            {"cuda_graph_backend_decode": "disabled", "cuda_graph_backend_prefill": "disabled"},
        ),
        ("0.5.23", "--enable-dp-attention --dp 2", {"dp_size": None, "attn_dp_size": 2}),
        ("0.5.23", "--enable-dp-attention", None),  # the advice takes the value of a flag that is not there
    ],
)
def test_a_spelling_on_its_way_out_comes_with_what_to_write(
    store: Store, release: str, text: str, written: dict[str, object] | None
) -> None:
    finding, _ = only(store, release, text)
    assert [fix.set for fix in finding.fixes] == ([written] if written else [])


@pytest.mark.parametrize("release", ["0.5.10", "0.5.15", "0.5.23"])
def test_what_to_write_for_a_spelling_on_its_way_out_is_not_itself_on_its_way_out(store: Store, release: str) -> None:
    flags = store.program(release).flags
    deprecated = [form for form in flags.values() if form.deprecated and not form.refused]
    assert deprecated
    for form in deprecated:
        value = "" if form.type == "flag" else f" {form.choices[0] if form.choices else 1}"
        context = read(store, release, f"{form.spellings[0]}{value}")
        for finding in found(context):
            for fix in finding.fixes:
                assert not [name for name in fix.set if flags[name].deprecated], finding


def test_a_removed_flag_names_only_what_this_release_has(store: Store) -> None:
    context = read(store, "0.5.14", "--enable-piecewise-cuda-graph")
    assert "In its place: --enforce-piecewise-cuda-graph" in found(context)[0].message
    context = read(store, "0.5.21", "--enable-piecewise-cuda-graph")
    assert "In its place: --cuda-graph-backend-prefill=tc_piecewise" in found(context)[0].message
    for text in ("--enable-piecewise-cuda-graph", "--enforce-piecewise-cuda-graph"):  # the backend itself is gone
        finding, _ = only(store, "0.5.23", text)
        assert finding.rule == "other-release-flag"
        assert "In its place: none" in finding.message


def test_a_value_of_a_fork_is_placed_there(store: Store) -> None:
    finding, _ = only(store, "0.5.10", "--moe-runner-backend b12x")
    assert "taken by: the fork lukealonso/sglang" in finding.message


def test_a_variable_with_the_old_prefix_counts_under_the_new_one(store: Store) -> None:
    context = read(store, "0.5.12", f"SGL_ENABLE_JIT_DEEPGEMM=0 {LAUNCH}")
    assert context.facts.env["SGLANG_ENABLE_JIT_DEEPGEMM"] == "0"


def test_a_shell_variable_that_the_command_expands_is_no_finding(store: Store) -> None:
    context = read(store, "0.5.10", f"SGLANG_PORT=3000\n{LAUNCH} --port $SGLANG_PORT")
    assert (found(context), context.facts.given["port"]) == ([], 3000)


def test_other_softwares_variables_are_left_alone(store: Store) -> None:
    assert found(read(store, "0.5.10", f"NCCL_DEBUG=INFO MY_OWN=1 {LAUNCH}")) == []


def test_all_problems_are_shown_at_once(store: Store) -> None:
    text = "--tp eight --page-size 1 --page-size 2 --no-such-flag --tp_size 2 --kv-cache-dtype int3"
    rules = [f.rule for f in found(read(store, "0.5.10", text))]
    assert rules == ["invalid-type", "repeated-flag", "unknown-flag", "underscore-spelling", "invalid-choice"]


def test_before_the_first_release_with_rules_the_command_line_alone_is_judged(store: Store) -> None:
    context = read(store, "0.5.8", "--kv-cache-dtype int3")
    assert [(a.what, a.value) for a in context.assumed] == [("rules", "of the command line alone")]
    assert [f.rule for f in check_context(context).findings] == ["invalid-choice"]
    assert read(store, "0.5.9", "--tp 2").assumed == ()


def test_a_learned_fork_is_a_release_with_flags_of_its_own(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    warp = FlagForm("", ("--enable-warp-drive",), type="flag", action="store_true", const=True)
    fork = Fork("my-fork", "0.5.10", {"enable_warp_drive": warp}, ("enable_mscclpp",))
    write_fork(fork, tmp_path / "flagwise" / "forks" / "my-fork.yaml")
    context = read(store, "my-fork", "--enable-warp-drive --enable-mscclpp")
    assert (context.release, context.release_from, context.facts.given["enable_warp_drive"]) == ("0.5.10", "fork", True)
    assert [f.rule for f in found(context)] == ["other-release-flag"]
    assert [f.rule for f in found(read(store, "0.5.10", "--enable-warp-drive"))] == ["unknown-flag"]


@pytest.mark.parametrize("name", ["my-fork", "../secret", "0.5.99"])
def test_an_unknown_release_is_refused_with_those_that_are_known(
    store: Store, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(RequestError, match=r"unknown release .*known are 0\.5\.6, .*0\.5\.23"):
        read(store, name, "--tp 2")


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.sampled_from(["0.5.6", "0.5.10", "0.5.23"]), st.lists(st.text(max_size=12), max_size=6))
def test_any_command_is_judged_without_a_traceback(release: str, words: list[str]) -> None:
    context = build(kept_store(), read_argv([*LAUNCH.split(), *words]), Options(engine_version=release))
    assert len(found(context)) == len(context.problems)


@pytest.mark.parametrize("verb", ["solve", "estimate"])
def test_nothing_is_worked_out_for_a_release_without_rules(flagwise: Callable[..., Run], verb: str) -> None:
    done = flagwise(
        verb, "--model", "qwen3-8b", "--hardware", "8xh100-sxm", "--engine-version", "0.5.8", "--", "--tp", "8"
    )
    assert (done.status, done.out) == (2, "")
    assert "the rules begin with 0.5.9" in done.err


def test_a_release_without_rules_has_no_findings_beyond_its_command_line(store: Store) -> None:
    assert store.program("0.5.8").rules == ()
