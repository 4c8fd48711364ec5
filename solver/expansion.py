"""A shell word's pieces and the variables assigned so far -> the arguments it stands for, with what cannot be known."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from solver.errors import RequestError
from solver.records import Span
from solver.shell import Piece, Token, quoted_pieces

DEEPEST = 10  # defaults inside defaults inside defaults ...; deeper ones count as unknown


class Word(msgspec.Struct, frozen=True, gc=False):
    """One argument. `unknown`: it holds an expansion whose value cannot be known, left in `text` as written.

    `splits`: that expansion is not quoted, so the shell may make several arguments of it, or none.
    """

    text: str
    span: Span | None = None
    unknown: bool = False
    splits: bool = False


LONGEST = 16_384
"""Characters of the longest value that is kept, and words of the longest array: a longer one counts as unknown."""
LONGEST_COMMAND = 2_000_000
"""Characters of a command's arguments; Linux allows as many."""
OPEN = "${:"
"""How a part of unknown value begins in a text that is known otherwise: no variable is called so."""
Value = str | tuple[Word, ...] | None  # a text (it may have open parts), an array, or assigned but unknown
Variables = dict[str, Value]

_TEXT = {"text"}
_NAMED = re.compile(r"\w+", re.ASCII)
_POSITION = re.compile(r"\$[0-9@*#]")
_FORM = re.compile(r"([A-Za-z_]\w*|[0-9@*#])(\[[@*]\])?(?:(:?[-=+?])(.*))?", re.ASCII | re.DOTALL)


def expand(token: Token, variables: Variables) -> tuple[Word, ...]:
    """The arguments that a word becomes. `${X:=default}` assigns, as in the shell."""
    span = Span(token.start, token.end)
    if {piece.kind for piece in token.pieces} <= _TEXT:
        return (Word("".join([piece.text for piece in token.pieces]), span),)
    fields = _Fields(span)
    for piece in token.pieces:
        value = piece.text if piece.kind == "text" else resolve(piece, variables)
        if value is None:
            fields.add_unknown(piece)
        elif isinstance(value, tuple) and piece.quoted and "*" in piece.raw:
            fields.add_joined(value)
        elif isinstance(value, tuple):
            fields.add_array(value)
        elif piece.quoted or piece.kind == "text":
            fields.add(value)
        else:
            fields.add_split(value)
    return fields.finish()


def expand_all(tokens: Sequence[Token], variables: Variables) -> tuple[tuple[Word, ...], tuple[Token, ...]]:
    """The arguments that several words become, and the token of each. Errors: RequestError where they are too long."""
    words: list[Word] = []
    sources: list[Token] = []
    length = 0
    for token in tokens:
        pieces = token.pieces
        if len(pieces) == 1 and pieces[0].kind == "text":  # nearly always
            words.append(Word(pieces[0].text, Span(token.start, token.end)))
            sources.append(token)
            length += len(pieces[0].text)
        else:
            expanded = expand(token, variables)
            words += expanded
            sources += [token] * len(expanded)
            length += sum([len(word.text) for word in expanded])
        if length > LONGEST_COMMAND:
            raise too_long()
    return tuple(words), tuple(sources)


def too_long() -> RequestError:
    """The refusal of a command that grows beyond what could be started."""
    return RequestError(f"a command becomes longer than {LONGEST_COMMAND:,} characters")


def text_of(pieces: tuple[Piece, ...], variables: Variables) -> str | None:
    """The value of an assignment's right side: no splitting; None where nothing of it is known."""
    parts: list[str] = []
    known = False
    for piece in pieces:
        value = piece.text if piece.kind == "text" else resolve(piece, variables)
        if isinstance(value, tuple):
            value = None if any(word.unknown for word in value) else " ".join(word.text for word in value)
        known = known or bool(value)
        parts.append(open_part(piece.text) if value is None else value)
        if len(parts[-1]) > LONGEST or len(parts) > LONGEST:
            return None
    if sum(map(len, parts)) > LONGEST:
        return None
    return "".join(parts) if known or OPEN not in "".join(parts) else None


def open_part(name: str) -> str:
    """What stands for an unknown part of a text."""
    named = _NAMED.search(name)
    return f"{OPEN}{named[0] if named else ''}}}"


def known_text(value: Value) -> str | None:
    """A text all of which is known, or None."""
    return value if isinstance(value, str) and OPEN not in value else None


def resolve(piece: Piece, variables: Variables, depth: int = 0) -> Value:
    """The value of one expansion; None is unknown, as a variable that nobody assigned is, unless a default is given."""
    if piece.kind == "opaque":
        return variables.get(piece.raw[1:]) if _POSITION.fullmatch(piece.raw) else None
    form = _FORM.fullmatch(piece.text)
    if form is None:
        return None
    name, whole, operator, operand = form.groups()
    value = variables.get(name)
    if isinstance(value, tuple) and not whole:
        value = value[0].text if value and not value[0].unknown else None
    if operator is None or operator[-1] == "?":
        return value
    given = name in variables and (value is None or operator[0] != ":" or bool(value))
    if operator[-1] == "+":
        return _operand(operand, variables, depth) if given and value is not None else None if given else ""
    if given:
        return value
    default = _operand(operand, variables, depth)
    if operator[-1] == "=":
        variables[name] = default
    return default


def _operand(text: str, variables: Variables, depth: int) -> str | None:
    """The value of the text after `:-` and the like."""
    if depth >= DEEPEST:
        return None
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    if "$" not in text and "`" not in text and "\\" not in text:
        return text
    try:
        pieces = quoted_pieces(text)
    except RequestError:
        return None
    parts: list[str] = []
    for piece in pieces:
        value = piece.text if piece.kind == "text" else resolve(piece, variables, depth + 1)
        if not isinstance(value, str):
            return None
        parts.append(value)
    return "".join(parts)


class _Fields:
    """Collects the arguments of one word while its pieces are expanded."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.done: list[Word] = []
        self.parts: list[str] = []
        self.length = 0
        self.started = self.unknown = self.splits = False

    def add(self, text: str) -> None:
        self.length += len(text)
        if self.length > LONGEST_COMMAND:
            raise too_long()
        self.parts.append(text)
        self.started = True
        self.unknown = self.unknown or OPEN in text

    def add_unknown(self, piece: Piece) -> None:
        self.add(piece.raw)
        self.unknown = True
        self.splits = self.splits or not piece.quoted

    def add_array(self, words: tuple[Word, ...]) -> None:
        """Elements keep the place where they were written; the first joins the text before it."""
        if not self.started and words:
            self.done.extend(words)
            return
        for index, word in enumerate(words):
            if index:
                self.end()
            self.add(word.text)
            self.unknown = self.unknown or word.unknown

    def add_joined(self, words: tuple[Word, ...]) -> None:
        """`"${A[*]}"`: all elements in one argument."""
        self.add(" ".join(word.text for word in words))
        self.unknown = self.unknown or any(word.unknown for word in words)

    def add_split(self, text: str) -> None:
        fields = text.split()
        if text[:1].isspace():
            self.end()
        for index, field in enumerate(fields):
            if index:
                self.end()
            self.add(field)
            self.splits = self.splits or OPEN in field
        if text[-1:].isspace():
            self.end()

    def end(self) -> None:
        if self.started:
            text = "".join(self.parts)
            self.done.append(Word(text.replace(OPEN, "${"), self.span, self.unknown, self.splits))
        self.parts, self.started, self.unknown, self.splits = [], False, False, False

    def finish(self) -> tuple[Word, ...]:
        self.end()
        return tuple(self.done)
