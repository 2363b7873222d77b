"""Modes of new folders and files, whatever the umask; folders that others may use."""

import os
import stat
from pathlib import Path

import pytest

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.private_files import (
    GROUP_READABLE,
    PRIVATE,
    check_folder,
    make_file,
    make_folder,
    modes_below,
)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_and_files_are_private(tmp_path: Path, no_umask: None) -> None:
    tmp_path.chmod(0o755)
    folder = tmp_path / "a" / "b" / "c"
    assert make_folder(folder) == [str(folder.parents[1]), str(folder.parent), str(folder)]
    assert [mode_of(each) for each in (folder, *folder.parents[:2])] == [0o700] * 3
    os.close(make_file(folder / "file", os.O_WRONLY))
    assert mode_of(folder / "file") == 0o600
    assert mode_of(tmp_path) == 0o755


def test_what_exists_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    file.chmod(0o644)
    os.close(make_file(file, os.O_WRONLY))
    assert mode_of(file) == 0o644
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o711)
    assert make_folder(folder) == []
    assert mode_of(folder) == 0o711
    with pytest.raises(FileExistsError):
        make_folder(file)


@pytest.mark.parametrize(
    ("parent", "mode", "outcome"),
    [
        (0o755, 0o700, ""),
        (0o755, 0o750, ""),
        (0o755, 0o770, ""),
        (0o1777, 0o700, ""),
        (0o755, 0o755, "may read"),
        (0o755, 0o711, "may read"),
        (0o755, 0o777, "may write to"),
        (0o755, 0o1777, "may write to"),
        (0o755, 0o702, "may write to"),
        (0o777, 0o700, "may replace"),
    ],
)
def test_folders_that_others_may_use(tmp_path: Path, parent: int, mode: int, outcome: str) -> None:
    folder = tmp_path / "parent" / "folder"
    make_folder(folder)
    folder.chmod(mode)
    folder.parent.chmod(parent)
    if outcome in ("", "may read"):
        warning = check_folder(folder)
        assert outcome in warning
        assert bool(warning) == bool(outcome)
    else:
        with pytest.raises(ConfigurationError, match=f"every user .* {outcome} .*chmod o-w"):
            check_folder(folder)


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o755, 0o770])
def test_one_mode_lets_a_group_read(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    assert modes_below(tmp_path) == (GROUP_READABLE if mode == 0o750 else PRIVATE)
