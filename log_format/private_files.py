"""Modes of the folders and files that bucketlog creates on a disk.

Invariants: folders get mode 0700 and files get mode 0600, whatever the umask. The only exception is
a folder whose mode is exactly 0750: its owner lets a group read, so that group can read new folders
and files below (PostgreSQL treats its data directory the same way). Existing modes never change. A
folder that every user may write to is refused, because any user could replace the data; sshd and
PostgreSQL refuse such folders too. A folder that every user may read causes a warning.
"""

import os
import stat
from pathlib import Path
from typing import NamedTuple

from bucketlog.log_format.errors import ConfigurationError


class Modes(NamedTuple):
    folder: int
    file: int


PRIVATE = Modes(0o700, 0o600)
GROUP_READABLE = Modes(0o750, 0o640)
BY_UMASK = Modes(0o777, 0o666)
"""For a user's own output, such as the files of a replay."""


def modes_below(folder: str | Path) -> Modes:
    """The modes for new folders and files in an existing folder."""
    mode = stat.S_IMODE(os.stat(folder).st_mode)
    return GROUP_READABLE if mode == GROUP_READABLE.folder else PRIVATE


def make_folder(folder: str | Path, mode: int = PRIVATE.folder) -> list[str]:
    """Create the folder and its missing parents, each with `mode`. Existing folders keep theirs.
    Returns the created folders, outermost first. Raises `OSError`."""
    missing = []
    at = os.path.abspath(folder)
    while not os.path.isdir(at):
        missing.append(at)
        at = os.path.dirname(at)
    missing.reverse()
    for path in missing:
        try:
            os.mkdir(path, mode)
        except FileExistsError:  # another process created it
            if not os.path.isdir(path):
                raise
    return missing


def make_file(path: str | Path, flags: int, mode: int = PRIVATE.file) -> int:
    """Open the file, and create it with `mode` if it is missing. Raises `OSError`."""
    return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, mode)


def check_folder(folder: str | Path) -> str:
    """A warning if every user may read the folder, else "". Raises `ConfigurationError` if every
    user could replace its contents."""
    path = os.path.abspath(folder)
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if mode & stat.S_IWOTH:
        raise ConfigurationError(
            f"every user of this machine may write to the folder {path} (mode {mode:04o})",
            remedy=f"run: chmod o-w {path}; or choose a new folder in it, which gets mode 0700",
        )
    parent = os.path.dirname(path)
    above = stat.S_IMODE(os.stat(parent).st_mode)
    if above & stat.S_IWOTH and not above & stat.S_ISVTX:
        raise ConfigurationError(
            f"every user of this machine may replace the folder {path}: "
            f"its parent {parent} has mode {above:04o}",
            remedy=f"run: chmod o-w {parent}; or choose a folder elsewhere",
        )
    if mode & (stat.S_IROTH | stat.S_IXOTH):
        return (
            f"every user of this machine may read the folder {path} (mode {mode:04o}): "
            f"to make it private, run: chmod -R go= {path}"
        )
    return ""
