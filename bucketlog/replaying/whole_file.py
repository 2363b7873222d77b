"""A file that has its name only once it is whole."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bucketlog.log_format.errors import ConfigurationError


@contextmanager
def whole_file(path: Path, *, overwrite: bool) -> Iterator[BinaryIO]:
    """Write to `PATH.partial`, which becomes `path` at the end. Raises `ConfigurationError` if
    `path` exists and is not to be overwritten."""
    if path.exists() and not overwrite:
        raise ConfigurationError(
            f"{path} is there already",
            remedy="give another name, or overwrite it (--overwrite, overwrite=True)",
        )
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
