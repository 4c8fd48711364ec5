"""A template (Helm, Jinja) -> the text it may be rendered to: of branches the first, of loops one turn, and a
placeholder for each value that is filled in.

    template := (text | {{ expression }} | {% statement %})*
    block    := if … (else | else if … | elif …)* end        likewise range, with, for and their like

A tag that has its line for itself leaves no line behind: what it brings in is not known.
"""

from __future__ import annotations

import re

from solver.gate.text import Builder, Text

_TAG = re.compile(r"\{\{(.*?)\}\}|\{%(.*?)%\}", re.DOTALL)
_OPENING = re.compile(r"(?:if|unless|range|with|for|define|block|macro|filter|raw|call)\b")
_ELSE = re.compile(r"(?:else|elif|elsif)\b")
_END = re.compile(r"end\w*\b")
_STATEMENT = re.compile(r"(?:set|include|import|from|extends|do|template)\b|/\*|\$\w+ *:?=")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
PLACEHOLDER = re.compile(r"⟨[^⟨⟩\n]*⟩")
"""What stands for a value that is filled in, in a text that is read as YAML."""


def placeholder(name: str) -> str:
    """The placeholder of a value."""
    return f"⟨{name}⟩"


def rendered(source: Text) -> Text:
    """The text without tags, with its places in the template."""
    text, at = source.text, 0
    builder = Builder(source)
    left_out: list[bool] = []
    """Per open block: whether the branch at hand is left out."""
    for match in _TAG.finditer(text):
        inner = (match[1] or match[2] or "").strip("-~ \t\r\n")
        alone = _whole_line(text, match)
        start, end = _trimmed(text, match, at) or alone or match.span()
        if not any(left_out):
            builder.take(at, start)
        at = end
        if _OPENING.match(inner):
            left_out.append(False)
        elif _ELSE.match(inner) and left_out:
            left_out[-1] = True
        elif _END.match(inner):
            del left_out[-1:]
        elif not any(left_out) and not alone and match[2] is None and not _STATEMENT.match(inner):
            name = _NAME.search(inner.partition("|")[0])
            builder.replace(*match.span(), placeholder(name[0] if name else "value"))
    if not any(left_out):
        builder.take(at, len(text))
    return builder.finish()


def _trimmed(text: str, match: re.Match[str], at: int) -> tuple[int, int] | None:
    """The tag with the blanks that its dashes take away on either side; None for one without dashes."""
    inner = match[1] or match[2] or ""
    start, end = match.span()
    if inner.startswith("-"):
        start = max(at, len(text[:start].rstrip()))
    if inner.endswith("-"):
        end = len(text) - len(text[end:].lstrip())
    return (start, end) if (start, end) != match.span() else None


def _whole_line(text: str, match: re.Match[str]) -> tuple[int, int] | None:
    """The lines of a tag, if nothing else stands on them."""
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end()) + 1 or len(text)
    is_alone = not text[start : match.start()].strip() and not text[match.end() : end].strip()
    return (start, end) if is_alone else None
