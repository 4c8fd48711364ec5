"""Libraries without what they load for others. Imported first by the command line.

msgspec comes without `typing_extensions`, a third of what all imports cost: it takes two functions from it where it is
installed (typer brings it along) and the same two from `typing` where it is not; from Python 3.11 on they are equal.
Whoever imports it later gets it as ever.
"""

from __future__ import annotations

import sys
from typing import Any

_modules: dict[str, Any] = sys.modules

if "typing_extensions" not in _modules:
    _modules["typing_extensions"] = None  # importing it raises ImportError
    try:
        import msgspec  # noqa: F401
    finally:
        del _modules["typing_extensions"]
