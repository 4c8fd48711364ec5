"""A solved launch and its context -> `Job`: all that a container, a unit or a batch script has to say of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from solver.context import Context
from solver.handoff.command import argv_of
from solver.records import FlagForm

UNKNOWN_IMAGE = "registry.example.com/sglang:v{release}"


class Job(msgspec.Struct, frozen=True):
    """One launch that is handed over.

    `title` says in one line what is served and where; `gpus` a node are used, `all_gpus` of it or not; `nodes` serve
    together; `paths` of the machine are read (`relative`: to where the launch starts).
    """

    title: str
    release: str
    given: dict[str, Any]
    env: dict[str, str]
    flags: Mapping[str, FlagForm]
    tables: Mapping[str, Any]
    amd: bool
    gpus: int
    all_gpus: bool
    nodes: int
    image: str
    paths: tuple[str, ...]
    relative: tuple[str, ...]

    def argv(self, python: str, given: Mapping[str, Any] | None = None) -> tuple[str, ...]:
        """The command, started by an interpreter of that name."""
        return argv_of(self.given if given is None else given, self.flags, (python, "-m", "sglang.launch_server"))

    @property
    def port(self) -> int:
        name = self.tables["server_address"]["port"]
        return int(self.given.get(name) or self.flags[name].default)

    @property
    def features(self) -> Collection[str]:
        """What the release's launcher does with its arguments."""
        return self.tables.get("launcher_features") or ()


def job_of(context: Context, given: Mapping[str, Any], env: Mapping[str, str], idle: int | None) -> Job:
    """What is handed over; `idle` GPUs of the machine stay without work (None: not known)."""
    program, hardware = context.resolver.program, context.facts.hardware
    nodes = int(given.get(program.tables["several_nodes"]["nodes"]) or 1)
    machine = int(hardware["gpus"])
    numbered = any(name in given or name in env for name in program.tables["gpu_numbering"])
    used = machine if nodes > 1 or numbered else machine - (idle or 0)
    served = given.get("model_path") or context.model_name
    paths = list(_paths(given, program.tables["path_flags"]))
    return Job(
        title=one_line(f"{served} on {context.hardware_name}, SGLang {context.release}"),
        release=context.release,
        given=dict(given),
        env=dict(sorted(env.items())),
        flags=program.flags,
        tables=program.tables,
        amd=hardware.get("vendor") == "amd",
        gpus=used,
        all_gpus=used == machine,
        nodes=nodes,
        image=_image(program.tables["container_images"], hardware).replace("{release}", context.release),
        paths=tuple(dict.fromkeys(p.rstrip("/") or p for p in paths if p.startswith("/"))),
        relative=tuple(dict.fromkeys(p for p in paths if p.startswith("."))),
    )


def one_line(text: str) -> str:
    """A text that cannot leave the comment it stands in."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _image(images: Mapping[str, str], hardware: Mapping[str, Any]) -> str:
    """The image for the GPUs of a machine; a placeholder where none is known."""
    names = (str(hardware.get("gfx")), str(hardware.get("vendor")))
    return next((images[name] for name in names if name in images), UNKNOWN_IMAGE)


def _paths(given: Mapping[str, Any], names: Collection[str]) -> Iterator[str]:
    """What may be paths among the values of flags that name files; of `name=path` the path."""
    for name in names:
        value = given.get(name)
        for item in value if isinstance(value, list | tuple) else [value]:
            text = item.get("lora_path") if isinstance(item, dict) else item
            if isinstance(text, str):
                yield text.partition("=")[2] or text
