"""Command text or argv -> Launch: the engine's arguments with their places, and the environment that reaches it.

Nothing is run. Of several commands in a text only the engine's are returned; of several launches `read_command` takes
the first.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from solver.errors import RequestError
from solver.expansion import LONGEST_COMMAND, Word
from solver.facts import make_room
from solver.quoting import quote, quote_live, quote_word
from solver.records import Span
from solver.script import Command, commands
from solver.shell import Token, plain_words
from solver.wrappers import Wrapped, container_verb, find_entry, find_sent, script_index, unwrap

__all__ = ["Launch", "Word", "argv_of", "read_argv", "read_command", "read_commands", "shell_of"]

Entry = Literal["launch_server", "serve"]

DEEPEST = 5  # command texts inside command texts (`docker run … bash -c "srun bash -c '…'"`)
_DEFAULT_PREFIX = ("python", "-m", "sglang.launch_server")
_EXPECTED = "expected `python -m sglang.launch_server …` or `sglang serve …`"


class Launch(msgspec.Struct, frozen=True):
    """One launch of the engine.

    `words` are the arguments after the entry point; spans count characters of `text`. `env` holds what reaches the
    process (None: the value is not known), `unexported` what was assigned and does not. `prefix` is everything before
    the arguments but for the environment. `lost` are words that look like arguments but belong to the next command,
    as after a broken line continuation. `at` is where the engine is named, unless it is the image's own program;
    `begin` where a variable for it could be written (in front of the command, or as an option of the container).
    """

    words: tuple[Word, ...]
    env: dict[str, str | None] = {}
    entry: Entry = "launch_server"
    prefix: tuple[str, ...] = _DEFAULT_PREFIX
    image: str | None = None
    text: str = ""
    unexported: tuple[str, ...] = ()
    lost: tuple[Word, ...] = ()
    at: Span | None = None
    begin: Span | None = None


def read_command(text: str, bare: bool = False) -> Launch:
    """The first launch in a command text. With `bare`, flags alone (or nothing) are a launch too.

    Raises RequestError where there is none, or where a quote or bracket is not closed.
    """
    if plain := _read_plain(text):
        return plain
    found = _launches(text, {}, 0, bare)
    if found:
        return found[0]
    if bare and not any(command.words for command in commands(text)):
        return Launch((), text=text)
    shown = " ".join(text.split())
    shown = shown if len(shown) <= 60 else shown[:57] + "…"
    problem = f"no SGLang launch in {shown!r}" if shown else "the command is empty"
    raise RequestError(f"{problem}: {_EXPECTED}")


_beginnings: dict[str, Launch | None] = {}


def _read_plain(text: str) -> Launch | None:
    """The launch of a single command without quotes, expansions and operators; None where it is not one.

    All before its first flag is the beginning of many launches, and read once.
    """
    first = text.find(" --")
    words = plain_words(text) if first > 0 and len(text) <= LONGEST_COMMAND else None
    if words is None:
        return None
    beginning = text[:first]
    if beginning not in _beginnings:
        make_room(_beginnings)
        found = _launches(beginning, {}, 0, False)
        _beginnings[beginning] = found[0] if len(found) == 1 and found[0].at else None
    start = _beginnings[beginning]
    if start is None:
        return None
    flags = [Word(word, Span(at, at + len(word))) for word, at in words if at > first]
    return msgspec.structs.replace(start, text=text, words=(*start.words, *flags))


def read_commands(text: str, env: Mapping[str, str | None] | None = None, bare: bool = False) -> tuple[Launch, ...]:
    """Every launch in a command text or script, in order; empty if there is none.

    `env` is exported already (None: of unknown value). With `bare`, a text of flags alone is a launch too.
    """
    return tuple(_launches(text, env or {}, 0, bare))


def read_argv(argv: Sequence[str], env: Mapping[str, str] | None = None) -> Launch:
    """A launch from ready arguments: a whole command, or the engine's flags alone (none is allowed).

    `env` is what the process would inherit. `Launch.text` is the command as shell text.
    """
    launch = read_command(" ".join(map(quote, argv)), bare=True)
    return msgspec.structs.replace(launch, env={**(env or {}), **launch.env})


def argv_of(launch: Launch) -> tuple[str, ...]:
    """The arguments to start the launch with; the environment is in them only for a container or `bash -c`."""
    return tuple(_assembled(launch, str, lambda word: word.text))


def shell_of(launch: Launch) -> str:
    """The launch as one line of shell text; `read_command` reads the same words and environment from it.

    One thing is lost: `${A:-x}` counts as x again where the original text had assigned something unknown to A.
    """
    line = " ".join(_assembled(launch, quote_live, quote_word))
    if script_index(launch.prefix) or container_verb(launch.prefix):
        return line
    return " ".join([*_assignments(launch.env), line])


def _assembled(launch: Launch, text_of: Callable[[str], str], word_of: Callable[[Word], str]) -> Iterator[str]:
    prefix = launch.prefix
    if at := script_index(prefix):
        yield from map(text_of, prefix[:at])
        inner = shell_of(msgspec.structs.replace(launch, prefix=prefix[at:]))
        yield quote(inner) if text_of is quote_live else inner
        return
    verb = container_verb(prefix)
    if verb is not None:
        yield from map(text_of, prefix[: verb + 1])
        for name, value in launch.env.items():
            yield "-e"
            yield text_of(name) if value is None else (quote if text_of is quote_live else str)(f"{name}={value}")
        prefix = prefix[verb + 1 :]
    yield from map(text_of, prefix)
    yield from map(word_of, launch.words)


def _assignments(env: Mapping[str, str | None]) -> list[str]:
    """`NAME=value` words; names that the shell cannot assign need `env` in front."""
    words = [f"{quote(name)}=" + (f'"${name}"' if value is None else quote(value)) for name, value in env.items()]
    return words if all(name.isidentifier() and name.isascii() for name in env) else ["env", *words]


def _launches(text: str, env: Mapping[str, str | None], depth: int, bare: bool) -> list[Launch]:
    found: list[Launch] = []
    for command in commands(text, env):
        if command.document:
            found += _in_document(command, text, depth)
        elif command.words:
            launches = _recognise(command, text, depth, bare and not found)
            if not launches and found and command.words[0].text.startswith("-"):
                found[-1] = msgspec.structs.replace(found[-1], lost=found[-1].lost + command.words)
            found += launches
    return found


def _recognise(command: Command, text: str, depth: int, bare: bool) -> list[Launch]:
    """The launches that one simple command makes."""
    words = command.words
    shell = script_index([word.text for word in words])
    if (entry := find_entry(words)) and (shell is None or entry[0] < shell):
        at, start, name = entry
        inside = unwrap(words[:start], command.env)
        named = words[start - 2 if name == "serve" else start - 1].span
        return [_made(command, text, start, inside, name, named)] if inside.inner <= at else []
    if depth < DEEPEST and shell is not None:
        outer = unwrap(words[:shell], command.env)  # the shell may also be the value of a container's option
        return _in_script(command, text, shell, depth, outer) if outer.inner <= shell - 2 else []
    if depth < DEEPEST and (sent := find_sent(words)):
        outer = Wrapped((), {}) if words[0].text == "ssh" else Wrapped((), command.env)
        return _in_script(command, text, sent, depth, outer)
    wrapped = unwrap(words, command.env) if container_verb([word.text for word in words]) else None
    if wrapped and "sglang" in (wrapped.image or "") and wrapped.inner < len(words):
        inside = unwrap(words[: wrapped.inner], command.env)
        return [_made(command, text, wrapped.inner, inside)] if words[wrapped.inner].text.startswith("-") else []
    if bare and words[0].text.startswith("-"):
        return [_made(command, text, 0, Wrapped(_DEFAULT_PREFIX, command.env))]
    return []


def _made(
    command: Command, text: str, start: int, wrapped: Wrapped, entry: str = "launch_server", at: Span | None = None
) -> Launch:
    return Launch(
        words=command.words[start:],
        env=wrapped.env,
        entry="serve" if entry == "serve" else "launch_server",
        prefix=wrapped.prefix,
        image=wrapped.image,
        text=text,
        unexported=_unexported(command, wrapped),
        at=at,
        begin=_begin(command.words),
    )


def _begin(words: Sequence[Word]) -> Span | None:
    verb = container_verb([word.text for word in words])
    return words[0 if verb is None or verb + 1 >= len(words) else verb + 1].span


def _unexported(command: Command, wrapped: Wrapped) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in command.unexported + wrapped.lost if name not in wrapped.env))


def _in_script(command: Command, text: str, index: int, depth: int, outer: Wrapped) -> list[Launch]:
    """Launches in a word that is a command text, with spans of the outer text."""
    if index >= len(command.words):
        return []
    inside = _launches(command.words[index].text, outer.env, depth + 1, False)
    place = _places(command.words[index], command.sources[index])
    unexported = _unexported(command, outer)
    return [
        msgspec.structs.replace(
            _moved(launch, text, place),
            prefix=outer.prefix + launch.prefix,
            image=launch.image or outer.image,
            unexported=tuple(dict.fromkeys((*unexported, *launch.unexported))),
        )
        for launch in inside
    ]


def _in_document(command: Command, text: str, depth: int) -> list[Launch]:
    """Launches in a here-document; one that is no shell text has none."""
    assert command.document is not None
    body, start = command.document
    if depth >= DEEPEST or "sglang" not in body:
        return []
    try:
        inside = _launches(body, command.env, depth + 1, False)
    except RequestError:
        return []
    return [_moved(launch, text, lambda span: Span(span.start + start, span.end + start)) for launch in inside]


def _moved(launch: Launch, text: str, place: Callable[[Span], Span]) -> Launch:
    def move(words: tuple[Word, ...]) -> tuple[Word, ...]:
        return tuple(msgspec.structs.replace(w, span=place(w.span)) if w.span else w for w in words)

    at = place(launch.at) if launch.at else None
    begin = place(launch.begin) if launch.begin else None
    words, lost = move(launch.words), move(launch.lost)
    return msgspec.structs.replace(launch, text=text, words=words, lost=lost, at=at, begin=begin)


def _places(word: Word, source: Token) -> Callable[[Span], Span]:
    """How a place inside a word's text maps to the text around it: exact where the word is written out literally."""
    whole = Span(source.start, source.end)
    starts = _starts(word.text, source)
    if starts is None:
        return lambda span: whole

    def outer(offset: int) -> Span:
        at = bisect.bisect_right(starts, offset) - 1
        piece = source.pieces[at]
        if piece.kind != "text":
            return Span(piece.start, piece.start + len(piece.raw))
        start = min(piece.start + min(offset - starts[at], len(piece.raw) - 1), source.end)
        return Span(start, start + 1)

    return lambda span: Span(outer(span.start).start, outer(span.end - 1).end) if span.end > span.start else whole


def _starts(text: str, source: Token) -> list[int] | None:
    """Where each piece of a word begins in what it became; None where that cannot be told."""
    starts: list[int] = []
    at = 0
    for index, piece in enumerate(source.pieces):
        starts.append(at)
        if piece.kind == "text":
            if not text.startswith(piece.text, at):
                return None
            at += len(piece.text)
            continue
        following = next((p.text for p in source.pieces[index + 1 :] if p.kind == "text" and p.text), None)
        at = len(text) if following is None else text.find(following, at)
        if at < 0:
            return None
    return starts if at == len(text) else None
