"""A job -> the engine's own configuration file, and the command that reads it.

What a release does not take from a file (some kinds of flags, variables) stays on that command, which stands in the
file's first lines.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

from solver.config_file import arguments_of_key
from solver.handoff.command import DEFAULT_PREFIX, flag_words, ordered
from solver.handoff.job import Job
from solver.handoff.yaml_text import yaml_text

FILE = "sglang.yaml"
_DECIMAL = re.compile(r"(?:0|[1-9]\d{0,8})(?:\.\d{1,6})?", re.ASCII)


def config(job: Job) -> str:
    """The file, with the command in comments."""
    keys, rest = entries_of(job)
    variables = [f"{name}={shlex.quote(value)}" for name, value in job.env.items()]
    line = " ".join([*variables, *DEFAULT_PREFIX, "--config", FILE, *map(shlex.quote, rest)])
    if len(line.splitlines()) > 1:
        line = f"{' '.join(DEFAULT_PREFIX)} --config {FILE}, with what `--emit shell` has beside the flags below"
    return "\n".join([f"# {job.title}", f"# Save it as {FILE} and start:", f"#   {line}", yaml_text(keys)])


def entries_of(job: Job) -> tuple[dict[str, Any], list[str]]:
    """The keys of the file, and the arguments that the release would not take from it."""
    keys: dict[str, Any] = {}
    rest: list[str] = []
    for name in ordered(job.given):
        words = flag_words(job.flags[name], job.given[name])
        found = next(_entries(job, name, words), None) if words else None
        if found:
            keys[found[0]] = found[1]
        else:
            rest += words
    return keys, rest


def _entries(job: Job, name: str, words: list[str]) -> Iterator[tuple[str, Any]]:
    """Keys with values that the release turns into just these words, or the same after another spelling."""
    spellings = (words[0], *(s for s in job.flags[name].spellings if s.startswith("--")))
    for spelling in dict.fromkeys(spellings):
        key, values = spelling[2:], words[1:]
        for value in _values(values):
            try:
                made = arguments_of_key(key, value, job.flags, job.features)
            except ValueError:
                continue
            if made == [spelling, *values]:
                yield key, value


def _values(words: list[str]) -> Iterator[Any]:
    """What a key's value may be to become these words: nicest first."""
    if len(words) == 1:
        yield _number(words[0])
        yield words[0]
    yield [_number(word) for word in words] or True


def _number(text: str) -> Any:
    """A text that is a plain number as one, if it is written as YAML would write it."""
    if not _DECIMAL.fullmatch(text):
        return text
    number = float(text) if "." in text else int(text)
    return number if str(number) == text else text
