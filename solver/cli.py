"""argv -> a verb's output and exit status: 0 fine, 1 findings or no solution, 2 the request itself is wrong.

Plain, well-formed requests are read by a few lines here; everything else (help, abbreviations, mistakes) goes to typer,
whose import alone would take half the time that a `validate` may take. Both read the table in `usage`.
"""

from __future__ import annotations

import solver.lean  # noqa: F401  # isort: skip  # before anything imports msgspec

import atexit
import gc
import io
import os
import sys
from itertools import pairwise
from typing import Any

from solver.errors import RequestError
from solver.usage import VERBS, Option, Verb

WRONG_REQUEST = 2
INTERRUPTED, CLOSED_PIPE = 130, 141
"""128 + the signal, as a shell reports a program that SIGINT or SIGPIPE ended."""
BARE = {o.name: o.bare for verb in VERBS.values() for o in verb.options if o.bare}
"""Options that may stand without a value -> what they say then."""


def main() -> None:
    """The console entry point. Every RequestError ends in one line and exit status 2."""
    gc.set_threshold(1_000_000)  # what a run makes it keeps: looking through it again and again costs a tenth
    atexit.register(gc.freeze)  # else the end looks through all that is alive, which took a fifth of a long run
    argv = sys.argv[1:] or ["--help"]
    _ready_streams()
    try:
        try:
            status = _run(argv)
        except RequestError as error:
            status = _refuse(str(error), argv)
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        status = CLOSED_PIPE
    except OSError as error:  # what a verb does not expect of a disk, such as a full one
        _drop_output()
        print(f"flagwise: {error.filename or 'the output cannot be written'}: {error.strerror}", file=sys.stderr)
        status = WRONG_REQUEST
    except KeyboardInterrupt:
        status = INTERRUPTED
    raise SystemExit(status)


def _ready_streams() -> None:
    """Make the standard streams take whatever is said: one that is closed swallows it, a character that an encoding
    lacks is replaced."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115  # stays open to the end
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _drop_output() -> None:
    """Let what is not written yet go nowhere, so that the interpreter does not try it again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(argv: list[str]) -> int:
    argv = _spelled_out(argv)
    quick = read_quickly(argv)  # None for help, mistakes and anything unusual
    if quick is not None:
        verb, values = quick
        return verb.run(values)
    from solver.commandline import run

    return run(argv)


def _spelled_out(argv: list[str]) -> list[str]:
    """The words with what an option says that stands there without its value."""
    own = argv[: argv.index("--")] if "--" in argv else argv
    if not any(word in BARE for word in own):
        return argv
    following = [*argv[1:], ""]
    bare = [word in BARE and not _is_list(after) for word, after in zip(own, following, strict=False)]
    spelled = [f"{word}={BARE[word]}" if alone else word for word, alone in zip(own, bare, strict=True)]
    return [*spelled, *argv[len(own) :]]


def _is_list(word: str) -> bool:
    """Whether a word is a list of names, as `a,b-c`, and no option or command."""
    return not word.startswith("-") and word.replace(",", "").replace("-", "").isalpha()


def read_quickly(argv: list[str]) -> tuple[Verb, dict[str, Any]] | None:
    """The verb and its options, or None where the full command line has to read them."""
    name = next((n for n in (" ".join(argv[:2]), argv[0] if argv else "") if n in VERBS), None)
    if name is None:
        return None
    verb = VERBS[name]
    values: dict[str, Any] = {o.key: o.default for o in verb.options}
    by_name = {o.name: o for o in verb.options}
    words = argv[len(name.split()) :]
    command: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if word == "--":
            command += words[position:]
            break
        if not word.startswith("-") or word == "-":
            command.append(word)
            continue
        head, has_value, text = word.partition("=")
        option = by_name.get(head)
        if option is None and verb.names_flags and head != "--help":
            command.append(head)
            continue
        if option is None or (option.kind is bool and has_value):
            return None
        if option.kind is not bool and not has_value:
            if position == len(words):
                return None
            text = words[position]
            position += 1
        value = True if option.kind is bool else convert(option, text)
        values[option.key] = (*values[option.key], value) if option.many else value
    if command and verb.arguments is None:
        return None
    return verb, {**values, "command": command}


def convert(option: Option, text: str) -> Any:
    """An option's value. Errors: RequestError that says what was expected."""
    if option.choices and text not in option.choices:
        raise RequestError(f"{option.name} {text!r}: expected {', '.join(option.choices)}")
    if option.kind is str:
        return text
    try:
        value = option.kind(text)
    except ValueError:
        value = None
    if value is None or value != value or (option.least is not None and value < option.least):
        word = "a whole number" if option.kind is int else "a number"
        raise RequestError(
            f"{option.name} {text!r}: expected {word}"
            + (f" of at least {option.least:g}" if option.least is not None else "")
        )
    return value


def _refuse(message: str, argv: list[str]) -> int:
    """One line on standard error, or `{"error": …}` on standard output when JSON was asked for."""
    message = " ".join(message.split())
    options = argv[: argv.index("--")] if "--" in argv else argv
    if "--format=json" in options or ("--format", "json") in pairwise(options):
        from solver.render.data import dumps

        print(dumps({"error": message}))
    else:
        print(f"flagwise: {message}", file=sys.stderr)
    return WRONG_REQUEST


if __name__ == "__main__":
    main()
