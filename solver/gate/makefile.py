"""Makefile or justfile -> the launches in its recipes, each recipe read as one shell script.

    makefile := (NAME (:= | = | ?= | ::=) text | target ":" … | TAB recipe line)*       $(NAME) ${NAME} $$
    justfile := (NAME := "text" | recipe ":" … | indented recipe line)*                 {{NAME}}

A variable that is assigned once in the file has that value; any other is unknown.
"""

from __future__ import annotations

import re
from collections import Counter

from solver.gate import shell_files
from solver.gate.arguments import replaced
from solver.gate.found import Finds
from solver.gate.text import Builder, Text

_NAMED = re.compile(r"sglang|launch_server")
_ASSIGNMENT = re.compile(r"^(?:export[ \t]+)?([A-Za-z_][\w-]*)[ \t]*(\?|:{0,3}|\+)=[ \t]*([^\n]*)", re.M)
_REFERENCE = re.compile(r"\$\$|\$\(([^()]*)\)|\$\{([^{}]*)\}|\$([@<^?*])")
_JUST_REFERENCE = re.compile(r"\{\{[ \t]*([\w-]*)[^{}\n]*\}\}")
_PREFIX = re.compile(r"[@+-]*[ \t]*")
_DEEPEST = 10


def find(source: Text) -> Finds:
    """The launches of a file of recipes."""
    is_just = bool(re.search(r"^\w[\w-]*[ \t]*:=", source.text, re.M)) and "\t" not in source.text
    known = _assigned(source.text)
    finds = Finds()
    for recipe in _recipes(source):
        if not _NAMED.search(recipe.text) and not _REFERENCE.search(recipe.text):
            continue
        text = _filled(recipe, _JUST_REFERENCE if is_just or "{{" in recipe.text else _REFERENCE, known)
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


def _filled(text: Text, reference: re.Pattern[str], known: dict[str, str]) -> Text:
    """The text with the values of its variables."""
    return replaced(text, reference, lambda match: _resolved(match, reference, known, 0))


def _resolved(match: re.Match[str], reference: re.Pattern[str], known: dict[str, str], depth: int) -> str | None:
    if match[0] == "$$":
        return "$"
    value = known.get(next((group for group in match.groups() if group), ""))
    if value is None or depth > _DEEPEST:
        return None
    inside = [_resolved(m, reference, known, depth + 1) for m in reference.finditer(value)]
    if None in inside:
        return None
    filled = iter(inside)
    return reference.sub(lambda m: str(next(filled)), value)
