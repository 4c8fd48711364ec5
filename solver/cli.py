"""argv -> a verb, its output and its exit status: 0 fine, 1 findings or no solution, 2 the request itself is wrong."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from solver.compiled import Store, default_root
from solver.context import Context, Options, build, check_context
from solver.errors import KnowledgeError, RequestError
from solver.launch import Launch, read_argv, read_command

FINDINGS, WRONG_REQUEST = 1, 2
LEVELS = ("error", "warning", "note")
FORMATS = ("text", "json")

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Validate, complete and explain SGLang launches before they cost GPU time.",
)  # fmt: skip

Command = Annotated[list[str] | None, typer.Argument(help="The launch as one text, `-` for standard input, or argv after `--`.")]
Model = Annotated[str | None, typer.Option(help="Catalogue id, hub id or checkpoint directory.")]
Hardware = Annotated[str | None, typer.Option(help="Such as 8xrtx-pro-6000, or a YAML file.")]
EngineVersion = Annotated[str | None, typer.Option(help="The SGLang release, such as 0.5.10.")]
Format = Annotated[str, typer.Option("--format", help="text or json.")]
ContextLength = Annotated[int, typer.Option("--context", min=1, help="Tokens that one request must be able to hold.")]
Concurrency = Annotated[int, typer.Option(min=1, help="Requests served at the same time.")]
AcceptLength = Annotated[float | None, typer.Option(min=1.0, help="Accepted tokens per pass, where no measured row applies.")]


def main() -> None:
    """The console entry point. Every RequestError ends in one line and exit status 2."""
    try:
        status = app(standalone_mode=False)
    except RequestError as error:
        _refuse(str(error))
    except BrokenPipeError:
        sys.stderr.close()
    except typer.Abort:
        raise SystemExit(130) from None
    except Exception as error:
        if hasattr(error, "format_message"):  # a usage error of the command line parser
            _refuse(error.format_message())
        raise
    raise SystemExit(status if isinstance(status, int) else 0)


def _refuse(message: str) -> None:
    """One line on standard error, or `{"error": …}` on standard output when JSON was asked for."""
    message = " ".join(message.split())
    arguments = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    if "--format=json" in arguments or ("--format", "json") in zip(arguments, arguments[1:], strict=False):
        from solver.render.data import dumps

        print(dumps({"error": message}))
    else:
        print(f"flagwise: {message}", file=sys.stderr)
    raise SystemExit(WRONG_REQUEST)


def store() -> Store:
    """The knowledge in force."""
    try:
        return Store(default_root())
    except KnowledgeError as error:
        raise RequestError(f"the knowledge cannot be loaded: {error}") from None


def _choice(value: str, allowed: tuple[str, ...], option: str) -> str:
    if value not in allowed:
        raise RequestError(f"{option} {value!r}: expected {', '.join(allowed)}")
    return value


def read(command: list[str] | None, bare: bool = False) -> Launch:
    """The launch that a verb was given. Errors: RequestError."""
    if command == ["-"]:
        try:
            return read_command(sys.stdin.read(), bare=bare)
        except UnicodeDecodeError:
            raise RequestError("standard input is not text in UTF-8") from None
    if not command or (len(command) == 1 and not command[0].startswith("--")):
        return read_command(command[0] if command else "", bare=bare)
    return read_argv(command)


def _context(launch: Launch | None, options: Options, where: Store | None = None) -> Context:
    return build(where or store(), launch, options)


@app.command()
def validate(
    command: Command = None,
    model: Model = None,
    hardware: Hardware = None,
    engine_version: EngineVersion = None,
    format: Format = "text",
    fail_on: Annotated[str, typer.Option(help="The least severity that fails: error, warning or note.")] = "error",
    fail_on_unknown: Annotated[bool, typer.Option(help="Findings that depend on unknown facts fail too.")] = False,
    require_context: Annotated[bool, typer.Option(help="Refuse to judge when something had to be assumed.")] = False,
    batch: Annotated[Path | None, typer.Option(help="JSON lines: one launch each.")] = None,
    context: ContextLength = 4096,
    concurrency: Concurrency = 1,
) -> None:
    """Check a launch command: every problem at once, with reason, source and repair."""
    from solver.check import at_or_above

    _choice(format, FORMATS, "--format")
    _choice(fail_on, LEVELS, "--fail-on")
    options = Options(model, hardware, engine_version, {"context": context, "concurrency": concurrency})
    if batch is not None:
        from solver.batch import validate_lines

        raise typer.Exit(validate_lines(store(), batch, options, fail_on, fail_on_unknown))
    judged = _context(read(command), options)
    if require_context and judged.assumed:
        raise RequestError("; ".join(f"{a.what} is not stated ({a.why})" for a in judged.assumed))
    result = check_context(judged)
    _print_result(judged, result, format)
    counted = (f for f in result.findings if at_or_above(f, fail_on) and not f.after)  # type: ignore[arg-type]  # checked above
    raise typer.Exit(FINDINGS if any(fail_on_unknown or not f.conditional_on for f in counted) else 0)


def _print_result(context: Context, result: Any, format: str) -> None:
    if format == "json":
        from solver.render.data import dumps, result_data

        print(dumps(result_data(context, result)))
    else:
        from solver.render.text import validation

        print(validation(context, result))


@app.command()
def solve(
    command: Command = None,
    goal: Annotated[str, typer.Option(help="The goal's id, such as min-pcie-roundtrips.")] = "min-pcie-roundtrips",
    model: Model = None,
    hardware: Hardware = None,
    engine_version: EngineVersion = None,
    format: Format = "text",
    emit: Annotated[str | None, typer.Option(help="shell, argv or json: print the solution alone.")] = None,
    top: Annotated[int, typer.Option(min=0, help="Other points of the trade-off to show.")] = 3,
    context: ContextLength = 4096,
    concurrency: Concurrency = 1,
    accept_length: AcceptLength = None,
) -> None:
    """Complete a partial request into a full valid flag set; what the command says is kept."""
    from solver.answer import solve as answer_of
    from solver.conflict import Impossible
    from solver.goals import find_goal

    _choice(format, FORMATS, "--format")
    if emit is not None:
        _choice(emit, ("shell", "argv", "json"), "--emit")
    request = {"context": context, "concurrency": concurrency, "accept_length": accept_length}
    where = store()
    find_goal(where.index.goals, goal)
    asked = _context(read(command, bare=True), Options(model, hardware, engine_version, request), where)
    _refuse_unreadable(asked)
    asked = _with_model_path(asked, model)
    answer = answer_of(asked, goal)
    if isinstance(answer, Impossible):
        _print_impossible(asked, goal, answer, format)
        raise typer.Exit(FINDINGS)
    _print_solution(asked, goal, answer, format, emit, top)


def _refuse_unreadable(context: Context) -> None:
    """Pins that the release's parser would refuse are a wrong request."""
    from solver.check import reading_findings

    refused = [p for p in context.problems if p.refuses and p.flag != "model_path"]
    if refused:
        found = reading_findings(context.store, context.resolver.program, refused)
        raise RequestError(found[0].message if found else f"{refused[0].given}: {refused[0].kind}")


def _with_model_path(context: Context, model: str | None) -> Context:
    """The launch needs a model path: the one given, else the catalogue entry's hub id, else what `--model` said."""
    import msgspec

    facts = context.facts
    if "model_path" in facts.given:
        return context
    entry = context.index.models.get(str(facts.model.get("id")))
    path = model if model and Path(model).is_dir() else entry.hub_ids[0] if entry and entry.hub_ids else model
    if path is None:
        return context
    return msgspec.structs.replace(context, facts=msgspec.structs.replace(facts, given={"model_path": path, **facts.given}))


def _print_solution(context: Context, goal: str, answer: Any, format: str, emit: str | None, top: int) -> None:
    from solver.handoff.command import argv_of, shell_of
    from solver.render.data import dumps, emit_data, solution_data

    argv = argv_of(answer.given, context.resolver.program.flags)
    if emit == "shell":
        print(shell_of(argv, answer.env))
    elif emit == "argv":
        print("\n".join(argv))
    elif emit == "json":
        print(dumps(emit_data(context, answer)))
    elif format == "json":
        print(dumps(solution_data(context, goal, answer)))
    else:
        from solver.render.solution import solution

        print(solution(context, goal, answer, top))


def _print_impossible(context: Context, goal: str, answer: Any, format: str) -> None:
    if format == "json":
        from solver.render.data import dumps, impossible_data

        print(dumps(impossible_data(context, goal, answer)))
    else:
        from solver.render.solution import impossible

        print(impossible(context, goal, answer))


@app.command()
def estimate(
    command: Command = None,
    model: Model = None,
    hardware: Hardware = None,
    engine_version: EngineVersion = None,
    format: Format = "text",
    batch: Annotated[Path | None, typer.Option(help="JSON lines: one launch each.")] = None,
    context: ContextLength = 4096,
    concurrency: Concurrency = 1,
    accept_length: AcceptLength = None,
) -> None:
    """The figures of a launch with their ranges and inputs: latency, round trips, memory."""
    from solver.figures import estimate_lines, figures_of
    from solver.render.data import dumps
    from solver.render.solution import figures

    _choice(format, FORMATS, "--format")
    request = {"context": context, "concurrency": concurrency, "accept_length": accept_length}
    options = Options(model, hardware, engine_version, request)
    if batch is not None:
        raise typer.Exit(estimate_lines(store(), batch, options))
    judged = _context(read(command, bare=True), options)
    data = figures_of(judged)
    print(dumps(data) if format == "json" else figures(judged, data))


@app.command()
def explain(
    name: Annotated[str, typer.Argument(help="A rule id, a flag in any spelling, or a goal.")],
    engine_version: EngineVersion = None,
) -> None:
    """What a rule, a flag or a goal is: why, since when, how we know, what to do."""
    from solver.context import choose_release
    from solver.render.explanation import explain as explanation

    where = store()
    release = choose_release(where.index, engine_version, None)[0]
    print(explanation(where, where.program(release), name))


@app.command()
def graph(
    command: Command = None,
    around: Annotated[str | None, typer.Option(help="Only what is near this flag.")] = None,
    model: Model = None,
    hardware: Hardware = None,
    engine_version: EngineVersion = None,
    format: Annotated[str, typer.Option("--format", help="svg, dot, mermaid or json.")] = "dot",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this new file.")] = None,
) -> None:
    """The constraint graph of a launch: flags, traits and rules, who set what, what is violated."""
    from solver.graph import build_graph, node_link
    from solver.render import picture
    from solver.render.data import dumps
    from solver.render.explanation import flag_id

    _choice(format, ("svg", "dot", "mermaid", "json"), "--format")
    judged = _context(read(command, bare=True), Options(model, hardware, engine_version))
    centre = None
    if around is not None:
        centre = flag_id(judged.resolver.program, judged.index, around)
        if centre is None:
            raise RequestError(f"unknown flag {around!r} in SGLang {judged.release}")
    built = build_graph(judged, check_context(judged), centre)
    forms = {"svg": picture.svg, "dot": picture.dot, "mermaid": picture.mermaid, "json": lambda g: dumps(node_link(g))}
    _write(forms[format](built), output)


def _write(text: str, output: Path | None) -> None:
    """Print, or write a file that is not there yet."""
    if output is None:
        print(text)
        return
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text if text.endswith("\n") else text + "\n")
    except FileExistsError:
        raise RequestError(f"{output} is there already; choose another name or remove it") from None
    except OSError as error:
        raise RequestError(f"cannot write {output}: {error.strerror}") from None


@app.command()
def launch(
    command: Annotated[list[str], typer.Argument(help="The launch as argv, after `--`.")],
    model: Model = None,
    hardware: Hardware = None,
    engine_version: EngineVersion = None,
    force: Annotated[bool, typer.Option(help="Start in spite of errors.")] = False,
) -> None:
    """Validate a launch, print what is handed over, and become it (argv, never a shell)."""
    from solver.handoff.start import become

    judged = _context(read(command), Options(model, hardware, engine_version))
    result = check_context(judged)
    _print_result(judged, result, "text")
    if result.verdict == "invalid" and not force:
        print("\nnot started: mend the errors, or repeat with --force", file=sys.stderr)
        raise typer.Exit(FINDINGS)
    assert judged.launch is not None
    become(judged.launch)


inspect_app = typer.Typer(no_args_is_help=True, help="What flagwise reads from a model or a machine.")
app.add_typer(inspect_app, name="inspect")


@inspect_app.command("model")
def inspect_model(name: Annotated[str, typer.Argument(help="Directory, catalogue id or hub id.")], format: Format = "text") -> None:
    """Every trait of a checkpoint or a catalogue model."""
    from solver.context import Assumed, find_model

    notes: list[Assumed] = []
    _traits("model", find_model(store().index, name, None, notes)[1], format)


@inspect_app.command("hardware")
def inspect_hardware(name: Annotated[str, typer.Argument(help="Such as 8xrtx-pro-6000, or a YAML file.")], format: Format = "text") -> None:
    """Every trait of a machine."""
    from solver.context import find_hardware

    _traits("hardware", find_hardware(store().index, name), format)


def _traits(space: str, traits: dict[str, Any], format: str) -> None:
    from solver.render.data import dumps
    from solver.words import say

    _choice(format, FORMATS, "--format")
    if format == "json":
        print(dumps({space: traits}))
        return
    width = max((len(n) for n in traits), default=0)
    for name, value in sorted(traits.items()):
        print(f"{space}.{name.ljust(width)}  {say(value)}")


knowledge_app = typer.Typer(no_args_is_help=True, help="The knowledge itself.")
app.add_typer(knowledge_app, name="knowledge")


@knowledge_app.command("lint")
def knowledge_lint(only: Annotated[str | None, typer.Argument(help="Only rules whose id contains this.")] = None) -> None:
    """Check every rule: names, sources, releases, examples, fixes."""
    from solver.knowledge import load
    from solver.lint import lint

    where = store()
    complaints = lint(load(where.root), where, only)
    print("\n".join(complaints) or "no complaints")
    raise typer.Exit(FINDINGS if complaints else 0)


@knowledge_app.command("learn")
def knowledge_learn(
    where: Annotated[list[Path], typer.Argument(help="Wheels of the engine, or unpacked ones.")],
    write: Annotated[Path | None, typer.Option(help="Add what was learned to the catalogues of this folder.")] = None,
) -> None:
    """Read the flags and variables of releases from their wheels, statically."""
    from solver.learn import main as learn_main

    raise typer.Exit(learn_main([*map(str, where), *(["--write", str(write)] if write else [])]))


@app.command()
def version() -> None:
    """The version of flagwise and of its knowledge."""
    from solver.render.data import version as own

    print(f"flagwise {own()}, knowledge {store().index.hash}")


if __name__ == "__main__":
    main()
