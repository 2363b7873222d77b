"""Two producers on one partition through two brokers, one of which writes slowly.

At full size, from the repository's root: `make prove WHAT=order`. A consumer asks both brokers all
the while, and reads again what it has passed: nothing may appear there.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.records import decode_records
from bucketlog.log_format.wire.api_keys import ApiKey
from localstack.slow_puts import constant
from tests.models.history import History, Read, Sent
from tests.rigs.patience import let_pass
from tests.rigs.wire_client import WireClient
from tests.scenarios.judgement import judge
from tests.scenarios.load import sent_of
from tests.scenarios.pinned import Pinned
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Store, running_cluster

TOPIC = "order"
SLOW, FAST = 0, 1
PRODUCERS_EACH = 4
WINDOW_OFFSETS = 2_000
"""So much of what was passed is read again at every poll."""
FETCH_BYTES = 8 << 20
POLL_PAUSE_S = 0.005


@dataclass(frozen=True, slots=True)
class OrderFigures:
    delay_s: float
    acknowledged: int
    acknowledged_by_slow: int
    acknowledged_by_fast: int
    slowest_answer_of_slow_s: float
    slowest_answer_of_fast_s: float
    polls: int
    offsets_passed: int
    appeared_below: int
    in_log: int
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Reader(threading.Thread):
    """Asks the brokers in turn, until it is stopped."""

    def __init__(self, addresses: Sequence[str], history: History) -> None:
        super().__init__(name="reader")
        self.position = 0
        """The offset after the last one seen: below it nothing may change."""
        self.polls = 0
        self._history = history
        self.failure: Exception | None = None
        self._addresses = addresses
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def run(self) -> None:
        clients = [WireClient(address) for address in self._addresses]
        try:
            while not self._stopping.wait(POLL_PAUSE_S):
                self._poll(clients[self.polls % len(clients)])
                self.polls += 1
        except (OSError, AssertionError) as error:
            self.failure = error
        finally:
            for client in clients:
                client.close()

    def _poll(self, client: WireClient) -> None:
        first, began = max(0, self.position - WINDOW_OFFSETS), time.monotonic()
        rows = read_from(client, TOPIC, first)
        reader = f"poll {self.polls} of {self._addresses[self.polls % len(self._addresses)]}"
        self._history.reads.append(Read(reader, 0, first, rows, began))
        if rows:
            self.position = max(self.position, rows[-1][0] + 1)


def read_from(client: WireClient, topic: str, first: int) -> list[tuple[int, Sent]]:
    """Offset and record, from `first` on, of partition 0, as one fetch gives them."""
    row = {"partition": 0, "fetch_offset": first, "partition_max_bytes": FETCH_BYTES}
    answer = client.call(
        ApiKey.FETCH,
        12,
        max_wait=0,
        min_bytes=0,
        max_bytes=FETCH_BYTES,
        topics=[{"topic": topic, "partitions": [row]}],
    )
    got = answer.responses[0].partitions[0]
    assert got.error_code == 0, got
    data, at, rows = got.records or b"", 0, []
    while at < len(data):
        header = read_header(data, at)
        batch = data[at : at + header.size_bytes]
        rows += [(one.offset, sent_of(one.value)) for one in decode_records(batch, header)]
        at += header.size_bytes
    return [(offset, sent) for offset, sent in rows if offset >= first]


def order(seconds: float, *, delay_s: float) -> OrderFigures:
    """Raises `AssertionError` where an offset appears below one that was passed, or one is lost."""
    began = time.perf_counter()
    with running_cluster(2, store=Store.MINIO, delays={SLOW: constant(0)}) as cluster:
        create_topic(cluster.bootstrap.split(",")[SLOW], TOPIC, 1)
        cluster.proxies[SLOW].delay = constant(delay_s)
        history = History()
        slow, fast = (
            [
                Pinned(f"{name}-{turn}", cluster.brokers[number].bootstrap, history, TOPIC)
                for turn in range(PRODUCERS_EACH)
            ]
            for number, name in ((SLOW, "slow"), (FAST, "fast"))
        )
        producers = [*slow, *fast]
        reader = Reader([broker.bootstrap for broker in cluster.brokers], history)
        started: list[Pinned | Reader] = []
        try:
            started.append(reader)
            reader.start()
            for producer in producers:
                started.append(producer)
                producer.start()
            let_pass(seconds)
        finally:
            for thread in reversed(started):
                thread.stop()
        cluster.proxies[SLOW].delay = constant(0)
        log = judge(cluster, history, topic=TOPIC, partitions=1)
    if reader.failure is not None:
        raise AssertionError("the reader failed") from reader.failure
    slowest_s = max(producer.slowest_s for producer in slow)
    assert slowest_s >= delay_s, "the proxy delayed nothing"
    for producer in producers:
        assert producer.acknowledged, f"{producer.name}: nothing acknowledged"
        assert not producer.refused, f"{producer.name}: {producer.refused[:3]}"
    return OrderFigures(
        delay_s=delay_s,
        acknowledged=len(history.acknowledged),
        acknowledged_by_slow=sum(producer.acknowledged for producer in slow),
        acknowledged_by_fast=sum(producer.acknowledged for producer in fast),
        slowest_answer_of_slow_s=round(slowest_s, 2),
        slowest_answer_of_fast_s=round(max(producer.slowest_s for producer in fast), 2),
        polls=reader.polls,
        offsets_passed=reader.position,
        appeared_below=0,
        in_log=len(log[0]),
        seconds=round(time.perf_counter() - began, 1),
    )
