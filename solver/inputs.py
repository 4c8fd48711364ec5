"""What a user names as input, a file or standard input -> its text; what cannot be read ends in one clear line."""

from __future__ import annotations

import sys

from solver.errors import RequestError


def standard_input(replace: bool = False) -> str:
    """All of standard input. `replace`: bytes that are no text are replaced. Errors: RequestError."""
    if sys.stdin is None:
        raise RequestError("standard input is closed: expected text on it")
    try:
        raw = getattr(sys.stdin, "buffer", None)  # read as bytes: the locale may let through what is no UTF-8
        return raw.read().decode("utf-8", "replace" if replace else "strict") if raw else sys.stdin.read()
    except OSError as error:
        raise RequestError(f"standard input cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise RequestError("standard input is not text in UTF-8") from None


def file_text(path: str, what: str = "") -> str:
    """The text of a file. `what`: what it was asked for as, such as `the lock file`. Errors: RequestError."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123  # verbs hand over plain paths
            return file.read()
    except OSError as error:
        reason = error.strerror
    except UnicodeDecodeError as error:
        reason = f"not text in UTF-8 (byte {error.start + 1:,})"
    raise RequestError(f"cannot read {f'{what} ' if what else ''}{path}: {reason}")
