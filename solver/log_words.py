"""An exception without its traceback -> the functions of the engine that say such a thing, from fingerprints.

The engine's sentences are not kept: for each place that raises, knowledge/sglang/messages.yaml has the checksum of a
few words in a row that no more than a few places share. The same is computed from the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from zlib import crc32

import msgspec

from solver.log_events import Event, Frame

ROW = 4
"""Words in a row that make a fingerprint."""
WORD = re.compile(r"[A-Za-z_][\w-]+")
PACKAGE = "sglang/"


def fingerprints(text: str) -> Iterator[int]:
    """The checksum of every row of words in a text, in order."""
    words = [w.lower() for w in WORD.findall(text)]
    for start in range(len(words) - ROW + 1):
        yield crc32(" ".join(words[start : start + ROW]).encode())


def places_by_fingerprint(messages: Mapping[str, Mapping[str, Iterable[int]]]) -> dict[int, list[Frame]]:
    """Module -> function -> fingerprints, turned round: fingerprint -> the places that say it."""
    found: dict[int, list[Frame]] = {}
    for module, functions in messages.items():
        for function, prints in functions.items():
            for fingerprint in prints:
                found.setdefault(fingerprint, []).append(Frame(PACKAGE + module, function))
    return found


def placed(event: Event, places: Mapping[int, list[Frame]]) -> Event:
    """An event whose exceptions have no frame of the engine, with those of the functions that say such a thing."""
    if not event.raised or any(PACKAGE in f.file for f in event.frames):
        return event
    frames = [frame for f in fingerprints(event.text) for frame in places.get(f, ())]
    first = msgspec.structs.replace(event.raised[0], frames=(*event.raised[0].frames, *reversed(frames)))
    return msgspec.structs.replace(event, raised=(first, *event.raised[1:]))
