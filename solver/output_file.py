"""A text and a path -> the file, whole or not at all; what is there is replaced only when that was asked for."""

from __future__ import annotations

import os
from pathlib import Path

from solver.errors import RequestError


def refuse_taken(path: str, overwrite: bool, hint: str = "") -> None:
    """Refuse a name that is taken, before any work is done. Errors: RequestError."""
    if Path(path).exists() and not overwrite:
        raise RequestError(f"{path} is there already: add --overwrite to replace it{hint}")


def write_whole(path: str, text: str, overwrite: bool) -> None:
    """Write a file. Errors: RequestError."""
    beside = Path(f"{path}.{os.getpid()}.new")
    try:
        beside.write_text(text, encoding="utf-8")
        if overwrite:
            beside.replace(path)
        else:
            Path(path).hardlink_to(beside)  # fails where the name is taken
    except FileExistsError:
        raise RequestError(f"{path} is there already: add --overwrite to replace it") from None
    except OSError as error:
        raise RequestError(f"cannot write {path}: {error.strerror}") from None
    finally:
        beside.unlink(missing_ok=True)
