"""Parsed options of a verb -> its output on standard output and its exit status (0, or 1 for findings and conflicts).

Errors: RequestError, which the command line turns into one line and exit status 2. Each verb imports what it needs
when it runs, so that a quick one stays quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from solver.context import Context, Options, build, check_context
from solver.errors import KnowledgeError, RequestError
from solver.inputs import standard_input
from solver.launch import Launch, read_argv, read_command
from solver.store import Store, default_root

if TYPE_CHECKING:
    from solver.check import Result

FINDINGS = 1


def store() -> Store:
    """The knowledge in force."""
    try:
        return Store(default_root())
    except KnowledgeError as error:
        raise RequestError(f"the knowledge cannot be loaded: {error}") from None


def read(command: Sequence[str], bare: bool = False) -> Launch:
    """The launch that a verb was given: one text, `-` for standard input, or argv."""
    if list(command) == ["-"]:
        return read_command(standard_input(), bare=bare)
    if len(command) == 1 and not command[0].startswith("--"):
        if os.path.isfile(command[0]):  # quiet about a text too long for a name
            raise RequestError(
                f"{command[0]} is a file, expected a command: to read it, type `- < {command[0]}` instead"
            )
        return read_command(command[0], bare=bare)
    return read_argv(command) if command else read_command("", bare=bare)


def options_of(values: dict[str, Any]) -> Options:
    """The context options of a verb."""
    request = {k: values[k] for k in ("context", "concurrency", "accept_length", "perf") if values.get(k) is not None}
    return Options(values["model"], values["hardware"], values["engine_version"], request)


def validate(values: dict[str, Any]) -> int:
    """Check a launch command: every problem at once, with reason, source and repair."""
    options = options_of(values)
    if values["batch"] is not None and values["lock"] is not None:
        raise RequestError("--batch and --lock: expected one of the two")
    if values["batch"] is not None:
        from solver.batch import validate_lines

        return validate_lines(store(), values["batch"], options, values["fail_on"], values["fail_on_unknown"])
    if values["lock"] is not None:
        from solver.compare.run import validate_locked

        launch = read(values["command"]) if values["command"] else None
        asked = (options, values["format"], values["require_context"])
        return _status(validate_locked(store(), values["lock"], launch, *asked), values)
    context = build(store(), read(values["command"]), options)
    if values["require_context"]:
        refuse_assumed(context)
    result = check_context(context)
    _print_result(context, result, values["format"])
    return _status(result, values)


def refuse_assumed(context: Context) -> None:
    """Raise RequestError where something had to be taken from elsewhere."""
    if context.assumed:
        raise RequestError("; ".join(f"{a.what} is not stated ({a.why})" for a in context.assumed))


def _status(result: Result, values: dict[str, Any]) -> int:
    """1 where a finding reaches the fail level, else 0."""
    from solver.check import at_or_above

    failing = (f for f in result.findings if at_or_above(f, values["fail_on"]) and not f.after)
    return FINDINGS if any(values["fail_on_unknown"] or not f.conditional_on for f in failing) else 0


def _print_result(context: Context, result: Result, form: str) -> None:
    if form == "json":
        from solver.render.data import dumps, result_data

        print(dumps(result_data(context, result)))
    else:
        from solver.render.text import validation

        print(validation(context, result))


def estimate(values: dict[str, Any]) -> int:
    """The figures of a launch with their ranges and inputs: latency, round trips, memory."""
    from solver.figures import estimate_lines, figures_of
    from solver.render.data import dumps
    from solver.render.solution import figures

    options = options_of(values)
    if values["batch"] is not None:
        return estimate_lines(store(), values["batch"], options)
    context = build(store(), read(values["command"], bare=True), options)
    data = figures_of(context)
    print(dumps(data) if values["format"] == "json" else figures(context, data))
    return 0


def explain(values: dict[str, Any]) -> int:
    """What a rule, a flag or a goal is: why, since when, how we know, what to do."""
    from solver.context import choose_release
    from solver.render.explanation import explain as explanation

    where = store()
    release = choose_release(where.index, values["engine_version"], None)[0]
    print(explanation(where, where.program(release), _one(values["command"], "explain RULE|FLAG|GOAL")))
    return 0


def _one(words: Sequence[str], usage: str) -> str:
    if len(words) != 1:
        raise RequestError(f"expected one name: flagwise {usage}")
    return words[0]


def graph(values: dict[str, Any]) -> int:
    """The constraint graph of a launch: flags, traits and rules, who set what, what is violated."""
    from solver.graph import build_graph, node_link
    from solver.render import picture
    from solver.render.data import dumps
    from solver.render.explanation import flag_id

    context = build(store(), read(values["command"], bare=True), options_of(values))
    around = values["around"]
    centre = flag_id(context.resolver.program, context.index, around) if around is not None else None
    if around is not None and centre is None:
        raise RequestError(f"unknown flag {around!r} in SGLang {context.release}")
    built = build_graph(context, check_context(context), centre)
    form = values["format"]
    text = dumps(node_link(built)) if form == "json" else picture.FORMS[form](built)
    _write(text, values["output"])
    return 0


def _write(text: str, output: str | None) -> None:
    """Print, or write a file that is not there yet."""
    if output is None:
        print(text)
        return
    try:
        with open(output, "x", encoding="utf-8") as file:
            file.write(text if text.endswith("\n") else text + "\n")
    except FileExistsError:
        raise RequestError(f"{output} is there already; choose another name or remove it") from None
    except OSError as error:
        raise RequestError(f"cannot write {output}: {error.strerror}") from None


def launch(values: dict[str, Any]) -> int:
    """Validate a launch, print what is handed over, and become it (argv, never a shell)."""
    from solver.handoff.start import become

    context = build(store(), read(values["command"]), options_of(values))
    result = check_context(context)
    _print_result(context, result, "text")
    if result.verdict == "invalid" and not values["force"]:
        print("\nnot started: mend the errors, or repeat with --force", file=sys.stderr)
        return FINDINGS
    assert context.launch is not None
    become(context.launch)
    return 0


def knowledge_lint(values: dict[str, Any]) -> int:
    """Check every rule: names, sources, releases, examples, fixes. A text limits it to rule ids that contain it."""
    from solver.knowledge import load
    from solver.lint import lint

    where = store()
    only = values["command"][0] if values["command"] else None
    knowledge = load(where.root)
    ids = [*knowledge.rules, *(s.id for s in knowledge.logs.signatures), *(e.id for e in knowledge.evidence)]
    if only is not None and not any(only in name for name in ids):
        raise RequestError(f"no rule, signature or record has {only!r} in its id")
    complaints = lint(knowledge, where, only)
    print("\n".join(complaints) or "no complaints")
    return FINDINGS if complaints else 0


def knowledge_learn(values: dict[str, Any]) -> int:
    """Read the flags and variables of a release from its wheel, statically, and say what it changed."""
    from solver.learn import main as learn

    if not (values["command"] or values["wheel"] or values["help_text"]):
        raise RequestError("expected sglang==RELEASE, a wheel, or --help-text FILE with --name NAME")
    if (values["help_text"] is None) != (values["name"] is None):
        raise RequestError("--help-text FILE and --name NAME belong together")
    folder = values["write"] or os.path.join(default_root(), "sglang")
    named = ("wheel", "write", "help_text", "name", "base")
    given = [f"--{key.replace('_', '-')}={values[key]}" for key in named if values[key] is not None]
    return learn([*given, f"--catalogue={folder}", "--", *values["command"]])


def knowledge_coverage(values: dict[str, Any]) -> int:
    """Which places of a release's argument code that refuse or rewrite are covered by rules, set aside, or open."""
    from pathlib import Path

    from solver.coverage import as_data, as_text, coverage
    from solver.knowledge import load
    from solver.learn_fetch import fetched
    from solver.render.data import dumps

    where = store()
    known = [r.version for r in where.index.releases]
    release = values["release"]
    if release not in known:
        raise RequestError(f"--release {release!r}: expected one of {', '.join(known)}")
    wheel = Path(values["wheel"]) if values["wheel"] else None
    if wheel is not None and not wheel.exists():
        raise RequestError(f"--wheel {wheel}: no such file or folder")
    knowledge = load(where.root)
    if wheel is not None:
        found = coverage(knowledge, release, wheel)
    else:
        try:
            with fetched(f"sglang=={release}") as downloaded:
                found = coverage(knowledge, release, downloaded)
        except ValueError as error:
            raise RequestError(str(error)) from None
    print(dumps(as_data(release, found)) if values["format"] == "json" else as_text(release, found))
    return 0


def version(values: dict[str, Any]) -> int:
    """The version of flagwise and of its knowledge."""
    from solver import __version__

    print(f"flagwise {__version__}, knowledge {store().index.hash}")
    return 0
