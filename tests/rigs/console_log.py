"""A log with something of everything that the console shows, written through real brokers."""

import json
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import psutil

import bucketlog
from bucketlog import Log, Topic
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.wire.frames import uvarint
from bucketlog.schema_registry.framing import header
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from bucketlog.tiered_storage.bucket import ObjectInfo
from tests.rigs.patience import eventually
from tests.rigs.shell import Shell

ORDERS, PAYMENTS, HOSTILE = "orders", "payments", "hostile"
GROUP = "billing"
SCRIPT = "<script>document.title='owned';window.owned=1</script>"
NESTED_DEPTH = 1_000
AVRO_TEXT_ID, UNKNOWN_ID = 1, 2
"""Ids of a schema that is an Avro string, and of none."""
LARGE_BYTES = 900_000
EXTRA_TOPICS = 12


class HostileRecord(NamedTuple):
    """A record whose bytes try to harm whoever shows them."""

    name: str
    key: bytes | None
    value: bytes | None


def hostile_records(large_bytes: int = LARGE_BYTES) -> list[HostileRecord]:
    nested = b"[" * NESTED_DEPTH + b"]" * NESTED_DEPTH
    return [
        HostileRecord("script", SCRIPT.encode(), SCRIPT.encode()),
        HostileRecord("attribute", b'"><img src=x onerror=window.owned=1>', b"' onload='x"),
        HostileRecord("template", b"{{ 7 * 7 }}", b"{% raw %}${7*7}"),
        HostileRecord("terminal", b"\x1b]0;owned\x07", b"\x1b[2J\x1b[31mred\x1b[0m\r\n\x00"),
        HostileRecord("direction", "a\u202eb".encode(), "\u2066txt.exe\u2069".encode()),
        HostileRecord("not UTF-8", b"\xff\xfe", b"\xc3\x28\xa0\xa1\xf0\x28\x8c\xbc"),
        HostileRecord("nested", b"deep", nested),
        HostileRecord("large", b"large", b"x" * large_bytes),
        HostileRecord("digits", b"digits", b'{"n": ' + b"9" * 5_000 + b', "a": 1, "a": 2}'),
        HostileRecord("tombstone", b"gone", None),
        HostileRecord("framed", header(UNKNOWN_ID) + b"key", avro_text(SCRIPT)),
    ]


def avro_text(text: str) -> bytes:
    """A short text in a frame, as Avro."""
    data = text.encode()
    return header(AVRO_TEXT_ID) + uvarint(2 * len(data)) + data


EARLY_UPKEEP = {
    "checkpoint_interval_ms": "1000",
    "compaction_check_interval_ms": "200",
    "compaction_interval_ms": "1",
    "compaction_age_ms_min": "0",
}
LATE_UPKEEP = {"checkpoint_interval_ms": "1000", "compaction_check_interval_ms": "0"}


def write_log(folder: Path, *, brokers: int = 2) -> str:
    """The bucket's url. Brokers of two epochs have written the log: its records are in tiers and
    in log segments, and the chains of the first epoch are sealed. All processes have ended."""
    with EmbeddedCluster(folder, brokers=brokers, settings=EARLY_UPKEEP) as cluster:
        fill(cluster.bootstrap)
        url = cluster.bucket_url
        eventually(lambda: bool(objects(url, keys.SEGMENTS)), "no topic is in the tier")
    with EmbeddedCluster(folder, brokers=brokers, settings=LATE_UPKEEP) as cluster:
        pids = list(cluster.pids.values())
        with bucketlog.connect(cluster.bootstrap) as log:
            send_orders(log, range(400, 700))
        eventually(lambda: len(objects(url, keys.CHECKPOINTS)) == 2, "no second checkpoint")
    assert not [pid for pid in pids if psutil.pid_exists(pid)]
    return url


def objects(url: str, prefix: str) -> list[ObjectInfo]:
    with closing(open_sync_bucket(url)) as bucket:
        return list(bucket.list(prefix))


def fill(bootstrap: str, *, orders: int = 400) -> None:
    """Topics, records of each kind, a group that lags, settings."""
    with bucketlog.connect(bootstrap) as log:
        log.topics.create(ORDERS, partitions=3, configs={"retention.ms": "604800000"})
        log.topics.create(PAYMENTS, partitions=2, configs={"compression.type": "zstd"})
        log.topics.create(HOSTILE, partitions=1)
        for number in range(EXTRA_TOPICS):
            log.topics.create(f"events.{number:02d}", partitions=1)
        send_orders(log, range(orders))
        with log.producer(compression="zstd") as producer:
            for each in hostile_records():
                producer.send(Topic(HOSTILE), each.value, key=each.key)
    shell = Shell(bootstrap)
    shell.ok("group", "reset", GROUP, "--topic", ORDERS, "--to", "20", "-y")
    shell.ok("group", "reset", "audit", "--topic", PAYMENTS, "--to", "latest", "-y")


def send_orders(log: Log, numbers: range) -> None:
    with log.producer(compression="zstd") as producer:
        for number in numbers:
            producer.send(Topic(ORDERS), order(number), key=f"customer-{number % 40}".encode())
            if number % 3 == 0:
                producer.send(
                    Topic(PAYMENTS),
                    json.dumps({"order": number, "state": "paid"}).encode(),
                    key=str(number).encode(),
                    headers={"trace": f"{number:016x}".encode(), "source": b"shop"},
                )
            producer.send(Topic(f"events.{number % EXTRA_TOPICS:02d}"), b"tick %d" % number)


def order(number: int) -> bytes:
    return json.dumps(
        {
            "order": number,
            "customer": f"customer-{number % 40}",
            "items": [{"sku": f"A-{number % 17:03d}", "quantity": 1 + number % 3}],
            "total": round(9.99 + number * 0.37, 2),
        }
    ).encode()
