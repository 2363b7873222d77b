"""Finds files that other users may use."""

from pathlib import Path


def exposed(folder: Path) -> list[Path]:
    """The folder and the files below that a group or others may use in any way."""
    paths = [folder, *sorted(folder.rglob("*"))]
    return [path for path in paths if path.lstat().st_mode & 0o077]
