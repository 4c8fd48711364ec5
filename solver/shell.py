"""Shell text -> tokens that know their offsets. Nothing is expanded and nothing is run.

Grammar, the part of POSIX shell and bash that launch scripts use:

    text      := (word | operator | comment | newline | document)*
    word      := piece+                     no blank or operator between the pieces
    piece     := plain | \\char | 'literal' | "literal and expansions" | $'ansi' | expansion | <placeholder>
    expansion := $NAME | ${...} | $(...) | `...` | $1 | $@ | <(...)
    operator  := && || | ; & ( ) newline and redirections (> >> < << <<< >& ...)
    document  := the lines after `<<END` up to END
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from solver.errors import RequestError

Kind = Literal["word", "operator", "document"]


class Piece(msgspec.Struct, frozen=True, gc=False):
    """A stretch of a word: literal `text`, a `variable` (what stands in `${...}`) or something `opaque`.

    `raw` is the piece as written; for literal text it has the length of `text` except inside `$'...'`.
    """

    kind: Literal["text", "variable", "opaque"]
    text: str
    raw: str
    start: int
    quoted: bool


class Token(msgspec.Struct, frozen=True, gc=False):
    """A word, an operator (`text` names it, a newline included) or the body of a here-document."""

    kind: Kind
    text: str
    start: int
    end: int
    pieces: tuple[Piece, ...] = ()


_BLANKS = re.compile(r"(?:[ \t\r]|\\\r?\n)+")
_COMMENT = re.compile(r"#[^\n]*")
PLACEHOLDER = re.compile(r"<[A-Za-z][\w ./:-]*>")
_PROCESS = re.compile(r"[<>]\(")
_OPERATOR = re.compile(r"\n|&>>|&>|&&|\|\||\|&|;;&|;;|;&|[;|&()]|\d*(?:<<<|<<-|<<|<>|<&|>>|>&|>\||>|<)")
_NEXT_PLAIN = re.compile(r"(?:[ \t\r]|\\\r?\n)*([^ \t\r\n\\'\"`$|&;()<>#][^ \t\r\n\\'\"`$|&;()<>]*)(?=[ \t\r\n]|\Z)")
_BEFORE_OPERATOR = frozenset("\n&|;()<>0123456789")
_PLAIN = re.compile(r"[^ \t\r\n\\'\"`$|&;()<>]+")
_PLAIN_LINE = re.compile(r"[^\r\n\\'\"`$|&;()<>#]*")
_PLAIN_WORD = re.compile(r"[^ \t]+")
_QUOTED = re.compile(r"[^\"\\`$]+")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SPECIAL = re.compile(r"[0-9@*#?$!-]")
_NESTING = re.compile(r"[\\'\"`$(){}]")
_ANSI = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|[0-7]{1,3}|.)", re.DOTALL)
_ANSI_CHARS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "E": "\x1b"}
REDIRECTIONS = ("<", ">")
DOCUMENTS = ("<<", "<<-")


def tokens(text: str) -> list[Token]:
    """Split shell text. A quote, `${` or `$(` that is never closed is refused."""
    if (words := plain_words(text)) is not None:
        return [_plain_token(word, at) for word, at in words]
    found: list[Token] = []
    awaited: list[tuple[str, bool]] = []
    at = 0
    while at < len(text):
        if not (found and found[-1].text in DOCUMENTS):
            while plain := _NEXT_PLAIN.match(text, at):
                at, word = plain.end(), plain[1]
                start = at - len(word)
                found.append(Token("word", word, start, at, (Piece("text", word, word, start, False),)))
            if at == len(text):
                break
        char = text[at]
        blank = _BLANKS.match(text, at) if char in " \t\r\\" else _COMMENT.match(text, at) if char == "#" else None
        if blank:
            at = blank.end()
            continue
        operator = _operator(text, at) if char in _BEFORE_OPERATOR else ""
        token = Token("operator", operator, at, at + len(operator)) if operator else _word(text, at)
        if found and token.kind == "word" and found[-1].text in DOCUMENTS:
            awaited.append(("".join(p.text for p in token.pieces), found[-1].text == "<<-"))
        found.append(token)
        at = token.end
        if awaited and operator == "\n":
            for ending, tabs in awaited:
                at = _document(text, at, ending, tabs, found)
            awaited = []
    return found


def plain_words(text: str) -> list[tuple[str, int]] | None:
    """The words of a text with their offsets; None where it has quotes, expansions, operators or comments."""
    if not _PLAIN_LINE.fullmatch(text):
        return None
    return [(match[0], match.start()) for match in _PLAIN_WORD.finditer(text)]


def _plain_token(word: str, start: int) -> Token:
    return Token("word", word, start, start + len(word), (Piece("text", word, word, start, False),))


def _operator(text: str, at: int) -> str:
    """The operator here, or an empty text where a word starts."""
    if text[at] in "<>" and (PLACEHOLDER.match(text, at) or _PROCESS.match(text, at)):
        return ""
    match = _OPERATOR.match(text, at)
    return match[0] if match else ""


def is_redirection(operator: str) -> bool:
    """Whether the next word is a file (or a here-document's end) and not an argument."""
    return operator.lstrip("0123456789&").startswith(REDIRECTIONS)


def _document(text: str, at: int, ending: str, tabs: bool, found: list[Token]) -> int:
    """Append the here-document that starts here; the offset after its last line. Without an end it takes the rest."""
    start = at
    while at < len(text):
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        line = text[at:stop].rstrip("\r")
        if (line.lstrip("\t") if tabs else line) == ending:
            found.append(Token("document", text[start:at], start, at))
            return min(stop + 1, len(text))
        at = stop + 1
    found.append(Token("document", text[start:], start, len(text)))
    return len(text)


def _word(text: str, at: int) -> Token:
    pieces: list[Piece] = []
    start = at
    while at < len(text):
        char = text[at]
        plain = _PLAIN.match(text, at)
        if plain:
            pieces.append(Piece("text", plain[0], plain[0], at, False))
            at = plain.end()
        elif char == "\\":
            at = _escape(text, at, pieces)
        elif char == "'":
            end = _find(text, "'", at + 1, at)
            pieces.append(Piece("text", text[at + 1 : end], text[at + 1 : end], at + 1, True))
            at = end + 1
        elif char == '"':
            at = _double(text, at + 1, pieces)
        elif char in "$`":
            at = read_expansion(text, at, pieces, quoted=False)
        elif char in "<>" and (placeholder := PLACEHOLDER.match(text, at)):
            pieces.append(Piece("opaque", placeholder[0], placeholder[0], at, True))
            at = placeholder.end()
        elif char in "<>" and at == start:
            at = _take(text, at, closing(text, at + 1), pieces, quoted=True)
        else:
            break
    return Token("word", text[start:at], start, at, tuple(pieces))


def _escape(text: str, at: int, pieces: list[Piece]) -> int:
    """A backslash outside quotes: joins lines, or makes the next character literal."""
    following = text[at + 1 : at + 2]
    if following == "\n" or text[at + 1 : at + 3] == "\r\n":
        return at + 2 + (following == "\r")
    if following:
        pieces.append(Piece("text", following, following, at + 1, True))
        return at + 2
    pieces.append(Piece("text", "\\", "\\", at, True))
    return at + 1


def _double(text: str, at: int, pieces: list[Piece]) -> int:
    """Read up to the closing double quote; the offset after it."""
    opened = at - 1
    if text.startswith('"', at):
        pieces.append(Piece("text", "", "", at, True))
    while at < len(text):
        if text[at] == '"':
            return at + 1
        at = _quoted(text, at, pieces)
    raise unclosed(text, opened)


def quoted_pieces(text: str) -> tuple[Piece, ...]:
    """The pieces of a text as they would be inside double quotes, quotes in it dropped."""
    pieces: list[Piece] = []
    at = 0
    while at < len(text):
        at = at + 1 if text[at] == '"' else _quoted(text, at, pieces)
    return tuple(pieces)


def _quoted(text: str, at: int, pieces: list[Piece]) -> int:
    """Read one piece inside double quotes."""
    if plain := _QUOTED.match(text, at):
        pieces.append(Piece("text", plain[0], plain[0], at, True))
        return plain.end()
    if text[at] == "\\":
        return _quoted_escape(text, at, pieces)
    return read_expansion(text, at, pieces, quoted=True)


def _quoted_escape(text: str, at: int, pieces: list[Piece]) -> int:
    """A backslash inside double quotes is literal except before `$`, a backtick, a quote, itself and a line end."""
    following = text[at + 1 : at + 2]
    if following == "\n":
        return at + 2
    if following and following in '$`"\\':
        pieces.append(Piece("text", following, following, at + 1, True))
        return at + 2
    pieces.append(Piece("text", "\\", "\\", at, True))
    return at + 1


def read_expansion(text: str, at: int, pieces: list[Piece], *, quoted: bool) -> int:
    """Read what `$` or a backtick starts; a `$` that starts nothing is literal."""
    following = text[at + 1 : at + 2]
    if text[at] == "`" or following == "(":
        return _take(text, at, closing(text, at), pieces, quoted=quoted)
    if following == "{":
        end = closing(text, at)
        pieces.append(Piece("variable", text[at + 2 : end - 1], text[at:end], at, quoted))
        return end
    if name := _NAME.match(text, at + 1):
        pieces.append(Piece("variable", name[0], text[at : name.end()], at, quoted))
        return name.end()
    if _SPECIAL.match(text, at + 1):
        return _take(text, at, at + 2, pieces, quoted=quoted)
    if following == "'" and not quoted:
        return _ansi(text, at, pieces)
    if following == '"' and not quoted:
        return at + 1
    pieces.append(Piece("text", "$", "$", at, True))
    return at + 1


def _take(text: str, at: int, end: int, pieces: list[Piece], *, quoted: bool) -> int:
    pieces.append(Piece("opaque", text[at:end], text[at:end], at, quoted))
    return end


def _ansi(text: str, at: int, pieces: list[Piece]) -> int:
    """Read a `$'...'` literal with its C escapes."""
    end = at + 2
    while end < len(text) and text[end] != "'":
        end += 1 + (text[end] == "\\")
    if end >= len(text):
        raise unclosed(text, at + 1)
    raw = text[at + 2 : end]
    pieces.append(Piece("text", _ANSI.sub(_ansi_char, raw), raw, at + 2, True))
    return end + 1


def _ansi_char(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "xu" and len(code) > 1:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code[0] in "01234567" else _ANSI_CHARS.get(code, code)


def closing(text: str, at: int) -> int:
    """The offset after the `$(...)`, `${...}`, `(...)` or backticks that start at `at`; nesting and quotes count."""
    opened = at
    awaited: list[str] = []
    while match := _NESTING.search(text, at):
        char, at = match[0], match.end()
        top = awaited[-1] if awaited else ""
        if char == "\\":
            at += 1
        elif char == top:
            awaited.pop()
        elif char == "$" and text[at : at + 1] in ("(", "{"):
            awaited.append({"(": ")", "{": "}"}[text[at]])
            at += 1
        elif char == "`" or (char == '"' and top in (")", "}")):
            awaited.append(char)
        elif char == "'" and top == ")":
            at = _find(text, "'", at, opened) + 1
        elif char == "(" and top in (")", ""):
            awaited.append(")")
        if not awaited:
            return at
    raise unclosed(text, opened)


def _find(text: str, char: str, at: int, opened: int) -> int:
    found = text.find(char, at)
    if found < 0:
        raise unclosed(text, opened)
    return found


def unclosed(text: str, opened: int) -> RequestError:
    """The refusal for a quote or bracket without an end."""
    line = text.count("\n", 0, opened) + 1
    column = opened - text.rfind("\n", 0, opened)
    what = text[opened : opened + 1 + (text[opened] in "$<>")]
    return RequestError(f"the command breaks off: {what} on line {line}, column {column} is never closed")
