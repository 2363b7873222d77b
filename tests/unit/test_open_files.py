"""The limit of open files: how many connections fit, and what the log says."""

import errno
import logging
import os
import resource
import subprocess
import sys

import pytest

from bucketlog.stateless_broker.process.open_files import OpenFilesWatch, within_open_files
from bucketlog.stateless_broker.settings.broker import BrokerSettings


def settings(**given: int) -> BrokerSettings:
    return BrokerSettings(
        bucket_url="memory:",
        redis_url="redis://127.0.0.1",
        open_files_reserved=200,
        http_connections_max=50,
        **given,  # type: ignore[arg-type]  # numbers only
    )


@pytest.mark.parametrize(
    ("limit", "accepted"),
    [(resource.RLIM_INFINITY, 10_000), (10_250, 10_000), (10_249, 9_999), (300, 150), (1, 1)],
)
def test_connections_leave_room_for_the_rest(
    limit: int, accepted: int, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = settings(connections_max=10_000)
    assert within_open_files(wanted, limit).connections_max == accepted
    lines = [record.getMessage() for record in caplog.records]
    if accepted == wanted.connections_max:
        assert not lines
    else:
        (line,) = lines
        for named in (f"open {limit} files", "10000 connections", f"accepts {accepted}.", "10250"):
            assert named in line


def test_the_soft_limit_is_raised_to_the_hard_limit() -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200));"
        "from bucketlog.stateless_broker.process import open_files;"
        "print(open_files.raise_open_files_limit(), resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    command = [sys.executable, "-P", "-c", code]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    assert found.stdout == "200 (200, 200)\n"


def test_a_line_a_minute_while_no_file_can_be_opened(caplog: pytest.LogCaptureFixture) -> None:
    now_s, codes = 0.0, [0]

    def open_one() -> None:
        if codes[0]:
            raise OSError(codes[0], os.strerror(codes[0]))

    watch = OpenFilesWatch(now_s=lambda: now_s, open_one=open_one)
    watch.look()
    assert not caplog.records
    codes[0] = errno.EMFILE
    for _ in range(100):
        watch.look()
        now_s += 1
    codes[0] = errno.EACCES
    watch.look()
    assert watch.exhausted == 100
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2
    assert "BUCKETLOG_OPEN_FILES_RESERVED" in caplog.records[0].getMessage()
