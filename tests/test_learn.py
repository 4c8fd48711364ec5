"""Behaviour of the static reader on small made-up releases, and what the committed catalogue has to hold."""

from __future__ import annotations

import argparse
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from shutil import copy
from subprocess import CompletedProcess
from typing import Any

import pytest
from packaging.version import Version

from solver.forks import find_fork, known_forks
from solver.learn import learn, learn_fork, main, merge
from solver.learn_citations import check_citations
from solver.learn_drift import drift
from solver.learn_env import Read, read_env
from solver.learn_evaluate import Evaluator
from solver.learn_files import LIBRARIES, read_catalogue, read_fingerprints, write_catalogue
from solver.learn_flags import Registered, read_flags
from solver.learn_help import read_help
from solver.learn_merge import Catalogue, ranges
from solver.learn_source import Package
from solver.learn_values import Unknown
from solver.records import Rule, Source

KNOWLEDGE = Path(__file__).parents[1] / "knowledge" / "sglang"

ACTIONS = """
import argparse
class DeprecatedAction(argparse.Action):
    def __init__(self, option_strings, dest, error_message=None, nargs=0, **kwargs): ...
class DeprecatedStoreTrueAction(argparse.Action):
    def __init__(self, option_strings, dest, new_flag=None, nargs=0, const=True, default=False, **kwargs): ...
class DeprecatedStoreConstAction(argparse.Action):
    def __init__(self, option_strings, dest, new_flag=None, const_value=None, nargs=0, default=None, **kwargs): ...
class DeprecatedAliasStoreAction(argparse.Action):
    def __init__(self, option_strings, dest, new_flag=None, **kwargs): ...
"""

BY_HAND = """
import argparse, json
from sglang.srt.choices import COLOURS
from sglang.srt.actions import DeprecatedAction
SIZES = ["s", "m"]
SIZES += ["l"]
SIZES.extend(["xl"])
class ServerArgs:
    width: int = 4
    names: list = dataclasses.field(default_factory=list)
    host: str = socket.gethostname()
    @staticmethod
    def add_cli_args(parser):
        parsers = list(Registry.KNOWN.keys())
        parser.add_argument("--model-path", "--model", type=str, required=True, help="x")
        parser.add_argument("--width-size", "--width", type=int, default=ServerArgs.width)
        parser.add_argument("--colour", choices=["auto"] + COLOURS, default="auto")
        parser.add_argument("--size", choices=SIZES, nargs="+")
        parser.add_argument("--parser", choices=parsers)
        parser.add_argument("--extra", type=json.loads)
        parser.add_argument("--fast", action="store_true")
        parser.add_argument("--maybe", action=argparse.BooleanOptionalAction, default=None)
        parser.add_argument("--names", nargs="*", default=list(ServerArgs.names))
        parser.add_argument("--host", default=ServerArgs.host)
        for phase in ("decode", "prefill"):
            parser.add_argument(f"--{phase}-backend", type=str)
        parser.add_argument("--old", action=DeprecatedAction, help="Note: --old is deprecated now, use --colour.")
        parser.add_argument("--odd", action="store_true", help="(Deprecated, use --fast) Old way.")
class Registry:
    KNOWN = {"one": 1, "two": 2}
"""

FIELDS = """
import argparse
from typing import List, Literal, Optional, Union
from sglang.srt.arg_groups.arg_utils import A, Arg
from sglang.srt.kinds import Kind, short_int
class Parallel(msgspec.Struct):
    _NS_PATH = "exec.parallel"
    width: A[int, Arg(help="x", aliases=["--width-size"], resolvable=True)] = 4
    colour: A[str, Arg(help="x", choices=[k.value for k in Kind])] = "red"
    size: A[Optional[List[int]], "x"] = None
    fast: A[bool, "x"] = False
    lazy: A[Optional[bool], "x"] = None
    mode: A[Optional[Literal["a", "b"]], "x"] = None
    level: A[Literal[1, 2], "x"] = 1
    budget: A[Optional[int], Arg(type_parser=short_int)] = None
    maybe: A[bool, Arg(action=argparse.BooleanOptionalAction)] = True
    mixed: A[Optional[Union[set[str], List[str]]], Arg(nargs="*")] = None
    rank: A[int, Arg(cli_name="--join-rank")] = 0
    hidden: A[int, Arg(no_cli=True)] = 7
    plain: int = 3
"""

ASSEMBLED = """
from sglang.srt.arg_groups.arg_utils import add_cli_args_from_dataclass
from sglang.srt.fields import Parallel
from sglang.srt.actions import DeprecatedAction, DeprecatedAliasStoreAction, DeprecatedStoreConstAction
class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        add_cli_args_from_dataclass(parser, ServerArgs)
        parser.add_argument("--hidden", type=int, default=_declared_default("hidden"))
        parser.add_argument("--colour-scheme", dest="colour", action=DeprecatedAliasStoreAction, new_flag="--colour",
                            default=argparse.SUPPRESS)
        parser.add_argument("--mode-a", dest="mode", action=DeprecatedStoreConstAction, const_value="a",
                            new_flag="--mode=a")
        parser.add_argument("--gone", action=DeprecatedAction, error_message="--gone has left. Use --mode with a or b.")
_annotations = collect_input_fields([Parallel])
"""

ARG_UTILS = "A = Annotated\nclass Arg(msgspec.Struct):\n    help: str = ''\n"
KINDS = "from enum import Enum\nclass Kind(str, Enum):\n    RED = 'red'\n    BLUE = 'blue'\ndef short_int(text): ...\n"


def release(root: Path, version: str, files: Mapping[str, str]) -> Path:
    """A directory that looks like an unpacked wheel."""
    info = root / version / f"sglang-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: sglang\nVersion: {version}\n")
    for name, text in files.items():
        path = root / version / "sglang" / "srt" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / version


def by_hand(root: Path, version: str = "1.0") -> Path:
    choices = "COLOURS = ['red', 'blue']\n"
    return release(root, version, {"server_args.py": BY_HAND, "choices.py": choices, "actions.py": ACTIONS})


def assembled(root: Path, version: str = "2.0") -> Path:
    groups = {"arg_groups/__init__.py": "", "arg_groups/arg_utils.py": ARG_UTILS}
    files = {"server_args.py": ASSEMBLED, "fields.py": FIELDS, "kinds.py": KINDS, "actions.py": ACTIONS, **groups}
    return release(root, version, files)


def flags_of(where: Path) -> dict[str, Registered]:
    return {f.spellings[0]: f for f in read_flags(Package(where))}


def fields(item: Any, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(item, n) for n in names)


def test_arguments_registered_by_hand_are_read_with_their_constants(tmp_path: Path) -> None:
    flags = flags_of(by_hand(tmp_path))
    assert fields(flags["--model-path"], "spellings", "dest", "required") == (
        ("--model-path", "--model"),
        "model_path",
        True,
    )
    assert fields(flags["--width-size"], "type", "default", "dest") == ("int", 4, "width_size")
    assert flags["--colour"].choices == ("auto", "red", "blue")
    assert fields(flags["--size"], "choices", "nargs") == (("s", "m", "l", "xl"), "+")
    assert flags["--parser"].choices == ("one", "two")
    assert flags["--extra"].type == "json"
    assert fields(flags["--fast"], "type", "const", "default", "action") == ("flag", True, False, "store_true")
    assert fields(flags["--maybe"], "type", "default", "action") == ("flag", None, "BooleanOptionalAction")
    assert flags["--names"].default == []


def test_a_loop_over_known_values_registers_each_of_them(tmp_path: Path) -> None:
    assert {"--decode-backend", "--prefill-backend"} <= flags_of(by_hand(tmp_path)).keys()


HELPERS = """
from sglang.srt.more import add_more
class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        add_more(parser)
        parser.add_argument("--device", choices=find_devices())
"""


def test_a_helper_that_is_handed_the_parser_is_followed(tmp_path: Path) -> None:
    more = "LEVELS = [1, 2]\ndef add_more(p):\n    p.add_argument('--level', type=int, choices=LEVELS)\n"
    flags = flags_of(release(tmp_path, "1.0", {"server_args.py": HELPERS, "more.py": more}))
    assert flags["--level"].choices == (1, 2)


def test_choices_that_cannot_be_read_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = release(tmp_path, "1.0", {"server_args.py": HELPERS, "more.py": "def add_more(p): ..."})
    assert main([str(where)]) == 0
    assert "could not read --device (choices)" in capsys.readouterr().err


def test_a_spelling_that_cannot_be_read_stops_the_reading(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "class ServerArgs:\n    def add_cli_args(parser):\n        parser.add_argument(make_name())\n"
    assert main([str(release(tmp_path, "1.0", {"server_args.py": text}))]) == 2
    assert "server_args.py:3: cannot read the spellings" in capsys.readouterr().err


def test_a_default_that_only_the_machine_knows_is_computed_not_guessed(tmp_path: Path) -> None:
    assert fields(flags_of(by_hand(tmp_path))["--host"], "default", "computed") == (None, True)


def test_retired_arguments_say_what_to_write_instead(tmp_path: Path) -> None:
    flags = flags_of(by_hand(tmp_path))
    assert fields(flags["--old"], "deprecated", "type", "action") == ("--colour", "flag", "DeprecatedAction")
    assert flags["--odd"].deprecated == "--fast"
    assert flags["--fast"].deprecated is None


def test_annotated_fields_become_the_arguments_that_the_engine_derives(tmp_path: Path) -> None:
    flags = flags_of(assembled(tmp_path))
    assert fields(flags["--width"], "spellings", "type", "default", "topic") == (
        ("--width", "--width-size"), "int", 4, "exec.parallel",
    )  # fmt: skip
    assert flags["--colour"].choices == ("red", "blue")
    assert fields(flags["--size"], "type", "nargs", "default") == ("int", "+", None)
    assert fields(flags["--fast"], "type", "default") == ("flag", False)
    assert fields(flags["--lazy"], "type", "default") == ("flag", None)
    assert fields(flags["--mode"], "type", "choices") == ("str", ("a", "b"))
    assert fields(flags["--level"], "type", "choices", "default") == ("int", (1, 2), 1)
    assert flags["--budget"].type == "short_int"
    assert fields(flags["--maybe"], "action", "default") == ("BooleanOptionalAction", True)
    assert fields(flags["--mixed"], "type", "nargs") == ("str", "*")
    assert flags["--join-rank"].dest == "rank"
    assert flags["--hidden"].default == 7
    assert "--plain" not in flags


def test_deprecated_actions_keep_what_they_store(tmp_path: Path) -> None:
    flags = flags_of(assembled(tmp_path))
    assert fields(flags["--colour-scheme"], "dest", "default", "deprecated") == ("colour", None, "--colour")
    assert fields(flags["--mode-a"], "dest", "const", "type") == ("mode", "a", "flag")
    assert fields(flags["--gone"], "refused", "deprecated") == (True, "--mode")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 << 10", 1024),
        ("[*X, 'c']", ["a", "b", "c"]),
        ("{**{'k': 1}}['k']", 1),
        ("f'{X[0]}!'", "a!"),
        ("not X", False),
    ],
)
def test_pure_expressions_are_evaluated(tmp_path: Path, text: str, expected: Any) -> None:
    module = Package(release(tmp_path, "1.0", {"m.py": f"X = ['a', 'b']\nY = {text}\n"})).module("sglang.srt.m")
    assert module is not None
    assert Evaluator(module).lookup("Y") == expected


@pytest.mark.parametrize("text", ["torch.cuda.is_available()", "X[9]", "1 / 0", "missing()", "Y"])
def test_anything_else_is_unknown_and_never_raises(tmp_path: Path, text: str) -> None:
    module = Package(release(tmp_path, "1.0", {"m.py": f"X = []\nY = {text}\n"})).module("sglang.srt.m")
    assert module is not None
    assert isinstance(Evaluator(module).lookup("Y"), Unknown)


ENVIRON = """
class EnvField: ...
class EnvBool(EnvField): ...
class EnvInt(EnvField): ...
class EnvIntWithAlias(EnvField): ...
class Envs:
    SGLANG_FAST = EnvBool(False)
    SGLANG_ON_AMD = EnvBool(_is_amd)
    SGLANG_SIZE = EnvIntWithAlias(3, deprecated_name="SGLANG_OLD_SIZE")
    SGLANG_ADVISED = EnvInt(1)
def _print_deprecated_env({parameters}): ...
_print_deprecated_env({arguments})
_warn_deprecated_env_to_cli_flag("SGLANG_ADVISED", "Please use '--width' instead.")
def _warn_deprecated_env_to_cli_flag(env_name, suggestion): ...
"""

READS = """
import os
NAME = "SGLANG_BY_CONSTANT"
a = int(os.getenv("SGLANG_COUNT", "3"))
b = os.environ.get("SGLANG_SWITCH", "0").lower() in ("true", "1")
c = os.environ.get(NAME)
d = get_bool_env_var("SGLANG_HELPED", "true")
e = os.environ.get("SGLANG_MADE", make())
if os.getenv("SGLANG_GONE") is not None:
    logger.warning("use --width")
if os.getenv("SGLANG_ORDER") != "PCI":
    logger.warning("set it to PCI")
os.environ["SGLANG_WRITTEN"] = "1"
f = os.environ[f"SGLANG_{c}"]
"""


def variables(root: Path, parameters: str, arguments: str) -> dict[str, Read]:
    environ = ENVIRON.format(parameters=parameters, arguments=arguments)
    where = release(
        root, "1.0", {"environ.py": environ, "reads.py": READS, "test_reads.py": 'os.getenv("SGLANG_IN_TEST")'}
    )
    return {r.name: r for r in read_env(Package(where))}


def test_descriptors_and_plain_reads_give_type_and_default(tmp_path: Path) -> None:
    found = variables(tmp_path, "old_name, new_name", '"SGLANG_A", "SGLANG_B"')
    assert found["SGLANG_FAST"] == Read("SGLANG_FAST", "bool", False)
    assert found["SGLANG_ON_AMD"] == Read("SGLANG_ON_AMD", "bool", None, computed=True)
    assert found["SGLANG_SIZE"] == Read("SGLANG_SIZE", "int", 3)
    assert found["SGLANG_COUNT"] == Read("SGLANG_COUNT", "int", 3)
    assert found["SGLANG_SWITCH"] == Read("SGLANG_SWITCH", "bool", False)
    assert found["SGLANG_HELPED"] == Read("SGLANG_HELPED", "bool", True)
    assert found["SGLANG_MADE"] == Read("SGLANG_MADE", "str", None, computed=True)
    assert "SGLANG_BY_CONSTANT" in found
    assert not {"SGLANG_WRITTEN", "SGLANG_IN_TEST"} & found.keys()


@pytest.mark.parametrize(
    ("parameters", "arguments"),
    [("new_name, old_name", '"SGLANG_NEW", "SGLANG_OLD"'), ("old_name, new_name=None", '"SGLANG_OLD", "SGLANG_NEW"')],
)
def test_the_helpers_own_parameter_names_say_which_variable_is_old(
    tmp_path: Path, parameters: str, arguments: str
) -> None:
    assert variables(tmp_path, parameters, arguments)["SGLANG_OLD"].deprecated == "SGLANG_NEW"


def test_advice_names_the_replacement_of_a_variable(tmp_path: Path) -> None:
    found = variables(tmp_path, "old_name, new_name=None", '"SGLANG_LONE"')
    assert found["SGLANG_OLD_SIZE"].deprecated == "SGLANG_SIZE"
    assert fields(found["SGLANG_ADVISED"], "type", "default", "deprecated") == ("int", 1, "--width")
    assert found["SGLANG_LONE"].deprecated == "nothing"
    assert found["SGLANG_GONE"].deprecated == "--width"
    assert found["SGLANG_ORDER"].deprecated is None


OLD_NAME = (
    "class ServerArgs:\n    def add_cli_args(parser):\n        parser.add_argument('--colour-scheme', default='red')\n"
)


def test_an_old_name_that_became_an_alias_moves_under_the_new_id(tmp_path: Path) -> None:
    before = release(tmp_path, "1.0", {"server_args.py": OLD_NAME})
    catalogue = merge([learn(assembled(tmp_path)), learn(before)])
    flags = {f.id: f for f in ranges(catalogue)[0]}
    assert [(f.versions, f.spellings, f.dest) for f in flags["colour"].forms] == [
        (">=1.0,<2.0", ("--colour-scheme",), "colour_scheme"),
        (">=2.0", ("--colour",), None),
    ]
    assert [(f.versions, f.into, f.dest) for f in flags["colour_scheme"].forms] == [(">=2.0", "colour", "colour")]
    assert [(r.old, r.id, r.since) for r in catalogue.renames] == [("colour_scheme", "colour", "2.0")]


def test_a_shared_spelling_shows_a_rename_too(tmp_path: Path) -> None:
    catalogue = merge([learn(by_hand(tmp_path)), learn(assembled(tmp_path))])
    assert catalogue.flags["width"]["1.0"].dest == "width_size"


def test_equal_adjacent_releases_fold_into_one_range(tmp_path: Path) -> None:
    same = [learn(by_hand(tmp_path, v)) for v in ("1.0", "1.0.post1", "1.1")]
    flags, _ = ranges(merge([*same, learn(assembled(tmp_path))]))
    assert [f.versions for f in next(f for f in flags if f.id == "model_path").forms] == [">=1.0,<2.0"]


def written(folder: Path) -> dict[str, str]:
    return {p.relative_to(folder).as_posix(): p.read_text() for p in sorted(folder.rglob("*.yaml"))}


def test_one_release_more_gives_the_same_files_as_all_at_once(tmp_path: Path) -> None:
    first, second = by_hand(tmp_path / "a"), assembled(tmp_path / "a")
    write_catalogue(merge([learn(second), learn(first)]), tmp_path / "once")
    assert main([str(first), "--write", str(tmp_path / "twice"), "--verified", "1.0"]) == 0
    assert main([str(second), "--write", str(tmp_path / "twice")]) == 0
    assert "verified: true" in (tmp_path / "twice" / "releases.yaml").read_text()
    once, twice = written(tmp_path / "once"), written(tmp_path / "twice")
    once.pop("releases.yaml")
    twice.pop("releases.yaml")
    assert once == twice


def test_a_wheel_reads_like_its_directory(tmp_path: Path) -> None:
    where = assembled(tmp_path)
    with zipfile.ZipFile(tmp_path / "sglang.whl", "w") as wheel:
        for path in where.rglob("*"):
            wheel.write(path, path.relative_to(where))
    packed, unpacked = learn(tmp_path / "sglang.whl"), learn(where)
    assert (packed.flags, packed.env) == (unpacked.flags, unpacked.env)


def test_a_path_that_is_no_release_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert re.fullmatch(r"error: .*no release of SGLang.*\n", capsys.readouterr().err)


@pytest.fixture(scope="module")
def committed() -> Catalogue:
    return read_catalogue(KNOWLEDGE)


def test_committed_catalogue_is_what_writing_it_again_gives(committed: Catalogue, tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    kept = (KNOWLEDGE / "env" / LIBRARIES).read_text()
    (tmp_path / "env" / LIBRARIES).write_text(kept)
    write_catalogue(committed, tmp_path)
    assert written(tmp_path / "flags") == written(KNOWLEDGE / "flags")
    assert written(tmp_path / "env") == written(KNOWLEDGE / "env")


def test_in_each_release_a_spelling_belongs_to_one_flag(committed: Catalogue) -> None:
    for release_ in committed.releases:
        seen: dict[str, str] = {}
        for flag_id, forms in committed.flags.items():
            for spelling in forms[release_.version].spellings if release_.version in forms else ():
                assert seen.setdefault(spelling, flag_id) == flag_id


def test_aliases_and_renames_lead_to_flags_that_exist(committed: Catalogue) -> None:
    for forms in committed.flags.values():
        for version, form in forms.items():
            assert form.into is None or version in committed.flags[form.into]
    assert all(r.id in committed.flags for r in committed.renames)


def test_releases_are_in_order_with_the_four_that_were_run_marked(committed: Catalogue) -> None:
    versions = [r.version for r in committed.releases]
    assert versions == sorted(versions, key=Version)
    assert {r.version for r in committed.releases if r.verified} == {"0.5.9", "0.5.10", "0.5.12", "0.5.23"}


def test_the_mamba_strategy_changed_its_name_in_0_5_14(committed: Catalogue) -> None:
    forms = committed.flags["mamba_radix_cache_strategy"]
    assert forms["0.5.13.post1"].spellings == ("--mamba-scheduler-strategy",)
    assert forms["0.5.14"].spellings == ("--mamba-radix-cache-strategy",)
    assert committed.flags["mamba_scheduler_strategy"]["0.5.14"].into == "mamba_radix_cache_strategy"
    assert "0.5.23" not in committed.flags["mamba_scheduler_strategy"]


def test_spec_v2_variable_changes_its_default_and_is_then_only_warned_about(committed: Catalogue) -> None:
    forms = committed.env["SGLANG_ENABLE_SPEC_V2"]
    assert (forms["0.5.10.post1"].default, forms["0.5.11"].default) == (False, True)
    assert forms["0.5.14"].deprecated == "--disable-overlap-schedule"
    assert "0.5.23" not in forms


# Drift, citations, forks: what `flagwise knowledge learn` says.

RULE = """
id: {id}
title: A rule
stage: resolve
step: a
severity: note
status: source
checked: "2026-11-29"
versions: ">=1.0"
message: x
forbid: ["flag.size == 1"]
sources: [{{release: "1.0", file: sglang/srt/hooks.py, symbol: {symbol}}}]
"""
HOOKS = """
LIMIT = 4
def kept(a):
    '''One text.'''
    return a  # a remark
def changed(a):
    return a
def gone(a):
    return a
"""
HOOKS_LATER = """
LIMIT = 5
def kept(a):
    '''Another text.'''

    return a
def changed(a):
    return a + 1
"""
ONE_FLAG = (
    "class ServerArgs:\n    def add_cli_args(parser):\n"
    "        parser.add_argument('--size', type=int, default={default}, choices={choices})\n"
    "        parser.add_argument('--{other}', action='store_true')\n"
)
READ = "import os\nos.getenv('SGLANG_{name}', '{default}')\n"


def wheel(root: Path, version: str, files: Mapping[str, str]) -> Path:
    """A small wheel as pip would get it."""
    unpacked = release(root / "unpacked", version, files)
    path = root / f"sglang-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as packed:
        for file in unpacked.rglob("*"):
            packed.write(file, file.relative_to(unpacked))
    return path


@pytest.fixture
def two_wheels(tmp_path: Path) -> tuple[Path, Path]:
    first = {
        "server_args.py": ONE_FLAG.format(default=1, choices=[1, 2], other="old"),
        "reads.py": READ.format(name="OLD", default=""),
        "hooks.py": HOOKS,
    }
    second = {
        "server_args.py": ONE_FLAG.format(default=2, choices=[2, 3], other="new"),
        "reads.py": READ.format(name="NEW", default=""),
        "hooks.py": HOOKS_LATER,
    }
    return wheel(tmp_path, "1.0", first), wheel(tmp_path, "1.1", second)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A knowledge folder of an engine with rules and an empty catalogue."""
    where = tmp_path / "knowledge" / "sglang"
    (where / "rules").mkdir(parents=True)
    for symbol in ("kept", "changed", "gone", "LIMIT"):
        name = f"about-{symbol.lower()}"
        (where / "rules" / f"{name}.yaml").write_text(RULE.format(id=name, symbol=symbol))
    return where


def test_learning_a_wheel_adds_it_and_tells_the_drift(
    two_wheels: tuple[Path, Path], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = map(str, two_wheels)
    assert main([first, "--write", str(folder)]) == 0
    assert "1.0 is the oldest release here" in capsys.readouterr().out
    assert main(["--wheel", second, "--write", str(folder)]) == 0
    said = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert said == [
        "1.1 against 1.0:",
        "flags: 1 added, 1 choices, 1 default, 1 removed",
        "added  --new",
        "removed  --old",
        "choices  --size: +3 -1",
        "default  --size: 1 -> 2",
        "variables: 1 added, 1 removed",
        "added  SGLANG_NEW",
        "removed  SGLANG_OLD",
        "rules: 4 hold here and cite source text, 1 of them unchanged",
        "symbol gone  about-gone: sglang/srt/hooks.py gone (1.0)",
        "changed  about-changed: sglang/srt/hooks.py changed (1.0)",
        "changed  about-limit: sglang/srt/hooks.py LIMIT (1.0)",
    ]
    assert [r.version for r in read_catalogue(folder).releases] == ["1.0", "1.1"]
    assert set(read_fingerprints(folder)) == {"1.0"}


def test_a_stale_catalogue_is_told_and_a_fresh_one_is_not(two_wheels: tuple[Path, Path], folder: Path) -> None:
    paths = [str(path) for path in two_wheels]
    assert main([*paths, "--write", str(folder)]) == 0
    before = written(folder)
    assert main([paths[1], "--catalogue", str(folder), "--check"]) == 0
    page = folder / "flags" / "command.yaml"
    page.write_text(page.read_text().replace("default: 2", "default: 7"))
    assert main([paths[1], "--catalogue", str(folder), "--check"]) == 1
    assert main([paths[1], "--write", str(folder)]) == 0
    assert written(folder) == before


def test_fingerprints_alone_are_renewed_when_a_rule_is_added(two_wheels: tuple[Path, Path], folder: Path) -> None:
    assert main([str(two_wheels[0]), "--write", str(folder)]) == 0
    before = written(folder)
    (folder / "rules" / "more.yaml").write_text(RULE.format(id="more", symbol="helper"))
    (folder / "rules" / "about-kept.yaml").unlink()
    assert main([str(two_wheels[0]), "--fingerprints", "--write", str(folder)]) == 0
    assert set(read_fingerprints(folder)["1.0"]["sglang/srt/hooks.py"]) == {"LIMIT", "changed", "gone"}
    assert written(folder / "flags") == {
        k.removeprefix("flags/"): v for k, v in before.items() if k.startswith("flags/")
    }


def test_a_rule_that_does_not_hold_in_the_release_is_not_looked_at(two_wheels: tuple[Path, Path]) -> None:
    where = Source(release="1.0", file="sglang/srt/hooks.py", symbol="gone")
    rule = Rule("r", "A rule", "resolve", "source", (where,), "2026-11-29", versions=">=1.0,<1.1")
    assert list(check_citations([rule], Package(two_wheels[1]), {})) == []
    assert [c.state for c in check_citations([rule], Package(two_wheels[0]), {})] == ["not fingerprinted"]


def test_a_release_from_before_the_rules_is_marked(tmp_path: Path) -> None:
    text = {"server_args.py": ONE_FLAG.format(default=1, choices=[1], other="x")}
    known = merge([learn(release(tmp_path, "1.0", text))])
    earlier = merge([learn(release(tmp_path, "0.9", text))], known)
    assert [(r.version, r.rules) for r in earlier.releases] == [("0.9", False), ("1.0", True)]


def test_a_renamed_flag_is_one_change(tmp_path: Path) -> None:
    before = learn(release(tmp_path, "1.0", {"server_args.py": OLD_NAME}))
    found = drift(merge([before, learn(assembled(tmp_path))]), "2.0")
    assert ("renamed", "--colour", "--colour-scheme", "--colour") in [
        (c.what, c.name, c.before, c.after) for c in found.flags
    ]
    assert "--colour-scheme" not in {c.name for c in found.flags if c.what == "removed"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["sglang==9.9"], "pip found no wheel: nothing like it"),
        (["sglang=9"], "no release of SGLang"),
        (["--help-text", "missing.txt", "--name", "f"], "No such file"),
    ],
)
def test_what_cannot_be_learned_is_one_line(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(command: list[str], **options: Any) -> CompletedProcess[str]:
        assert "install" not in command
        return CompletedProcess(command, 1, "", "WARNING: slow\nERROR: nothing like it\n")

    monkeypatch.setattr("subprocess.run", refuse)
    assert main(arguments) == 2
    line = capsys.readouterr().err
    assert re.fullmatch(rf"error: .*{re.escape(expected)}.*\n", line)


def test_a_release_is_fetched_by_its_name(
    two_wheels: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(command: list[str], **options: Any) -> CompletedProcess[str]:
        assert command[-1] == "sglang==1.1"
        copy(two_wheels[1], command[command.index("--dest") + 1])
        return CompletedProcess(command, 0, "", "")

    monkeypatch.setattr("subprocess.run", download)
    assert main(["sglang==1.1"]) == 0
    assert "1.1 (" in capsys.readouterr().err


def help_of(*options: tuple[tuple[str, ...], dict[str, Any]], **parser: Any) -> str:
    """The help text of a real parser."""
    made = argparse.ArgumentParser(prog="launch_server.py", **parser)
    for names, keywords in options:
        made.add_argument(*names, **keywords)
    return made.format_help()


HELP = (
    (("--model-path", "--model"), {"required": True, "help": "a path [or a hub id]"}),
    (("--size",), {"type": int, "choices": [1, 2, 3]}),
    (("--many",), {"nargs": "+"}),
    (("--any",), {"nargs": "*"}),
    (("--maybe",), {"nargs": "?"}),
    (("--pair",), {"nargs": 2, "metavar": ("FROM", "TO")}),
    (("--switch",), {"action": "store_true"}),
    (("--yes",), {"action": argparse.BooleanOptionalAction}),
    (("--a-flag-with-a-name-so-long-that-its-help-is-below",), {"default": "x", "help": "with a - b and --other"}),
)


def test_help_text_gives_spellings_choices_and_numbers_of_values() -> None:
    found = {
        f.spellings[0]: f for f in read_help(help_of(*HELP, formatter_class=argparse.ArgumentDefaultsHelpFormatter))
    }
    assert found["--model-path"].spellings == ("--model-path", "--model")
    assert [n for n, f in found.items() if f.required] == ["--model-path"]
    assert found["--size"].choices == ("1", "2", "3")
    nargs = {n: f.nargs for n, f in found.items() if f.nargs is not None}
    assert nargs == {"--many": "+", "--any": "*", "--maybe": "?", "--pair": 2}
    assert {n: f.action for n, f in found.items() if f.type == "flag"} == {
        "--switch": "store_true", "--yes": "BooleanOptionalAction",
    }  # fmt: skip
    assert found["--a-flag-with-a-name-so-long-that-its-help-is-below"].default == "x"
    assert len(found) == len(HELP)


def test_a_text_without_flags_is_refused() -> None:
    with pytest.raises(ValueError, match="no flags in this text"):
        read_help("command not found: sglang\n")


def test_a_fork_rests_on_the_release_that_is_most_alike(tmp_path: Path) -> None:
    text = ONE_FLAG.format(default=1, choices=[1, 2], other="old")
    later = ONE_FLAG.format(default=1, choices=[1, 2], other="new")
    known = merge(learn(release(tmp_path, v, {"server_args.py": t})) for v, t in (("1.0", text), ("1.1", later)))
    shown = help_of((("--size",), {"choices": [1, 2, 9]}), (("--old",), {"action": "store_true"}), (("--own",), {}))
    fork = learn_fork(shown, "mine", known)
    assert (fork.base, set(fork.forms), fork.removed) == ("1.0", {"size", "own"}, ())
    assert fields(fork.forms["size"], "type", "choices", "default") == ("int", (1, 2, "9"), 1)
    other = learn_fork(shown, "mine", known, "1.1")
    assert (set(other.forms), other.removed) == ({"size", "own", "old"}, ("new",))
    with pytest.raises(ValueError, match=r"unknown release '3\.0'; known are 1\.0, 1\.1"):
        learn_fork(shown, "mine", known, "3.0")


def test_a_fork_is_written_where_the_user_keeps_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "help.txt").write_text(help_of((("--size",), {"type": int})))
    catalogue = tmp_path / "catalogue"
    write_catalogue(merge([learn(by_hand(tmp_path))]), catalogue)
    asked = ["--help-text", str(tmp_path / "help.txt"), "--catalogue", str(catalogue), "--name"]
    assert main([*asked, "my-fork"]) == 0
    assert "use it with --engine-version my-fork" in capsys.readouterr().out
    assert known_forks() == ("my-fork",)
    assert find_fork("my-fork") is not None
    assert main([*asked, "../my-fork"]) == 2
