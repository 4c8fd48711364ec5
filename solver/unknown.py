"""What a release does not know in a command + what other releases and forks know -> what to write in this one.

Flags, values and environment variables; the words stand in knowledge/sglang/rules/parse.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from solver import options
from solver.compiled import Program
from solver.index import Index
from solver.launch import Launch
from solver.problems import Problem
from solver.reading import Reading
from solver.records import FlagForm, Span
from solver.values import convert

NONE = "none"
"""What a message says where there is nothing to name."""


def place_unknown(index: Index, program: Program, reading: Reading) -> Reading:
    """Unknown flags and values by where they are known: renamed here (the value still counts), elsewhere, nowhere."""
    if not reading.problems:
        return reading
    given = dict(reading.given)
    problems = []
    for problem in reading.problems:
        match problem.kind:
            case "unknown-flag":
                problem = _placed_flag(index, program, problem, given)
            case "ambiguous-abbreviation":
                problem = _meant(index, program, problem, given)
            case "invalid-choice":
                problem = _placed_value(index, problem)
            case "deprecated-spelling":
                problem = _advised(program, problem, given)
        problems.append(problem)
    return msgspec.structs.replace(reading, given=given, problems=tuple(problems))


def _placed_flag(index: Index, program: Program, problem: Problem, given: dict[str, Any]) -> Problem:
    known = index.known_flags.get(problem.given)
    if known is None:
        return _of_a_fork(index, problem)
    flag_id, releases = known
    detail = {**problem.detail, "releases": _range(releases)}
    form = program.flags.get(flag_id)
    if form is None or not _is_taken(form, index.known_stored.get(problem.given)):
        return _new(problem, "other-release-flag", {**detail, "instead": _instead(index, program, problem.given)})
    detail |= _now(index, problem, flag_id, form, given)
    return Problem("renamed-flag", flag_id, problem.given, detail, problem.span)


def _now(index: Index, problem: Problem, flag_id: str, form: FlagForm, given: dict[str, Any]) -> dict[str, Any]:
    """What to write in this release for another release's flag; its value counts as given."""
    stored = index.known_stored.get(problem.given)
    value = _moved_value(form, problem.detail.get("values") or ()) if stored is None else stored
    now = next(s for s in form.spellings if s.startswith("--"))
    if value is None:
        return {"now": now}
    given.setdefault(flag_id, value)
    return {"now": now, "write": {flag_id: value}}


def _meant(index: Index, program: Program, problem: Problem, given: dict[str, Any]) -> Problem:
    """A spelling that is short for several flags here and a whole flag in other releases: which one that is here."""
    flag_id = index.known_flags.get(problem.given, ("", ()))[0]
    form = program.flags.get(flag_id)
    found = _now(index, problem, flag_id, form, given) if form else {"now": NONE}
    return _new(problem, problem.kind, {**problem.detail, **found})


def _instead(index: Index, program: Program, name: str) -> str:
    """What this release has in the place of a flag or variable: advice is followed until it names something there."""
    said, seen = name, {name}
    while (said := index.known_advice.get(said, "")) not in seen | {""}:
        seen.add(said)
        head, _, value = said.replace(" ", "=").partition("=")
        form = _form_of(program, head)
        if said in program.env or (form and _is_taken(form, value or None)):
            return f"{NONE}; its opposite is {said}" if _is_opposite(name, head) else said
    return NONE


def _advised(program: Program, problem: Problem, given: Mapping[str, Any]) -> Problem:
    """A spelling on its way out: the same request in the spellings that the release advises, where that can be told.

    Advice is a flag that takes the same value (`--x`), or one with its value (`--x=1`), which may move there from
    another flag (`--x <other>`); braces stand for several flags.
    """
    form = program.flags[problem.flag or ""]
    stored = given.get(program.options.owners.get(options.dest_of(form), ""))
    if form.deprecated == "nothing":
        return _new(problem, problem.kind, {**problem.detail, "remove": True})
    write: dict[str, Any] = {}
    for advice in _without_braces(form.deprecated or ""):
        head, _, text = advice.replace(" ", "=", 1).partition("=")
        flag_id = program.options.spellings.get(head, "")
        now = program.flags.get(flag_id)
        if now is None:
            return problem
        other = program.options.spellings.get(f"--{text[1:-1]}", "") if text.startswith("<") else ""
        value = given.get(other) if other else _moved_value(now, [text]) if text else stored
        if value is None or not _is_taken(now, value) or (now.type == "flag") is not (type(value) is bool):
            return problem
        write |= {other: None, flag_id: value} if other else {flag_id: value}
    return _new(problem, problem.kind, {**problem.detail, "write": write})


def _without_braces(advice: str) -> list[str]:
    """`--a-{b,c}=1` as `--a-b=1` and `--a-c=1`."""
    head, brace, rest = advice.partition("{")
    inside, _, tail = rest.partition("}")
    return [f"{head}{part}{tail}" for part in inside.split(",")] if brace else [advice]


def _form_of(program: Program, name: str) -> FlagForm | None:
    """The form of the flag that a spelling, also a shortened one, names in this release."""
    spellings = program.options.spellings
    option = options.find_option(name, spellings) if name.startswith("--") else None
    return program.flags.get(spellings.get(option.spelling, "")) if option else None


def _is_taken(form: FlagForm, value: Any) -> bool:
    """Whether a flag takes a value in this release; no value is taken always."""
    return value is None or form.choices is None or value in form.choices


def _is_opposite(name: str, other: str) -> bool:
    """`…ENABLE…` and `--disable-…`: the one is not what to write in the place of the other."""
    left, right = name.lower(), other.lower()
    return ("enable" in left and "disable" in right) or ("disable" in left and "enable" in right)


def _moved_value(form: FlagForm, texts: Sequence[str]) -> Any:
    """What a renamed flag's words mean under the form it has now, or None."""
    if form.type == "flag":
        return form.const if not texts else None
    try:
        value = convert(form.type, texts[0]) if len(texts) == 1 and form.nargs is None else None
    except ValueError:
        return None
    return value if not form.choices or value in form.choices else None


def _of_a_fork(index: Index, problem: Problem) -> Problem:
    """A flag that no release has: of a known fork, or of none."""
    for fork in _forks(index):
        if problem.given in fork.get("flags", ()):
            detail = {**problem.detail, "fork": fork["name"], "url": fork["sources"][0]["url"]}
            return _new(problem, "fork-flag", detail)
    near = problem.detail.get("nearest") or [NONE]
    return _new(problem, problem.kind, {**problem.detail, "nearest": near})


def _placed_value(index: Index, problem: Problem) -> Problem:
    """A value that the flag does not take here: where it does."""
    releases = index.known_choices.get(problem.flag or "", {}).get(problem.given)
    forks = [
        f"the fork {f['name']}" for f in _forks(index) if problem.given in f.get("values", {}).get(problem.flag, ())
    ]
    elsewhere = ([_range(releases)] if releases else []) + forks
    return _new(problem, problem.kind, {**problem.detail, "elsewhere": elsewhere or [NONE]})


def _forks(index: Index) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = index.data.get("sglang/forks") or ()
    return found


def _new(problem: Problem, kind: str, detail: dict[str, Any]) -> Problem:
    return Problem(kind, problem.flag, problem.given, detail, problem.span)


def _range(releases: Sequence[str]) -> str:
    return f"{releases[0]} to {releases[-1]}" if releases[0] != releases[-1] else releases[0]


# --------------------------------------------------------------- environment


def read_env(program: Program, launch: Launch | None) -> dict[str, str]:
    """The variables of a launch under the names that the release moves them to; an unknown value is left out."""
    env = {k: v for k, v in (launch.env if launch else {}).items() if v is not None}
    moved = {new: value for name, value in env.items() if (new := _moved_name(program, name))}
    return {**env, **moved}


def _moved_name(program: Program, name: str) -> str | None:
    """The name under which the release reads a variable with an old prefix."""
    prefixes: Mapping[str, str] = program.tables.get("moved_env_prefixes") or {}
    for old, new in prefixes.items():
        if name.startswith(old) and name not in program.env:
            return new + name.removeprefix(old)
    return None


def env_problems(index: Index, program: Program, launch: Launch | None) -> list[Problem]:
    """Variables that do not reach the engine, that it reads under another name, or that it does not read."""
    if launch is None:
        return []
    problems = [_env_problem(index, program, name, launch) for name in launch.env if _is_engines(program, name)]
    lost = [n for n in launch.unexported if n in program.env or _is_engines(program, n)]
    problems += [_env("env-not-exported", n, launch, {}) for n in lost if not re.search(rf"\$\{{?{n}\b", launch.text)]
    return [p for p in problems if p is not None]


def _is_engines(program: Program, name: str) -> bool:
    return name.startswith(tuple(program.tables.get("env_prefixes") or ()))


def _env_problem(index: Index, program: Program, name: str, launch: Launch) -> Problem | None:
    form = program.env.get(name)
    if form is not None:
        if form.deprecated is None:
            return None
        return _env("env-deprecated", name, launch, {"instead": _instead(index, program, name)})
    moved = _moved_name(program, name)
    if moved in program.env:
        return _env("env-deprecated", name, launch, {"instead": moved})
    releases = index.known_env.get(name)
    if releases:
        detail = {"remove": True, "releases": _range(releases), "instead": _instead(index, program, name)}
        return _env("env-not-read", name, launch, detail)
    from difflib import get_close_matches

    near = get_close_matches(name, program.env, 1, 0.8)
    return _env("env-unknown", name, launch, {"remove": True, "nearest": near[0] if near else NONE})


def _env(kind: str, name: str, launch: Launch, detail: dict[str, Any]) -> Problem:
    place = re.search(rf"(?<![\w$]){re.escape(name)}=(?:'[^']*'|\"[^\"]*\"|[^\s;&|()'\"])*", launch.text)
    span = Span(place.start(), place.end()) if place else None
    return Problem(kind, None, name, {"variable": True, **detail}, span)
