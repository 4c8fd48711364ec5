"""A report -> a file: a new one, or one that an earlier run wrote; nothing else is replaced, and never by half."""

from __future__ import annotations

import contextlib
import os

from solver.errors import RequestError

SIGNS = (b'"flagwise"', b"flagwise-gate/", b'"flagwise: ', b"(flagwise%3A ", b"title=flagwise::", b"\nflagwise: ")
"""What one of our reports holds near its beginning or end."""
NEAR = 16_384


def check_target(path: str) -> None:
    """Refuse a file that is not ours to replace. Errors: RequestError."""
    if not os.path.lexists(path):
        folder = os.path.dirname(path) or "."
        if not os.path.isdir(folder):
            raise RequestError(f"--output {path}: there is no folder {folder}")
        return
    if not os.path.isfile(path):
        raise RequestError(f"--output {path}: is no file")
    try:
        with open(path, "rb") as file:
            head = file.read(NEAR)
            file.seek(max(os.path.getsize(path) - NEAR, 0))
            ends = b"\n" + head + file.read(NEAR)
    except OSError as error:
        raise RequestError(f"--output {path}: cannot be read ({error.strerror})") from None
    if head.strip() not in (b"", b"[]") and not any(sign in ends for sign in SIGNS):
        raise RequestError(f"--output {path}: exists and is no report of flagwise; remove it or name another file")


def write_report(form: str, path: str, text: str) -> None:
    """Write a report as a whole. Errors: RequestError."""
    try:
        replace_file(path, f"{text}\n".encode())
    except OSError as error:
        raise RequestError(f"--output {form}={path}: cannot be written ({error.strerror})") from None


def replace_file(path: str, content: bytes) -> None:
    """Put new content in the place of a file at once: whoever looks sees the old or the new one. Errors: OSError.

    The file keeps its mode, and a link stays a link to the file that is replaced.
    """
    target = os.path.realpath(path)
    part = os.path.join(os.path.dirname(target), f".{os.path.basename(target)}.flagwise-{os.getpid()}")
    try:
        with open(part, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            os.chmod(part, os.stat(target).st_mode & 0o7777)
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
