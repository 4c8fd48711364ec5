"""Questions about an answer on the command line: why, why not, the best answers, the front; together with all else."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MODEL, HARDWARE = "qwen3.5-397b-a17b-nvfp4", "8xrtx-pro-6000"
SVG = "{http://www.w3.org/2000/svg}"
FP8 = ("--model", "qwen3-30b-a3b-fp8", "--hardware", "2xrtx-5090", "--engine-version", "0.5.12")


@pytest.fixture
def ask(flagwise: Callable[..., Any]) -> Callable[..., Any]:
    """Ask and read the JSON result."""

    def run(*options: str, pins: tuple[str, ...] = ("--tp", "8"), release: str = "0.5.10", status: int = 0) -> Any:
        done = flagwise(*case(release), "--format", "json", *options, "--", *pins)
        assert done.status == status, (done.err or done.out)[:400]
        return json.loads(done.out)

    return run


def case(release: str = "0.5.10") -> tuple[str, ...]:
    return ("solve", "--model", MODEL, "--hardware", HARDWARE, "--engine-version", release)


# ----------------------------------------------------------------------- why


def test_a_required_flag_names_the_rule_the_traits_and_the_flags_it_rests_on(ask: Callable[..., Any]) -> None:
    [why] = ask("--why", "mamba-scheduler-strategy")["why"]
    assert (why["flag"], why["given"], why["kind"]) == ("--mamba-scheduler-strategy", "extra_buffer", "rule")
    [cause] = [c for c in why["causes"] if c["does"] == "refuses"]
    assert cause["rule"] == why["by"] == "spec-on-hybrid-needs-extra-buffer"
    facts = {f["name"] for f in cause["because"]}
    assert {"model.architecture", "flag.speculative_algorithm"} <= facts
    assert [w["flag"] for w in why["rests_on"]] == ["--speculative-algorithm"]
    assert why["rests_on"][0]["kind"] == "goal"


def test_a_chosen_flag_says_what_each_other_value_costs_at_best(ask: Callable[..., Any]) -> None:
    [why] = ask("--why", "speculative-num-steps")["why"]
    assert why["kind"] in ("goal", "rule")
    others = {o["value"]: o for o in why["others"]}
    assert set(others) == {None, 1, 2, 3, 4}
    assert all(o["possible"] and o["worse"]["after"] > o["worse"]["before"] for o in others.values())


def test_a_pin_is_what_was_asked_for(ask: Callable[..., Any]) -> None:
    [why] = ask("--why", "tp")["why"]
    assert (why["flag"], why["kind"], why["by"]) == ("--tensor-parallel-size", "pin", "you")


@pytest.mark.parametrize(
    ("flag", "in_force", "by"),
    [
        ("page_size", 1, "page-size-default"),
        ("disable_radix_cache", False, "default"),
        ("schedule_policy", "fcfs", "default"),
    ],
)
def test_a_flag_that_is_not_given_has_a_value_and_somebody_who_put_it_there(
    ask: Callable[..., Any], flag: str, in_force: Any, by: str
) -> None:
    [why] = ask("--why", flag)["why"]
    assert why["given"] is None
    assert (why["in_force"], why["by"]) == (in_force, by)
    assert why["text"].startswith("not given; ")
    assert [c["rule"] for c in why["causes"] if c["does"] == "writes"] == ([by] if by != "default" else [])


def test_variables_are_explained_too(ask: Callable[..., Any]) -> None:
    [why] = ask("--why", "SGLANG_ENABLE_SPEC_V2")["why"]
    assert (why["flag"], why["given"], why["in_force"]) == ("SGLANG_ENABLE_SPEC_V2", "1", True)


# ------------------------------------------------------------------- why not


def test_what_is_there_already_is_said_to_be(ask: Callable[..., Any]) -> None:
    wishes = (
        "tp=8",
        "speculative-algorithm",
        "page-size=1",
        "disable-radix-cache=unset",
        "speculative_algorithm=EAGLE",
    )
    options = [word for wish in wishes for word in ("--why-not", wish)]
    statuses = [w["status"] for w in ask(*options)["why_not"]]
    assert statuses == ["given", "given", "in force", "given", "possible"]


def test_another_value_of_a_pin_is_held_against_the_answer(ask: Callable[..., Any]) -> None:
    data = ask("--why-not", "tp=4")
    [found] = data["why_not"]
    assert (found["status"], found["pin"]) == ("possible", 8)
    launch = found["launch"]
    assert launch["flags"][0] == {"flag": "--tensor-parallel-size", "before": 8, "after": 4}
    steps = next(level for level in launch["levels"] if level["title"] == "PCIe round trips per token")
    assert steps["before"] == pytest.approx(data["objective"]["after"]["pcie_roundtrips_per_token"], abs=1e-3)
    assert steps["after"] == pytest.approx(launch["metrics"]["pcie_roundtrips_per_token"], abs=1e-3)
    assert steps["difference"] == pytest.approx(steps["after"] - steps["before"])
    assert (launch["decided"], launch["better"]) == ("PCIe round trips per token", True)  # only the pin is against it


def test_what_the_solver_leaves_alone_by_itself_says_why(ask: Callable[..., Any]) -> None:
    given_up, unasked = ask("--why-not", "disable-radix-cache", "--why-not", "max-running-requests=8")["why_not"]
    assert given_up["unasked"].startswith("it is never given unasked, since with it requests no longer share")
    assert unasked["unasked"] == "it is nothing that min-pcie-roundtrips chooses by itself"
    assert "--max-running-requests" in unasked["launch"]["argv"]


def test_a_figure_that_is_not_known_is_no_number(ask: Callable[..., Any]) -> None:
    [found] = ask("--goal", "min-latency", "--why-not", "enable-mscclpp")["why_not"]
    level = next(level for level in found["launch"]["levels"] if level["title"] == "token latency")
    assert level["before"] > 0
    assert (level["after"], level["difference"], level["worse"]) == (None, None, False)
    assert found["launch"]["decided"] == "paths whose latency nobody measured"


def test_an_effect_on_a_flag_that_is_not_given_is_shown(ask: Callable[..., Any]) -> None:
    [found] = ask("--why-not", "mamba-scheduler-strategy=no_buffer")["why_not"]
    assert {"flag": "--disable-overlap-schedule", "before": False, "after": True} in found["launch"]["in_force"]
    assert found["launch"]["decided"] == "losses against what the engine does by itself"


def test_what_cannot_be_has_a_smallest_conflict_with_the_wish_in_it(ask: Callable[..., Any]) -> None:
    [found] = ask("--why-not", "attention-backend=fa3")["why_not"]
    assert found["status"] == "impossible"
    assert [m["text"] for m in found["conflict"] if m["who"] == "asked"] == ["--attention-backend fa3"]
    assert {"model", "hardware", "release"} <= {m["who"] for m in found["conflict"]}


def test_pins_that_have_to_give_are_named_and_each_way_out_has_the_wish(
    ask: Callable[..., Any], flagwise: Callable[..., Any]
) -> None:
    pins = ("--tp", "8", "--speculative-algorithm", "NEXTN")
    [found] = ask("--why-not", "mamba-scheduler-strategy=no_buffer", pins=pins)["why_not"]
    wanted = {m["text"] for m in found["conflict"] if m["who"] in ("asked", "you")}
    assert wanted == {"--mamba-scheduler-strategy no_buffer", "--speculative-algorithm NEXTN"}
    assert found["repairs"]
    for repair in found["repairs"]:
        words = repair["argv"]
        assert words[words.index("--mamba-scheduler-strategy") + 1] == "no_buffer"
        assert (
            flagwise("validate", "--hardware", HARDWARE, "--engine-version", repair["release"], "--", *words).status
            == 0
        )


@pytest.mark.parametrize(
    ("options", "gives"),
    [
        (("--ban", "--speculative-algorithm", "--why-not", "speculative-algorithm"), "ban speculative_algorithm"),
        (
            ("--ban", "attention-backend=triton", "--why-not", "attention-backend=triton"),
            "ban attention_backend=triton",
        ),
        (("--guard", "latency<=6800", "--why-not", "speculative-algorithm=unset"), "guard latency<=6800"),
    ],
)
def test_bans_and_guards_give_too(ask: Callable[..., Any], options: tuple[str, ...], gives: str) -> None:
    [found] = ask(*options)["why_not"]
    assert found["status"] == "impossible"
    assert gives in [m["text"] for m in found["conflict"]]
    assert f"drop {gives}" in [c for r in found["repairs"] for c in r["changes"]]


# ------------------------------------------------------------ top and front


def test_the_best_answers_start_with_the_answer_and_get_no_better(ask: Callable[..., Any]) -> None:
    data = ask("--top", "4", pins=())
    answers = data["top"]["answers"]
    assert [a["place"] for a in answers] == [1, 2, 3, 4]
    assert answers[0]["argv"] == data["argv"]
    assert len({tuple(a["argv"]) for a in answers}) == 4
    assert all(any(level["difference"] for level in a["levels"]) for a in answers[1:])
    assert all(a["decided"] for a in answers[1:])


def test_fewer_answers_than_asked_for_are_all_there_are(flagwise: Callable[..., Any]) -> None:
    pins = ["--tp", "2", "--attention-backend", "flashinfer", "--moe-runner-backend", "triton"]
    done = flagwise("solve", *FP8, "--top", "99", "--format", "json", "--", *pins)
    top = json.loads(done.out)["top"]
    assert top["complete"] is True
    assert len(top["answers"]) < 99


def test_points_of_the_front_check_clean_and_none_beats_another(
    ask: Callable[..., Any], flagwise: Callable[..., Any]
) -> None:
    front = ask("--front", pins=())["front"]
    places = [tuple(p["values"].values()) for p in front["points"]]
    assert len(places) > 3
    assert places == sorted(places)
    assert [p[1] for p in places] == sorted((p[1] for p in places), reverse=True)
    every = [*places, *map(tuple, front["others"])]
    assert not any(a <= x and b <= y and (a, b) != (x, y) for x, y in places for a, b in every)
    for point in front["points"]:
        command = " ".join([*(f"{n}={v}" for n, v in point["env"].items()), *point["argv"]])
        done = flagwise("validate", "--hardware", HARDWARE, "--engine-version", "0.5.10", "--format", "json", command)
        assert json.loads(done.out)["verdict"] == "valid"
        assert point["metrics"]["token_latency_us"] == pytest.approx(point["values"]["latency"], abs=1e-3)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--front",), ["throughput", "latency"]),
        (("--front", "gpus,context"), ["gpus", "context"]),
        (("--front=context,latency",), ["context", "latency"]),
    ],
)
def test_the_metrics_are_those_the_goal_trades_or_any_two(
    flagwise: Callable[..., Any], words: tuple[str, ...], names: list[str]
) -> None:
    done = flagwise("solve", "--goal", "max-throughput", *FP8, *words, "--format", "json", "--", "--tp", "2")
    assert [m["id"] for m in json.loads(done.out)["front"]["metrics"]] == names


def test_minimised_metrics_are_those_that_are_traded(ask: Callable[..., Any]) -> None:
    assert [m["id"] for m in ask("--minimise", "gpus,latency", "--front")["front"]["metrics"]] == ["gpus", "latency"]


def test_the_drawing_is_whole_and_says_in_words_what_it_shows(
    ask: Callable[..., Any], flagwise: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "front.svg"
    points = ask("--front-svg", str(file), pins=())["front"]["points"]
    root = ET.fromstring(file.read_text())
    assert root.get("role") == "img"
    named = {e.get("id") for e in root if e.tag in (f"{SVG}title", f"{SVG}desc")}
    assert set(str(root.get("aria-labelledby")).split()) == named
    marks = [e for e in root.iter(f"{SVG}circle") if "point" in str(e.get("class")).split()]
    assert len(marks) == len(points)
    texts = [str(e.text) for e in root.iter(f"{SVG}text")]
    assert any(t.startswith("token latency (ms per token)") for t in texts)
    assert any("transfer steps per token" in t and "less is better" in t for t in texts)
    width, height = (float(v) for v in str(root.get("viewBox")).split()[2:])
    assert all(0 < float(m.get("cx", 0)) < width and 0 < float(m.get("cy", 0)) < height for m in marks)
    assert "href" not in file.read_text()  # nothing from elsewhere
    refused = flagwise(*case(), "--front-svg", str(file))
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "--overwrite" in refused.err
    assert flagwise(*case(), "--front-svg", str(file), "--overwrite", "--front", "gpus,latency").status == 0
    assert "GPUs in use" in file.read_text()


@pytest.mark.parametrize("pins", [("--tp", "8"), ("--tp", "8", "--enable-mscclpp")])
def test_a_front_of_one_point_or_none_is_drawn_too(
    ask: Callable[..., Any], tmp_path: Path, pins: tuple[str, ...]
) -> None:
    file = tmp_path / "front.svg"
    points = ask("--front", "gpus,latency", "--front-svg", str(file), pins=pins)["front"]["points"]
    root = ET.fromstring(file.read_text())
    assert len([e for e in root.iter(f"{SVG}circle") if "point" in str(e.get("class"))]) == len(points)
    assert len(points) == (1 if "--enable-mscclpp" not in pins else 0)


# -------------------------------------------------------------- combinations


KEPT = "python -m sglang.launch_server --model-path nvidia/Qwen3.5-397B-A17B-NVFP4 --tp 8 --max-running-requests 8"
QUESTIONS = ("--why", "tp", "--why-not", "tp=4", "--why-not", "attention-backend=triton", "--top", "2", "--front")


@pytest.mark.parametrize(
    "more",
    [
        (),
        ("--goal", "safest"),
        ("--goal", "max-context"),
        ("--minimise", "gpus,latency"),
        ("--guard", "latency<=9000"),
        ("--ban", "attention_backend=flashinfer"),
        ("--keep", KEPT),
    ],
)  # fmt: skip
def test_asking_changes_nothing_about_the_answer(ask: Callable[..., Any], more: tuple[str, ...]) -> None:
    pins = () if "--keep" in more else ("--tp", "8")
    plain, asked = ask(*more, pins=pins), ask(*more, *QUESTIONS, pins=pins)
    assert {k: v for k, v in asked.items() if k not in ("why", "why_not", "top", "front")} == plain
    if not more:
        assert asked == ask(*QUESTIONS, pins=pins)  # and the same again
    assert {"why", "why_not", "top", "front"} <= set(asked)


def test_a_lock_file_is_the_same_with_questions(ask: Callable[..., Any], tmp_path: Path) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    ask("--lock", str(one))
    ask("--lock", str(other), *QUESTIONS)
    assert one.read_text() == other.read_text()


@pytest.mark.parametrize("form", ["shell", "argv", "compose"])
def test_an_emitted_launch_stands_alone_and_the_answers_go_beside_it(flagwise: Callable[..., Any], form: str) -> None:
    plain, asked = (flagwise(*case(), "--emit", form, *more, "--", "--tp", "8") for more in ((), QUESTIONS))
    assert asked.out == plain.out
    assert "why not --tensor-parallel-size 4" in asked.err
    assert plain.err == ""


def test_emitted_json_has_the_answers_as_keys(flagwise: Callable[..., Any]) -> None:
    data = json.loads(flagwise(*case(), "--emit", "json", *QUESTIONS, "--", "--tp", "8").out)
    assert {"argv", "why", "why_not", "top", "front"} <= set(data)
    assert "findings" not in data


def test_the_text_starts_with_the_command_and_answers_in_order(flagwise: Callable[..., Any]) -> None:
    done = flagwise(*case(), *QUESTIONS, "--", "--tp", "8")
    places = [
        done.out.index(text)
        for text in (
            "python -m sglang.launch_server", "proven optimal", "why --tensor-parallel-size 8\n  you asked for it",
            "why not --tensor-parallel-size 4\n  your own --tensor-parallel-size 8 has to go first",
            "why not --attention-backend triton", "the 2 best answers that differ in something that matters",
            "the front of token latency and PCIe round trips per token",
        )
    ]  # fmt: skip
    assert places == sorted(places)
    assert done.out == flagwise(*case(), *QUESTIONS, "--", "--tp", "8").out


def test_a_request_without_an_answer_is_told_as_ever(flagwise: Callable[..., Any]) -> None:
    wish = ("--", "--speculative-algorithm", "NEXTN", "--mamba-scheduler-strategy", "no_buffer")
    plain, asked = (flagwise(*case(), *more, *wish) for more in ((), QUESTIONS))
    assert (asked.status, asked.out) == (1, plain.out)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--why", "--taxes"), "--taxes is no flag or variable of SGLang 0.5.10"),
        (("--why", "tp=4"), "--why-not tp=4"),
        (("--why-not", "attention-backend=taxes"), "does not take taxes"),
        (("--why-not", "tp=many"), "takes an integer"),
        (("--why-not", "enable-mscclpp=maybe"), "say =true, =false or =unset"),
        (("--why-not", "mem-fraction-static"), "expected a value"),
        (("--why-not", "model-path=else/where"), "--model"),
        (("--why-not", "SGLANG_ENABLE_SPEC_V2=perhaps"), "as bool"),
        (("--why-not", "--flashinfer-allreduce-fusion-backend=auto"), "is no flag of SGLang 0.5.10; 0.5.1"),
        (("--front", "latency"), "expected two different metrics"),
        (("--front", "latency,latency"), "expected two different metrics"),
        (("--front", "latency,taxes"), "unknown metric 'taxes'"),
        (("--top", "0"), "at least 1"),
        (("--front-svg", "x.svg", "--lock", "x.svg"), "both name x.svg"),
    ],
)  # fmt: skip
def test_a_question_that_cannot_be_asked_is_refused_in_one_line(
    flagwise: Callable[..., Any], options: tuple[str, ...], said: str
) -> None:
    done = flagwise(*case(), *options, "--", "--tp", "8")
    assert done.status == 2
    assert said in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""


def test_idle_gpus_are_mentioned_beside_every_launch_that_leaves_some(flagwise: Callable[..., Any]) -> None:
    done = flagwise(*case(), "--why-not", "tp=8", "--top", "2")
    assert done.out.count("4 GPUs stay idle") == 2  # the answer and the second best take four


def test_a_launch_whose_latency_nobody_measured_has_no_place_on_a_front(ask: Callable[..., Any]) -> None:
    data = ask("--front", pins=("--tp", "8", "--enable-mscclpp"))
    assert data["front"]["points"] == data["front"]["others"] == []
    assert data["front"]["answer"] is None
