"""Members of consumer groups as an application has them: polled in turn by one thread, or in a
process of their own that can be killed."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bucketlog import GroupConsumer, Log, Record, Topic
from tests.rigs.patience import Deadline

SESSION_S = 3.0
QUICK_SESSIONS = {"group_session_timeout_ms_min": "500"}
"""For a broker whose groups miss a dead member soon."""

Member = GroupConsumer[bytes, str]
Text = Topic[bytes, str]


def fill(log: Log, name: str, partitions: int, each: int) -> Text:
    """A topic with `each` records in every partition, which say where they stand."""
    topic = Topic(name, value=str)
    log.topics.ensure(topic, partitions=partitions)
    with log.producer() as producer:
        for at in range(each):
            for partition in range(partitions):
                producer.send(topic, f"{partition}-{at}", partition=partition)
    return topic


def poll_until(
    members: Sequence[Member], done: Callable[[], bool], seen: list[Record[bytes, str]]
) -> None:
    """Poll them in turn until `done`; what comes is added to `seen`."""
    deadline = Deadline(lambda: [sorted(member.assignment) for member in members])
    while not done():
        deadline.check()
        for member in members:
            seen += member.poll(50, 0.02)


def leave_in_turn(members: Sequence[Member], seen: list[Record[bytes, str]]) -> None:
    """One leaves its `with` block after the other, while those that stay are polled: who is not
    polled holds up a rebalance, and with it whoever leaves amid it."""
    staying = list(members)
    while staying:
        leaving = staying.pop()
        leaving.poll(0, 0)  # this thread is done with its records, so that another may take over
        leaver = threading.Thread(target=leaving.__exit__, args=(None, None, None))
        leaver.start()
        while leaver.is_alive():
            for member in staying:
                seen += member.poll(50, 0.02)
            leaver.join(0.02)


def shares(members: Sequence[Member]) -> list[int]:
    """How many partitions each has, the most first."""
    return sorted((len(member.assignment) for member in members), reverse=True)


def spots(records: Sequence[Record[Any, Any]]) -> list[tuple[int, int]]:
    return sorted((record.partition, record.offset) for record in records)


_WORKER = """
import sys
import bucketlog

bootstrap, topic, group, mode, session_s = sys.argv[1:]

def work(record):
    print(record.partition, record.offset, flush=True)
    sys.stdin.readline()  # done when the test says so

with bucketlog.connect(bootstrap) as log:
    options = {"group": group, "start": "earliest", "session_timeout_s": float(session_s)}
    records = bucketlog.Topic(topic, value=str)
    if mode == "at-least-once":
        with log.consumer(records, commit_interval_s=0.05, **options) as consumer:
            for record in consumer:
                work(record)
    else:
        with log.consumer(records, auto_commit=False, **options) as consumer:
            for batch in consumer.batches(5):
                consumer.commit()
                for record in batch:
                    work(record)
"""


class Worker:
    """A member in a process. It works on a record until `finish`; `kill` is -9."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def next(self) -> tuple[int, int]:
        """Partition and offset of the record that it works on now."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the worker ended with {self._process.wait()}"
        partition, offset = map(int, line.split())
        return partition, offset

    def finish(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def worker(log: Log, topic: Text, group: str, mode: str = "at-least-once") -> Iterator[Worker]:
    arguments = [log.bootstrap, topic.name, group, mode, str(SESSION_S)]
    with subprocess.Popen(
        [sys.executable, "-c", _WORKER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Worker(process)
        finally:
            process.kill()
