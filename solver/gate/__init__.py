"""Files of a project -> the launches in them, checked before anything starts."""

from __future__ import annotations

from typing import Any

FORMS = ("text", "json", "sarif", "github", "gitlab", "junit")
"""Forms in which a report can be written."""


def gate(values: dict[str, Any]) -> int:
    """Find the launches in files and folders and check them; `-` reads standard input."""
    from solver.gate.run import gate as run  # no other verb pays for it

    return run(values)
