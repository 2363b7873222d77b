"""confluent-kafka, aiokafka, kafka-python and kcat, with every codec, each read by two of them."""

import pytest

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.batch import read_header
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from tests.rigs.wire_client import build_batch
from tests.scenarios.clients import CLIENTS, Consumed, Row
from tests.scenarios.round_trip import (
    Trip,
    all_trips,
    differences,
    make_rows,
    make_trip,
    stored_differences,
)
from tests.scenarios.stored import StoredBatch, stored_batches
from tests.servers.components import Components

COUNT = 2_000
NAMES = list(CLIENTS)


@pytest.fixture(scope="module", autouse=True)
def clients_took_part(components: Components) -> None:
    components.program("kcat", "apt-get install kcat, or your system's package", ("-V",))
    for client in CLIENTS.values():
        components.took_part(client.name, client.version())


@pytest.mark.parametrize("trip", all_trips(), ids=lambda trip: trip.topic)
def test_round_trip(broker: EmbeddedCluster, trip: Trip) -> None:
    rows = make_rows(COUNT, seed=1)
    other = NAMES[(NAMES.index(trip.writer) + 1) % len(NAMES)]
    assert not make_trip(broker.bootstrap, trip, rows, [trip.writer, other])
    bucket = open_sync_bucket(broker.bucket_url)
    try:
        batches = stored_batches(bucket)[trip.topic]
    finally:
        bucket.close()
    assert not stored_differences(trip, batches, COUNT)


def test_the_comparison_finds_what_is_planted() -> None:
    rows = [Row(0, b"k", b"a"), Row(0, b"k", b"b"), Row(1, b"k", b"c")]
    good: Consumed = {0: [(b"k", b"a"), (b"k", b"b")], 1: [(b"k", b"c")], 2: []}
    assert not differences(rows, good)
    lost = good | {0: good[0][:1]}
    doubled = good | {1: good[1] * 2}
    swapped = good | {0: good[0][::-1]}
    changed = good | {1: [(b"k", b"x")]}
    for bad in (lost, doubled, swapped, changed):
        assert differences(rows, bad)


def test_the_check_of_what_is_stored_finds_what_is_planted() -> None:
    def stored(offset: int, *, codec: int = 1, producer: int = -1) -> StoredBatch:
        data = build_batch([(None, b"x" * 100)], codec=codec, producer_id=producer)
        header = read_header(data)._replace(base_offset=offset)
        return StoredBatch(0, header, data)

    trip = Trip("kcat", "gzip", idempotent=False)
    assert not stored_differences(trip, [stored(0), stored(1)], 2)
    assert stored_differences(trip, [stored(0), stored(1, codec=0)], 2)
    assert stored_differences(trip, [stored(0), stored(1, producer=5)], 2)
    assert stored_differences(trip, [stored(0), stored(2)], 2)
    assert stored_differences(trip, [stored(0), stored(1)], 3)
