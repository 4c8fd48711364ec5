"""A text and where each stretch of it stands in the file it came from.

Launches are read from texts that no file holds as they are: a YAML block string without its indentation, a JSON string
without its escapes, a list of arguments as one command line. Each such text keeps the way back.
"""

from __future__ import annotations

import bisect

import msgspec

from solver.records import Span


class Piece(msgspec.Struct, frozen=True, gc=False):
    """The characters from `at` stand in the file from `start` to `end`; one to one where the lengths agree."""

    at: int
    length: int
    start: int
    end: int


class Text:
    """A text with its places. Offsets count characters, ends are exclusive; what no piece covers was computed."""

    __slots__ = ("_starts", "pieces", "text")

    def __init__(self, text: str, pieces: tuple[Piece, ...]) -> None:
        self.text = text
        self.pieces = pieces
        self._starts: list[int] | None = None

    @classmethod
    def whole(cls, text: str) -> Text:
        """A whole file."""
        return cls(text, (Piece(0, len(text), 0, len(text)),))

    def _first(self, offset: int) -> int:
        """Index of the first piece that ends after an offset."""
        if self._starts is None:
            self._starts = [piece.at for piece in self.pieces]
        index = bisect.bisect_right(self._starts, offset) - 1
        return index if index >= 0 and self.pieces[index].at + self.pieces[index].length > offset else index + 1

    def place(self, span: Span) -> Span | None:
        """Where a stretch stands in the file; None where all of it was computed."""
        if span.end <= span.start:
            return None
        if len(self.pieces) == 1 and _is_literal(self.pieces[0]):
            piece = self.pieces[0]
            move, end = piece.start - piece.at, piece.at + piece.length
            if piece.at <= span.start and span.end <= end:
                return Span(span.start + move, span.end + move) if move else span
            return Span(max(span.start, piece.at) + move, min(span.end, end) + move) if span.start < end else None
        first, last = self._first(span.start), self._first(span.end)
        if last == len(self.pieces) or self.pieces[last].at >= span.end:
            last -= 1
        if first > last:
            return None
        head, tail = self.pieces[first], self.pieces[last]
        before, after = span.start - head.at, span.end - tail.at
        start = head.start + (before if before > 0 and _is_literal(head) else 0)
        end = tail.start + after if after < tail.length and _is_literal(tail) else tail.end
        return Span(start, end)

    def cut(self, start: int, end: int) -> Text:
        """A stretch of this text."""
        return Text(self.text[start:end], tuple(self.pieces_at(start, end, 0)))

    def pieces_at(self, start: int, end: int, at: int) -> list[Piece]:
        """The places of a stretch of this text, as a text has them in which it begins at an offset."""
        if len(self.pieces) == 1:  # nearly always: a whole file
            piece = self.pieces[0]
            if _is_literal(piece) and piece.at <= start and end <= piece.at + piece.length:
                move = piece.start - piece.at
                return [Piece(at, end - start, start + move, end + move)] if end > start else []
        pieces = []
        move = at - start
        for index in range(self._first(start), len(self.pieces)):
            piece = self.pieces[index]
            if piece.at >= end:
                break
            left, right = max(start - piece.at, 0), min(end - piece.at, piece.length)
            if _is_literal(piece):
                pieces.append(Piece(piece.at + left + move, right - left, piece.start + left, piece.start + right))
            else:
                pieces.append(Piece(piece.at + left + move, right - left, piece.start, piece.end))
        return pieces


def _is_literal(piece: Piece) -> bool:
    return piece.end - piece.start == piece.length


class Builder:
    """Puts a text together from stretches of another one and from what is written nowhere."""

    def __init__(self, source: Text) -> None:
        self.source = source
        self.parts: list[str] = []
        self.pieces: list[Piece] = []
        self._length = 0
        self._from = self._until = 0
        """The stretch that was taken last, as far as it goes on: many short ones in a row are one."""

    @property
    def length(self) -> int:
        """Characters so far."""
        return self._length + self._until - self._from

    def take(self, start: int, end: int) -> None:
        """A stretch of the source as it stands."""
        if end <= start:
            return
        if start != self._until:
            self._settle()
            self._from = start
        self._until = end

    def _settle(self) -> None:
        """Write down what was taken."""
        start, end = self._from, self._until
        if end > start:
            self.pieces += self.source.pieces_at(start, end, self._length)
            self._append(self.source.text[start:end])
            self._from = end

    def add(self, text: Text) -> None:
        """A text with places of its own."""
        if self._until > self._from:
            self._settle()
        length = self._length
        for piece in text.pieces:
            self.pieces.append(Piece(piece.at + length, piece.length, piece.start, piece.end))
        self._append(text.text)

    def replace(self, start: int, end: int, text: str) -> None:
        """What a stretch of the source stands for: an escape, a folded line end."""
        self._settle()
        place = self.source.place(Span(start, end))
        if place is not None and text:
            self.pieces.append(Piece(self._length, len(text), place.start, place.end))
        self._append(text)

    def compute(self, text: str) -> None:
        """Characters that stand nowhere in the file."""
        if self._until > self._from:
            self._settle()
        self._append(text)

    def _append(self, text: str) -> None:
        self.parts.append(text)
        self._length += len(text)

    def finish(self) -> Text:
        self._settle()
        return Text("".join(self.parts), tuple(self.pieces))
