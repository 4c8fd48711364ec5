"""Makefile or justfile -> the launches in its recipes, each recipe read as one shell script.

    makefile := (NAME (:= | = | ?= | ::=) text | target ":" … | TAB recipe line)*       $(NAME) ${NAME} $$
    justfile := (NAME := "text" | recipe ":" … | indented recipe line)*                 {{NAME}}

A variable that is assigned once in the file has that value; any other is unknown.
"""

from __future__ import annotations

import re
from collections import Counter

from solver.expansion import LONGEST
from solver.gate import shell_files
from solver.gate.arguments import replaced
from solver.gate.found import Finds
from solver.gate.text import Builder, Text

_NAMED = re.compile(r"sglang|launch_server")
_ASSIGNMENT = re.compile(r"^(?:export[ \t]+)?([A-Za-z_][\w-]*)[ \t]*(\?|:{0,3}|\+)=[ \t]*([^\n]*)", re.M)
_REFERENCE = re.compile(r"\$\$|\$\(([^()]*)\)|\$\{([^{}]*)\}|\$([@<^?*])")
_JUST_REFERENCE = re.compile(r"\{\{[ \t]*([\w-]*)[^{}\n]*\}\}")
_TAB = re.compile(r"^\t", re.M)
"""What begins the lines of a Makefile's recipes; a justfile's begin with blanks."""
_PREFIX = re.compile(r"[@+-]*[ \t]*")


def find(source: Text) -> Finds:
    """The launches of a file of recipes."""
    reference = _REFERENCE if _TAB.search(source.text) else _JUST_REFERENCE
    values = _Values(_assigned(source.text), reference)
    finds = Finds()
    for recipe in _recipes(source):
        text = replaced(recipe, reference, values.of)
        if _NAMED.search(text.text):
            inside = shell_files.find(text, "makefile")
            finds.found += inside.found
    return finds


def _assigned(text: str) -> dict[str, str]:
    """Variables that have one value in the whole file."""
    found = list(_ASSIGNMENT.finditer(text))
    times = Counter(match[1] for match in found)
    return {m[1]: _value(m[3]) for m in found if times[m[1]] == 1 and m[2] not in ("+", "?")}


def _value(written: str) -> str:
    value = written.partition(" #")[0].strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def _recipes(source: Text) -> list[Text]:
    """The lines of each recipe as they stand, without what indents them."""
    recipes: list[Text] = []
    builder = Builder(source)
    at, is_continued = 0, False
    for line in source.text.splitlines(keepends=True):
        if line[0] in "\t " or (is_continued and builder.length):
            start = at + len(line) - len(line.lstrip(" \t"))
            prefix = _PREFIX.match(source.text, start) if not is_continued else None
            builder.take(prefix.end() if prefix else start, at + len(line))
        elif line.strip() and not line.startswith("#"):
            recipes.append(builder.finish())
            builder = Builder(source)
        is_continued = line.rstrip().endswith("\\")
        at += len(line)
    return [recipe for recipe in [*recipes, builder.finish()] if recipe.text]


class _Values:
    """The values of variables; one that refers to itself, or grows too long, has none."""

    def __init__(self, written: dict[str, str], reference: re.Pattern[str]) -> None:
        self.written = written
        self.reference = reference
        self.known: dict[str, str | None] = {}

    def of(self, match: re.Match[str]) -> str | None:
        """What a reference stands for."""
        if match[0] == "$$":
            return "$"
        name = next((group for group in match.groups() if group), "")
        if name not in self.known:
            self.known[name] = None  # what a variable sees that comes back to itself
            if name in self.written:
                self.known[name] = self._filled(self.written[name])
        return self.known[name]

    def _filled(self, text: str) -> str | None:
        inside = [self.of(match) for match in self.reference.finditer(text)]
        known = [value for value in inside if value is not None]
        if len(known) < len(inside) or len(text) + sum(map(len, known)) > LONGEST:
            return None
        values = iter(known)
        return self.reference.sub(lambda match: next(values), text)
