"""A directory as given -> the checkpoint's own folder, and the files in it that may be read.

A checkpoint folder is one with config.json, or a repository of the hub's local cache (`models--<owner>--<name>`), of
which the snapshot that `refs/main` names is taken. In the cache each file is a link into the `blobs` of its repository;
those are followed. A link that leads out of the checkpoint (out of the repository, in the cache) is not.
"""

from __future__ import annotations

import os
from pathlib import Path
from stat import S_ISREG

import msgspec

from solver.errors import RequestError

CACHED = "models--"
MIB = 2**20


class Folder(msgspec.Struct, frozen=True):
    """`path` holds config.json; links may lead anywhere below `within`. `hub_id` is known in the hub's cache."""

    path: Path
    within: Path
    hub_id: str | None = None

    @property
    def name(self) -> str:
        """What the checkpoint is called: its name on the hub, else the directory's."""
        return self.hub_id.rpartition("/")[2] if self.hub_id else self.path.name

    def holds(self, name: str) -> bool:
        """Whether a file, if it is there, lies in the checkpoint and is no link out of it."""
        return Path(os.path.realpath(self.path / name)).is_relative_to(self.within)

    def target(self, name: str) -> Path | None:
        """The real place of a file of this folder; None if it is not there.

        Errors: RequestError for a link that leads out and for what is no regular file.
        """
        path = self.path / name
        real = Path(os.path.realpath(path))
        try:
            mode = real.stat().st_mode
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RequestError(f"{path}: cannot be read ({error.strerror})") from None
        if not self.holds(name):
            raise RequestError(f"{path}: a link to {real}, outside the checkpoint; copy the file or give its directory")
        if not S_ISREG(mode):
            raise RequestError(f"{path}: no regular file")
        return real

    def read(self, name: str, most_mib: int) -> bytes | None:
        """The bytes of a file; None if it is not there. Errors: as `target`, and a file larger than `most_mib`."""
        real = self.target(name)
        if real is None:
            return None
        try:
            with real.open("rb") as file:
                raw = file.read(most_mib * MIB + 1)
        except OSError as error:
            raise RequestError(f"{self.path / name}: cannot be read ({error.strerror})") from None
        if len(raw) > most_mib * MIB:
            raise RequestError(f"{self.path / name}: larger than {most_mib} MiB, so it is no {name} of a checkpoint")
        return raw


def open_folder(directory: Path) -> Folder:
    """The checkpoint folder that a directory is or holds. Errors: RequestError when there is none, or several."""
    if not directory.is_dir():
        raise RequestError(f"{directory}: no such directory; give a checkpoint's directory or a catalogue id")
    real = Path(os.path.realpath(directory))
    if real.name.startswith(CACHED):
        return Folder(_snapshot(directory, real), real, _hub_id(real))
    if real.parent.name == "snapshots" and real.parent.parent.name.startswith(CACHED):
        return Folder(real, real.parent.parent, _hub_id(real.parent.parent))
    if not (real / "config.json").exists():
        cached = sorted(p.name for p in real.iterdir() if p.name.startswith(CACHED)) if os.access(real, os.R_OK) else []
        if cached:
            raise RequestError(f"{directory}: a hub cache; give one of {', '.join(cached[:5])} in it")
    return Folder(directory, real)


def _hub_id(repository: Path) -> str:
    return repository.name.removeprefix(CACHED).replace("--", "/", 1)


def _snapshot(directory: Path, repository: Path) -> Path:
    """The snapshot of `refs/main`, else the only one."""
    try:
        revision = (repository / "refs" / "main").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        revision = ""
    held = sorted(p.name for p in (repository / "snapshots").glob("*") if p.is_dir())
    if revision in held:
        return repository / "snapshots" / revision
    if len(held) == 1:
        return repository / "snapshots" / held[0]
    if not held:
        raise RequestError(f"{directory}: no snapshot in this part of the hub cache; the download did not finish")
    raise RequestError(f"{directory}: several snapshots and no refs/main; give one of snapshots/{', '.join(held)}")
