"""Text of a server log -> its records: one message each, in order, with the rank that wrote it.

What others put in front of a line (Docker, Compose, kubectl, CRI, the journal, Ray, torchrun, mpirun, srun, a logging
wrapper) is taken off, and kept as the stream a line belongs to where it names one. Inside a stream the engine starts
each message with `[date time RANK]`; a line without it continues the message before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import msgspec

ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-Z\\-_])")
ANSI_CUT = re.compile(r"(?<![\w\x1b])\[(?:\d{1,3}(?:;\d{1,3})*)?m")
"""A colour code whose escape character was lost on the way, as in a copied terminal."""
REPEATED = re.compile(r" \[repeated \d+x across cluster\].*$")
"""What Ray adds to a line that several workers wrote."""
WRAPPERS = (
    re.compile(r"\[pod/(?P<stream>[^\]\s]+)\] ?"),
    re.compile(r"(?P<stream>[A-Za-z][\w.-]*?[-_]?\w*) +\| ?"),
    re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)? (?:std(?:out|err) [FP] )?"),
    re.compile(r"[A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d (?:\S+ )?(?P<stream>[\w.@-]+\[\d+\]): ?"),
    re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[,.]\d+ - \S+ - [A-Z]+ - ?"),
    re.compile(r"\d\d-\d\d \d\d:\d\d:\d\d\.\d+ "),
    re.compile(r"\((?P<stream>[\w.:]+ pid=\d+(?:, ip=[\d.:a-f]+)?)\) ?"),
    re.compile(r"\[(?P<rank>rank\d+|default\d+)\]:(?: |$)"),
    re.compile(r"\[(?P<stream>\d+,\d+)\]<std(?:out|err)>:"),
    re.compile(r"(?P<stream>\d{1,4}): (?=  File \"|Traceback |\[\d{4}-)"),
)
"""What stands in front of a line; tried again after each that was taken off."""
PREFIX = re.compile(r"\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?)?(?P<rank>(?: ?[A-Z][A-Z_]*\d+)*)\](?: |$)")
STARTS = re.compile(
    r"(?:INFO|WARNING|ERROR|DEBUG|CRITICAL|FATAL):|[EWIF]\d{4} |\[[EWIF]\d{3,} |usage: |Fatal Python error"
    r"|\S*\.py: error: |\+ |[\w.-]+:\d+:\d+ \[\d+\] "
)
"""Unprefixed lines that begin a message of their own."""
TRACEBACK = "Traceback (most recent call last):"
CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
MOST_WRAPPERS = 4


class Record(msgspec.Struct, frozen=True):
    """One message: who wrote it, its lines, and their numbers in the log, which count from 1."""

    rank: str | None
    lines: tuple[str, ...]
    numbers: tuple[int, ...]


class _Open:
    """A message that may still be continued. `unfinished`: its traceback has not come to the exception yet."""

    def __init__(self, number: int, rank: str | None, text: str) -> None:
        self.rank, self.lines, self.numbers = rank, [text], [number]
        self.unfinished = TRACEBACK in text

    def add(self, number: int, text: str) -> None:
        """Take a line that has no prefix of its own."""
        self.lines.append(text)
        self.numbers.append(number)
        self.unfinished = TRACEBACK in text or (self.unfinished and (text[:1].isspace() or not text))

    def closes_before(self, text: str) -> bool:
        """Whether an unprefixed line begins something new."""
        if STARTS.match(text):
            return True
        if not text.startswith(TRACEBACK):
            return False
        before = next((t for t in reversed(self.lines) if t.strip()), "")
        return not before.startswith(CHAINED)


def records_of(text: str) -> list[Record]:
    """The messages of a log, by the line on which they start."""
    open_by_stream: dict[str, _Open] = {}
    done: list[_Open] = []
    for number, stream, rank, begins, line in _lines(text):
        current = open_by_stream.get(stream)
        if current is None or begins or current.closes_before(line):
            current = _Open(number, rank, line)
            done.append(current)
            cut_in = open_by_stream.get(stream)
            if cut_in is not None and cut_in.unfinished and begins and not current.unfinished:
                continue  # a short message of another rank in the middle of a traceback, which goes on after it
            open_by_stream[stream] = current
        else:
            current.add(number, line)
    return [Record(r.rank, tuple(r.lines), tuple(r.numbers)) for r in done if any(t.strip() for t in r.lines)]


def _lines(text: str) -> Iterator[tuple[int, str, str | None, bool, str]]:
    """Number, stream, rank, whether a message begins here, and the bare text of each line."""
    for number, raw in enumerate(text.removesuffix("\n").split("\n"), 1):
        for part in raw.rstrip("\r").split("\r"):
            yield (number, *bare(part))


def bare(line: str) -> tuple[str, str | None, bool, str]:
    """Stream, rank, whether a message begins, and the text of one line without colours and prefixes."""
    line = REPEATED.sub("", ANSI_CUT.sub("", ANSI.sub("", _unpacked(line))).rstrip("\n"))
    stream, rank = "", None
    for _ in range(MOST_WRAPPERS if line[:1].strip() else 0):
        match = next((m for w in WRAPPERS if (m := w.match(line))), None)
        if match is None:
            break
        found = match.groupdict()
        rank = found.get("rank") or rank
        stream += found.get("stream") or found.get("rank") or ""
        line = line[match.end() :]
    prefix = PREFIX.match(line)
    if prefix is None or not (prefix["time"] or prefix["rank"]):
        return stream, rank, False, line
    return stream, prefix["rank"].strip() or rank, True, line[prefix.end() :]


def _unpacked(line: str) -> str:
    """The text inside a line of Docker's JSON log files; any other line as it is."""
    if line.startswith('{"log":'):
        try:
            return str(json.loads(line)["log"])
        except (ValueError, KeyError):
            return line
    return line
