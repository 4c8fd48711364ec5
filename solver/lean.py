"""Libraries without what they load for others. Imported first by the command line.

msgspec comes without `typing_extensions`, a third of what all imports cost: it takes two functions from it where it is
installed (typer brings it along) and the same two from `typing` where it is not; from Python 3.11 on they are equal.
Whoever imports it later gets it as ever.
"""

from __future__ import annotations

import re
import sys
from typing import Any

_modules: dict[str, Any] = sys.modules

if "typing_extensions" not in _modules:
    _modules["typing_extensions"] = None  # importing it raises ImportError
    try:
        import msgspec  # noqa: F401
    finally:
        del _modules["typing_extensions"]


class _Late:
    """A pattern that is compiled when it is first used."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._made = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._made), name)
        setattr(self, name, found)
        return found


def yaml_parser() -> Any:
    """PyYAML. Two thirds of what its import costs are patterns of its own reader, which its C parser has no need of."""
    if "yaml" not in _modules:
        compiled = re.compile
        re.compile = _Late  # type: ignore[assignment]  # only while it is imported
        try:
            import yaml
        finally:
            re.compile = compiled
    import yaml

    return yaml
