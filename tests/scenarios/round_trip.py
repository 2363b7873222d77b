"""Each client produces and consumes the same rows: counts, order per partition and bytes equal.

At full size, from the repository's root: `make prove WHAT=clients`. What was stored is read from
the bucket: the codec bits of every batch, and that producer ids are there when and only when the
producer was idempotent.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import WireClient
from tests.scenarios.clients import CLIENTS, CODECS, Consumed, Row
from tests.scenarios.stored import StoredBatch

PARTITIONS = 3
_NOT_FOR_KCAT = bytes.maketrans(b"\0\t\n", b"xyz")


@dataclass(frozen=True, slots=True)
class Trip:
    """One topic: who writes it and how."""

    writer: str
    codec: str
    idempotent: bool

    @property
    def topic(self) -> str:
        kind = "idempotent" if self.idempotent else "plain"
        return f"{self.writer}.{self.codec}.{kind}"


def all_trips(writers: Iterable[str] = tuple(CLIENTS)) -> list[Trip]:
    return [
        Trip(writer, codec, idempotent)
        for writer in writers
        for codec in CODECS
        for idempotent in (False, True)
    ]


def make_rows(count: int, *, seed: int) -> list[Row]:
    """Any bytes but those that kcat cannot take; each compresses, so that codecs are used."""
    source = random.Random(seed)
    rows = []
    for number in range(count):
        pattern = source.randbytes(8).translate(_NOT_FOR_KCAT)
        value = b"%d:" % number + pattern * source.randrange(8, 16)
        rows.append(Row(source.randrange(PARTITIONS), b"key-%d" % (number % 1000), value))
    return rows


def differences(rows: list[Row], consumed: Consumed) -> list[str]:
    """What was consumed against what was produced; empty where all is equal."""
    found = []
    for partition in range(PARTITIONS):
        sent = [(row.key, row.value) for row in rows if row.partition == partition]
        got = consumed[partition]
        if len(sent) != len(got):
            found.append(f"partition {partition}: {len(got)} records, not {len(sent)}")
        for number, (mine, theirs) in enumerate(zip(sent, got, strict=False)):
            if mine != theirs:
                found.append(f"partition {partition}, record {number}: {theirs}, not {mine}")
                break
    return found


def stored_differences(trip: Trip, batches: list[StoredBatch], count: int) -> list[str]:
    """What stands in the bucket against what the trip asked for."""
    wanted = Codec[trip.codec.upper()]
    found = [
        f"a batch at offset {batch.header.base_offset} of codec {batch.header.codec}, not {wanted}"
        for batch in batches
        if batch.header.codec != wanted
    ]
    found += [
        f"a batch at offset {batch.header.base_offset} of producer id {batch.header.producer_id}"
        for batch in batches
        if (batch.header.producer_id >= 0) != trip.idempotent
    ]
    for one, next_one in pairwise(batches):
        same = one.partition == next_one.partition
        if same and one.header.next_offset != next_one.header.base_offset:
            found.append(f"offset {one.header.next_offset} of partition {one.partition} is missing")
    total = sum(batch.header.record_count for batch in batches)
    if total != count:
        found.append(f"{total} records stored, not {count}")
    return found


def create_topic(bootstrap: str, name: str, partitions: int) -> None:
    row = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    with WireClient(bootstrap) as client:
        result = client.call(ApiKey.CREATE_TOPICS, 5, topics=[row]).topics[0]
    if result.error_code:
        raise AssertionError(f"topic {name}: {result}")


def make_trip(bootstrap: str, trip: Trip, rows: list[Row], readers: Iterable[str]) -> list[str]:
    """Produce, then consume with every reader; what differs, by reader."""
    create_topic(bootstrap, trip.topic, PARTITIONS)
    writer = CLIENTS[trip.writer]
    writer.produce(bootstrap, trip.topic, rows, codec=trip.codec, idempotent=trip.idempotent)
    found = []
    for reader in readers:
        consumed = CLIENTS[reader].consume(bootstrap, trip.topic, PARTITIONS, len(rows))
        found += [f"{trip.topic} read by {reader}: {text}" for text in differences(rows, consumed)]
    return found
