"""Records handled by `consumer.process` in a process that is killed (-9) again and again.

The handler appends a line to a file when it has handled a record. Checked after each kill, and at
the end: every committed offset lies behind handled records only; every record is handled; the
records of a key are first handled in the order in which they were sent.
"""

import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import bucketlog
from tests.rigs.patience import Deadline, let_pass

PARTITIONS = 12
SESSION_S = 6.0
END_S = 900.0

_MEMBER = """
import os, random, sys, time
import bucketlog

bootstrap, topic, group, concurrency, session_s, path = sys.argv[1:]
file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def handle(record):
    time.sleep(random.random() / 100)
    line = f"{record.partition} {record.offset} {record.key.decode()} {record.value}\\n"
    os.write(file, line.encode())

with bucketlog.connect(bootstrap) as log:
    with log.consumer(
        bucketlog.Topic(topic, value=str),
        group=group,
        start="earliest",
        auto_commit="ack",
        commit_interval_s=0.2,
        instance_id="member",
        session_timeout_s=float(session_s),
    ) as consumer:
        consumer.process(handle, concurrency=int(concurrency))
"""


class UnprocessedError(AssertionError):
    """A record was committed before it was handled, left out, or handled out of order."""


@dataclass(frozen=True, slots=True)
class Processed:
    records: int
    kills: int
    handled: int
    """Calls of the handler that ended; those above `records` are repetitions."""
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def processed(
    bootstrap: str, folder: Path, *, records: int, keys: int, concurrency: int, kill_every_s: float
) -> Processed:
    """Raises `UnprocessedError`."""
    topic, group, path = bucketlog.Topic("work", value=str), "workers", folder / "handled"
    path.touch()
    began_s, kills = time.monotonic(), 0
    with bucketlog.connect(bootstrap) as log:
        log.topics.ensure(topic, partitions=PARTITIONS)
        with log.producer() as producer:
            values = (str(number) for number in range(records))
            producer.send_many(topic, values, key=lambda value: b"%d" % (int(value) % keys))
        deadline = Deadline(lambda: f"{_committed(log, group)} are committed", END_S)
        arguments = [bootstrap, topic.name, group, str(concurrency), str(SESSION_S), str(path)]
        while sum(_committed(log, group).values()) < records:
            deadline.check()
            with subprocess.Popen([sys.executable, "-c", _MEMBER, *arguments]) as member:
                try:
                    _wait_for_progress(path, member, deadline)
                    _pause(log, group, records, kill_every_s)
                finally:
                    member.kill()
            kills += 1
            _check_committed(_committed(log, group), _handled(path))
    handled = _handled(path)
    check_all(handled, records)
    return Processed(records, kills, len(handled), round(time.monotonic() - began_s, 1))


Line = tuple[int, int, str, int]
"""Partition, offset, key and number of a handled record."""


def _handled(path: Path) -> list[Line]:
    lines = [line.split() for line in path.read_text().splitlines()]
    return [(int(part), int(offset), key, int(number)) for part, offset, key, number in lines]


def _committed(log: bucketlog.Log, group: str) -> dict[int, int]:
    try:
        positions = log.groups.describe(group).positions
    except bucketlog.LogError as error:
        if not error.retriable and error.code != "GROUP_ID_NOT_FOUND":
            raise
        return {}
    return {each.partition: each.committed or 0 for each in positions}


def _wait_for_progress(path: Path, member: "subprocess.Popen[bytes]", deadline: Deadline) -> None:
    size = path.stat().st_size
    while path.stat().st_size == size and member.poll() is None:
        deadline.pause()


def _pause(log: bucketlog.Log, group: str, records: int, seconds: float) -> None:
    ends_s = time.monotonic() + seconds
    while time.monotonic() < ends_s and sum(_committed(log, group).values()) < records:
        let_pass(0.1)


def _check_committed(committed: Mapping[int, int], handled: list[Line]) -> None:
    offsets: dict[int, set[int]] = {}
    for partition, offset, _, _ in handled:
        offsets.setdefault(partition, set()).add(offset)
    for partition, end in committed.items():
        if missing := set(range(end)) - offsets.get(partition, set()):
            raise UnprocessedError(
                f"offset {end} of partition {partition} is committed, and {min(missing)} was not "
                "handled"
            )


def check_all(handled: list[Line], records: int) -> None:
    """Every record was handled, and those of a key in order."""
    if missing := set(range(records)) - {number for _, _, _, number in handled}:
        raise UnprocessedError(f"{len(missing)} records were not handled, the first {min(missing)}")
    newest: dict[str, int] = {}
    seen: set[int] = set()
    for _, _, key, number in handled:
        if number not in seen:
            if number < newest.get(key, -1):
                raise UnprocessedError(f"record {number} of key {key} after {newest[key]}")
            newest[key] = number
            seen.add(number)
