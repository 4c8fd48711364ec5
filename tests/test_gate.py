"""The verb gate: what is said about launches, comments, settings, outputs, baselines, and files that resist."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, SHARED, Run

Gate = Callable[..., Run]
LAUNCH = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B"
BAD = f"{LAUNCH} --nope 1"
KNOWN = ("--engine-version", "0.5.12", "--hardware", "1xh100-sxm")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    return tmp_path


def data(run: Run) -> Any:
    return json.loads(run.out)


def rules(run: Run) -> list[str]:
    return [finding["rule"] for finding in data(run)["findings"]]


# ------------------------------------------------------------------- context


def test_a_finding_points_at_its_words_in_the_file(project: Path, flagwise: Gate) -> None:
    (project / "run.sh").write_text(f"#!/bin/sh\n{LAUNCH} \\\n  --nope 1 \\\n  --port 1\n")
    run = flagwise("gate", "--format", "json", *KNOWN)
    (finding,) = [f for f in data(run)["findings"] if f["rule"] == "unknown-flag"]
    assert (finding["file"], finding["line"], finding["column"], finding["end_column"]) == ("run.sh", 3, 3, 9)
    start, end = finding["span"]
    assert (project / "run.sh").read_bytes()[start:end] == b"--nope"
    assert run.status == 1


@pytest.mark.parametrize("words", ["--mamba-scheduler-strategy extra_buffer", "--speculative-draft 8", "--nope 1"])
def test_what_another_release_takes_depends_on_the_release(project: Path, flagwise: Gate, words: str) -> None:
    (project / "run.sh").write_text(f"{LAUNCH} {words}\n")
    options = ("--hardware", "1xh100-sxm", "--format", "json")
    (open_ended,) = [f for f in data(flagwise("gate", *options))["findings"] if f["stage"] == "parse"]
    assert open_ended["conditional_on"] == (["release"] if words.startswith("--mamba") else [])
    (said,) = [
        f for f in data(flagwise("gate", "--engine-version", "0.5.23", *options))["findings"] if f["stage"] == "parse"
    ]
    assert (said["rule"], said["conditional_on"]) == (open_ended["rule"], [])


def test_real_deployments_are_not_refused_for_what_nobody_said(flagwise: Gate) -> None:
    if not (SHARED / "corpus" / "files").is_dir():
        pytest.skip("needs the shared corpus")
    found = data(flagwise("gate", str(SHARED / "corpus" / "files"), "--format", "json"))
    assert len(found["launches"]) > 20
    assert [f for f in found["findings"] if f["severity"] == "error" and not f["conditional_on"]] == []


def test_spans_count_bytes_and_columns_characters(project: Path, flagwise: Gate) -> None:
    (project / "run.sh").write_text(f"echo 'é€'; {BAD}\n")
    (finding,) = data(flagwise("gate", "--format", "json", *KNOWN))["findings"]
    start, end = finding["span"]
    assert (project / "run.sh").read_bytes()[start:end] == b"--nope"
    assert finding["column"] == len(f"echo 'é€'; {LAUNCH} ") + 1


@pytest.mark.parametrize(
    ("image", "release", "origin"),
    [("lmsysorg/sglang:v0.5.10-cu129", "0.5.10", "image"), ("lmsysorg/sglang:latest", "0.5.9", "given")],
)
def test_the_image_gives_the_release_before_the_settings(
    image: str, release: str, origin: str, project: Path, flagwise: Gate
) -> None:
    (project / "flagwise.toml").write_text('release = "0.5.9"\n')
    (project / "c.yaml").write_text(f"services:\n  a:\n    image: {image}\n    command: {LAUNCH}\n")
    (launch,) = data(flagwise("gate", "--format", "json"))["launches"]
    assert (launch["context"]["release"], launch["context"]["release_from"]) == (release, origin)


def test_limits_give_the_number_of_gpus_and_labels_their_name(project: Path, flagwise: Gate) -> None:
    (project / "pod.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nspec:\n  nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}\n"
        "  containers:\n  - image: lmsysorg/sglang:v0.5.12\n"
        f"    command: [sh, -c, '{LAUNCH} --tp 4']\n    resources: {{limits: {{nvidia.com/gpu: 2}}}}\n"
    )
    run = flagwise("gate", "--format", "json")
    assert data(run)["launches"][0]["context"]["hardware"] == "2xh100-sxm"
    assert "not-enough-gpus" in rules(run)


def test_a_number_of_gpus_alone_is_enough_to_miss_some(project: Path, flagwise: Gate) -> None:
    (project / "job.sbatch").write_text(f"#!/bin/bash\n#SBATCH --gres=gpu:2\nsrun {LAUNCH} --tp 4\n")
    run = flagwise("gate", "--format", "json", "--engine-version", "0.5.12")
    assert data(run)["launches"][0]["context"]["gpus"] == 2
    assert "not-enough-gpus" in rules(run)


def test_settings_hold_for_the_files_under_their_paths(project: Path, flagwise: Gate) -> None:
    (project / "pyproject.toml").write_text(
        '[project]\nname = "x"\n[tool.flagwise]\nhardware = "8xb200"\nexclude = ["old/**"]\n'
        '[[tool.flagwise.files]]\npaths = ["deploy/*.sh"]\nhardware = "4xh100-sxm"\nrelease = "0.5.10"\n'
    )
    for path in ("deploy/a.sh", "deploy/inner/b.sh", "old/c.sh"):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(f"{LAUNCH}\n")
    launches = data(flagwise("gate", "--format", "json", "."))["launches"]
    assert {x["file"]: (x["context"]["hardware"], x["context"]["release"] == "0.5.10") for x in launches} == {
        "deploy/a.sh": ("4xh100-sxm", True),
        "deploy/inner/b.sh": ("8xb200", False),
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("modle = 1\n", "modle"),
        ("x = [\n", "not TOML"),
        ('[[ignore]]\nrule = "a"\nbecause = " "\n', "without a reason"),
        ('fail-on = "never"\n', "fail"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(text: str, words: str, project: Path, flagwise: Gate) -> None:
    (project / "flagwise.toml").write_text(text)
    run = flagwise("gate")
    assert run.status == 2
    assert words in run.err
    assert run.err.count("\n") == 1


def test_a_comment_holds_for_its_launch_and_beats_the_command_line(project: Path, flagwise: Gate) -> None:
    (project / "run.sh").write_text(
        f"# flagwise: hardware=2xb200 release=0.5.10\n{LAUNCH}\n\n{LAUNCH} \\\n  --tp 2  # flagwise: model=qwen3-32b\n"
    )
    first, second = data(flagwise("gate", "--format", "json", *KNOWN))["launches"]
    assert (first["context"]["hardware"], first["context"]["release"]) == ("2xb200", "0.5.10")
    assert (second["context"]["hardware"], second["context"]["model"]) == ("1xh100-sxm", "qwen3-32b")


# -------------------------------------------------------------- suppressions


def test_a_rule_is_switched_off_with_a_reason(project: Path, flagwise: Gate) -> None:
    (project / "run.sh").write_text(f"# flagwise: ignore=unknown-flag because our fork has it\n{BAD}\n")
    run = flagwise("gate", "--format", "json", *KNOWN)
    assert run.status == 0
    assert [(f["rule"], f["suppressed"]) for f in data(run)["findings"]] == [("unknown-flag", "our fork has it")]


@pytest.mark.parametrize(
    ("comment", "rule", "status"),
    [
        ("ignore=unknown-flag", "gate-comment-unreadable", 1),
        ("hardwear=8xb200", "gate-comment-unreadable", 1),
        ("ignore=repeated-flag because it is meant", "gate-suppression-unused", 0),
    ],
)
def test_comments_that_do_nothing_are_findings(
    comment: str, rule: str, status: int, project: Path, flagwise: Gate
) -> None:
    (project / "run.sh").write_text(f"# flagwise: {comment}\n{LAUNCH}\n")
    run = flagwise("gate", "--format", "json", *KNOWN)
    assert rules(run) == [rule]
    assert run.status == status


def test_a_comment_without_a_launch_is_a_finding(project: Path, flagwise: Gate) -> None:
    (project / "run.sh").write_text(f"{LAUNCH}\n# flagwise: hardware=8xb200\n")
    assert rules(flagwise("gate", "--format", "json", *KNOWN)) == ["gate-comment-unattached"]


def test_settings_switch_rules_off_and_say_when_they_did_not_have_to(project: Path, flagwise: Gate) -> None:
    (project / "flagwise.toml").write_text(
        '[[ignore]]\nrule = "unknown-flag"\nbecause = "ours"\n\n[[ignore]]\nrule = "help"\nbecause = "never seen"\n'
    )
    (project / "run.sh").write_text(f"{BAD}\n")
    findings = data(flagwise("gate", "--format", "json", *KNOWN))["findings"]
    assert [(f["rule"], f["suppressed"], f["line"]) for f in findings] == [
        ("unknown-flag", "ours", 1),
        ("gate-suppression-unused", None, 6),
    ]


# ------------------------------------------------------------------- outputs


FORMS = ("text", "json", "sarif", "github", "gitlab", "junit")


@pytest.mark.parametrize(("text", "more", "status"), [
    (f"{LAUNCH}\n", (), 0), (f"{BAD}\n", (), 1), (f"{LAUNCH} --port 1 --port 2\n", (), 0),
    (f"{LAUNCH} --port 1 --port 2\n", ("--fail-on", "note"), 1), (f"{LAUNCH} '\n", (), 2),
])  # fmt: skip
def test_the_exit_status_is_the_same_in_every_form(
    text: str, more: tuple[str, ...], status: int, project: Path, flagwise: Gate
) -> None:
    (project / "run.sh").write_text(text)
    assert {flagwise("gate", "--format", form, *more, *KNOWN).status for form in FORMS} == {status}


def test_several_outputs_at_once(project: Path, flagwise: Gate) -> None:
    (project / "run.sh").write_text(f"{BAD}\n")
    run = flagwise("gate", "--output", "sarif=a.sarif", "--output=junit=b.xml", "--output", "json=c.json", *KNOWN)
    assert run.status == 1
    assert "unknown-flag" in run.out
    assert json.loads((project / "a.sarif").read_text())["version"] == "2.1.0"
    assert ET.parse(project / "b.xml").getroot().tag == "testsuites"
    assert len(json.loads((project / "c.json").read_text())["launches"]) == 1


def test_a_report_replaces_a_report_and_nothing_else(project: Path, flagwise: Gate) -> None:
    (project / "run.sh").write_text(f"{BAD}\n")
    for form in FORMS:
        for _ in range(2):
            assert flagwise("gate", "run.sh", "--output", f"{form}=report.{form}", *KNOWN).status == 1
    (project / "mine.json").write_text('{"precious": 1}')
    run = flagwise("gate", "--output", "json=mine.json", *KNOWN)
    assert run.status == 2
    assert "is no report of flagwise" in run.err
    assert (project / "mine.json").read_text() == '{"precious": 1}'


@pytest.mark.parametrize("wanted", ["sarif", "pdf=x", "sarif=", "json=no/folder/x.json"])
def test_an_output_that_cannot_be_written_is_refused_before_the_run(wanted: str, project: Path, flagwise: Gate) -> None:
    run = flagwise("gate", "--output", wanted)
    assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)


def test_sarif_marks_what_is_switched_off_or_known(project: Path, flagwise: Gate) -> None:
    (project / "run.sh").write_text(f"# flagwise: ignore=unknown-flag because ours\n{BAD}\n{LAUNCH} --also 1\n")
    flagwise("gate", "--baseline", "known.json", "--write-baseline", *KNOWN)
    (run,) = json.loads(flagwise("gate", "--format", "sarif", "--baseline", "known.json", *KNOWN).out)["runs"]
    kinds = [(r["baselineState"], [s["kind"] for s in r["suppressions"]]) for r in run["results"]]
    assert kinds == [("new", ["inSource"]), ("unchanged", ["external"])]
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(ids[r["ruleIndex"]] == r["ruleId"] for r in run["results"])


COMMAND = re.compile(r"::(error|warning|notice) ((?:[a-zA-Z]+=[^,:\n]*,?)+)::[^\n]*")


def test_annotations_follow_the_syntax_of_workflow_commands(project: Path, flagwise: Gate) -> None:
    """Properties are split at commas and end at `::`, so that neither may stand in a value."""
    (project / "a,b:c%.sh").write_text(f"{LAUNCH} '--100%,x:y'\n")
    (line,) = flagwise("gate", "--format", "github", *KNOWN).out.splitlines()
    match = COMMAND.fullmatch(line)
    assert match
    properties = dict(pair.split("=", 1) for pair in match[2].split(","))
    assert properties["file"] == "a%2Cb%3Ac%25.sh"
    assert (properties["line"], properties["endLine"]) == ("1", "1")
    assert "100%25,x:y" in line


def test_gitlab_issues_have_the_documented_keys(project: Path, flagwise: Gate) -> None:
    (project / "run.sh").write_text(f"{BAD}\n{BAD}\n")
    issues = data(flagwise("gate", "--format", "gitlab", *KNOWN))
    assert len({issue["fingerprint"] for issue in issues}) == 2
    for issue in issues:
        assert set(issue) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert issue["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert issue["location"]["path"] == "run.sh"
        assert issue["location"]["lines"]["begin"] == issue["location"]["positions"]["begin"]["line"]


def test_junit_counts_its_cases(project: Path, flagwise: Gate) -> None:
    (project / "run.sh").write_text(f"{BAD}\n{LAUNCH}\n")
    root = ET.fromstring(flagwise("gate", "--format", "junit", *KNOWN).out)
    assert root.attrib["tests"] == "2"
    assert root.attrib["failures"] == "1"
    assert [len(case) for case in root.iter("testcase")] == [1, 0]


SCHEMAS = Path(os.environ.get("FLAGWISE_SCHEMAS", Path(__file__).parent.parent / ".schemas"))


@pytest.mark.parametrize("text", [BAD, LAUNCH, f"# flagwise: ignore=unknown-flag because ours\n{BAD}", f"{BAD} '"])
@pytest.mark.parametrize("form", ["sarif", "junit"])
def test_reports_follow_the_published_schemas(form: str, text: str, project: Path, flagwise: Gate) -> None:
    """`FLAGWISE_SCHEMAS` names a folder with sarif-schema-2.1.0.json (OASIS) and junit-10.xsd (Jenkins xUnit)."""
    schema = SCHEMAS / {"sarif": "sarif-schema-2.1.0.json", "junit": "junit-10.xsd"}[form]
    if not schema.exists():
        pytest.skip(f"needs {schema.name} in {SCHEMAS}")
    (project / "run.sh").write_text(f"{text}\n")
    (project / "pod.yaml").write_text(f"a: |\n  {BAD}\n")
    out = flagwise("gate", "--format", form, "--show", "note").out
    if form == "sarif":
        jsonschema = pytest.importorskip("jsonschema")
        jsonschema.Draft7Validator(json.loads(schema.read_text())).validate(json.loads(out))
    else:
        pytest.importorskip("xmlschema").XMLSchema(str(schema)).validate(out)


def test_what_is_shown_does_not_change_what_fails(project: Path, flagwise: Gate) -> None:
    (project / "run.sh").write_text(f"{LAUNCH} --tp 1 --tp 1\n{BAD}\n")
    shown = {level: flagwise("gate", "--show", level, "--format", "json", *KNOWN) for level in ("error", "note")}
    assert {run.status for run in shown.values()} == {1}
    assert rules(shown["error"]) == ["unknown-flag"]


# ------------------------------------------------------------------ baseline


def test_a_baseline_lets_known_findings_pass_and_tells_what_is_gone(project: Path, flagwise: Gate) -> None:
    script = project / "run.sh"
    script.write_text(f"{BAD}\n")
    assert flagwise("gate", "--baseline", "known.json", "--write-baseline", *KNOWN).status == 0
    script.write_text(f"# moved\n\n{BAD}\n")
    assert flagwise("gate", "--baseline", "known.json", *KNOWN).status == 0
    script.write_text(f"{BAD} --other 1\n")
    assert flagwise("gate", "--baseline", "known.json", *KNOWN).status == 1
    script.write_text(f"{LAUNCH}\n")
    run = flagwise("gate", "--baseline", "known.json", *KNOWN)
    assert run.status == 0
    assert "gone: run.sh: unknown-flag" in run.out


@pytest.mark.parametrize("content", [None, "[]", "{", '{"schema": "flagwise-gate/baseline-1", "known": [1]}'])
def test_a_wrong_baseline_is_refused(content: str | None, project: Path, flagwise: Gate) -> None:
    if content is not None:
        (project / "known.json").write_text(content)
    run = flagwise("gate", "--baseline", "known.json")
    assert (run.status, run.err.count("\n")) == (2, 1)


# ------------------------------------------------------- files that resist


def test_what_cannot_be_looked_at_is_told_and_the_rest_goes_on(project: Path, flagwise: Gate) -> None:
    (project / "good.sh").write_text(f"{BAD}\n")
    (project / "binary.sh").write_bytes(b"\x7fELF\0\0 sglang.launch_server")
    (project / "latin.sh").write_bytes(LAUNCH.encode() + b" \xe9\n")
    (project / "broken.yaml").write_text(f"a: [\nb: {LAUNCH}\n")
    with (project / "large.yaml").open("wb") as file:
        file.truncate(50 * 2**20)
    for name in ("binary.py", "latin.py", "large.ipynb"):  # data and fixtures of a project: passed over
        (project / name).symlink_to(project / f"{name.partition('.')[0]}.{'yaml' if 'large' in name else 'sh'}")
    (project / "own-marks.yml.j2").write_text(f"<% set a = [\n  {{b: 1}}] %>\nrun: {LAUNCH}\n")  # not this one's marks
    (project / "loop").symlink_to(project)
    (project / "self.sh").symlink_to("self.sh")
    (project / "gone.sh").symlink_to("nowhere")
    os.mkfifo(project / "pipe.sh")
    run = flagwise("gate", "--format", "json", *KNOWN)
    troubles = {row["file"]: row["problem"] for row in data(run)["troubles"]}
    assert set(troubles) == {"binary.sh", "latin.sh", "broken.yaml", "large.yaml", "loop", "self.sh"}
    assert all("\n" not in problem for problem in troubles.values())
    assert rules(run) == ["unknown-flag"]
    assert run.status == 2


@pytest.mark.parametrize("said", ['hardware = "8xnothing"', '[[files]]\npaths = ["a"]\nhardware = "8xnothing"'])
def test_a_machine_in_the_settings_that_nobody_knows_is_told_of_the_settings(
    project: Path, flagwise: Gate, said: str
) -> None:
    (project / "good.sh").write_text(f"{LAUNCH}\n")
    (project / "flagwise.toml").write_text(said)
    run = flagwise("gate")
    assert run.status == 2
    assert "flagwise.toml: unknown GPU 'nothing'" in run.err


def test_an_unreadable_folder_is_told(project: Path, flagwise: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may be allowed everything, so that the refusal is the system call's."""
    (project / "closed").mkdir()
    (project / "good.sh").write_text(f"{LAUNCH}\n")
    scandir = os.scandir

    def refusing(path: Any) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    run = flagwise("gate", "--format", "json", *KNOWN)
    assert data(run)["troubles"] == [{"file": "closed", "problem": "cannot be read (Permission denied)"}]
    assert len(data(run)["launches"]) == 1


def test_a_path_that_is_not_there_is_told(project: Path, flagwise: Gate) -> None:
    run = flagwise("gate", "nowhere.sh")
    assert run.status == 2
    assert "nowhere.sh: cannot be read (No such file or directory)" in run.out


def test_manifests_can_be_piped_in(project: Path, flagwise: Gate) -> None:
    text = (
        f"# Source: chart/pod.yaml\napiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - command: [sh, -c, '{BAD}']\n"
    )
    run = flagwise("gate", "-", "--format", "json", *KNOWN, stdin=text)
    assert (data(run)["launches"][0]["file"], data(run)["launches"][0]["kind"]) == ("<stdin>", "kubernetes")
    assert rules(run) == ["unknown-flag"]


def test_a_launch_that_cannot_be_judged_does_not_stop_the_others(project: Path, flagwise: Gate) -> None:
    (project / "run.sh").write_text(f"# flagwise: hardware=8xnothing\n{LAUNCH}\n{BAD}\n")
    run = flagwise("gate", "--format", "json", *KNOWN)
    assert [row["file"] for row in data(run)["troubles"]] == ["run.sh:2"]
    assert rules(run) == ["unknown-flag"]
    assert run.status == 2


def test_a_configuration_file_in_a_container_is_not_looked_for_here(project: Path, flagwise: Gate) -> None:
    (project / "run.sh").write_text(f"{LAUNCH} --config /etc/engine.yaml\n{LAUNCH} --config engine.yaml\n")
    (project / "engine.yaml").write_text("nope: 1\n")
    run = flagwise("gate", "run.sh", "--format", "json", "--show", "note", *KNOWN)
    found = {f["launch"]: f["rule"] for f in data(run)["findings"] if f["rule"] in ("config-unread", "unknown-flag")}
    assert found == {0: "config-unread", 1: "unknown-flag"}


def test_the_report_follows_its_schema(project: Path, flagwise: Gate) -> None:
    """The keys of a real report are those of the committed schema."""
    schema = json.loads((ROOT / "docs" / "gate" / "report.schema.json").read_text())["$defs"]
    (project / "run.sh").write_text(f"{BAD}\n{BAD} '")
    report = data(flagwise("gate", "--format", "json"))
    assert set(report) == set(schema["GateData"]["properties"])
    assert {key for f in report["findings"] for key in f} == set(schema["GateFinding"]["properties"])
    assert {key for launch in report["launches"] for key in launch} == set(schema["LaunchData"]["properties"])


def test_several_processes_give_the_same_report(project: Path, flagwise: Gate) -> None:
    (project / "flagwise.toml").write_text('[[ignore]]\nrule = "unknown-flag"\nbecause = "ours"\npaths = ["9.sh"]\n')
    for number in range(20):
        (project / f"{number}.sh").write_text(f"{BAD}\n{LAUNCH} --port {number}\n")
    (project / "broken.yaml").write_text(f"a: [\nb: {LAUNCH}\n")
    for form in ("json", "text"):
        alone, together = (flagwise("gate", "--format", form, "--jobs", jobs, *KNOWN) for jobs in ("1", "3"))
        assert alone == together
    assert alone.status == 2


def test_progress_shows_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from solver.gate.run import _progress

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, shown in ((io.StringIO(), ""), (Terminal(), "\r50 files looked at\r\x1b[K")):
        monkeypatch.setattr(sys, "stderr", stream)
        progress = _progress()
        for number in (1, 50, 51, -1):
            progress(number)
        assert stream.getvalue() == shown


def test_launches_that_are_alike_are_judged_as_each_alone(store: Any) -> None:
    """What is worked out once for several launches is what each has by itself."""
    from solver.context import Options, build, check_context
    from solver.gate.alike import Alike
    from solver.launch import read_command

    alike = Alike(store)
    changes = ["", "--port 1", "--port 30001 --grpc-port 30001", "--tp 2", "--tp 2 --port 7", "--served-model-name a:b",
               "--host x --log-level info", "--grpc-port 5 --port 5", "--speculative-algorithm EAGLE", "--dp 2 --tp 2",
               "--mem-fraction-static 0.5", "--mem-fraction-static 0.99", "--kv-cache-dtype fp8_e4m3"]  # fmt: skip
    for change in [*changes, *changes]:
        for hardware in ("2xh100-sxm", "1xrtx-pro-6000"):
            launch = read_command(f"{LAUNCH} {change}")
            context = build(store, launch, Options(None, hardware, "0.5.12"))
            found = alike.findings(context).findings
            rules, problems = {f.rule for f in found}, {f.message for f in found}
            alone = [f for f in check_context(context).findings if f.because and f.because[0].name != "command"]
            assert rules == {f.rule for f in alone}, change
            assert problems == {f.message for f in alone}, change


def test_values_that_make_no_difference_are_left_out_and_no_others(store: Any) -> None:
    """A launch that was judged with another one has the findings, words and reasons that it has by itself."""
    from solver.context import Options
    from solver.gate.judge import Judge
    from solver.gate.kinds import launches_of
    from solver.gate.settings import Said

    endings = ["", "--port 1", "--port 2", "--port x", "--port=3", "--port 4 --por 4", "--port 5 --por 4", "--port $P",
               "--port 6 --port 7", "--port 8 9", "--port 30001 --grpc-port 30001", "--port 30002 --grpc-port 30001",
               "--served-model-name a", "--served-model-name a:b", "--served-model-name", "--host -1", "--log-level a",
               "--log-level b --nope 1", "--log-level c --nope 2", "--config a.yaml", "-- --port 1"]  # fmt: skip
    script = "\n".join(f"{LAUNCH} {ending}" for ending in [*endings, *reversed(endings)])
    options = Options(None, "1xh100-sxm", "0.5.12")
    together = Judge(store, options)
    for found in launches_of(script, "shell"):
        shared, alone = (j.judge(found, Said(), Said(), lambda p: None) for j in (together, Judge(store, options)))
        assert (shared.findings, shared.verdict) == (alone.findings, alone.verdict), found.launch.words
    assert len(together._done) < len(endings)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("recipe.yaml", "roles:\n  decode: {dp-size: 8, enable-dp-attention: true, max-running-requests: [64, 32]}\n"),
        ("serve.sh", f"{LAUNCH} --dp-size 8 --enable-dp-attention $MORE\n"),
        ("chart.yaml", f"a: {{{{ .Values.a }}}}: b\nrun: |\n  {LAUNCH} --dp-size 8 --enable-dp-attention\n"),
    ],
)
def test_what_rests_on_a_default_is_open_where_more_arguments_may_come(
    project: Path, flagwise: Gate, name: str, text: str
) -> None:
    """One GPU is no multiple of eight, but the size may be said elsewhere; a whole launch is told so."""
    (project / name).write_text(text)
    found = [
        row for row in data(flagwise("gate", "--format", "json", *KNOWN))["findings"] if row["severity"] == "error"
    ]
    assert {row["rule"] for row in found if row["rule"] != "not-enough-gpus"} <= {"tp-not-divisible-by-dp"}
    assert all(row["conditional_on"] for row in found)
    (project / name).unlink()
    (project / "whole.sh").write_text(f"{LAUNCH} --dp-size 8 --enable-dp-attention\n")
    assert "tp-not-divisible-by-dp" in rules(flagwise("gate", "--format", "json", *KNOWN))
