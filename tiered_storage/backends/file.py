"""A folder as a bucket: `bucketlog dev`, tests, a shared disk.

Invariants: an object is written and fsynced under a temporary name first, and gets its own name by
link(2), which fails if the name is taken. So one process of many decides a key once, and a crash
never shows half an object. A caller learns that a key is decided (True or False) only after the
folders that name it were fsynced.

A bucket that writes keeps the last `page_cache_bytes` that it wrote in the page cache. It removes
older ones from there, and reads them past the cache. A log is written once and read mostly at its
end, and reused pages are cheap (measured on a virtual machine that reports free pages: 0.4 instead
of 3.3 CPU seconds a GB written, 0.5 instead of 0.9 a GB fetched).

Temporary files live in `<root>/.tmp/`. A writer holds a shared lock on that folder. A writer that
finds it unlocked when it opens the bucket is alone, and removes what crashed writers left there.
Readers write nothing. Measured on ext4: O_TMPFILE and fdatasync cost the same within noise.
"""

import errno
import fcntl
import logging
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

from bucketlog.log_format.errors import (
    BucketError,
    BucketRefusedError,
    BucketUnavailableError,
    ConfigurationError,
    ObjectNotFoundError,
)
from bucketlog.log_format.model import Buffer
from bucketlog.log_format.private_files import (
    BY_UMASK,
    PRIVATE,
    Modes,
    check_folder,
    make_file,
    make_folder,
    modes_below,
)
from bucketlog.tiered_storage.backends.page_cache import (
    PageCachedFiles,
    bypass_page_cache,
    leave_page_cache,
    read_blocks,
    read_range,
)
from bucketlog.tiered_storage.bucket import (
    Body,
    ObjectInfo,
    Span,
    Suffix,
    check_key,
    check_prefix,
    clip,
)

logger = logging.getLogger(__name__)

TEMPORARY = ".tmp"
PAGE_CACHE_BYTES = 128 * 1024 * 1024
_DIRECT_BYTES_MIN = 128 * 1024
_MAX_BUFFERS = os.sysconf("SC_IOV_MAX")
_NOT_THERE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)

_REMEDIES = {
    errno.ENOSPC: "free space on its disk",
    errno.EDQUOT: "raise the disk quota",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "raise the system's limit of open files",
    errno.ENOMEM: "free memory",
}
"""The remedies of retriable errors, which pass when somebody helps or waits. No other error is
retriable."""

_REFUSALS = {
    errno.EACCES: "give this user read and write access to the folder",
    errno.EPERM: "give this user read and write access to the folder",
    errno.EROFS: "mount the disk writable",
    errno.EIO: "the disk fails: check it and replace it",
    errno.ENOENT: "somebody removed a folder of a bucket in use: restore it and restart",
    errno.ENOTDIR: "keep other files out of the bucket's folder",
    errno.ENAMETOOLONG: "use a shorter folder name",
    errno.EXDEV: "keep the bucket's folder on one file system",
}


class FileBucket:
    """`SyncBucket` over the folder `root`, which the first `create` makes. Thread-safe.

    `crc32c` of `create` is not checked: the file system keeps no checksum to compare it with.
    `is_output`: the folder is a user's own output, and its files follow the umask. Files of other
    buckets are private, and the first `create` refuses a folder that all users may write to.
    """

    def __init__(
        self, root: Path, *, page_cache_bytes: int = PAGE_CACHE_BYTES, is_output: bool = False
    ) -> None:
        self._modes = BY_UMASK if is_output else PRIVATE
        self._root = os.path.abspath(root)
        self._temporary = f"{self._root}/{TEMPORARY}"
        self._opening = threading.Lock()
        self._temporary_fd = -1
        self._durable: set[str] = set()
        """Folders whose name, up to the root's, this object has seen on disk."""
        self._recent = PageCachedFiles(page_cache_bytes)

    def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        path = self._path(key)
        try:
            self._open_to_write()
            folder = os.path.dirname(path)
            self._make_folder(folder)
            temporary = f"{self._temporary}/{uuid4().hex}"
            try:
                size = _write_durably(temporary, parts, self._modes.file)
                created = _name_durably(temporary, path, folder)
                if created:
                    self._recent.add(path, size)
                return created
            finally:
                _remove(temporary)
        except OSError as error:
            raise self._error("create", key, error) from error

    def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        path = self._path(key)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                status = os.fstat(fd)
                if not stat.S_ISREG(status.st_mode):
                    raise ObjectNotFoundError(key)
                start, length = clip(span, status.st_size)
                if not self._recent.has_left(path):
                    data = read_range(fd, start, length)
                elif length >= _DIRECT_BYTES_MIN and bypass_page_cache(fd):
                    data = read_blocks(fd, start, length)
                else:
                    data = read_range(fd, start, length)
                    leave_page_cache(fd, start, length)
                return Body(data, start, status.st_size)
            finally:
                os.close(fd)
        except _NOT_THERE:
            raise ObjectNotFoundError(key) from None
        except OSError as error:
            raise self._error("get", key, error) from error

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        check_prefix(prefix)
        try:
            yield from self._walk(prefix, start_after)
        except OSError as error:
            raise self._error("list", prefix, error) from error

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            try:
                os.unlink(self._path(key))
            except _NOT_THERE:
                continue
            except OSError as error:
                raise self._error("delete", key, error) from error

    def head(self, key: str) -> ObjectInfo | None:
        try:
            status = os.stat(self._path(key))
        except _NOT_THERE:
            return None
        except OSError as error:
            raise self._error("head", key, error) from error
        return _info(key, status) if stat.S_ISREG(status.st_mode) else None

    def close(self) -> None:
        with self._opening:
            if self._temporary_fd >= 0:
                os.close(self._temporary_fd)
                self._temporary_fd = -1

    def _path(self, key: str) -> str:
        check_key(key)
        if key.startswith(f"{TEMPORARY}/") or key == TEMPORARY:
            raise BucketRefusedError(f"key {key!r} is reserved", remedy="use another key")
        return f"{self._root}/{key}"

    def _open_to_write(self) -> None:
        if self._temporary_fd >= 0:
            return
        with self._opening:
            if self._temporary_fd >= 0:
                return
            _make_root(self._root, self._modes.folder)
            if self._modes is not BY_UMASK:
                self._modes = _checked_modes(self._root)
            make_folder(self._temporary, self._modes.folder)
            fd = os.open(self._temporary, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                _remove_leftovers(self._temporary, fd)
                fcntl.flock(fd, fcntl.LOCK_SH)
            except BaseException:
                os.close(fd)
                raise
            self._temporary_fd = fd

    def _make_folder(self, folder: str) -> None:
        """Make `folder` and its parents below the root, and have their names on disk.

        A folder that is there already may be another thread's, not yet on disk: its name is
        fsynced too, the first time this object sees it.
        """
        if folder == self._root or folder in self._durable:
            return
        parent = os.path.dirname(folder)
        self._make_folder(parent)
        try:
            os.mkdir(folder, self._modes.folder)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise NotADirectoryError(errno.ENOTDIR, "an object has that name") from None
        _sync_folder(parent)
        self._durable.add(folder)

    def _walk(self, prefix: str, start_after: str) -> Iterator[ObjectInfo]:
        pending = [prefix.rpartition("/")[0]]
        while pending:
            folder = pending.pop()
            try:
                entries = os.scandir(f"{self._root}/{folder}")
            except _NOT_THERE:
                continue
            with entries:
                for entry in entries:
                    key = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if _may_hold(f"{key}/", prefix, start_after):
                            pending.append(key)
                    elif key.startswith(prefix) and key > start_after:
                        try:
                            yield _info(key, entry.stat())
                        except FileNotFoundError:
                            continue

    def _error(self, verb: str, key: str, error: OSError) -> BucketError:
        code = error.errno or 0
        if code == errno.ENOENT and not os.path.isdir(self._root):
            return BucketRefusedError(
                f"cannot {verb} {key!r}: the bucket's folder {self._root} is gone",
                remedy="somebody removed or renamed it: put it back, then restart; a bucket that "
                "is begun anew has none of its records",
            )
        message = f"cannot {verb} {key!r} in the folder {self._root}: {error.strerror or error}"
        if code in _REMEDIES:
            return BucketUnavailableError(message, remedy=_REMEDIES[code])
        return BucketRefusedError(
            message, remedy=_REFUSALS.get(code, "check the folder and its file system")
        )


def _may_hold(folder: str, prefix: str, start_after: str) -> bool:
    """Return whether a key under `folder` (with its slash) can be in the listing."""
    if folder == f"{TEMPORARY}/" or not folder.startswith(prefix):
        return False
    return folder > start_after or start_after.startswith(folder)


def _info(key: str, status: os.stat_result) -> ObjectInfo:
    return ObjectInfo(key, status.st_size, status.st_mtime_ns // 1_000_000)


def _write_durably(path: str, parts: Sequence[Buffer], mode: int) -> int:
    """Write a file durably. Returns the number of bytes written, which are on disk."""
    size = sum(len(part) for part in parts)
    fd = make_file(path, os.O_WRONLY | os.O_EXCL, mode)
    try:
        pending = list(parts)
        at = 0
        while at < len(pending):
            few = pending[at : at + _MAX_BUFFERS]
            written = os.writev(fd, few)
            for part in few:
                if written < len(part):
                    pending[at] = memoryview(part)[written:]
                    break
                written -= len(part)
                at += 1
        os.fsync(fd)
    finally:
        os.close(fd)
    return size


def _name_durably(temporary: str, path: str, folder: str) -> bool:
    try:
        os.link(temporary, path)
        created = True
    except FileExistsError:
        if os.path.isdir(path):
            raise NotADirectoryError(errno.ENOTDIR, "a folder has that name") from None
        created = False
    _sync_folder(folder)
    return created


def _sync_folder(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _make_root(root: str, mode: int) -> None:
    """Make the root and its parents, and have the names of those newly made on disk."""
    for folder in reversed(make_folder(root, mode) or [root]):
        _sync_folder(os.path.dirname(folder))


def _checked_modes(root: str) -> Modes:
    """The modes below the root. Logs a warning if every user may read the root. Raises
    `BucketRefusedError` if every user could replace its contents."""
    try:
        warning = check_folder(root)
    except ConfigurationError as error:
        raise BucketRefusedError(error.message, remedy=error.remedy) from error
    if warning:
        logger.warning("%s", warning)
    return modes_below(root)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _remove_leftovers(folder: str, fd: int) -> None:
    """Remove crashed writers' temporary files if no writer lives."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    for name in os.listdir(folder):
        _remove(f"{folder}/{name}")
