"""Commands as people write them -> the engine's arguments and the environment that reaches it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.errors import RequestError
from solver.launch import Launch, argv_of, read_argv, read_command, read_commands, shell_of
from solver.quoting import quote

RUN = "python -m sglang.launch_server"


def texts(launch: Launch) -> list[str]:
    return [word.text for word in launch.words]


def unknown(launch: Launch) -> list[str]:
    return [word.text for word in launch.words if word.unknown]


@pytest.mark.parametrize(
    ("command", "entry", "prefix"),
    [
        (f"{RUN} --tp 8", "launch_server", ("python", "-m", "sglang.launch_server")),
        ("python3 -u -m sglang.launch_server --tp 8", "launch_server", ("python3", "-u", "-m", "sglang.launch_server")),
        ("sglang serve --tp 8", "serve", ("sglang", "serve")),
        ("/opt/venv/bin/sglang serve --tp 8", "serve", ("/opt/venv/bin/sglang", "serve")),
        ("python /src/sglang/launch_server.py --tp 8", "launch_server", ("python", "/src/sglang/launch_server.py")),
        (f"nohup {RUN} --tp 8 > log.txt 2>&1 &", "launch_server", ("nohup", *RUN.split())),
        (f"exec {RUN} --tp 8", "launch_server", tuple(RUN.split())),
        (f"time {RUN} --tp 8 |& tee log", "launch_server", tuple(RUN.split())),
        (f"numactl -N 0 {RUN} --tp 8", "launch_server", ("numactl", "-N", "0", *RUN.split())),
        (f"$ {RUN} --tp 8", "launch_server", tuple(RUN.split())),
        (f"cd /src && pip install x; {RUN} --tp 8", "launch_server", tuple(RUN.split())),
        (f"2>err {RUN} --tp 8 &> out", "launch_server", tuple(RUN.split())),
        (f"if true; then\n  {RUN} --tp 8\nfi", "launch_server", tuple(RUN.split())),
    ],
)
def test_entry_point_is_found_behind_wrappers(command: str, entry: str, prefix: tuple[str, ...]) -> None:
    launch = read_command(command)
    assert (launch.entry, launch.prefix, texts(launch)) == (entry, prefix, ["--tp", "8"])


def test_line_continuations_and_comments_are_dropped() -> None:
    command = f"# my server\n{RUN} \\\n  --tp 8 \\\n  --port 30000  # the port\n"
    assert texts(read_command(command)) == ["--tp", "8", "--port", "30000"]


def test_a_comment_between_continued_lines_ends_the_command() -> None:
    launch = read_command(f"{RUN} \\\n  --tp 8 \\\n  # --dp 2 \\\n  --port 1\n")
    assert texts(launch) == ["--tp", "8"]
    assert [word.text for word in launch.lost] == ["--port", "1"]


def test_a_blank_after_the_backslash_is_an_argument_of_its_own() -> None:
    launch = read_command(f"{RUN} --tp 8 \\ \n  --port 1")
    assert texts(launch) == ["--tp", "8", " "]
    assert [word.text for word in launch.lost] == ["--port", "1"]


def test_windows_line_ends_are_read() -> None:
    assert texts(read_command(f"{RUN} \\\r\n --tp 8\r\n")) == ["--tp", "8"]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("'{\"a\": 1}'", '{"a": 1}'),
        ('"{\\"a\\": 1}"', '{"a": 1}'),
        ("a\\ b", "a b"),
        ("'a'\"'\"'b'", "a'b"),
        ("$'a\\tb\\x41\\101'", "a\tbAA"),
        ('"a\\n$"', "a\\n$"),
        ("''", ""),
        ("a#b", "a#b"),
        ("{1,2}", "{1,2}"),
    ],
)
def test_quotes_are_read_as_the_shell_reads_them(written: str, value: str) -> None:
    launch = read_command(f"{RUN} --x {written}")
    assert texts(launch) == ["--x", value]
    assert unknown(launch) == []


@pytest.mark.parametrize(
    ("command", "env", "unexported"),
    [
        (f"A=1 B='x y' {RUN}", {"A": "1", "B": "x y"}, ()),
        (f"export A=1 B=2; {RUN}", {"A": "1", "B": "2"}, ()),
        (f"A=1\nexport A\n{RUN}", {"A": "1"}, ()),
        (f"A=1; {RUN}", {}, ("A",)),
        (f"A=1\nB=2 {RUN}", {"B": "2"}, ("A",)),
        (f"declare -x A=1\n{RUN}", {"A": "1"}, ()),
        (f"set -a\nA=1\nset +a\nB=2\n{RUN}", {"A": "1"}, ("B",)),
        (f"export A=1\nunset A\n{RUN}", {}, ()),
        (f"export A=1\nexport -n A\n{RUN}", {}, ("A",)),
        (f"env A=1 B=2 {RUN}", {"A": "1", "B": "2"}, ()),
        (f"export A=1 B=2; env -u A C=3 {RUN}", {"B": "2", "C": "3"}, ()),
        (f"export A=1; env -i C=3 {RUN}", {"C": "3"}, ()),
        (f"export A=$(hostname); {RUN}", {"A": None}, ()),
        (f"export A=$HOME/x; {RUN}", {"A": None}, ()),
        (f"export A=${{B:-5}}; {RUN}", {"A": "5"}, ()),
        (f"export A=1; A+=2 {RUN}", {"A": "12"}, ()),
        (f"if x; then export A=1; fi; {RUN}", {"A": None}, ()),
        (f"if x; then export A=1; {RUN}; fi", {"A": "1"}, ()),
        (f"[ -z $A ] && export A=1\n{RUN}", {"A": None}, ()),
        (f"cd /x && export A=1 && {RUN}", {"A": "1"}, ()),
        (f"(export A=1); {RUN}", {}, ()),
        (f"case $x in a) export A=1;; b) export A=2;; esac; {RUN}", {"A": None}, ()),
    ],
)
def test_environment_that_reaches_the_process(
    command: str, env: dict[str, str | None], unexported: tuple[str, ...]
) -> None:
    launch = read_command(command)
    assert (launch.env, launch.unexported) == (env, unexported)


@pytest.mark.parametrize(
    ("script", "words", "unsure"),
    [
        ("TP=8\nRUN --tp $TP", ["--tp", "8"], []),
        ("RUN --tp $TP", ["--tp", "$TP"], ["$TP"]),
        ("RUN --tp ${TP:-8}", ["--tp", "8"], []),
        ("TP=4\nRUN --tp ${TP:-8}", ["--tp", "4"], []),
        ("TP=$1\nRUN --tp ${TP:-8}", ["--tp", "${TP:-8}"], ["${TP:-8}"]),
        ("RUN --tp ${TP:=8} --dp $TP", ["--tp", "8", "--dp", "8"], []),
        ("RUN --model ${M:-${N:-a/b}}", ["--model", "a/b"], []),
        ('RUN --x ${M:-"a b"}', ["--x", "a", "b"], []),
        ('RUN --x "${M:-a b}"', ["--x", "a b"], []),
        ('ARGS="--tp 8"\nARGS+=" --dp 2"\nRUN $ARGS', ["--tp", "8", "--dp", "2"], []),
        ('ARGS="--tp 8"\nRUN "$ARGS"', ["--tp 8"], []),
        ('ARGS=(--tp 8 --x "a b")\nARGS+=(--dp 2)\nRUN "${ARGS[@]}"', ["--tp", "8", "--x", "a b", "--dp", "2"], []),
        ('ARGS=()\nRUN "${ARGS[@]}" --tp 8', ["--tp", "8"], []),
        ("E=\nRUN $E --tp 8", ["--tp", "8"], []),
        ('E=\nRUN --x "$E"', ["--x", ""], []),
        ("RUN --tp $(nproc --all) --port `cat p`", ["--tp", "$(nproc --all)", "--port", "`cat p`"], None),
        ('D="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\nRUN --x a', ["--x", "a"], []),
        ('CMD="RUN --tp 8"\neval "$CMD"', ["--tp", "8"], []),
        ('CMD="RUN --tp 8"\n$CMD --dp 2', ["--tp", "8", "--dp", "2"], []),
        ("for tp in 1 2; do RUN --tp $tp; done", ["--tp", "$tp"], ["$tp"]),
        ("RUN --addr $HOST:50", ["--addr", "$HOST:50"], ["$HOST:50"]),
        ("RUN --model-path <your model> --tp 8", ["--model-path", "<your model>", "--tp", "8"], ["<your model>"]),
        ("RUN --tp '$TP'", ["--tp", "$TP"], []),
    ],
)
def test_variables_are_known_only_if_the_text_says_so(script: str, words: list[str], unsure: list[str] | None) -> None:
    launch = read_command(script.replace("RUN", RUN))
    assert texts(launch) == words
    if unsure is not None:
        assert unknown(launch) == unsure


def test_docker_run_keeps_the_image_and_takes_its_environment() -> None:
    launch = read_command(
        "A=1 docker run -it --rm --gpus all -e B=2 --env C=3 --env=D=4 -eE=5 -e A --shm-size 32g -p 1:1 "
        f"lmsysorg/sglang:v0.5.10 {RUN} --tp 8"
    )
    assert launch.image == "lmsysorg/sglang:v0.5.10"
    assert launch.env == {"A": "1", "B": "2", "C": "3", "D": "4", "E": "5"}
    assert launch.prefix[:4] == ("docker", "run", "-it", "--rm")
    assert "-e" not in launch.prefix
    assert texts(launch) == ["--tp", "8"]


def test_docker_does_not_hand_on_the_outer_environment() -> None:
    launch = read_command(f"export A=1\nB=2 sudo docker run img {RUN}")
    assert (launch.env, launch.unexported) == ({}, ("A", "B"))


def test_docker_with_flags_only_is_a_launch_of_a_sglang_image() -> None:
    launch = read_command("docker run --gpus all lmsysorg/sglang:v0.5.10 --model-path a --tp 8")
    assert texts(launch) == ["--model-path", "a", "--tp", "8"]


def test_docker_exec_has_no_image() -> None:
    launch = read_command(f"docker exec -it -e A=1 box {RUN} --tp 8")
    assert (launch.image, launch.env, texts(launch)) == (None, {"A": "1"}, ["--tp", "8"])


@pytest.mark.parametrize(
    "command",
    [
        f"bash -c 'A=1 {RUN} --tp 8'",
        f'srun --ntasks 2 bash -lc "export A=1; {RUN} --tp 8"',
        f"docker run -e A=1 img bash -c 'cd /x && {RUN} --tp 8'",
        f"docker run img sh -c \"bash -c 'A=1 {RUN} --tp 8'\"",
        f"ssh host 'A=1 {RUN} --tp 8'",
        f"B=2 ssh host 'A=1 {RUN} --tp 8'",
        f"tmux new -d -s x 'A=1 {RUN} --tp 8'",
        f"ssh host 'docker run -e A=1 img {RUN} --tp 8'",
        f"bash <<EOF\nA=1 {RUN} --tp 8\nEOF\n",
    ],
)
def test_commands_inside_commands_are_read_with_places_of_the_outer_text(command: str) -> None:
    launch = read_command(command)
    assert texts(launch) == ["--tp", "8"]
    assert launch.env == {"A": "1"}
    assert [command[w.span.start : w.span.end] for w in launch.words if w.span] == ["--tp", "8"]


def test_a_here_document_that_is_no_shell_text_does_no_harm() -> None:
    assert texts(read_command(f"cat <<'EOF' > note\nit's sglang\nEOF\n{RUN} --tp 8")) == ["--tp", "8"]


def test_spans_point_at_the_words() -> None:
    command = f"A=1 {RUN} --x 'a b' \\\n --tp=8"
    spans = [word.span for word in read_command(command).words]
    assert [command[s.start : s.end] for s in spans if s] == ["--x", "'a b'", "--tp=8"]


def test_every_launch_of_a_script_is_found() -> None:
    script = f"{RUN} --tp 1 &\nsleep 5\nsglang serve m --tp 2\necho {RUN} --tp 3\npkill -f sglang.launch_server"
    assert [texts(launch) for launch in read_commands(script)] == [["--tp", "1"], ["m", "--tp", "2"]]
    assert texts(read_command(script)) == ["--tp", "1"]


def test_a_function_body_is_read() -> None:
    assert texts(read_command(f"serve() {{\n  {RUN} --tp 8\n}}\nserve")) == ["--tp", "8"]


@pytest.mark.parametrize(
    "command",
    [
        "",
        "ls -la",
        "# nothing",
        f"echo {RUN}",
        "vllm serve m",
        f"{RUN} --x 'a",
        f'{RUN} --x "a',
        f"{RUN} $(a",
        "--tp 8",
    ],
)
def test_what_is_no_launch_is_refused_in_one_line(command: str) -> None:
    with pytest.raises(RequestError) as refusal:
        read_command(command)
    assert "\n" not in str(refusal.value)


def test_unclosed_quote_is_located() -> None:
    with pytest.raises(RequestError, match="line 2, column 3"):
        read_command(f"{RUN} \\\n  'abc")


@pytest.mark.parametrize("text", ["--tp 8 --quantization fp8", "A=1 --tp 8 --quantization fp8"])
def test_bare_flags_are_a_launch_on_request(text: str) -> None:
    launch = read_command(text, bare=True)
    assert texts(launch) == ["--tp", "8", "--quantization", "fp8"]
    assert launch.prefix == ("python", "-m", "sglang.launch_server")


def test_nothing_is_a_bare_launch() -> None:
    assert read_command("", bare=True).words == ()
    assert read_argv([]).words == ()


def test_argv_is_taken_literally() -> None:
    launch = read_argv(["python", "-m", "sglang.launch_server", "--x", "$A; b", "--y", ""], {"Z": "1"})
    assert texts(launch) == ["--x", "$A; b", "--y", ""]
    assert launch.env == {"Z": "1"}
    assert argv_of(launch) == ("python", "-m", "sglang.launch_server", "--x", "$A; b", "--y", "")
    assert all(word.span and not word.unknown for word in launch.words)


def test_argv_without_entry_point_is_bare() -> None:
    launch = read_argv(["--tp", "8"])
    assert argv_of(launch) == ("python", "-m", "sglang.launch_server", "--tp", "8")


def test_other_argv_is_refused() -> None:
    with pytest.raises(RequestError):
        read_argv(["ls", "-la"])


ROUND_TRIPS = [
    f"A=1 B='x y' {RUN} --x '{{\"a\": \"it'\"'\"'s\"}}' --y ''",
    f"A=$B {RUN} --tp $TP $EXTRA --addr \"$H:5\" --z $(nproc) --m <model> -c '$TP'",
    f"docker run -e A=1 -e B --gpus '\"device=0\"' img {RUN} --tp 8",
    f"srun -n 2 bash -c 'A=\"x y\" {RUN} --rank $SLURM_NODEID'",
    f"docker run img bash -c 'A=1 {RUN} --x \"a b\"'",
    f"env a.b=1 {RUN} --tp 8",
    f"nohup {RUN} --tp 8 > log &",
    "sglang serve m --tp 8",
]


def same(launch: Launch) -> tuple[object, ...]:
    words = [(word.text, word.unknown, word.splits) for word in launch.words]
    return words, launch.env, launch.entry, launch.prefix, launch.image


@pytest.mark.parametrize("command", ROUND_TRIPS)
def test_shell_text_reads_back_to_the_same_launch(command: str) -> None:
    launch = read_command(command)
    assert same(read_command(shell_of(launch))) == same(launch)
    assert same(read_argv(argv_of(launch)))[2:] == same(launch)[2:]


SHELL = ["'", '"', "\\", "$", "`", "(", ")", "{", "}", "<", "<<EOF", ">", "|", "&", ";", "\n", "#", " ", "=", "EOF"]
PARTS = [
    *SHELL,
    RUN,
    "sglang serve",
    "--tp 8",
    "A=1",
    "${A:-",
    "$(",
    "bash -c",
    "docker run -e",
    "if",
    "fi",
    "é",
    "A=(",
]
BITS = st.lists(st.sampled_from(PARTS) | st.text(max_size=3), max_size=8)
ARGUMENTS = [
    "--tp",
    "8",
    "$TP",
    "'a b'",
    '"$X y"',
    "$(a 'b')",
    "${A:-c d}",
    "<n>",
    "\\\n",
    '"${A[@]}"',
    "=",
    "`x`",
    "a\\ b",
]
BEFORE = st.sampled_from(["", "A=1", "A=(x 'y z');", "export A=$B;", "env C=1", "docker run -e A img", "if x; then"])
LAUNCHES = st.tuples(BEFORE, st.sampled_from([RUN, "sglang serve"]), st.lists(st.sampled_from(ARGUMENTS), max_size=6))
WHOLE = LAUNCHES.map(lambda parts: " ".join([parts[0], parts[1], *parts[2]]))
NESTED = WHOLE.map(lambda text: "srun bash -c " + quote(text))
TEXTS = WHOLE | NESTED | st.tuples(BITS, WHOLE | NESTED, BITS).map(lambda t: " ".join([*t[0], t[1], *t[2]]))


@settings(max_examples=3000, derandomize=True, deadline=None)
@given(TEXTS | BITS.map("".join) | st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = read_commands(text)
    except RequestError as refusal:
        assert "\n" not in str(refusal)
        return
    for launch in found:
        if not any(
            ":-" in word for word in [*unknown(launch), *launch.prefix]
        ):  # the assignment that made it unknown is not written out
            assert same(read_command(shell_of(launch))) == same(launch)
        for word in launch.words:
            assert word.span and 0 <= word.span.start <= word.span.end <= len(text)


@settings(max_examples=1000, derandomize=True, deadline=None)
@given(st.lists(st.text(), max_size=6))
def test_any_argument_survives_argv_and_shell(arguments: list[str]) -> None:
    launch = read_argv([*RUN.split(), *arguments])
    assert texts(launch) == arguments
    assert texts(read_command(shell_of(launch))) == arguments
