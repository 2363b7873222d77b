"""What the file backend alone must show: nothing half-written, nothing not on disk."""

import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bucketlog.log_format.errors import BucketRefusedError, BucketUnavailableError
from bucketlog.log_format.model import Buffer
from bucketlog.log_format.private_files import make_folder
from bucketlog.tiered_storage.backends.file import FileBucket
from bucketlog.tiered_storage.bucket import Span
from tests.rigs.file_modes import exposed
from tests.rigs.patience import PATIENCE_S

Recorded = list[tuple[str, str]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "parent" / "bucket"


def temporary_files(root: Path) -> list[str]:
    return os.listdir(root / ".tmp")


def test_no_temporary_file_is_left(root: Path) -> None:
    bucket = FileBucket(root)
    assert bucket.create("log/w/1", [b"one"])
    assert not bucket.create("log/w/1", [b"two"])
    assert temporary_files(root) == []
    assert [info.key for info in bucket.list("")] == ["log/w/1"]
    for key in (".tmp", ".tmp/x"):
        with pytest.raises(BucketRefusedError, match="reserved"):
            bucket.create(key, [b"x"])
    bucket.close()


def test_reading_writes_nothing(root: Path) -> None:
    bucket = FileBucket(root)
    assert list(bucket.list("")) == []
    assert bucket.head("k") is None
    bucket.delete(["k"])
    bucket.close()
    assert not root.exists()


CRASH = """
import os, sys
from pathlib import Path
from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage.backends.file import FileBucket
from bucketlog.tiered_storage.bucket import Span
bucket = FileBucket(Path(sys.argv[1]))
assert bucket.create("log/w/0", [b"whole"])
os.{call} = lambda *args, **kwargs: os._exit(9)
bucket.create("log/w/1", [b"half"])
"""


@pytest.mark.parametrize("call", ["writev", "fsync", "link"])
def test_a_crash_before_the_name_is_given(root: Path, call: str) -> None:
    """A process dies inside of create: no object, and the next writer cleans up."""
    done = subprocess.run([sys.executable, "-c", CRASH.format(call=call), root], check=False)
    assert done.returncode == 9
    assert len(temporary_files(root)) == 1
    bucket = FileBucket(root)
    assert [info.key for info in bucket.list("")] == ["log/w/0"]
    assert len(temporary_files(root)) == 1, "a reader leaves it alone"
    assert bucket.create("log/w/1", [b"another's"])
    assert temporary_files(root) == []
    assert bucket.get("log/w/1").data == b"another's"
    bucket.close()


def test_a_live_writers_temporary_file_stays(root: Path) -> None:
    """A second writer opens while the first is between its write and its link."""
    first, second = FileBucket(root), FileBucket(root)
    linking, go_on = threading.Event(), threading.Event()
    link = os.link

    def slow_link(source: str, target: str) -> None:
        if target.endswith("/slow"):
            linking.set()
            assert go_on.wait(PATIENCE_S)
        link(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "link", slow_link)
        answers: list[bool] = []
        thread = threading.Thread(target=lambda: answers.append(first.create("slow", [b"1"])))
        thread.start()
        assert linking.wait(PATIENCE_S)
        assert second.create("quick", [b"2"])
        go_on.set()
        thread.join()
    assert answers == [True]
    assert second.get("slow").data == b"1"
    first.close()
    second.close()


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """The calls that put things on disk, in order, with the path each is about."""
    calls: Recorded = []
    fsync, link, mkdir = os.fsync, os.link, os.mkdir

    def record_fsync(fd: int) -> None:
        calls.append(("fsync", os.readlink(f"/proc/self/fd/{fd}")))
        fsync(fd)

    def record_link(source: str, target: str) -> None:
        calls.append(("link", target))
        link(source, target)

    def record_mkdir(path: str, mode: int = 0o777) -> None:
        calls.append(("mkdir", str(path)))
        mkdir(path, mode)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "link", record_link)
    monkeypatch.setattr(os, "mkdir", record_mkdir)
    return calls


def positions(calls: Recorded, call: tuple[str, str]) -> list[int]:
    return [at for at, made in enumerate(calls) if made == call]


def test_what_is_on_disk_before_the_answer(root: Path, recorded: Recorded) -> None:
    """Bytes before the name, the name and every new folder's name before the answer."""
    bucket = FileBucket(root)
    assert bucket.create("log/w/1", [b"one"])
    (link,) = positions(recorded, ("link", f"{root}/log/w/1"))
    synced = [path for name, path in recorded[:link] if name == "fsync"]
    assert synced[-1].startswith(f"{root}/.tmp/"), "the bytes, last before the name"
    assert ("fsync", f"{root}/log/w") in recorded[link:], "the object's name"
    for made, parent in (
        (root.parent, root.parent.parent),
        (root, root.parent),
        (root / "log", root),
        (root / "log/w", root / "log"),
    ):
        (mkdir,) = positions(recorded, ("mkdir", str(made)))
        assert ("fsync", str(parent)) in recorded[mkdir:], f"the name of {made}"
    recorded.clear()
    assert bucket.create("log/w/2", [b"two"])
    assert [name for name, _ in recorded] == ["fsync", "link", "fsync"], "and no more than that"
    bucket.close()


def test_folders_that_another_made_are_synced_too(root: Path, recorded: Recorded) -> None:
    os.makedirs(root / "log/w")
    recorded.clear()
    bucket = FileBucket(root)
    assert bucket.create("log/w/1", [b"one"])
    for folder in (root.parent, root, root / "log", root / "log/w"):
        assert ("fsync", str(folder)) in recorded
    bucket.close()


def test_a_refusal_is_as_durable_as_a_success(root: Path, recorded: Recorded) -> None:
    """Who is told that a key is decided builds on it: another process may not have synced yet."""
    FileBucket(root).create("log/w/1", [b"one"])
    other = FileBucket(root)
    recorded.clear()
    assert not other.create("log/w/1", [b"two"])
    assert recorded[-1] == ("fsync", f"{root}/log/w")
    other.close()


def test_short_writes_go_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writev = os.writev

    def short_writev(fd: int, buffers: Sequence[bytes | memoryview]) -> int:
        return writev(fd, [memoryview(b"".join(buffers))[:7]])

    monkeypatch.setattr(os, "writev", short_writev)
    bucket = FileBucket(root)
    parts: list[Buffer] = [b"", b"123", memoryview(b"4567890"), b"", b"abcdefghijklmnop", b"q", b""]
    assert bucket.create("k", parts)
    assert bucket.get("k").data == b"1234567890abcdefghijklmnopq"
    bucket.close()


def failing(code: int) -> Callable[..., None]:
    def fail(*args: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("call", ["writev", "fsync", "link"])
@pytest.mark.parametrize(
    ("code", "kind", "remedy"),
    [
        (errno.ENOSPC, BucketUnavailableError, "free space"),
        (errno.EDQUOT, BucketUnavailableError, "quota"),
        (errno.EMFILE, BucketUnavailableError, "ulimit"),
        (errno.EIO, BucketRefusedError, "disk fails"),
        (errno.EROFS, BucketRefusedError, "writable"),
        (errno.EACCES, BucketRefusedError, "read and write access"),
        (errno.EFBIG, BucketRefusedError, "check the folder"),
    ],
)
def test_errors_of_the_disk(
    root: Path, call: str, code: int, kind: type[Exception], remedy: str
) -> None:
    """Named and with a remedy; no object, no temporary file, and the next try works."""
    bucket = FileBucket(root)
    assert bucket.create("log/w/0", [b"zero"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, call, failing(code))
        with pytest.raises(kind, match=remedy):
            bucket.create("log/w/1", [b"one"])
    assert temporary_files(root) == []
    assert bucket.head("log/w/1") is None
    assert bucket.create("log/w/1", [b"one"])
    bucket.close()


def test_objects_and_folders_of_one_name(root: Path) -> None:
    bucket = FileBucket(root)
    assert bucket.create("log/w/1", [b"one"])
    for key in ("log/w", "log/w/1/2", "log/w/1/2/3"):
        with pytest.raises(BucketRefusedError, match="keep other files out"):
            bucket.create(key, [b"x"])
    assert [info.key for info in bucket.list("")] == ["log/w/1"]
    bucket.close()


def test_a_folder_that_vanished_is_told(root: Path) -> None:
    bucket = FileBucket(root)
    assert bucket.create("log/w/1", [b"one"])
    os.unlink(root / "log/w/1")
    os.rmdir(root / "log/w")
    with pytest.raises(BucketRefusedError, match="removed a folder"):
        bucket.create("log/w/2", [b"two"])
    bucket.close()


def test_an_older_object_is_read_past_the_page_cache(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every kind of alignment; and where the file system cannot, through the cache."""
    content = os.urandom(3 * 4096 * 100 + 77)
    bucket = FileBucket(root, page_cache_bytes=1)
    bucket.create("log/w/0", [content])
    bucket.create("log/w/1", [b"newer"])
    size = len(content)
    spans = [(0, size), (1, size - 1), (4095, 200_000), (4096, 131_072), (8191, size), (size, 9)]

    def check() -> None:
        for start, length in spans:
            body = bucket.get("log/w/0", Span(start, length))
            assert (body.start, body.object_size_bytes) == (start, size)
            assert bytes(body.data) == content[start : start + length]
        assert bytes(bucket.get("log/w/0").data) == content

    direct: list[int] = []
    preadv = os.preadv

    def counted(fd: int, buffers: Sequence[memoryview], offset: int) -> int:
        direct.append(offset)
        return preadv(fd, buffers, offset)

    monkeypatch.setattr(os, "preadv", counted)
    check()
    assert len(direct) == (6 if os_can_bypass_page_cache(root) else 0)
    monkeypatch.delattr(os, "O_DIRECT", raising=False)
    direct.clear()
    check()
    assert not direct
    bucket.close()


def os_can_bypass_page_cache(folder: Path) -> bool:
    try:
        os.close(os.open(folder / "log/w/0", os.O_RDONLY | os.O_DIRECT))
    except (OSError, AttributeError):
        return False
    return True


def modes_of(root: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in [root, *root.rglob("*")]}


def test_new_files_are_private(root: Path, no_umask: None) -> None:
    bucket = FileBucket(root)
    assert bucket.create("log/w/1", [b"one"])
    bucket.close()
    assert exposed(root.parent) == []
    assert modes_of(root) == {0o700, 0o600}


def test_a_group_may_read_below_a_folder_of_mode_0750(root: Path, no_umask: None) -> None:
    make_folder(root)
    root.chmod(0o750)
    bucket = FileBucket(root)
    assert bucket.create("log/w/1", [b"one"])
    bucket.close()
    assert modes_of(root) == {0o750, 0o640}


def test_an_output_follows_the_umask(root: Path, no_umask: None) -> None:
    os.umask(0o027)
    bucket = FileBucket(root, is_output=True)
    assert bucket.create("day=1/part-0.parquet", [b"one"])
    bucket.close()
    assert modes_of(root) == {0o750, 0o640}
    root.chmod(0o777)
    again = FileBucket(root, is_output=True)
    assert again.create("day=1/part-1.parquet", [b"two"])
    again.close()


def test_a_folder_that_others_may_use(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A writer is refused, or warned once; readers check no modes."""
    first = FileBucket(root)
    assert first.create("log/w/1", [b"one"])
    root.chmod(0o777)
    bucket = FileBucket(root)
    assert bucket.get("log/w/1").data == b"one"
    with pytest.raises(BucketRefusedError, match=r"every user .* may write .*chmod o-w"):
        bucket.create("log/w/2", [b"two"])
    assert [info.key for info in bucket.list("")] == ["log/w/1"]
    root.chmod(0o755)
    assert bucket.create("log/w/2", [b"two"])
    assert bucket.create("log/w/3", [b"three"])
    (warning,) = caplog.messages
    assert "may read" in warning
    assert f"chmod -R go= {root}" in warning
    bucket.close()
    first.close()
