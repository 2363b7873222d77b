"""A broker under frames that make no sense: alive, serving others, its memory bounded.

At full size, from the repository's root: `make prove WHAT=frames`.
"""

import errno
import socket
import struct
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import psutil

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.models.frames import Corpus, Frame, framed, frames
from tests.rigs.patience import PATIENCE_S
from tests.rigs.wire_client import WireClient, build_batch
from tests.scenarios.round_trip import create_topic

WARM_UP_FRAMES = 1000
"""Sent before memory is measured, after every valid request."""
MIB = 1 << 20
PROBE_ID = 0x5EED5EED
PROBE = struct.pack(">ihhih", 10, ApiKey.API_VERSIONS, 0, PROBE_ID, -1)
PROBE_ANSWER = struct.pack(">ih", PROBE_ID, 0)
CLOSED_ERRORS = {errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN}
SETTINGS = {"fetch_wait_ms_max": "100"}
"""For the cluster: a frame whose maximal wait was made absurd should not stop the run."""


@dataclass(frozen=True, slots=True)
class FuzzFigures:
    frames: int
    served: int
    closed: int
    good_requests: int
    good_request_slowest_ms: float
    memory_grown_mib: float
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class GoodNeighbour(threading.Thread):
    """A well-behaved connection, used all the while; `failure` is what went wrong."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(name="good-neighbour")
        self.requests = 0
        self.slowest_s = 0.0
        self.failure: BaseException | None = None
        self._address = bootstrap
        self._topic = topic
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def run(self) -> None:
        try:
            with WireClient(self._address, timeout_s=PATIENCE_S) as client:
                while not self._stopping.wait(0.01):
                    self._once(client)
        except (OSError, AssertionError) as error:
            self.failure = error

    def _once(self, client: WireClient) -> None:
        began = time.perf_counter()
        if self.requests % 50 == 0:
            data = {"index": 0, "records": build_batch([(b"good", b"neighbour")])}
            topic = {"name": self._topic, "partition_data": [data]}
            answer = client.call(ApiKey.PRODUCE, 9, acks=-1, timeout=20_000, topic_data=[topic])
            assert not answer.responses[0].partition_responses[0].error_code, answer
        else:
            part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
            topic = {"topic": self._topic, "partitions": [part]}
            answer = client.call(
                ApiKey.FETCH, 12, max_wait=0, min_bytes=1, max_bytes=1000, topics=[topic]
            )
            assert not answer.responses[0].partitions[0].error_code, answer
            assert answer.responses[0].partitions[0].records
        self.slowest_s = max(self.slowest_s, time.perf_counter() - began)
        self.requests += 1


def offered_apis(bootstrap: str) -> dict[ApiKey, tuple[int, int]]:
    with WireClient(bootstrap) as client:
        rows = client.call(ApiKey.API_VERSIONS, 0).api_keys
    return {ApiKey(row.api_key): (row.min_version, row.max_version) for row in rows}


def outcome(address: tuple[str, int], frame: Frame) -> str:
    """What became of a connection that sent `frame`: "served" if a good request after it was
    answered, else "closed". A frame that says it is longer than it is gets an end of input instead
    of a good request: the broker would wait for the rest. Raises `TimeoutError` where the broker
    neither answers nor closes."""
    declared = struct.unpack_from(">i", frame.data)[0] if len(frame.data) >= 4 else 1 << 30
    with socket.create_connection(address, timeout=PATIENCE_S) as connection:
        received = b""
        try:
            if declared > len(frame.data) - 4:
                connection.sendall(frame.data)
                connection.shutdown(socket.SHUT_WR)
            else:
                connection.sendall(frame.data + PROBE)
            while data := connection.recv(65536):
                received = received[-64:] + data
                if PROBE_ANSWER in received:
                    return "served"
        except OSError as error:
            if error.errno not in CLOSED_ERRORS:
                raise
    return "closed"


def fuzz(cluster: EmbeddedCluster, count: int, *, seed: int) -> FuzzFigures:
    """`count` frames after a warm-up. Raises `AssertionError` where the broker fails."""
    create_topic(cluster.bootstrap, "fuzz", 1)
    create_topic(cluster.bootstrap, "neighbour", 1)
    corpus = Corpus(offered_apis(cluster.bootstrap), "fuzz")
    process = psutil.Process(cluster.pids["broker"])
    address = (cluster.host, cluster.port)
    neighbour = GoodNeighbour(cluster.bootstrap, "neighbour")
    neighbour.start()
    try:
        warm_up = [Frame("valid", framed(request)) for request in corpus.requests]
        for frame in (*warm_up, *frames(corpus, WARM_UP_FRAMES, seed + 1)):
            outcome(address, frame)
        before = process.memory_info().rss
        began = time.perf_counter()
        outcomes = Counter(
            (frame.kind, outcome(address, frame)) for frame in frames(corpus, count, seed)
        )
        seconds = time.perf_counter() - began
        grown = process.memory_info().rss - before
    finally:
        neighbour.stop()
    if neighbour.failure is not None:
        raise AssertionError(f"the neighbour was not served: {neighbour.failure!r}")
    if outcomes["valid", "closed"]:
        raise AssertionError(f"{outcomes['valid', 'closed']} valid requests were refused")
    if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
        raise AssertionError("the broker is gone")
    with WireClient(cluster.bootstrap) as client:
        assert not client.call(ApiKey.API_VERSIONS, 0).error_code
    return FuzzFigures(
        frames=count,
        served=sum(number for (_, what), number in outcomes.items() if what == "served"),
        closed=sum(number for (_, what), number in outcomes.items() if what == "closed"),
        good_requests=neighbour.requests,
        good_request_slowest_ms=round(1000 * neighbour.slowest_s, 1),
        memory_grown_mib=round(grown / MIB, 2),
        seconds=round(seconds, 1),
    )
