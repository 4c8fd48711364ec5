"""Two launches, or one launch then and now -> what differs between them."""

from __future__ import annotations

from typing import Any


def diff(values: dict[str, Any]) -> int:
    """Compare two launches: flags, values in force, findings and figures. Each is a command, a file or a lock file."""
    from solver.compare.run import diff as run  # no other verb pays for it

    return run(values)
