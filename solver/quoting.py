"""Arguments -> shell text that reads back to the same arguments, expansions of unknown value kept alive."""

from __future__ import annotations

import re

from solver.errors import RequestError
from solver.expansion import Word
from solver.shell import PLACEHOLDER, Piece, closing, read_expansion

_SAFE = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_LEFT = re.compile(rf"[$`]|{PLACEHOLDER.pattern}|\A[<>]\(")


def quote(text: str) -> str:
    """One literal argument as shell text."""
    if _SAFE.fullmatch(text):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


def quote_word(word: Word) -> str:
    """One argument as shell text; what is unknown in it is left for the shell to expand."""
    if not word.unknown:
        return quote(word.text)
    return "".join(_piece(piece, word.splits) for piece in _expansions(word.text))


def quote_live(text: str) -> str:
    """A wrapper's argument as shell text: expansions in it stay expansions."""
    return quote_word(Word(text, unknown="$" in text or "`" in text))


def _expansions(text: str) -> tuple[Piece, ...]:
    """The expansions left in an unknown word's text and the literal stretches between; backslashes are literal."""
    pieces: list[Piece] = []
    at = 0
    while match := _LEFT.search(text, at):
        if match.start() > at:
            pieces.append(Piece("text", text[at : match.start()], "", at, True))
        at = match.start()
        try:
            if text[at] in "$`":
                at = read_expansion(text, at, pieces, quoted=True)
            else:
                end = closing(text, 1) if match[0] in ("<(", ">(") else match.end()
                pieces.append(Piece("opaque", text[at:end], text[at:end], at, False))
                at = end
        except RequestError:
            pieces.append(Piece("text", text[at], "", at, True))
            at += 1
    if at < len(text):
        pieces.append(Piece("text", text[at:], "", at, True))
    return tuple(pieces)


def _piece(piece: Piece, splits: bool) -> str:
    if piece.kind == "text":
        return quote(piece.text)
    return piece.raw if splits or not piece.quoted else f'"{piece.raw}"'
