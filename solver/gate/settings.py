"""`[tool.flagwise]` of pyproject.toml, or flagwise.toml -> what is said about launches by the path of their file.

    [tool.flagwise]                       # in flagwise.toml without this head
    model = "qwen3.5-397b-a17b-nvfp4"     # also: hardware, release, fail-on
    exclude = ["third_party/**"]

    [[tool.flagwise.files]]               # later ones win
    paths = ["deploy/h100/**"]
    hardware = "8xh100-sxm"

    [[tool.flagwise.ignore]]
    rule = "repeated-flag"
    because = "the second value overrides the image's on purpose"
    paths = ["deploy/**"]                 # everywhere when left out

Paths are globs from the folder of the file: `*` stays inside a name, `**` goes through folders.
"""

from __future__ import annotations

import os
import re
from itertools import compress
from typing import Any, Literal

import msgspec

from solver.errors import RequestError
from solver.inputs import file_text

NAMES = ("flagwise.toml", "pyproject.toml")


class Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """What is said about some launches. None: nothing."""

    model: str | None = None
    hardware: str | None = None
    release: str | None = None
    fail_on: Literal["error", "warning", "note"] | None = None


class Files(Said, frozen=True, kw_only=True):
    """The same for the files under some paths."""

    paths: tuple[str, ...]


class Ignore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule that is switched off, and why."""

    rule: str
    because: str
    paths: tuple[str, ...] = ("**",)


class Settings(Said, frozen=True):
    """What one configuration file says. `path` and `text` are where and what it is."""

    exclude: tuple[str, ...] = ()
    files: tuple[Files, ...] = ()
    ignore: tuple[Ignore, ...] = ()
    path: str = ""
    text: str = ""


def load(start: str, chosen: str | None = None) -> Settings:
    """The settings for a path: of the file chosen, else of the nearest one at or above it. Errors: RequestError."""
    if chosen is not None:
        found = _read(chosen)
        if found is None:
            raise RequestError(f"{chosen}: holds no [tool.flagwise]")
        return found
    folder = os.path.abspath(start if os.path.isdir(start) else os.path.dirname(start) or ".")
    while True:
        for name in NAMES:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and (found := _read(path)) is not None:
                return found
        parent = os.path.dirname(folder)
        if parent == folder or os.path.lexists(os.path.join(folder, ".git")):
            return Settings()
        folder = parent


def _read(path: str) -> Settings | None:
    """The settings in a file; None for a pyproject.toml without any."""
    text = file_text(path)
    of_project = os.path.basename(path) != "flagwise.toml"
    if of_project and "flagwise" not in text:
        return None
    import tomllib

    try:
        content: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RequestError(f"{path}: not TOML: {error}") from None
    if of_project:
        content = content.get("tool", {}).get("flagwise")
        if content is None:
            return None
    for key in ("path", "text"):
        if isinstance(content, dict) and key in content:
            raise RequestError(f"{path}: unknown key {key!r} in [tool.flagwise]")
    try:
        found = msgspec.convert(content, Settings)
    except msgspec.ValidationError as error:
        raise RequestError(
            f"{path}: {error}; expected model, hardware, release, fail-on, exclude, files, ignore"
        ) from None
    for ignore in found.ignore:
        if not ignore.because.strip():
            raise RequestError(f"{path}: the rule {ignore.rule} is switched off without a reason; say it in `because`")
    return msgspec.structs.replace(found, path=path, text=text)


class Scoped:
    """What a configuration file says of each file that is looked at, and which of its globs hold for one."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._patterns: dict[tuple[str, ...], re.Pattern[str]] = {}
        self._folders: dict[str, str] = {}
        self._said: dict[tuple[bool, ...], Said] = {}

    def said_of(self, path: str) -> Said:
        """What the settings say about a file."""
        held = tuple([self.holds(files.paths, path) for files in self.settings.files])
        if held not in self._said:
            merged = {name: getattr(self.settings, name) for name in Said.__struct_fields__}
            for files in compress(self.settings.files, held):
                merged |= {n: v for n in Said.__struct_fields__ if (v := getattr(files, n)) is not None}
            self._said[held] = Said(**merged)
        return self._said[held]

    def holds(self, globs: tuple[str, ...], path: str) -> bool:
        """Whether a file is under one of the globs."""
        if globs == ("**",):
            return True
        pattern = self._patterns.get(globs)
        if pattern is None:
            pattern = self._patterns[globs] = re.compile("|".join(map(_pattern, globs)) or r"(?!)")
        return pattern.fullmatch(self._inside(path)) is not None

    def _inside(self, path: str) -> str:
        """A path as seen from the folder of the configuration file; there are fewer folders than files."""
        folder, slash, name = path.rpartition("/")
        if name in ("", ".", ".."):
            folder, slash, name = path, "", ""
        found = self._folders.get(folder + slash)
        if found is None:
            seen_from = os.path.dirname(os.path.abspath(self.settings.path))
            found = os.path.relpath(os.path.abspath(folder + slash), seen_from).replace(os.sep, "/")
            self._folders[folder + slash] = found
        return name if found == "." and name else f"{found}/{name}" if name else found


def _pattern(glob: str) -> str:
    """A glob as a regular expression; one that ends in a slash or names a folder takes what is below."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", glob.rstrip("/"))
    signs = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(signs.get(p, re.escape(p)) for p in parts) + "(?:/.*)?"
