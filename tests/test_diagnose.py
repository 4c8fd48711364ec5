"""Server logs, cut, interleaved, coloured and wrapped, read back to their first cause."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import Run

from solver.context import Options
from solver.diagnosis import diagnose
from solver.knowledge import load, read_yaml
from solver.launch import read_command
from solver.lint_signatures import lint_signatures
from solver.log_events import event_of
from solver.log_facts import read_arguments, releases_with
from solver.log_lines import bare, records_of
from solver.log_words import fingerprints, placed, places_by_fingerprint
from solver.store import Store, default_root

LOGS = Path(__file__).parent / "logs"
Flagwise = Callable[..., Run]


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One log, the command beside it if there is one, and the first finding with its place."""

    log: str
    rule: str
    about: tuple[str, ...]
    line: int
    rank: str | None = None
    command: str | None = None
    release: str | None = None

    @property
    def text(self) -> str:
        return (LOGS / f"{self.log}.log").read_text("utf-8")


def cases() -> list[Case]:
    return [msgspec.convert(row, Case) for row in read_yaml(LOGS / "expected.yaml")]


@pytest.mark.parametrize("case", cases(), ids=lambda c: f"{c.log}-{c.rule}")
def test_the_first_cause_is_found(store: Store, case: Case) -> None:
    command = read_command(case.command) if case.command else None
    found = diagnose(store, case.text, command, Options(engine_version=case.release))
    first = found.findings[0]
    assert first.rule == case.rule
    assert {*case.about} <= {*first.flags, *first.env}
    place = f"line {case.line}" + (f", {case.rank}" if case.rank else "")
    assert first.because[0].origin == place
    assert found.guess is (first.status == "guess")


@pytest.mark.parametrize(
    ("line", "stream", "rank", "begins", "text"),
    [
        ("[2026-05-01 10:00:00 DP1 TP3] hello", "", "DP1 TP3", True, "hello"),
        ("[2026-05-01 10:00:00] hello", "", None, True, "hello"),
        ("\x1b[32m[2026-05-01 10:00:00.123 TP0]\x1b[0m hello", "", "TP0", True, "hello"),
        ("server-1  | [2026-05-01 10:00:00 TP0] hello", "server-1", "TP0", True, "hello"),
        ("[pod/a-0/main] 2026-05-01T10:00:00.1Z   File", "a-0/main", None, False, "  File"),
        ("2026-05-01T10:00:00.1+02:00 stderr F hello", "", None, False, "hello"),
        ("(Engine pid=7, ip=10.0.0.1) [2026-05-01 10:00:00 TP0] hello", "Engine pid=7", "TP0", True, "hello"),
        ('{"log":"[2026-05-01 10:00:00 TP0] hello\\n","stream":"stderr"}', "", "TP0", True, "hello"),
        ("2026-05-01 10:00:00,1 - worker - INFO - [2026-05-01 10:00:00 TP0] hello", "", "TP0", True, "hello"),
        ("[rank3]: hello", "rank3", "rank3", False, "hello"),
        ("[1,0]<stderr>:  File", "1,0", None, False, "  File"),
        ('3:   File "a.py", line 1', "3", None, False, '  File "a.py", line 1'),
        ("[TP0] hello", "", "TP0", True, "hello"),
        ("    x[0] = [1]", "", None, False, "    x[0] = [1]"),
    ],
)  # fmt: skip
def test_what_others_put_before_a_line_is_taken_off(
    line: str, stream: str, rank: str | None, begins: bool, text: str
) -> None:
    got_stream, got_rank, got_begins, got_text = bare(line)
    assert got_text == text
    assert (got_rank, got_begins) == (rank, begins)
    assert stream in got_stream


def test_a_traceback_goes_on_after_another_rank_cut_in() -> None:
    text = (
        "[2026-05-01 10:00:00 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/x/sglang/srt/a.py", line 1, in f\n'
        "[2026-05-01 10:00:00 TP0] still alive\n"
        '  File "/x/sglang/srt/b.py", line 2, in g\n'
        "ValueError: no\n"
    )
    events = [event_of(r) for r in records_of(text)]
    assert [(e.rank, e.numbers) for e in events] == [("TP1", (1, 2, 4, 5)), ("TP0", (3,))]
    assert [f.function for f in events[0].frames] == ["g", "f"]


def test_chained_exceptions_are_told_apart_root_first() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\nKeyError: 1\n\n'
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "b.py", line 2, in g\nRuntimeError: two\n'
    )
    (event,) = (event_of(r) for r in records_of(text))
    assert [(r.kind, [f.file for f in r.frames]) for r in event.raised] == [
        ("KeyError", ["a.py"]),
        ("RuntimeError", ["b.py"]),
    ]


@pytest.mark.parametrize(
    ("text", "values", "complete"),
    [
        ("tp_size=2, host='::', bs=[1, 2], no=None)", {"tp_size": 2, "host": "::", "bs": [1, 2], "no": None}, True),
        ("'tp_size': 2, 'a': {'b': 1}}", {"tp_size": 2, "a": {"b": 1}}, True),
        ("tp_size=2, mode=<Mode.A: 'a'>, dp_size=1)", {"tp_size": 2, "dp_size": 1}, True),
        ("tp_size=2, model_path='cut o", {"tp_size": 2}, False),
    ],
)  # fmt: skip
def test_printed_arguments_are_read_even_when_cut(text: str, values: dict[str, Any], complete: bool) -> None:
    assert read_arguments(text) == (values, complete)


@pytest.fixture
def printed(store: Store) -> Callable[..., str]:
    """The line of resolved arguments that a release prints, with some values of one's own."""

    def line(release: str, **own: Any) -> str:
        program = store.program(release)
        values = {(form.dest or ident): form.default for ident, form in program.flags.items() if not form.into}
        shown = ", ".join(f"{k}={v!r}" for k, v in {**values, **own}.items())
        return f"[2026-05-01 10:00:00] server_args=ServerArgs({shown})"

    return line


def test_the_arguments_of_a_log_tell_release_command_and_model(store: Store, printed: Callable[..., str]) -> None:
    """The engine prints resolved values; those that it would choose by itself are not taken for given."""
    text = printed("0.5.10", model_path="Qwen/Qwen3-8B", tp_size=2, chunked_prefill_size=4096)
    found = diagnose(store, text, None, Options(hardware="2xh100-sxm"))
    assert (found.context.release, found.context.release_from) == ("0.5.10", "log")
    assert found.context.model_name == "qwen3-8b"
    given = found.context.facts.given
    assert (given["tp_size"], given["chunked_prefill_size"]) == (2, 4096)
    assert found.cause is None


def test_the_names_of_arguments_tell_the_release(store: Store) -> None:
    known = [r.version for r in store.index.releases]
    for release in ("0.5.9", "0.5.15", "0.5.23"):
        names = list(store.program(release).flags)
        assert release in releases_with(names, store.index.known_flags, known)


def test_a_rule_that_the_log_confirms_depends_on_nothing(store: Store) -> None:
    command = read_command(
        "python -m sglang.launch_server --model-path openai/gpt-oss-20b --attention-backend trtllm_mha"
    )
    text = "ValueError: TRTLLM MHA backend is only supported on Blackwell GPUs (SM100). Please use another."
    found = diagnose(store, text, command, Options(engine_version="0.5.9"))
    first = found.findings[0]
    assert first.rule.startswith("trtllm-mha-")
    assert first.conditional_on == ()
    assert first.because[0].name == "log"


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("ValueError: moe_a2a_backend wants another runner", "--moe-a2a-backend"),
        ("RuntimeError: no plan for flashinfer_cutedsl", "--moe-runner-backend"),
        ("RuntimeError: odd\n  in flashinfer_comm_fusion", "--enforce-disable-flashinfer-allreduce-fusion"),
        ("xgrammar_backend: assertion on an odd schema", "--grammar-backend"),
        ("ValueError: no tool call parser of that name", "--tool-call-parser"),
        ("jinja2.exceptions.TemplateError: roles must alternate", "--chat-template"),
    ],
)
def test_an_excerpt_without_frames_is_guessed_from_its_words(store: Store, text: str, about: str) -> None:
    """Flags as the engine calls them, values that are like no other word, and modules without their path."""
    found = diagnose(store, text, None, Options(engine_version="0.5.12"))
    assert found.guess
    assert about in found.findings[0].flags


def test_a_check_is_guessed_from_its_own_line_and_words(store: Store) -> None:
    """The quoted line of the argument code names flags; rules at its function with the same words follow."""
    text = (
        "Traceback (most recent call last):\n"
        '  File "/x/sglang/srt/server_args.py", line 9, in check_server_args\n'
        "    and self.speculative_algorithm is None\n"
        "AssertionError: Some parallelism over a pipeline does not go with this\n"
    )
    flags = diagnose(store, text, None, Options(engine_version="0.5.12")).findings[0].flags
    assert flags[0] == "--speculative-algorithm"
    assert "--pipeline-parallel-size" in flags[:4]


def test_a_traceback_that_was_survived_is_not_the_first_cause(store: Store) -> None:
    text = (
        "[2026-05-01 10:00:00] Traceback (most recent call last):\n"
        '  File "/x/odd.py", line 1, in f\n'
        "ModuleNotFoundError: No module named 'odd'\n"
        "[2026-05-01 10:00:09 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/x/sglang/srt/model_executor/model_runner.py", line 1400, in load_model\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    )
    found = diagnose(store, text, None, Options(engine_version="0.5.12"))
    assert [f.rule for f in found.findings[:2]] == ["gpu-memory-at-weights", "package-not-installed"]


def test_a_message_without_traceback_is_traced_to_who_says_it() -> None:
    """A few words in a row are enough, in any case, and a traceback that has a place of the engine is left alone."""
    (known, *_) = fingerprints("the frobnicator wants even pages")
    places = places_by_fingerprint({"srt/layers/frob.py": {"check": (known,)}})
    (said,) = (event_of(r) for r in records_of("ValueError: On rank 3 THE Frobnicator wants even pages, got 7"))
    assert [(f.file, f.function) for f in placed(said, places).frames] == [("sglang/srt/layers/frob.py", "check")]
    (other,) = (event_of(r) for r in records_of("ValueError: the pages want an even frobnicator"))
    assert placed(other, places).frames == ()


def test_a_message_alone_leads_to_the_rule_of_its_function(store: Store) -> None:
    command = read_command("python -m sglang.launch_server --model-path Qwen/Qwen3-8B --enable-kv-cache-sharding")
    text = "ValueError: --enable-kv-cache-sharding is only supported on PD prefill workers"
    found = diagnose(store, text, command, Options(engine_version="0.5.23", hardware="8xh100-sxm"))
    assert found.findings[0].rule.startswith("kv-sharding-")
    assert not found.guess


def test_the_repaired_command_has_the_fix_and_no_error(flagwise: Flagwise) -> None:
    done = flagwise(
        "diagnose", "-",
        "python -m sglang.launch_server --model-path Qwen/Qwen3.5-35B-A3B --speculative-algorithm NEXTN",
        "--engine-version", "0.5.10", "--hardware", "8xh100-sxm", "--format", "json",
        stdin="ValueError: Speculative decoding for Qwen3_5Moe is not compatible with radix cache no_buffer",
    )  # fmt: skip
    assert done.status == 1
    result = json.loads(done.out)
    assert result["findings"][0]["rule"] == "spec-on-hybrid-needs-extra-buffer"
    assert result["repaired"]["left"] == []
    again = flagwise("validate", result["repaired"]["shell"], "--engine-version", "0.5.10", "--hardware", "8xh100-sxm")
    assert again.status == 0, again.out


def test_words_that_the_launcher_refused_are_read_from_the_log(flagwise: Flagwise) -> None:
    """Without a command, the arguments that the message repeats are looked up as the reader would."""
    done = flagwise(
        "diagnose", "-", "--engine-version", "0.5.12", "--format", "json",
        stdin="launch_server.py: error: unrecognized arguments: --enable_mixed_chunk",
    )  # fmt: skip
    (first, *_) = json.loads(done.out)["findings"]
    assert first["rule"] == "underscore-spelling"
    assert "--enable-mixed-chunk" in first["flags"]


def test_a_log_of_a_server_that_runs_is_no_finding(flagwise: Flagwise) -> None:
    done = flagwise("diagnose", str(LOGS / "serves.log"))
    assert (done.status, "nothing known went wrong" in done.out) == (0, True)


@pytest.mark.parametrize(
    ("args", "message"),
    [((), "expected a log file"), (("no-such.log",), "cannot read the log"), (("-", "ls -l"), "no SGLang launch")],
)
def test_a_wrong_request_is_one_line(flagwise: Flagwise, args: tuple[str, ...], message: str) -> None:
    done = flagwise("diagnose", *args, stdin="x")
    assert done.status == 2
    assert message in done.err
    assert done.err.count("\n") == 1


def test_the_same_log_gives_the_same_bytes(flagwise: Flagwise) -> None:
    path = str(LOGS / "graphs-run-out-of-memory.log")
    assert flagwise("diagnose", path).out == flagwise("diagnose", path).out


def test_each_example_is_read_beside_a_command(store: Store) -> None:
    """Repairs are worked out for the launch, whatever kind of value a signature computes."""
    command = read_command("python -m sglang.launch_server --model-path Qwen/Qwen3.6-27B --tp 1")
    where = Options("qwen3.6-27b", "1xh100-sxm", "0.5.18")
    wanting = [
        s.id for s in load(default_root()).logs.signatures if not diagnose(store, s.example, command, where).findings
    ]
    assert wanting == []


def test_sentences_and_unknown_names_in_a_signature_are_complaints() -> None:
    knowledge = load(default_root())
    first = knowledge.logs.signatures[0]
    wrong = msgspec.structs.replace(
        first, rules=("no-such-rule",), about=("no_such_flag",), match=(("word " * 10,),), message="{log.nothing}"
    )
    bad = msgspec.structs.replace(knowledge, logs=msgspec.structs.replace(knowledge.logs, signatures=(wrong,)))
    complaints = "\n".join(lint_signatures(bad, first.id))
    for word in ("unknown rule", "unknown flag", "9 words", "log.nothing", "recognised by no signature"):
        assert word in complaints
