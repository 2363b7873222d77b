"""Hostile clients, one attack per row: their effect on other clients, and on memory.

Each row has two brokers, a MinIO and a Valkey. A bystander measures produce and ApiVersions right
before the attack and while it lasts. Attackers come from other addresses than the bystander,
because limits per address are part of the defence. At full size: `make prove WHAT=attack`; one row
by hand: `python -m tests.proofs.hostile NAME`.
"""

import re
import socket
import statistics
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import psutil

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.fuzz.byte_changes import framed
from tests.fuzz.shapes import encode_request
from tests.rigs.patience import PATIENCE_S, Deadline, let_pass
from tests.rigs.wire_client import WireClient, decode_response
from tests.scenarios.bystander import Bystander, Latencies
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster, Store, running_cluster

MIB = 1 << 20
BYSTANDER = "bystander"
IDLE_S = 3.0
ATTACK_S = 4.0
SHORT_S = 1.0
BACK_S = 60.0
"""After this time, memory is back to normal."""
BACK_FACTOR = 1.2
SLOWER_MS_MAX = 200.0
TRIES = 3
SOURCES = tuple(f"127.0.0.{number}" for number in range(66, 74))
ROLE_LINES = re.compile(
    r"epoch \d+ is (over|claimed)|is sealed at|its chain is closed|gives its roles to the others"
)
BAD_LINES = re.compile(r"Traceback|CRITICAL")
SAMPLE_S = 0.05


class Arena:
    """The cluster under attack, and what attackers need: sockets, bytes, time."""

    def __init__(self, cluster: Cluster, attack_s: float, idle_s: float) -> None:
        self.cluster = cluster
        self.attack_s = attack_s
        self.idle_s = idle_s
        self.sent_bytes = 0
        self.notes: dict[str, Any] = {}
        """Additional figures of a row."""
        self._lock = threading.Lock()
        self._open = ExitStack()

    def address(self, broker: int = 0) -> tuple[str, int]:
        host, _, port = self.cluster.brokers[broker].bootstrap.rpartition(":")
        return host, int(port)

    def connect(self, broker: int = 0, source: str = SOURCES[0]) -> socket.socket:
        """A connection, which is closed at the end of the attack."""
        there = socket.create_connection(
            self.address(broker), timeout=PATIENCE_S, source_address=(source, 0)
        )
        self._open.callback(there.close)
        return there

    def leave(self) -> None:
        self._open.close()

    def send(self, there: socket.socket, data: bytes) -> bool:
        """Whether the broker took all bytes; False once the broker has closed the connection."""
        try:
            there.sendall(data)
        except OSError:
            return False
        with self._lock:
            self.sent_bytes += len(data)
        return True

    def ask(self, there: socket.socket, data: bytes) -> bytes | None:
        """Send a frame and return its answer; None: the broker closed the connection."""
        return read_answer(there) if self.send(there, data) else None

    def note(self, name: str, count: float = 1) -> None:
        with self._lock:
            self.notes[name] = self.notes.get(name, 0) + count

    def repeat(self, data: bytes, connections: int = 1, *, seconds: float | None = None) -> None:
        """Each connection sends the frame and reads the answer, again and again."""

        def one() -> None:
            there = self.connect()
            while not deadline.is_over:
                if self.ask(there, data) is None:
                    self.note("closed")
                    there = self.connect()
                else:
                    self.note("answers")

        deadline = Deadline(bound_s=self.attack_s if seconds is None else seconds)
        at_once([one] * connections)


def at_once(work: Iterable[Callable[[], None]]) -> None:
    """Run each in a thread. Raises the first failure."""
    failures: list[BaseException] = []

    def guarded(one: Callable[[], None]) -> None:
        try:
            one()
        except (OSError, AssertionError) as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(one,), daemon=True) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def read_answer(there: socket.socket) -> bytes | None:
    head = _read(there, 4)
    return None if head is None else _read(there, struct.unpack(">i", head)[0])


def _read(there: socket.socket, count: int) -> bytes | None:
    data = bytearray()
    while len(data) < count:
        try:
            piece = there.recv(min(count - len(data), MIB))
        except ConnectionError:
            return None
        if not piece:
            return None
        data += piece
    return bytes(data)


def request(key: ApiKey, version: int, correlation_id: int = 1, /, **values: Any) -> bytes:
    """A frame with these fields, in the schema's order. Other fields are missing."""
    return framed(encode_request(key, version, correlation_id, values))


def decoded(key: ApiKey, version: int, answer: bytes) -> Any:
    return decode_response(key, version, answer)[1]


Prepare = Callable[[Arena], Any]
Attack = Callable[[Arena, Any], None]


def nothing(arena: Arena) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Row:
    """`prepare` runs before measuring; `attack` gets its result. `check` runs after the attack, and
    raises `AssertionError`. `memory_mib_max` bounds the growth of a broker's memory."""

    name: str
    attack: Attack
    prepare: Prepare = nothing
    check: Prepare = nothing
    memory_mib_max: float = 300
    settings: Mapping[str, str] = field(default_factory=dict)
    refuses_produce: bool = False
    """Whether the bystander's produce may fail: the attack is on Valkey itself."""
    leaves_state: bool = False
    """Whether brokers keep the accepted state, and hence the memory, until the state expires."""


@dataclass(slots=True)
class Measured:
    """One try of a row."""

    sent_bytes: int
    idle: Latencies
    attacked: Latencies
    broker_cpu_s: float
    rss_before_mib: float
    rss_peak_mib: float
    rss_after_mib: float
    back_s: float
    notes: dict[str, Any]

    @property
    def slower_ms(self) -> float:
        """The larger difference of the two p99s."""
        return max(
            self.attacked.produce_p99_ms - self.idle.produce_p99_ms,
            self.attacked.api_versions_p99_ms - self.idle.api_versions_p99_ms,
        )

    @property
    def api_versions_slower_ms(self) -> float:
        return self.attacked.api_versions_p99_ms - self.idle.api_versions_p99_ms

    def as_json(self) -> dict[str, Any]:
        return {
            "sent_bytes": self.sent_bytes,
            "idle_produce_p99_ms": self.idle.produce_p99_ms,
            "attacked_produce_p99_ms": self.attacked.produce_p99_ms,
            "idle_api_versions_p99_ms": self.idle.api_versions_p99_ms,
            "attacked_api_versions_p99_ms": self.attacked.api_versions_p99_ms,
            "attacked_slowest_ms": round(
                max([*self.attacked.produce_ms, *self.attacked.api_versions_ms], default=0)
            ),
            "broker_cpu_s": round(self.broker_cpu_s, 2),
            "rss_before_mib": round(self.rss_before_mib),
            "rss_peak_mib": round(self.rss_peak_mib),
            "rss_after_mib": round(self.rss_after_mib),
            "back_s": round(self.back_s, 1),
            **{name: value for name, value in self.notes.items() if value},
        }


class Brokers:
    """The processes' memory, CPU time and roles."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._processes = [psutil.Process(each.running.process.pid) for each in cluster.brokers]

    def rss_mib(self) -> float:
        """The memory of the larger broker."""
        return max(process.memory_info().rss for process in self._processes) / MIB

    def cpu_s(self) -> float:
        times = [process.cpu_times() for process in self._processes]
        return sum(each.user + each.system for each in times)

    def roles(self) -> list[str]:
        """The lines of the brokers' logs about changed roles."""
        return self._lines(ROLE_LINES)

    def bad_lines(self) -> list[str]:
        return self._lines(BAD_LINES)

    def _lines(self, wanted: re.Pattern[str]) -> list[str]:
        return [
            line[:300]
            for broker in self._cluster.brokers
            for line in broker.log.read_text(errors="replace").splitlines()
            if wanted.search(line)
        ]


class Peak(threading.Thread):
    """Measures the largest memory of a broker within a `with` block."""

    def __init__(self, brokers: Brokers) -> None:
        super().__init__(daemon=True)
        self._brokers = brokers
        self._ended = threading.Event()
        self.mib = brokers.rss_mib()

    def run(self) -> None:
        while not self._ended.wait(SAMPLE_S):
            self.mib = max(self.mib, self._brokers.rss_mib())

    def end(self) -> None:
        self._ended.set()
        self.join()


def measure(row: Row, arena: Arena, brokers: Brokers, bystander: Bystander, made: Any) -> Measured:
    bystander.phase()
    let_pass(arena.idle_s)
    idle = bystander.phase()
    before_mib, cpu_s = brokers.rss_mib(), brokers.cpu_s()
    arena.sent_bytes, arena.notes = 0, {}
    peak = Peak(brokers)
    peak.start()
    began = time.perf_counter()
    try:
        row.attack(arena, made)
        let_pass(began + arena.attack_s - time.perf_counter())
        attacked = bystander.phase()
    finally:
        arena.leave()
        peak.end()
    cpu_s = brokers.cpu_s() - cpu_s
    row.check(arena)
    back = Deadline(bound_s=BACK_S)
    while (
        not row.leaves_state and brokers.rss_mib() > BACK_FACTOR * before_mib and not back.is_over
    ):
        let_pass(SAMPLE_S)
    return Measured(
        sent_bytes=arena.sent_bytes,
        idle=idle,
        attacked=attacked,
        broker_cpu_s=cpu_s,
        rss_before_mib=before_mib,
        rss_peak_mib=peak.mib,
        rss_after_mib=brokers.rss_mib(),
        back_s=BACK_S - back.left_s,
        notes=dict(arena.notes),
    )


def run_row(row: Row, *, short: bool = False) -> dict[str, Any]:
    """Figures, with `problems`. A row that is too slow is measured `TRIES` times, and the median
    counts, because other work on the machine also slows the row. In short form, the bucket is a
    folder, and latencies and roles are not judged, because CI machines are shared."""
    store, seconds = (
        (Store.FILE, (SHORT_S, SHORT_S)) if short else (Store.MINIO, (ATTACK_S, IDLE_S))
    )
    with running_cluster(2, store=store, settings=row.settings) as cluster:
        create_topic(cluster.brokers[0].bootstrap, BYSTANDER, 1)
        arena, brokers = Arena(cluster, *seconds), Brokers(cluster)
        made = row.prepare(arena)
        arena.leave()
        roles = brokers.roles()
        tries: list[Measured] = []
        with Bystander([each.bootstrap for each in cluster.brokers], BYSTANDER) as bystander:
            while len(tries) < TRIES:
                tries.append(measure(row, arena, brokers, bystander, made))
                if short or (len(tries) == 1 and _slower_ms(row, tries[0]) <= SLOWER_MS_MAX):
                    break
        problems = [*_memory_problems(row, tries)]
        if not short:
            problems += _latency_problems(row, tries)
            problems += [f"a role changed: {line}" for line in brokers.roles() if line not in roles]
        problems += brokers.bad_lines()[:2]
    tries.sort(key=lambda each: _slower_ms(row, each))
    middle = tries[len(tries) // 2]
    return {"row": row.name, **middle.as_json(), "tries": len(tries), "problems": problems}


def _slower_ms(row: Row, measured: Measured) -> float:
    return measured.api_versions_slower_ms if row.refuses_produce else measured.slower_ms


def _latency_problems(row: Row, tries: list[Measured]) -> Iterable[str]:
    slower_ms = statistics.median(_slower_ms(row, each) for each in tries)
    if slower_ms > SLOWER_MS_MAX:
        yield f"the bystander's p99 is {slower_ms:.0f} ms above idle (median of {len(tries)})"
    failures = [text for each in tries for text in each.attacked.failures]
    if failures and not row.refuses_produce:
        yield f"the bystander was refused {len(failures)} times: {failures[0]}"


def _memory_problems(row: Row, tries: list[Measured]) -> Iterable[str]:
    grown_mib = max(each.rss_peak_mib - each.rss_before_mib for each in tries)
    if grown_mib > row.memory_mib_max:
        yield f"memory grew by {grown_mib:.0f} MiB, bounded by {row.memory_mib_max:.0f}"
    first = tries[0]
    if not row.leaves_state and first.rss_after_mib > BACK_FACTOR * first.rss_before_mib:
        yield (
            f"memory is {first.rss_after_mib:.0f} MiB after {BACK_S:.0f} s, "
            f"{first.rss_before_mib:.0f} before"
        )


def topic_with(arena: Arena, name: str, partitions: int, **configs: str) -> None:
    """Create a topic through the first broker, and wait until the second sees it."""
    row = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    row["configs"] = [{"name": key, "value": value} for key, value in configs.items()]
    with WireClient(arena.cluster.brokers[0].bootstrap) as client:
        answer = client.call(ApiKey.CREATE_TOPICS, 5, topics=[row], timeout=30_000)
    assert not answer.topics[0].error_code, answer
