"""A replay streams a log that does not fit into the memory of its process, and shows its progress
where somebody sees it."""

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.records import DecodedRecord
from bucketlog.tiered_storage.backends.file import FileBucket
from tests.rigs.patience import PATIENCE_S
from tests.rigs.written_log import START_MS, WrittenLog

VALUE_BYTES, RECORDS_OF_A_BATCH, BATCHES, SEGMENTS = 64 * 1024, 16, 8, 100
MEMORY_BYTES = 500 * 1024 * 1024
"""What the process may add to its memory; the log's values have 800 MiB."""

STREAMING = f"""
import resource, sys
import pyarrow as pa
import bucketlog
from pydantic import BaseModel

class Line(BaseModel):
    text: str

lines = bucketlog.Topic("lines", value=Line)
replay = bucketlog.replay(sys.argv[1], lines, offsets={{0: (0, 1)}})
assert replay.to_arrow().num_rows == 1  # all modules are imported
pa.set_memory_pool(pa.system_memory_pool())
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
limit = used + {MEMORY_BYTES}
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
replay = bucketlog.replay(sys.argv[1], lines)
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """JSON values of 800 MiB in some 100 kB."""
    folder = tmp_path_factory.mktemp("bucket")
    bucket = FileBucket(folder / "0")
    log = WrittenLog(bucket)
    log.create_topic("lines", 1)
    value = b'{"text":"%b"}' % (b"x" * VALUE_BYTES)
    batch = [DecodedRecord(at, START_MS, None, value) for at in range(RECORDS_OF_A_BATCH)]
    for _ in range(SEGMENTS):
        for _ in range(BATCHES):
            log.append("lines", 0, batch, codec=Codec.ZSTD)
        log.flush()
    bucket.close()
    return f"file://{folder}"


def run(code: str, url: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", STREAMING + code, url],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "MALLOC_ARENA_MAX": "1"},  # an arena of each thread reserves 64 MiB
        check=False,
    )


def test_a_log_larger_than_memory_streams(url: str) -> None:
    rows = RECORDS_OF_A_BATCH * BATCHES * SEGMENTS
    code = """
rows = size = 0
for batch in pa.RecordBatchReader.from_stream(replay):
    rows += batch.num_rows
    size += batch.nbytes
print(rows, size > 800 * 1024 * 1024)
"""
    done = run(code, url)
    assert (done.returncode, done.stdout) == (0, f"{rows} True\n"), done.stderr


def test_the_same_log_is_too_large_for_a_table(url: str) -> None:
    """The limit of the other test is one."""
    code = """
try:
    replay.to_arrow()
except MemoryError:
    print("too large")
"""
    done = run(code, url)
    assert (done.returncode, done.stdout) == (0, "too large\n"), done.stderr


PROGRESS = """
import sys, bucketlog
asked = sys.argv[2] == "bar"
replay = bucketlog.replay(sys.argv[1], "lines", offsets={0: (0, 100)}, progress=asked)
print(sum(batch.num_rows for batch in replay.batches()))
"""


@pytest.mark.parametrize(("asked", "is_shown"), [("bar", True), ("none", False)])
def test_progress_on_a_terminal(url: str, asked: str, is_shown: bool) -> None:
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRESS, url, asked],
        stdout=subprocess.PIPE,
        stderr=follower,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    ) as process:
        os.close(follower)
        out, _ = process.communicate(timeout=PATIENCE_S)
        shown = b""
        while select.select([leader], [], [], 0)[0]:
            try:
                shown += os.read(leader, 65536)
            except OSError:  # the other end is closed
                break
    os.close(leader)
    assert out == b"100\n"
    assert (b"100 records" in shown, b"lines" in shown) == (is_shown, is_shown)


def test_no_progress_where_nobody_sees_it(url: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRESS, url, "bar"],
        capture_output=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert (done.stdout, done.stderr) == (b"100\n", b"")
