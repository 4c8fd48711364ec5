"""Launches on record: no rule contradicts them, they are found again, and their absence is no finding."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from solver.answer import solve
from solver.context import Context, Options, build, check_context
from solver.engines import csp
from solver.engines.optimum import optimise
from solver.engines.sat import SatEngine
from solver.evidence import Support, differences, split, support_of
from solver.evidence_lint import HUB, contradictions, evidence_complaints
from solver.evidence_parts import evidence_parts
from solver.handoff.command import flag_words
from solver.knowledge import Knowledge, load
from solver.launch import read_argv, read_command
from solver.nearness import records_near
from solver.records import Evidence, Source
from solver.render.evidence import typed
from solver.solve import Solution, problem_of
from solver.store import Store, default_root
from solver.words import say
from tests.conftest import SHARED, Run

URL = Source(url="https://example.org/run")
KNOWN_EXCEPTIONS = {"cb-glm5-rocm"}
"""`sglang serve --model` of 0.5.10: the release's own parser does not see the model."""


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return load(default_root())


def context_of(store: Store, release: str, model: str, hardware: str | None, args: str, **env: str) -> Context:
    launch = read_argv([HUB + model, *shlex.split(args)], env=env)
    return build(store, launch, Options(model=model, hardware=hardware, engine_version=release))


def support(store: Store, release: str, model: str, hardware: str | None, args: str, **env: str) -> Support:
    context = context_of(store, release, model, hardware, args, **env)
    found = support_of(context, check_context(context))
    assert found is not None
    return found


# ------------------------------------------------------------------ records


def test_no_rule_contradicts_what_ran(store: Store, knowledge: Knowledge) -> None:
    """Every record can be read, names what exists, and has no unconditional error under any rule."""
    assert evidence_complaints(knowledge, store) == []


def test_the_records_are_many_and_of_many_kinds(knowledge: Knowledge) -> None:
    records = knowledge.evidence
    machines = {r.hardware.split("x", 1)[1] for r in records}
    assert len(records) >= 300
    assert len({r.model for r in records}) >= 45
    assert len(machines) >= 14
    assert {r.kind for r in records} == {"ci", "cookbook", "benchmark", "docs"}


def test_good_launches_of_others_have_no_error(store: Store) -> None:
    """Launches that were published as working: no error on at least 98%, and each exception is known."""
    path = SHARED / "corpus" / "cases.jsonl"
    if not path.exists():
        pytest.skip("no shared corpus here")
    cases = [json.loads(line) for line in path.read_text().splitlines()]
    good = [c for c in cases if c["kind"] == "good" and c["command"]]
    wrong = {c["id"] for c in good if _errors(store, c)}
    assert len(good) > 50
    assert wrong <= KNOWN_EXCEPTIONS
    assert len(wrong) <= 0.02 * len(good)


def _errors(store: Store, case: dict[str, Any]) -> list[str]:
    machine = case["hardware"]
    known = machine["gpu"] not in (None, "other")
    options = Options(
        model=str(SHARED / "models" / case["model_dir"]) if case["model_dir"] else None,
        hardware=f"{machine['count'] or 1}x{machine['gpu']}" if known else None,
        engine_version=case["engine_version"],
    )
    found = check_context(build(store, read_command(case["command"]), options)).findings
    return [f.rule for f in found if f.severity == "error" and not f.conditional_on and not f.after]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"args": "--tp 8 --attention-backend fa3"}, "fa3"),
        ({"args": "--tp 8 --no-such-flag"}, "no-such-flag"),
        ({"hardware": "8xno-such-gpu"}, "unknown GPU"),
        ({"source": Source(note="hearsay")}, "source with a url"),
    ],
)
def test_a_record_that_cannot_be_is_refused(store: Store, knowledge: Knowledge, change: Any, complaint: str) -> None:
    right = Evidence(
        "x", "ci", "0.5.12", "qwen3.5-397b-a17b-nvfp4", "8xb200-sxm", "--tp 8", source=URL, checked="2026-11-29"
    )
    assert list(contradictions(store, right)) == []
    wrong = msgspec.structs.replace(right, **change)
    complaints = evidence_complaints(msgspec.structs.replace(knowledge, evidence=(wrong,)), store)
    assert any(complaint in c for c in complaints), complaints


def test_what_compare_names_has_to_exist_and_ids_to_be_unique(store: Store, knowledge: Knowledge) -> None:
    how = msgspec.structs.replace(knowledge.compare, amounts=("no_such_flag", "env.NO_SUCH_VARIABLE"))
    record = knowledge.evidence[0]
    broken = msgspec.structs.replace(knowledge, compare=how, evidence=(record, record))
    complaints = evidence_complaints(broken, store)
    assert [c for c in complaints if "no_such_flag" in c or "NO_SUCH_VARIABLE" in c or "stands 2 times" in c] == [
        f"evidence: {record.id} stands 2 times",
        "evidence: compare.yaml names the unknown no_such_flag",
        "evidence: compare.yaml names the unknown env.NO_SUCH_VARIABLE",
    ]


# ------------------------------------------------------------------- finding


def test_every_record_is_found_again_as_the_exact_set(store: Store, knowledge: Knowledge) -> None:
    for record in knowledge.evidence:
        found = support(store, record.release, record.model, record.hardware, record.args, **record.env)
        assert found.ran, record.id
        assert found.nearest is not None, record.id
        assert not found.nearest.amounts, record.id
        assert not found.unseen, record.id
        assert not found.unseen_pairs, record.id


MTP = "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
SUPER = "--tp 4 --disable-radix-cache"


@pytest.mark.parametrize(
    "args",
    [
        f"{SUPER} --mem-fraction-static 0.75 --max-running-requests 200 --speculative-algorithm EAGLE {MTP}",
        f"{SUPER} --mem-fraction-static 0.75 --max-running-requests 200 --speculative-algorithm NEXTN {MTP}",
        f"{SUPER} --ep-size 1 --port 31000 --reasoning-parser nemotron_3 --trust-remote-code",
    ],
)
def test_spellings_defaults_and_names_make_no_difference(store: Store, args: str) -> None:
    found = support(store, "0.5.12", "nvidia-nemotron-3-super-120b-a12b-nvfp4", "8xb200-sxm", args)
    assert found.ran
    assert found.nearest is not None
    assert found.nearest.amounts == ()


def test_a_choice_that_the_engine_makes_by_itself_may_be_left_out(store: Store) -> None:
    """The record writes --quantization out; without it the engine takes the same."""
    full = "--tp-size 4 --chunked-prefill-size 2048 --mamba-scheduler-strategy extra_buffer --mamba-ssm-dtype bfloat16"
    found = support(store, "0.5.10", "qwen3.5-397b-a17b-nvfp4", "4xb200-sxm", f"{full} --attention-backend trtllm_mha")
    assert found.ran


def test_amounts_are_told_apart_from_choices(store: Store) -> None:
    model = "nvidia-nemotron-3-super-120b-a12b-nvfp4"
    other = support(store, "0.5.12", model, "4xb200-sxm", f"{SUPER} --mem-fraction-static 0.7").nearest
    assert other is not None
    assert (other.differs, [(d.flag, d.here, d.there) for d in other.amounts]) == (
        (),
        [("mem_fraction_static", 0.7, None)],
    )
    changed = support(store, "0.5.12", model, "4xb200-sxm", f"{SUPER} --page-size 64")
    assert not changed.ran
    assert changed.nearest is not None
    assert [(d.flag, d.here, d.there) for d in changed.nearest.differs] == [("page_size", 64, None)]
    assert changed.unseen == ("page_size",)


def test_another_kind_of_machine_is_named_and_never_counts_as_having_run(store: Store) -> None:
    """B300 is SM103, and what ran on B200 (SM100) did not run there."""
    found = support(store, "0.5.12", "nvidia-nemotron-3-super-120b-a12b-nvfp4", "4xb300-sxm", SUPER)
    assert (found.machine, found.scope, found.ran) == ("SM103", "model", False)
    assert found.nearest is not None
    assert found.nearest.ran.machine == "SM100"


def test_pairs_that_occur_but_never_together_are_named(store: Store) -> None:
    args = "--tp 8 --attention-backend triton --moe-runner-backend flashinfer_trtllm"
    found = support(store, "0.5.16", "qwen3.5-397b-a17b-nvfp4", "8xrtx-pro-6000", "--tp 4 --page-size 64 --ep 4")
    assert found.unseen == ()
    assert ("ep_size", "page_size") in [tuple(sorted(p)) for p in found.unseen_pairs]
    assert support(store, "0.5.16", "qwen3.5-397b-a17b-nvfp4", "8xrtx-pro-6000", args).unseen == ("moe_runner_backend",)


# --------------------------------------------------------------------- words


def validate(flagwise: Callable[..., Run], hub: str, hardware: str, args: str, *more: str) -> Run:
    command = f"python -m sglang.launch_server --model-path {hub} {args}"
    return flagwise("validate", "--engine-version", "0.5.12", "--hardware", hardware, *more, command)


def test_the_text_says_what_ran_with_its_source(flagwise: Callable[..., Run]) -> None:
    run = validate(flagwise, "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4", "4xb200-sxm", SUPER)
    section = run.out[run.out.index("\nevidence:") :]
    assert "this exact set ran" in section
    assert "4xb200-sxm" in section
    assert "https://github.com/sgl-project/sglang/blob/" in section


def test_absence_is_told_and_changes_neither_verdict_nor_status(flagwise: Callable[..., Run]) -> None:
    run = validate(flagwise, "mistralai/Mixtral-8x7B-v0.1", "4xh100-sxm", "--tp 4")
    assert run.out.splitlines()[-1] == "evidence: no launch of MixtralForCausalLM is on record"
    assert run.status == 0
    assert run.out.startswith("valid")
    unknown = validate(flagwise, "someone/else", "4xh100-sxm", "--tp 4")
    assert "evidence" not in unknown.out


def test_the_json_result_has_the_same(flagwise: Callable[..., Run]) -> None:
    args = f"{SUPER} --page-size 64"
    run = validate(flagwise, "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4", "4xb200-sxm", args, "--format", "json")
    evidence = json.loads(run.out)["evidence"]
    assert evidence["ran"] is False
    assert evidence["nearest"]["differs"] == [{"flag": "--page-size", "here": 64, "there": None}]
    assert evidence["unseen"] == ["--page-size 64"]
    pair = {"choices": ["--tensor-parallel-size 4", "--disable-radix-cache"], "record": "ci-nemotron3-super-nvfp4"}
    assert evidence["pairs"] == [pair | {"release": "0.5.12"}]
    nothing = validate(flagwise, "someone/else", "4xh100-sxm", "--tp 4", "--format", "json")
    assert json.loads(nothing.out)["evidence"] is None


def test_a_flag_that_the_release_has_not_is_still_told(store: Store) -> None:
    """Records of newer releases have flags that 0.5.9 has not; they are shown all the same."""
    program = store.program("0.5.9")
    records = [r for a in store.index.core.evidence for r in store.index.evidence(a).records]
    choices = {(n, json.dumps(v)) for r in records for n, v in {**r.choices, **r.amounts}.items()}
    gone = [(n, json.loads(v)) for n, v in choices if not n.startswith("env.") and n not in program.flags]
    assert gone
    assert all(typed(n, v, program) == f"--{n.replace('_', '-')} {say(v)}" for n, v in gone)


# --------------------------------------------------------------------- store


def test_only_the_part_of_the_architecture_is_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = Store(store.root)
    read: list[str] = []
    plain = fresh._read
    monkeypatch.setattr(fresh, "_read", lambda name: read.append(name) or plain(name))
    support(fresh, "0.5.12", "gpt-oss-120b", "8xh100-sxm", "--tp 8")
    support(fresh, "0.5.12", "mixtral-8x7b-v0.1", "8xh100-sxm", "--tp 8")
    assert [name for name in read if name.startswith("evidence")] == ["evidence-GptOssForCausalLM"]


def test_parts_hold_every_record_once(store: Store, knowledge: Knowledge) -> None:
    programs = {r.version: store.program(r.version) for r in knowledge.releases}
    parts = evidence_parts(knowledge, programs)
    assert sorted(r.id for part in parts.values() for r in part.records) == sorted(e.id for e in knowledge.evidence)


@pytest.mark.parametrize("release", ["0.5.12", "0.5.16"])
def test_a_deprecated_switch_is_written_without_a_value(store: Store, release: str) -> None:
    form = store.program(release).flags["disable_cuda_graph"]
    assert flag_words(form, True) == ["--disable-cuda-graph"]
    assert flag_words(form, False) == []


# ---------------------------------------------------------------- solve safest


def answer(store: Store, release: str, model: str, hardware: str, args: str = "") -> tuple[Context, Solution]:
    context = context_of(store, release, model, hardware, args)
    found = solve(context, "safest")
    assert isinstance(found, Solution)
    return context, found


def level(found: Solution, title: str) -> float:
    return next(c for lv, c in zip(found.levels, found.costs, strict=True) if title in lv.title)


REQUESTS = [
    ("0.5.12", "gpt-oss-120b", "8xh100-sxm", ""),
    ("0.5.10", "qwen3.5-397b-a17b-nvfp4", "8xrtx-pro-6000", "--tp 8"),
    ("0.5.16", "glm-5.2-nvfp4", "8xb200-sxm", ""),
    ("0.5.14", "deepseek-r1", "8xb200-sxm", "--kv-cache-dtype fp8_e4m3 --page-size 64"),
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_safest_stays_as_near_as_it_says(store: Store, request_: tuple[str, str, str, str]) -> None:
    """The distance is that to the nearest record, computed from the answer alone; no record is nearer."""
    context, found = answer(store, *request_)
    part = context.index.evidence(context.facts.model["architecture"])
    flags, env = context.resolver.program.flags, context.resolver.program.env
    choices, _ = split(found.given, found.env, flags, env, part)
    distances = [len(differences(choices, r.choices, {})) for r in records_near(context)]
    assert level(found, "differ from the nearest launch on record") == min(distances)


@pytest.mark.parametrize(
    ("release", "model", "hardware", "args"),
    [
        ("0.5.16", "qwen3-8b", "1xgb300", "--page-size 1 --kv-cache-dtype fp8_e4m3"),
        (
            "0.5.16",
            "qwen3.5-27b",
            "1xh200-sxm",
            f"--page-size 64 --attention-backend triton --speculative-algorithm EAGLE {MTP}",
        ),
        (
            *("0.5.12", "qwen3.5-35b-a3b-fp8", "1xmi355x"),
            f"--speculative-algorithm EAGLE {MTP} --page-size 16 --kv-cache-dtype fp8_e4m3 --fp8-gemm-backend triton "
            "--linear-attn-backend triton --moe-runner-backend triton --speculative-moe-runner-backend triton",
        ),
        (
            *("0.5.15", "deepseek-v4-flash", "4xb200-sxm"),
            f"--tp 4 --pp-size 1 --ep 1 --speculative-algorithm EAGLE {MTP} --page-size 256 --kv-cache-dtype fp8_e4m3 "
            "--attention-backend dsv4 --speculative-moe-runner-backend triton --fp8-gemm-backend triton "
            "--fp4-gemm-backend flashinfer_cudnn --reasoning-parser deepseek-v4",
        ),
    ],
)
def test_both_engines_stay_equally_near(store: Store, release: str, model: str, hardware: str, args: str) -> None:
    """The optimum over records and choices at once is that of plain enumeration."""
    problem = problem_of(context_of(store, release, model, hardware, args), "safest")
    enumerated = csp.optimise(problem.model)
    with SatEngine(problem.model) as engine:
        solved = optimise(engine)
    assert enumerated is not None
    assert solved is not None
    assert enumerated[1] == solved[1]
    assert all(enumerated[0][name] == solved[0][name] for name in problem.model.base)


def test_safest_without_pins_is_a_launch_that_ran(store: Store) -> None:
    context, found = answer(store, "0.5.12", "gpt-oss-120b", "8xh100-sxm")
    result = support_of(msgspec.structs.replace(context, facts=found.facts), found.result)
    assert result is not None
    assert result.ran
    assert level(found, "differ from the nearest launch on record") == 0


def test_safest_keeps_pins_and_gives_nothing_up(store: Store) -> None:
    """The nearest records run without the radix cache; that is a loss, so it is a difference rather than a choice."""
    _, found = answer(store, "0.5.12", "nvidia-nemotron-3-super-120b-a12b-nvfp4", "8xb200-sxm", "--tp 8")
    assert found.given["tp_size"] == 8
    assert not found.given.get("disable_radix_cache")


def test_safest_does_not_follow_another_kind_of_machine(store: Store) -> None:
    """FlashInfer attention is on record for this model on SM103 only."""
    _, there = answer(store, "0.5.16", "qwen3-8b", "1xgb300")
    _, here = answer(store, "0.5.16", "qwen3-8b", "1xh200-sxm")
    assert there.given["attention_backend"] == "flashinfer"
    assert "attention_backend" not in here.given


def test_safest_names_the_record_that_it_stays_near(flagwise: Callable[..., Run]) -> None:
    where = ("--model", "gpt-oss-120b", "--hardware", "8xh100-sxm", "--engine-version", "0.5.12")
    run = flagwise("solve", "--goal", "safest", *where)
    assert "[ci-gpt-oss-120b-h100-tp4]" in run.out
    assert "choices that differ from the nearest launch on record" in run.out
    data = json.loads(flagwise("solve", "--goal", "safest", *where, "--format", "json").out)
    assert data["evidence"]["ran"] is True
