"""What finders hand on: one launch in a file, with the place of each word, and what stands beside it."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import msgspec

from solver.gate.text import Text
from solver.launch import Launch, Word
from solver.records import Span
from solver.release import image_version
from solver.wrappers import container_verb

Kind = Literal[
    "shell", "slurm", "dockerfile", "compose", "kubernetes", "workflow", "systemd", "markdown", "yaml", "json",
    "config", "python", "notebook", "makefile", "restructuredtext",
]  # fmt: skip

UNKNOWN = "${ "
"""How a reference of unknown value begins: no shell variable is called so, so that none is taken for it."""


class Unreadable(Exception):
    """A file, or a part of it, that cannot be read; the text is one line that says why."""


class Item(msgspec.Struct, frozen=True, gc=False):
    """One element of a list of arguments: its stretch of the command text, and its place in the source with quotes."""

    at: Span
    place: Span


class Entry(msgspec.Struct, frozen=True):
    """One key of a configuration mapping with its value, as stretches of the source."""

    key: Span
    value: Span


class Slot(msgspec.Struct, frozen=True):
    """Where a variable for a launch can be written: before an offset of the file, as `text` with {name} and {value}."""

    at: int
    text: str


class Hints(msgspec.Struct, frozen=True):
    """What stands beside a launch: the image, GPUs a node, and their name. None: not said."""

    image: str | None = None
    gpus: int | None = None
    gpu: str | None = None


class Found(msgspec.Struct, frozen=True, dict=True):
    """One launch in a file.

    `launch.text` is the command text it was read from, `text` the same with the way back into the file. `at` is where
    the engine is named, in the file. `placed`: the places of the words, where they are not those of a command text.
    `items` are the elements, where the command is a list; `entries` the keys, where it is a mapping of flags.
    `env_places`: variable -> where it is set; `slot` where another can be. `partial`: more arguments may come from
    elsewhere; `fragment`: so may any flag, as in a template or in a part of a recipe.
    """

    kind: Kind
    launch: Launch
    text: Text
    at: Span
    hints: Hints = Hints()
    placed: tuple[Span | None, ...] | None = None
    items: tuple[Item, ...] = ()
    entries: tuple[Entry, ...] = ()
    env_places: dict[str, Span] = {}
    slot: Slot | None = None
    partial: bool = False
    fragment: bool = False

    @cached_property
    def words(self) -> tuple[Span | None, ...]:
        """The place of each of the launch's words in the file; None for one that is computed."""
        if self.placed is not None:
            return self.placed
        return tuple(self.text.place(word.span) if word.span else None for word in self.launch.words)


class Finds(msgspec.Struct):
    """What a finder made of a text: launches, and lines about parts that it could not read."""

    found: list[Found] = []
    problems: list[str] = []


def found(
    kind: Kind,
    launch: Launch,
    text: Text,
    hints: Hints,
    fallback: Span,
    *,
    items: tuple[Item, ...] = (),
    env_places: dict[str, Span] | None = None,
    slot: Slot | None = None,
) -> Found:
    """A launch that was read from a text, placed in the file. `fallback`: the place of the whole command."""
    at = text.place(launch.at) if launch.at else None
    if at is None:
        at = next((place for w in launch.words if w.span and (place := text.place(w.span))), fallback)
    named = next(filter(image_version, launch.prefix), "").rpartition("=")[2]  # srun --container-image=…
    image = launch.image or named or hints.image
    return Found(
        kind=kind,
        launch=msgspec.structs.replace(launch, image=image, words=tuple(map(_as_written, launch.words))),
        text=text,
        at=at,
        hints=msgspec.structs.replace(hints, image=image),
        items=items,
        env_places=env_places or {},
        slot=slot or _slot(launch, text, items),
    )


def _slot(launch: Launch, text: Text, items: tuple[Item, ...]) -> Slot | None:
    """In shell text a variable stands before the command, or is an option of the container; not so in a list."""
    if launch.begin in {item.at for item in items}:
        return None
    place = text.place(launch.begin) if launch.begin else None
    option = "-e " if container_verb(launch.prefix) is not None else ""
    return Slot(place.start, f"{option}{{name}}={{value}} ") if place else None


def _as_written(word: Word) -> Word:
    """A word whose references of unknown value are shown as a shell would write them."""
    if UNKNOWN not in word.text:
        return word
    return msgspec.structs.replace(word, text=word.text.replace(UNKNOWN, "${"))
