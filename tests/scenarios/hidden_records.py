"""How long acknowledged records are hidden from readers of the bucket alone.

At full size, from the repository's root: `make prove WHAT=bucket-readers`. In each round, a broker
dies with a reservation. While its chain is sealed, another broker's batch above the reservation is
still being written. Once that batch is acknowledged, nobody produces. The first broker that then
begins to write a segment, with the fresh stamp, dies. The remaining broker has to write the stamp.
"""

import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kio.schema.errors import ErrorCode

import bucketlog
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import fold
from bucketlog.metadata.partition_tiers import partition_tiers
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.log_cut import ReadablePartition, readable
from bucketlog.tiered_storage.log_cut_reading import read_log
from bucketlog.tiered_storage.segment import is_seal
from tests.proofs.shortfall import Figures
from tests.rigs.patience import PATIENCE_S, Deadline, eventually
from tests.rigs.wire_client import WireClient, build_batch
from tests.scenarios.failover import percentile
from tests.scenarios.fault_points import wait_for_death
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster, ClusterBroker, Store, running_cluster
from tests.servers.mortal_broker import FOLDER, Point, gate_of, point_of, waits_at

TOPIC = "hidden"
BROKERS = 3
SETTINGS = {"put_stalled_ms": "10000"}
"""The broker whose batch is still being written keeps its roles until the dead one's chain is
sealed. All other settings are the defaults."""
FLUSH_INTERVAL_MS = {Store.FILE: "0", Store.MINIO: "250"}
"""The defaults of the product: tests of brokers use other values."""


@dataclass(frozen=True, slots=True)
class HiddenFigures:
    """`hidden` counts the rounds in which the record could not be read right after its
    acknowledgement. `hidden_..._s` is the time from the acknowledgement until the beginning of the
    first read that returned the record."""

    store: str
    rounds: int
    hidden: int
    deaths: int
    hidden_p50_s: float
    hidden_max_s: float
    acknowledged: int
    replayed: int
    seconds: float

    def as_json(self) -> Figures:
        return asdict(self)


class Produced(threading.Thread):
    """Produces one record through one broker, in a separate thread."""

    def __init__(self, broker: ClusterBroker, value: bytes) -> None:
        super().__init__(name=f"produce-{broker.node_id}")
        self.value = value
        self.offset = -1
        self.acknowledged_at = 0.0
        self.error: ErrorCode | None = None
        self._address = broker.bootstrap
        self.start()

    def run(self) -> None:
        data = [{"index": 0, "records": build_batch([(None, self.value)])}]
        topic = {"name": TOPIC, "partition_data": data}
        try:
            with WireClient(self._address, timeout_s=PATIENCE_S) as client:
                answer = client.call(
                    ApiKey.PRODUCE, 9, acks=-1, timeout=120_000, topic_data=[topic]
                )
        except OSError:
            return  # the broker died
        row = answer.responses[0].partition_responses[0]
        self.error = ErrorCode(row.error_code)
        if ErrorCode(row.error_code) is ErrorCode.none:
            self.acknowledged_at = time.monotonic()
            self.offset = row.base_offset


@dataclass(frozen=True, slots=True)
class Round:
    value: bytes
    was_hidden: bool
    hidden_s: float


def hidden_records(store: Store, rounds: int) -> HiddenFigures:
    """Raises `AssertionError` if a record is missing in the end. Leaves nothing running."""
    began = time.perf_counter()
    with (
        TemporaryDirectory(prefix="bucketlog-hidden-") as folder,
        running_cluster(
            BROKERS,
            store=store,
            settings=SETTINGS | {"flush_interval_ms": FLUSH_INTERVAL_MS[store]},
            module="tests.servers.mortal_broker",
            environment={FOLDER: folder},
        ) as cluster,
    ):
        create_topic(cluster.brokers[0].bootstrap, TOPIC, 1)
        seen = [_round(cluster, Path(folder), turn) for turn in range(rounds)]
        replayed = [record.value for record in bucketlog.replay(cluster.bucket_url, TOPIC)]
    found, wanted = (
        [value for value in replayed if value.startswith(b"kept")],
        [each.value for each in seen],
    )
    assert found == wanted, f"replay returned {found}, not {wanted}"
    times = [each.hidden_s for each in seen]
    return HiddenFigures(
        store=store,
        rounds=rounds,
        hidden=sum(each.was_hidden for each in seen),
        deaths=2 * rounds,
        hidden_p50_s=round(percentile(times, 0.5), 2),
        hidden_max_s=round(max(times), 2),
        acknowledged=len(seen),
        replayed=len(replayed),
        seconds=round(time.perf_counter() - began, 1),
    )


def _round(cluster: Cluster, armed: Path, turn: int) -> Round:
    dead, slow = (cluster.brokers[(turn + at) % BROKERS] for at in range(2))
    gate = armed / gate_of(slow.node_id)
    bucket = cluster.open_bucket()
    try:
        seals = _seals(bucket)
        (armed / point_of(dead.node_id, Point.BEFORE_PUT)).touch()
        Produced(dead, b"lost %d" % turn).join()
        died = wait_for_death(cluster, Point.BEFORE_PUT)
        assert died is dead, f"broker {died.node_id} died in round {turn}, not {dead.node_id}"
        gate.touch()
        kept = Produced(slow, b"kept %d" % turn)
        waiting = gate.with_name(waits_at(gate.name))
        eventually(waiting.exists, "the broker does not write")
        eventually(lambda: _seals(bucket) > seals, "the dead broker's chain is not sealed")
        (armed / Point.BEFORE_PUT).touch()
        gate.unlink()
        kept.join(PATIENCE_S)
        assert kept.offset >= 0, f"the record was not acknowledged: {kept.error!r}"
        was_hidden, hidden_s = _hidden(bucket, kept)
        wait_for_death(cluster, Point.BEFORE_PUT)
    finally:
        bucket.close()
    waiting.unlink()
    for broker in cluster.brokers:
        if broker.process is None:
            broker.start()
    cluster.wait_until_all_are_members()
    return Round(kept.value, was_hidden, hidden_s)


def _seals(bucket: SyncBucket) -> int:
    return sum(is_seal(info.size_bytes) for info in bucket.list(keys.LOG))


def _hidden(bucket: SyncBucket, kept: Produced) -> tuple[bool, float]:
    """Whether the first read lacks the record, and the seconds until a read begins that has it."""
    deadline = Deadline("readers of the bucket alone never see the record")
    was_hidden = False
    while True:
        began = time.monotonic()
        if _read(bucket).end_offset > kept.offset:
            return was_hidden, began - kept.acknowledged_at
        was_hidden = True
        deadline.pause()


def _read(bucket: SyncBucket) -> ReadablePartition:
    snapshot = read_log(bucket)
    state = fold(snapshot.segments, onto=restored(snapshot.checkpoint))
    tiers = partition_tiers(state)
    partition = next(key for key in tiers if key.topic_id == state.names[TOPIC])
    return readable(snapshot, {partition: tiers[partition]})[partition]
