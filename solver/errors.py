"""The one exception a user's request can end in: a single line that says what is wrong and what to type."""

from __future__ import annotations


class RequestError(Exception):
    """The request itself is wrong (exit status 2). The message is one line: what is wrong, what was expected."""


class KnowledgeError(ValueError):
    """A knowledge file that cannot be loaded: names the file and what was expected."""


class ConditionError(ValueError):
    """A condition that the language does not have; says which part and what is allowed."""
