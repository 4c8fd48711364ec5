"""Records of a log -> events: what each message raised, exception by exception, root first, with its frames."""

from __future__ import annotations

import re

import msgspec

from solver.log_lines import TRACEBACK, Record

FRAME = re.compile(r'\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:,? in (?P<function>.+))?')
LOOSE_FRAME = re.compile(
    r"(?P<file>(?:[\w.-]+/)+[\w.-]+\.(?:py|cuh?|cpp|cc|hpp|h))(?:\"?, line |:)(?P<line>\d+)(?:,? in (?P<function>\w+))?"
)
"""A place as a shortened log or a C++ check names it."""
RAISED = re.compile(
    r"(?P<kind>(?:[A-Za-z_][\w.]*)?(?:Error|Exception|Interrupt|Exit|OutOfResources|Timeout))(?:: ?(?P<message>.*)|$)"
)
TELLING = re.compile(r"[Ee]rror|Exception|Interrupt|Exit|OutOfResources|Timeout|\.(?:py|cuh?|cpp|cc|hpp|h)\b")
"""What stands in every exception and every place."""
FATAL = re.compile(r"Fatal Python error: (.+)")
CHAIN = re.compile(r"(?:During handling of the above exception|The above exception was the direct cause)")


class Frame(msgspec.Struct, frozen=True):
    """One line of a traceback, the function as far as it is told."""

    file: str
    function: str | None


class Raised(msgspec.Struct, frozen=True):
    """One exception of a chain: its frames outermost first; its class and the first line of its message, if not cut."""

    frames: tuple[Frame, ...]
    kind: str | None
    message: str


class Event(msgspec.Struct, frozen=True):
    """One message of the log, the numbers of its lines, and the exceptions in it, the root of a chain first."""

    rank: str | None
    text: str
    numbers: tuple[int, ...]
    raised: tuple[Raised, ...]

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames of all exceptions, the innermost of the root cause first."""
        return tuple(frame for raised in self.raised for frame in reversed(raised.frames))

    def survived(self, died: str) -> bool:
        """Whether it raised something and does not say, in the engine's words, that the process went down."""
        return any(r.kind for r in self.raised) and died not in self.text


def event_of(record: Record) -> Event:
    """A record with its tracebacks read."""
    text = "\n".join(record.lines)
    if not TELLING.search(text):  # nearly every message of a server that served for days
        return Event(record.rank, text, record.numbers, ())
    native = next((m[1] for t in record.lines if (m := FATAL.match(t))), None)
    raised = (native_crash(native, record.lines),) if native else raised_in(record.lines)
    return Event(record.rank, text, record.numbers, raised)


def raising(event: Event) -> Event:
    """A message that raises nothing, taken for an exception of which only the message is left."""
    return msgspec.structs.replace(event, raised=event.raised or (Raised((), None, event.text),))


def native_crash(kind: str, lines: tuple[str, ...]) -> Raised:
    """What the fault handler writes of a native crash: the stack of the thread that crashed, newest call first."""
    start = next((n for n, t in enumerate(lines) if t.startswith("Current thread")), 0)
    frames: list[Frame] = []
    for text in lines[start + 1 :]:
        frame = FRAME.match(text)
        if frame is None and frames:
            break
        if frame:
            frames.append(Frame(frame["file"], frame["function"]))
    return Raised(tuple(reversed(frames)), kind, "")


def raised_in(lines: tuple[str, ...]) -> tuple[Raised, ...]:
    """The exceptions of a message in the order in which they were raised; what is cut off is left out."""
    found: list[Raised] = []
    frames: list[Frame] = []
    inside = False
    for text in lines:
        if TRACEBACK in text or CHAIN.match(text.strip()):
            if frames:
                found.append(Raised(tuple(frames), None, ""))
            frames, inside = [], True
            continue
        frame = FRAME.match(text) or LOOSE_FRAME.search(text)
        if frame and (inside or frame.re is LOOSE_FRAME or not frames or text[:1].isspace()):
            frames.append(Frame(frame["file"], (frame["function"] or "").strip() or None))
            if RAISED.match(text.strip()) is None:
                continue
        raised = RAISED.match(text) if inside or frames else RAISED.match(text.strip())
        if raised:
            found.append(Raised(tuple(frames), raised["kind"].rsplit(".", 1)[-1], (raised["message"] or "").strip()))
            frames, inside = [], False
    if frames:
        found.append(Raised(tuple(frames), None, ""))
    return tuple(found)
