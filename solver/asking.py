"""The question options of `solve` -> what is asked, with flags, values and metrics as release and knowledge have them.

Errors: RequestError, one line that says what was expected.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import msgspec

from solver.choices import Demand, choices_of
from solver.context import Context
from solver.errors import RequestError
from solver.facts import env_text, typed_env
from solver.findings import reading_findings, spelling
from solver.goals import Goal, figure_of, find_metric
from solver.launch import read_argv
from solver.options import takes_no_value
from solver.reading import read_flags
from solver.render.explanation import flag_id
from solver.unknown import place_unknown

UNSET = "unset"
"""The value of a question that means: left out."""
FIRST = "trades"
"""The value of `--front` alone: the metrics that the goal trades."""


class Metric(msgspec.Struct, frozen=True):
    """One axis: `text` is the expression, `figure` the name of its unit; `maximised`: more is better."""

    id: str
    title: str
    text: str
    figure: str
    maximised: bool


class Questions(msgspec.Struct, frozen=True):
    """What a request wants to know besides its answer. `why`: `flag.x` or `env.X`; `top`: 0 for no ranking."""

    why: tuple[str, ...] = ()
    why_not: tuple[Demand, ...] = ()
    top: int = 0
    front: tuple[Metric, ...] = ()

    @property
    def any(self) -> bool:
        """Whether anything is asked."""
        return bool(self.why or self.why_not or self.top or self.front)


def read_questions(context: Context, goal: Goal, values: Mapping[str, Any]) -> Questions:
    """The questions of a request."""
    svg, front = values["front_svg"], values["front"]
    return Questions(
        why=tuple(dict.fromkeys(_key(context, "--why", text) for text in values["why"])),
        why_not=tuple({d.text: d for d in (_demand(context, goal, text) for text in values["why_not"])}.values()),
        top=values["top"] or 0,
        front=_metrics(context, goal, front or FIRST) if front or svg else (),
    )


def named(context: Context, option: str, text: str) -> tuple[str, str]:
    """(space, name) of a flag in any spelling, or of a variable, that the release has."""
    program = context.resolver.program
    if text in program.env:
        return "env", text
    name = flag_id(program, context.index, text)
    if name in program.flags:
        return "flag", str(name)
    releases = context.index.known_flags.get(text, context.index.known_flags.get(f"--{text.lstrip('-')}", ("", ())))[1]
    if releases:
        raise RequestError(
            f"{option} {text!r}: {text} is no flag of SGLang {context.release}; {releases[0]} to {releases[-1]} have it"
        )
    known = [*program.long_spellings.values(), *program.env]
    dashed = text if text.isupper() else f"--{text.lstrip('-').replace('_', '-')}"
    near = difflib.get_close_matches(dashed, known, 1, 0.75)
    hint = f"; near is {near[0]}" if near else ""
    raise RequestError(f"{option} {text!r}: {text} is no flag or variable of SGLang {context.release}{hint}")


def _key(context: Context, option: str, text: str) -> str:
    if "=" in text:
        raise RequestError(
            f"{option} {text!r}: expected a flag or variable alone; to ask for a value, --why-not {text}"
        )
    return ".".join(named(context, option, text))


def _demand(context: Context, goal: Goal, text: str) -> Demand:
    """What `FLAG`, `FLAG=VALUE` or `FLAG=unset` asks for."""
    head, has_value, value = text.partition("=")
    space, name = named(context, "--why-not", head)
    shown = name if space == "env" else spelling(context.resolver.program, name)
    if (space, name) == ("flag", "model_path"):
        raise RequestError(f"--why-not {text!r}: another model is another request; ask for it with --model")
    if value == UNSET and has_value:
        return Demand(f"{space}.{name}", (None,), f"without {shown}")
    if not has_value:
        return Demand(f"{space}.{name}", _any_value(context, goal, space, name, shown), shown)
    read = _env_value if space == "env" else _flag_value
    found = read(context, name, value, text)
    said = f"{name}={env_text(found)}" if space == "env" else _said(shown, found, value)
    return Demand(f"{space}.{name}", (found,), said)


def _said(shown: str, value: Any, text: str) -> str:
    return f"without {shown}" if value is None else shown if value is True else f"{shown} {text}"


def _env_value(context: Context, name: str, value: str, text: str) -> Any:
    form = context.resolver.program.env[name]
    found = typed_env(form, value)
    if found is None:
        raise RequestError(
            f"--why-not {text!r}: SGLang {context.release} reads {name} as {form.type}, not as {value!r}"
        )
    return found


def _flag_value(context: Context, name: str, value: str, text: str) -> Any:
    """The value as the release's parser reads it; a switch that is off is left out."""
    program = context.resolver.program
    form = program.flags[name]
    if takes_no_value(form) or form.action == "BooleanOptionalAction":
        on = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}.get(value.lower())
        if on is None:
            raise RequestError(
                f"--why-not {text!r}: {spelling(program, name)} is on or off; say =true, =false or =unset"
            )
        return on if form.action == "BooleanOptionalAction" else form.const if on else None
    words = read_argv([f"{spelling(program, name)}={value}"]).words
    reading = place_unknown(context.index, program, read_flags(words, program.flags, known=program.options))
    wrong = [p for p in reading.problems if p.refuses and p.flag == name]
    if wrong or name not in reading.given:
        found = reading_findings(context.store, program, wrong)
        raise RequestError(f"--why-not {text!r}: {found[0].message if found else 'the value cannot be read'}")
    if isinstance(reading.given[name], list | dict):
        raise RequestError(f"--why-not {text!r}: lists and mappings are taken as given, never chosen; pin it instead")
    return reading.given[name]


def _any_value(context: Context, goal: Goal, space: str, name: str, shown: str) -> tuple[Any, ...]:
    """The values that a flag or variable asked for without one could have."""
    program = context.resolver.program
    pinned = msgspec.structs.replace(context.facts, given={}, env={})
    for choice in sum(choices_of(msgspec.structs.replace(context, facts=pinned), goal["levers"]), ()):
        if (choice.space, choice.name) == (space, name):
            return tuple(v for v in choice.values if v is not None)
    form: Any = program.env[name] if space == "env" else program.flags[name]
    if space == "env":
        values: tuple[Any, ...] = (True,) if form.type == "bool" else ()
    elif form.action == "BooleanOptionalAction":
        values = (True,)
    else:
        choices = form.choices if form.nargs in (None, "?") and form.choices else ()
        values = (form.const,) if takes_no_value(form) else tuple(v for v in choices if v is not None)
    if not values:
        raise RequestError(f"--why-not {shown}: expected a value with it, as in --why-not {shown}=VALUE")
    return values


def _metrics(context: Context, goal: Goal, text: str) -> tuple[Metric, ...]:
    known = {level["id"]: level for level in context.index.data["sglang/levels"]}
    names = list(goal.get("trades", ())) if text == FIRST else text.split(",")
    if len(set(names)) != 2 or len(names) != 2:
        raise RequestError(f"--front {text!r}: expected two different metrics, such as --front latency,round-trips")
    return tuple(_metric(name, known) for name in names)


def _metric(name: str, known: Mapping[str, Any]) -> Metric:
    spec = find_metric(name, known)
    text = spec.get("amount") or spec["maximise"]
    return Metric(name, spec["title"], text, figure_of(spec), "maximise" in spec)
