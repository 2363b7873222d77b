"""Programs that lost records or hung: threads that share a consumer, work handed to a pool, a
client after a fork, and an end that means nothing. Each trial raises an error unless the outcome is
right.
"""

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from bucketlog import ConcurrentUseError, ConfigurationError, Log, LogError, Topic
from tests.rigs.patience import PATIENCE_S, eventually

THREADS = 4
IN_POOL = 8
OTHER_ENDS: tuple[Callable[[Random], Any], ...] = (
    lambda random: "".join(random.choices("abcdenz", k=random.randint(1, 6))) + "?",
    lambda random: random.random() * 100,
    lambda random: -random.randint(1, 10**6),
    lambda random: bool(random.getrandbits(1)),
    lambda random: random.randbytes(3),
    lambda random: [random.randint(0, 9)],
    lambda random: {str(random.randint(0, 9)): 1},
    lambda random: {0: str(random.randint(0, 9))},
    lambda _: object(),
)
"""What `until` refuses."""


def shared_by_threads(log: Log, topic: "Topic[Any, Any]", records: int, group: str | None) -> int:
    """Threads share a consumer of a topic with one partition. Each record is returned once. Returns
    how many threads were refused; each of them got `ConcurrentUseError`."""
    seen: list[int] = []
    refusals: list[ConcurrentUseError] = []
    others: list[BaseException] = []
    options: dict[str, Any] = {} if group is None else {"group": group}
    with log.consumer(topic, start="earliest", until="end", **options) as consumer:

        def read() -> None:
            try:
                while not consumer.finished:
                    seen.extend(record.offset for record in consumer.poll(7, 0.1))
            except ConcurrentUseError as error:
                refusals.append(error)
            except BaseException as error:
                others.append(error)
                raise

        threads = [threading.Thread(target=read) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        seen.extend(record.offset for record in consumer)
    assert not others, others
    assert sorted(seen) == list(range(records)), f"{len(seen)} of {records} records"
    for refusal in refusals:
        assert "process(" in str(refusal)
    return len(refusals)


_POOL_MEMBER = """
import os, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
import bucketlog

bootstrap, topic, group, threads, path, endless_from = sys.argv[1:]
file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

with (
    bucketlog.connect(bootstrap) as log,
    log.consumer(
        bucketlog.Topic(topic),
        group=group,
        instance_id="member",
        start="earliest",
        auto_commit="ack",
        commit_interval_s=0.01,
        in_flight_records_max=40,
    ) as consumer,
    ThreadPoolExecutor(int(threads)) as pool,
):
    def work(record):
        if record.offset >= int(endless_from):
            threading.Event().wait()
        time.sleep(record.offset % 5 / 50)
        os.write(file, f"{record.offset}\\n".encode())
        consumer.done(record)

    for record in consumer:
        pool.submit(work, record)
"""


def handed_to_a_pool(
    log: Log, topic: "Topic[Any, Any]", records: int, group: str, file: Path
) -> int:
    """A program hands records of a topic with one partition to a pool, and is killed (-9) in the
    middle: the work of the second half never ends. No record is committed before its work was done,
    and a second program gets the others. Returns the committed offset at the kill."""
    file.write_text("")
    member = [sys.executable, "-P", "-c", _POOL_MEMBER, log.bootstrap, topic.name, group]
    rest = (str(IN_POOL), str(file), str(records // 2))
    with subprocess.Popen([*member, *rest]) as process:
        try:
            eventually(
                lambda: _committed(log, group) > records // 4, process.poll, despite=(LogError,)
            )
        finally:
            process.kill()
    done = set(_done(file))
    committed = _committed(log, group)
    assert set(range(committed)) <= done, "a record was committed before its work was done"
    assert len(done) < records, "the program was not killed in the middle"
    with log.consumer(
        topic,
        group=group,
        instance_id="member",
        start="earliest",
        until="end",
        auto_commit="ack",
    ) as consumer:
        consumer.process(lambda record: done.add(record.offset), concurrency=IN_POOL)
    assert done == set(range(records)), f"{records - len(done)} records are lost"
    assert _committed(log, group) == records
    return committed


def _committed(log: Log, group: str) -> int:
    """Of the only partition. Raises `LogError`."""
    positions = log.groups.describe(group).positions
    return (positions[0].committed or 0) if positions else 0


def _done(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]


_FORKS = """
import os, sys
import bucketlog

log = bucketlog.connect(sys.argv[1])
topic = bucketlog.Topic("forked", value=str)
log.topics.ensure(topic)
producer = log.producer()
producer.send(topic, "parent").result()
consumer = log.consumer(topic, start="earliest")
next(consumer)

def refused(call):
    try:
        call()
    except bucketlog.ConfigurationError as error:
        assert "before a fork" in str(error) and "post_fork" in str(error)
    else:
        raise AssertionError(call)

child = os.fork()
if not child:
    calls = [lambda: producer.send(topic, "child"), producer.flush, consumer.poll]
    calls += [lambda: producer.send_many(topic, ["x"]), lambda: next(consumer)]
    calls += [log.cluster_id]
    for call in calls:
        refused(call)
    consumer.close()
    producer.close()
    with bucketlog.connect(sys.argv[1]) as own, own.producer() as mine:
        mine.send(topic, "child").result()
    del producer, consumer, log
    sys.exit(7)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
producer.send(topic, "parent again").result()
print(status, next(consumer).value, next(consumer).value)
log.close()
"""


def used_after_a_fork(bootstrap: str) -> None:
    """The child's calls on the parent's clients are refused, and its own client works. Neither
    process hangs, and the parent's clients continue."""
    ended = subprocess.run(
        [sys.executable, "-P", "-c", _FORKS, bootstrap],
        capture_output=True,
        check=False,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split()[0] == "7", ended.stderr


def ends_that_mean_nothing(log: Log, topic: "Topic[Any, Any]", random: Random) -> None:
    """`until` refuses a value of each wrong kind, and names the right ones."""
    for make in OTHER_ENDS:
        until = make(random)
        refusal: ConfigurationError | None = None
        try:
            log.consumer(topic, start="earliest", until=until).close()
        except ConfigurationError as error:
            refusal = error
        assert refusal is not None, f"until={until!r} is accepted"
        assert "until is" in str(refusal)
        assert refusal.remedy


def ends_of_each_kind(log: Log, topic: "Topic[Any, Any]", records: int, random: Random) -> None:
    """Reading a topic with one partition up to the end, an offset, offsets or a time ends."""
    offset = random.randint(0, records)
    past, future = datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
    ends: tuple[tuple[Any, int], ...] = (
        ("end", records),
        (offset, offset),
        ({0: offset}, offset),
        (past, 0),
        (future, records),
    )
    for until, expected in ends:
        with log.consumer(topic, start="earliest", until=until) as consumer:
            count = sum(1 for _ in consumer)
        assert count == expected, f"until={until!r}: {count} records, not {expected}"


def trials(log: Log, folder: Path, count: int, records: int) -> dict[str, Any]:
    """Each program `count` times. Returns figures; raises `AssertionError` for a wrong outcome."""
    random = Random(1)
    topic = Topic("misused")
    log.topics.ensure(topic, partitions=1)
    with log.producer() as producer:
        producer.send_many(topic, (b"%d" % number for number in range(records)))
    refused = [
        shared_by_threads(log, topic, records, f"threads-{number}" if number % 2 else None)
        for number in range(count)
    ]
    offsets = [
        handed_to_a_pool(log, topic, records, f"pool-{number}", folder / "done")
        for number in range(count)
    ]
    with ThreadPoolExecutor(1) as pool:
        list(pool.map(used_after_a_fork, [log.bootstrap] * count))
    for _ in range(count):
        ends_that_mean_nothing(log, topic, random)
        ends_of_each_kind(log, topic, records, random)
    return {
        "trials_each": count,
        "records": records,
        "threads": {"of": THREADS * count, "refused": sum(refused), "records_lost": 0},
        "pool": {"kills": count, "committed_at_kill": sum(offsets) // count, "records_lost": 0},
        "forks": {"hung": 0, "refused_calls": 6 * count},
        "ends": {"refused": len(OTHER_ENDS) * count, "reached": 5 * count},
    }
