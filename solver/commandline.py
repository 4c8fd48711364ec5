"""The table of verbs -> the full command line with help, by typer."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer

from solver.cli import convert
from solver.errors import RequestError
from solver.usage import VERBS, Option, Verb

GROUPS = {"inspect": "What flagwise reads from a model or a machine.", "knowledge": "The knowledge itself."}
SUMMARY = "Validate, complete and explain SGLang launches before they cost GPU time."


def application() -> typer.Typer:
    """The command line with all verbs."""
    app = _group(SUMMARY)
    groups = {name: _group(text) for name, text in GROUPS.items()}
    for name, group in groups.items():
        app.add_typer(group, name=name)
    for name, verb in VERBS.items():
        first, _, second = name.partition(" ")
        (groups[first] if second else app).command(second or first, help=verb.run.__doc__)(_function(verb))
    return app


def _group(text: str) -> typer.Typer:
    return typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        help=text,
        context_settings={"help_option_names": ["--help", "-h"]},
    )


def _function(verb: Verb) -> Any:
    """A function with the signature that typer makes a command of."""

    def run(**values: Any) -> int:
        read = {o.key: _value(o, values[o.key]) for o in verb.options}
        return verb.run({**read, "command": list(values.get("command") or ())})

    run.__signature__ = inspect.Signature(_parameters(verb))  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {p.name: p.annotation for p in _parameters(verb)}
    return run


def _value(option: Option, value: Any) -> Any:
    if option.many:
        return tuple(convert(option, text) for text in value or ())
    return convert(option, value) if isinstance(value, str) else value


def _parameters(verb: Verb) -> list[inspect.Parameter]:
    found = []
    if verb.arguments is not None:
        argument = typer.Argument(metavar=verb.arguments, show_default=False)
        found.append(_parameter("command", Annotated[list[str] | None, argument], None))
    for option in verb.options:
        choices = f" ({', '.join(option.choices)})" if option.choices else ""
        declared = typer.Option(option.name, help=option.help + choices)
        kind: Any = bool if option.kind is bool else list[str] | None if option.many else str | None
        plain = option.kind is bool or option.default is None
        default = None if option.many else option.default if plain else str(option.default)
        found.append(_parameter(option.key, Annotated[kind, declared], default))
    return found


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def run(argv: list[str]) -> int:
    """Read and run a command line. Errors: RequestError for what typer refuses."""
    if len(argv) == 1 and argv[0] in GROUPS:
        verbs = ", ".join(f"flagwise {name}" for name in VERBS if name.startswith(f"{argv[0]} "))
        raise RequestError(f"{argv[0]} alone says too little: expected {verbs}")
    if argv == ["--version"]:
        argv = ["version"]
    try:
        status = application()(argv, standalone_mode=False)
    except typer.Abort:
        return 130
    except Exception as error:
        if hasattr(error, "format_message"):  # a usage error of the parser
            raise RequestError(f"{error.format_message()} (flagwise --help lists what there is)") from None
        raise
    return status if isinstance(status, int) else 0
