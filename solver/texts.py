"""A text that a flag was given -> what the engine reads in it: its kind as JSON, the keys of an object, numbers.

These are functions of the rule language (`grammar`); null stays null. JSON is what Python's `json.loads` takes.
"""

from __future__ import annotations

from typing import Any

BROKEN = "broken"
ABSENT = "absent"


def json_kind(text: Any, key: str | None = None) -> str | None:
    """What a JSON text holds: object, list, text, number, flag, null or broken; with `key`, what the object has there
    (absent without it)."""
    if text is None:
        return None
    found = _decoded(text)
    if key is not None:
        found = found.get(key, ABSENT) if isinstance(found, dict) else ABSENT
        if found is ABSENT:
            return ABSENT
    return _kind(found)


def json_keys(text: Any) -> list[str] | None:
    """The keys of a JSON object; null for anything else."""
    found = None if text is None else _decoded(text)
    return list(found) if isinstance(found, dict) else None


def number(text: Any) -> float | None:
    """The number that Python's `float` reads in a text; null if there is none."""
    try:
        return None if text is None else float(text)
    except (TypeError, ValueError):
        return None


def distinct(items: Any) -> list[Any] | None:
    """The items of a list without repeats; texts that are the same number are the same."""
    found = None if items is None else dict.fromkeys(item if (n := number(item)) is None else n for item in items)
    return None if found is None else list(found)


def json_object(text: Any) -> dict[str, Any] | None:
    """The object of a JSON text; null for anything else."""
    found = None if text is None else _decoded(text)
    return found if isinstance(found, dict) else None


def _decoded(text: Any) -> Any:
    """The value of a JSON text, of a value that was read already itself, or `BROKEN` as bytes."""
    if not isinstance(text, str):
        return text
    import json  # few launches need it

    try:
        return json.loads(text)
    except ValueError:
        return BROKEN.encode()


def _kind(found: Any) -> str:
    if found is None:
        return "null"
    kinds = {bool: "flag", dict: "object", list: "list", tuple: "list", str: "text", int: "number", float: "number"}
    return kinds.get(type(found), BROKEN)
