"""Launches are found in every kind of file, on the right line, with their words, variables and context."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import SHARED

from solver.gate.files import beside
from solver.gate.flag_mappings import FlagNames
from solver.gate.found import Found, Unreadable
from solver.gate.kinds import find_in, kind_of_name, kind_of_text, launches_of
from solver.gate.output.data import argv_of
from solver.gate.run import flag_names
from solver.gate.text import Text
from solver.store import Store

HERE = Path(__file__).parent / "gate"
LAYOUTS = HERE / "layouts"
EXPECTED = {row["file"]: row["launches"] for row in map(json.loads, (HERE / "expected.jsonl").read_text().splitlines())}
CORPUS = SHARED / "corpus"


def found_in(path: Path, store: Store) -> tuple[str, list[Found]]:
    text = path.read_bytes().decode()
    kind = kind_of_name(path.name) or kind_of_text(text)
    finds = find_in(Text.whole(text), kind, flag_names(store), beside(str(path)))
    assert not finds.problems
    return text, finds.found


def described(found: Found, text: str) -> dict[str, Any]:
    """What the expectations say of a launch; what is not there is left out."""
    row = {
        "line": text.count("\n", 0, found.at.start) + 1,
        "at": text[found.at.start : found.at.end],
        "kind": found.kind,
        "argv": list(argv_of(found.launch)),
        "unknown": [word.text for word in found.launch.words if word.unknown],
        "env": found.launch.env,
        "image": found.hints.image,
        "gpus": found.hints.gpus,
        "gpu": found.hints.gpu,
        "partial": found.partial,
    }
    return {key: value for key, value in row.items() if value}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_every_launch_of_a_layout_is_found(name: str, store: Store) -> None:
    text, launches = found_in(LAYOUTS / name, store)
    assert [described(found, text) for found in launches] == EXPECTED[name]


def test_each_kind_of_file_has_three_layouts_and_some_hold_two_launches() -> None:
    files: dict[str, set[str]] = {}
    for name, launches in EXPECTED.items():
        for launch in launches:
            files.setdefault(launch["kind"], set()).add(name)
    assert all(len(names) >= 3 for names in files.values()), files
    assert len(files) == 14
    assert sum(len(launches) > 1 for launches in EXPECTED.values()) >= 8


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_words_that_are_written_out_stand_where_they_are_said_to(name: str, store: Store) -> None:
    """Whatever a place shows is the word itself, with quotes and escapes, or the reference it was computed from."""
    text, launches = found_in(LAYOUTS / name, store)
    for found in launches:
        for word, place in zip(found.launch.words, found.words, strict=True):
            shown = text[place.start : place.end] if place else word.text
            plain, said = (text.strip("\"'").removeprefix("--").split() for text in (shown, word.text))
            written = plain == said
            is_reference = any(sign in shown for sign in "$%\\[{") or (found.kind == "python" and shown[0] not in "'\"")
            assert written or is_reference or place is None, (word, shown)


@pytest.mark.parametrize("name", sorted(EXPECTED))
@pytest.mark.parametrize("change", ["\r\n", "é"])
def test_line_ends_and_other_letters_move_no_place(name: str, change: str, store: Store) -> None:
    """The same launches are found where every line ends in CR LF, and behind a comment that is not ASCII."""
    before = (LAYOUTS / name).read_text()
    if change == "é" and name.endswith((".json", ".ipynb")):
        pytest.skip("JSON has no comment at their head")
    after = before.replace("\n", "\r\n") if change == "\r\n" else _with_comment(before, name)
    kind = kind_of_name(name) or kind_of_text(before)
    names, read = flag_names(store), beside(str(LAYOUTS / name))
    found = [find_in(Text.whole(text), kind, names, read).found for text in (before, after)]
    shown = [
        [text[f.at.start : f.at.end] for f in launches] for text, launches in zip((before, after), found, strict=True)
    ]
    assert shown[0] == shown[1]
    assert [argv_of(f.launch) for f in found[0]] == [argv_of(f.launch) for f in found[1]]


def _with_comment(text: str, name: str) -> str:
    first, rest = text.split("\n", 1)
    if name.endswith((".md", ".mdx", ".markdown")):
        return f"Préparé\n\n{text}"
    return f"{first}\n# préparé\n{rest}" if first.startswith("#!") else f"# préparé\n{text}"


CASES = [json.loads(line) for line in (CORPUS / "cases.jsonl").read_text().splitlines()] if CORPUS.exists() else []
FILES = sorted({case["file"] for case in CASES if case.get("file")})


@pytest.mark.skipif(not FILES, reason="needs the shared corpus")
def test_every_launch_of_the_corpus_is_found(store: Store) -> None:
    """As many launches as cases a file has, on a line that names the engine, or where a recipe's flags begin."""
    for file in FILES:
        text, launches = found_in(CORPUS / file, store)
        wanted = sum(case["file"] == file for case in CASES)
        assert len(launches) == wanted, file
        lines = text.split("\n")
        for found in launches:
            line = lines[text.count("\n", 0, found.at.start)]
            if found.kind == "config":
                assert line.strip().startswith("served-model-name:"), file
            else:
                assert "sglang.launch_server" in line or "sglang serve" in line, (file, line)


@pytest.mark.skipif(not FILES, reason="needs the shared corpus")
def test_scripts_of_the_corpus_give_their_cases_commands(store: Store) -> None:
    import shlex

    for case in CASES:
        if not case.get("file") or not case["file"].endswith(".sh"):
            continue
        _, (found,) = found_in(CORPUS / case["file"], store)
        words = shlex.split(case["command"])
        wanted = {word for word in words if "=" not in word or word.startswith("-")}
        assert wanted <= {"python3", *argv_of(found.launch)}, case["id"]


def test_a_text_can_be_read_back_by_its_kind() -> None:
    (found,) = launches_of("[Service]\nExecStart=/usr/bin/sglang serve --model-path a/b --tp 2\n", "systemd")
    assert [word.text for word in found.launch.words] == ["--model-path", "a/b", "--tp", "2"]


UNIT = r"""[Service]
Environment="A=a\tb" 'B=x$y%%' "C=it's" D=%h
ExecStart=/usr/bin/sglang serve --model-path "a`b\n$$c" --api-key 'it\'s \x41' --tp 2
"""
POD = """kind: Pod
apiVersion: v1
spec:
  containers:
    - image: lmsysorg/sglang:v0.5.10
      env: [{name: A, value: "$$x"}, {name: B, value: "$$(A) $(A) $x"}]
      args: [--model-path, "a$$b $x", --api-key, "$$(A)$(A)", --tp, "2"]
"""


@pytest.mark.parametrize(
    ("text", "kind", "words", "env"),
    [
        (UNIT, "systemd", ["a`b\n$c", "it's A"], {"A": "a\tb", "B": "x$y%", "C": "it's", "D": None}),
        (POD, "yaml", ["a$b $x", "$(A)$x"], {"A": "$x", "B": "$(A) $x $x"}),
    ],
    ids=["systemd", "kubernetes"],
)
def test_escapes_are_read_as_the_reader_of_the_file_does(
    text: str, kind: Any, words: list[str], env: dict[str, str | None]
) -> None:
    (found,) = launches_of(text, kind)
    assert [word.text for word in found.launch.words if not word.text.startswith("--")] == [*words, "2"]
    assert found.launch.env == env


BROKEN = {
    "an alias bomb": ("yaml", "a0: &a0 [x, x]\n" + "".join(
        f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)), "200,000"),
    "a merge bomb": ("yaml", "a0: &a0 {x: 1}\n" + "".join(
        f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 60)), "200,000"),
    "deep lists": ("yaml", "[" * 10_000, "levels"),
    "deep mappings": ("yaml", "a: {" * 10_000, "levels"),
    "deep dashes": ("yaml", "- " * 10_000 + "x", "levels"),
    "deep JSON": ("json", "[" * 10_000, "levels"),
    "deep JSON objects": ("json", '{"a":' * 10_000, "levels"),
    "no YAML": ("yaml", "a: [1\nb: }", "not YAML on line 2"),
    "a template": ("yaml", "{{- if .Values.x }}\na: [{{ .Values.b }}\n{{- end }}", "helm template"),
    "no JSON": ("json", '{"a": 1,, }', "not JSON on line 1, column 9"),
    "a tab": ("yaml", "a:\n\tb: 1", "not YAML on line 2"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_what_cannot_be_read_ends_in_one_clear_line(name: str) -> None:
    import time

    kind, text, words = BROKEN[name]
    start = time.perf_counter()
    with pytest.raises(Unreadable, match=words) as refused:
        find_in(Text.whole(text), kind, FlagNames(tuple), lambda path: None)  # type: ignore[arg-type]
    assert time.perf_counter() - start < 1
    assert "\n" not in str(refused.value)


def test_a_script_with_an_open_quote_still_shows_its_launch() -> None:
    text = "#!/bin/sh\necho it's\npython3 -m sglang.launch_server \\\n  --model-path a/b\n"
    (found,) = find_in(Text.whole(text), "shell", FlagNames(tuple), lambda path: None).found
    assert text.count("\n", 0, found.at.start) + 1 == 3
    assert [word.text for word in found.launch.words] == ["--model-path", "a/b"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("json", '{"model_path": "a/b", "tp_size": 2, "mem_fraction_static": 0.8, "context_length": 4096}'),
        ("json", '{"run": {"server_args": {"model_path": "a/b", "tp_size": 2, "attention_backend": null}}}'),
        ("yaml", "rollout:\n  engine_kwargs: {model_path: a/b, tp_size: 2, mem_fraction_static: 0.8}\n"),
    ],
)
def test_keyword_arguments_and_records_of_runs_are_no_launch(kind: Any, text: str, store: Store) -> None:
    """They are spelled as the engine's own fields are; the same with dashes is what a launcher is given."""
    assert launches_of(text, kind, flag_names(store)) == []
    (found,) = launches_of(re.sub(r"(?<=[a-z])_(?=[a-z])", "-", text), kind, flag_names(store))
    assert found.kind == "config"


def test_documents_before_a_broken_one_are_kept() -> None:
    text = "a: |\n  sglang serve --model-path a/b\n---\nb: [\n---\n"
    finds = find_in(Text.whole(text), "yaml", FlagNames(tuple), lambda path: None)
    assert len(finds.found) == 1
    assert finds.problems[0].startswith("not YAML on line")


GROWING = {
    "a text": ("shell", 'A=aaaaaaaaaa\n{}exec sglang serve --model-path a/b --served-model-name "$A"\n', 'A="$A$A"\n'),
    "an array": ("shell", "A=(a b)\n{}exec sglang serve --model-path a/b ${{A[@]}}\n", 'A=("${A[@]}" "${A[@]}")\n'),
    "a variable of an image": (
        "dockerfile",
        "FROM x\nENV A=aaaaaaaaaa\n{}CMD sglang serve --model-path a/b --served-model-name $A\n",
        "ENV A=$A$A\n",
    ),
}


@pytest.mark.parametrize("name", sorted(GROWING))
def test_values_that_double_and_double_are_not_followed(name: str) -> None:
    kind, text, line = GROWING[name]
    finds = find_in(Text.whole(text.format(line * 60)), kind, FlagNames(tuple), lambda path: None)  # type: ignore[arg-type]
    (found,) = finds.found
    assert found.launch.words[-1].unknown
    assert sum(len(word.text) for word in found.launch.words) < 100


def test_a_command_that_one_branch_assigns_is_followed() -> None:
    text = (
        'if [ -n "$OWN" ]; then\n  RUN=(/opt/own-launcher)\nelse\n  RUN=(python -m sglang.launch_server)\nfi\n'
        'RUN+=(--model-path "$MODEL" --tp 2)\nexec "${RUN[@]}"\n'
    )
    for order in (text, text.replace("-n", "-z").replace("(/opt/own-launcher)", "(python -m sglang.launch_server)", 1)):
        (found,) = launches_of(order, "shell")
        assert [word.text for word in found.launch.words] == ["--model-path", "$MODEL", "--tp", "2"]


def test_lines_of_json_are_a_list_of_values() -> None:
    text = '{"cmd": "sglang serve --model-path a/b"}\n{"cmd": "sglang serve --model-path c/d"}\n'
    assert [found.launch.words[1].text for found in launches_of(text, "json")] == ["a/b", "c/d"]
    with pytest.raises(Unreadable, match="something follows the value"):
        launches_of('{"a": 1} {"b": 2}', "json")


@pytest.mark.parametrize(
    ("devices", "gpus"),
    [('{device_ids: ["0", "1"]}', 2), ('{device_ids: ["0,1,2"]}', 3), ('{device_ids: ["${GPUS:-0,1}"]}', None)],
)
def test_devices_of_a_service_are_counted_where_they_are_named(devices: str, gpus: int | None) -> None:
    text = (
        "services:\n  a:\n    command: sglang serve --model-path a/b\n"
        f"    deploy: {{resources: {{reservations: {{devices: [{devices}]}}}}}}\n"
    )
    (found,) = launches_of(text, "yaml")
    assert found.hints.gpus == gpus


@pytest.mark.parametrize(
    "text",
    [
        'ROWS = {"a": ("sglang serve", "--model-path", "--tp-size")}',
        'assert "sglang serve --model-path a/b" in script',
        'parser.add_argument("--x", help="python -m sglang.launch_server --model-path a/b")',
        'raise RuntimeError(f"start python -m sglang.launch_server --model-path {model} first")',
        'def f():\n    """sglang serve --model-path a/b"""\n    return 1',
        "import sglang.launch_server as launch_server\nlaunch_server.run(args)",
        'text = f"not there (python -m sglang.launch_server ...)"',
        "deep = 'sglang serve --model-path a/b'" + " + 'x'" * 20_000,
        "broken = ['python', '-m', 'sglang.launch_server'",
    ],
)
def test_a_program_that_only_speaks_of_a_launch_has_none(text: str) -> None:
    assert launches_of(text, "python") == []


@pytest.mark.parametrize(
    "variables",
    [
        "A = $(B)$(B)\nB = $(A)$(A)\n",
        "A0 = xxxxxxxxxx\n" + "".join(f"A{n} = {f'$(A{n - 1})' * 10}\n" for n in range(1, 30)) + "A = $(A29)\n",
    ],
    ids=["a circle", "a bomb"],
)
def test_variables_of_a_makefile_that_never_end_are_unknown(variables: str) -> None:
    (found,) = launches_of(f"{variables}run:\n\tsglang serve --model-path $(A) --tp 2\n", "makefile")
    assert [word.unknown for word in found.launch.words] == [False, True, False, False]


def test_braces_in_a_makefile_are_its_commands_own() -> None:
    text = "TP := 4\nrun:\n\tdocker ps --format '{{.ID}}'\n\tsglang serve --model-path a/b --tp $(TP)\n"
    (found,) = launches_of(text, "makefile")
    assert [word.text for word in found.launch.words] == ["--model-path", "a/b", "--tp", "4"]
