"""Encrypted topics read from the bucket alone: with the key as any other, without it not at all."""

import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer
from crc32c import crc32c

import bucketlog
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.inspect.doctor.digest import differences
from bucketlog.inspect.doctor.of_bucket import digest_of_bucket
from bucketlog.inspect.doctor.of_cluster import digest_of_cluster
from bucketlog.inspect.verify import verify_log
from bucketlog.log_format.batch import read_header
from bucketlog.log_format.encryption_errors import KeyRefusedError
from bucketlog.log_format.errors import CorruptObjectError
from bucketlog.log_format.model import TierObject
from bucketlog.log_reader.packing import packed, unpacked
from bucketlog.log_reader.plan import Piece
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.encryption.key_service import KeyAccess
from tests.rigs.encryption import write_keys
from tests.rigs.patience import eventually

pytestmark = pytest.mark.long

COUNT = 300
SECRET = "nobody may read this"
START_MS = 1_700_000_000_000
IN_TIERS = {"compaction_interval_ms": "1", "compaction_age_ms_min": "1"}
SETTINGS = {
    "log_message_timestamp_before_max_ms": str(2**63 - 1),
    "log_retention_ms": "-1",
    "compaction_check_interval_ms": "200",
    "checkpoint_interval_ms": "200",
}


class Written(NamedTuple):
    url: str
    key_file: Path
    bootstrap: str


@pytest.fixture(scope="module", params=["log", "tiers"])
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Written]:
    """A cluster with the topics `open` and `closed`, which have the same records."""
    folder = tmp_path_factory.mktemp("encrypted")
    key_file = write_keys(folder / "keys", "a")
    tiers = request.param == "tiers"
    settings = SETTINGS | (IN_TIERS if tiers else {}) | {"encryption_key_file": str(key_file)}
    with (
        EmbeddedCluster(folder / "data", settings=settings) as cluster,
        bucketlog.connect(cluster.bootstrap) as log,
    ):
        log.topics.create("open", partitions=2)
        log.topics.create("closed", partitions=2, configs={"encryption.key.id": "local:a"})
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 5})
        for number in range(COUNT):
            for topic in ("open", "closed"):
                producer.produce(
                    topic,
                    value=f"{SECRET} {number}",
                    key=str(number),
                    partition=number % 2,
                    timestamp=START_MS + number,
                    headers={"h": b"x"},
                )
            if number % 60 == 0:
                producer.flush()
        producer.flush()
        if tiers:
            eventually(lambda: has_tiers(cluster.bucket_url))
        yield Written(cluster.bucket_url, key_file, cluster.bootstrap)


def has_tiers(url: str) -> bool:
    bucket = open_sync_bucket(url)
    try:
        return any(True for _ in bucket.list(keys.SEGMENTS))
    finally:
        bucket.close()


def rows(written: Written, topic: str, **options: Any) -> list[tuple[object, ...]]:
    table = bucketlog.replay(written.url, topic, **options).to_arrow()
    columns = ("partition", "offset", "timestamp", "key", "value", "headers")
    found = [tuple(str(row[name]) for name in columns) for row in table.to_pylist()]
    return sorted(found, key=lambda row: (row[0], int(str(row[1]))))


def test_with_the_key_it_is_read_as_any_topic(written: Written) -> None:
    closed = rows(written, "closed", encryption_key_file=written.key_file)
    assert len(closed) == COUNT
    assert closed == rows(written, "open")
    since = bucketlog.replay(
        written.url,
        "closed",
        since="2023-11-14T22:13:20.200Z",
        encryption_key_file=written.key_file,
    )
    assert since.to_arrow().num_rows == COUNT - 200


def test_without_the_key_the_error_names_the_key_and_the_remedy(
    written: Written, tmp_path: Path
) -> None:
    with pytest.raises(
        KeyRefusedError, match=r"topic 'closed'.*'local:a', and no key file"
    ) as told:
        rows(written, "closed")
    assert "encryption.keyFile" in told.value.remedy
    other = write_keys(tmp_path / "other", "b")
    with pytest.raises(KeyRefusedError, match="'local:a' is not in"):
        rows(written, "closed", encryption_key_file=other)
    wrong = write_keys(tmp_path / "wrong", "a")
    with pytest.raises(KeyRefusedError, match="another key has its name"):
        rows(written, "closed", encryption_key_file=wrong)
    with pytest.raises(KeyRefusedError):  # a look-up by time reads records
        bucketlog.replay(written.url, "closed", since="2023-11-14T22:13:20.200Z").to_arrow()
    with pytest.raises(KeyRefusedError):  # not a batch to be skipped
        rows(written, "closed", options={"failOnUnreadable": "false"})
    assert len(rows(written, "open")) == COUNT


def test_plans_travel_with_their_keys(written: Written) -> None:
    plan = bucketlog.replay(written.url, "closed").plan
    for task in plan.tasks:
        assert unpacked(packed(task)) == task
    assert plan.records == COUNT


def test_a_changed_batch_names_its_object(written: Written, tmp_path: Path) -> None:
    """Somebody changes a batch, with all checksums that need no key."""
    ours = bucketlog.replay(written.url, "closed", encryption_key_file=written.key_file)
    key, position, length = first_batch(ours)
    bucket = open_sync_bucket(written.url)
    before = bytes(bucket.get(key).data)
    try:
        replace(bucket, key, resealed(bytearray(before), position, length))
        with pytest.raises(CorruptObjectError, match=r"topic 'closed' partition"):
            ours.to_arrow()
    finally:
        replace(bucket, key, before)
        bucket.close()


def replace(bucket: SyncBucket, key: str, body: bytes) -> None:
    bucket.delete([key])
    assert bucket.create(key, [body])


def first_batch(made: "bucketlog.Replay[bytes, bytes]") -> tuple[str, int, int]:
    piece = made.plan.tasks[0][0]
    if isinstance(piece, Piece):
        row = piece.runs[0].rows[0]
        return keys.segment(piece.segment), row.position, row.length
    key = keys.tier_object(TierObject.of(piece.partition, piece.row))
    bucket = open_sync_bucket(made.plan.options.url)
    header = read_header(bucket.get(key).data, piece.span.start)
    bucket.close()
    return key, piece.span.start, header.size_bytes


def resealed(body: bytearray, position: int, length: int) -> bytes:
    body[position + length - 30] ^= 1
    batch = memoryview(body)[position : position + length]
    struct.pack_into(">I", batch, 17, crc32c(batch[21:]))
    return bytes(body)


def test_doctor_and_verify(written: Written) -> None:
    access = KeyAccess(written.key_file)
    bucket = open_sync_bucket(written.url)
    try:
        assert verify_log(bucket).damage == []
        ours = digest_of_bucket(bucket, access=access)
        with pytest.raises(KeyRefusedError):
            digest_of_bucket(bucket, access=KeyAccess())
    finally:
        bucket.close()
    assert list(differences(ours, digest_of_cluster(written.bootstrap))) == []
    closed = [part.digest for part in ours.topics["closed"].partitions]
    assert closed == [part.digest for part in ours.topics["open"].partitions]


def command(*arguments: str, key_file: Path | None = None) -> subprocess.CompletedProcess[str]:
    program = str(Path(sys.executable).with_name("bucketlog"))
    given = {} if key_file is None else {"BUCKETLOG_ENCRYPTION_KEY_FILE": str(key_file)}
    return subprocess.run(
        [program, *arguments], capture_output=True, text=True, check=False, env=os.environ | given
    )


def test_the_command_line(written: Written) -> None:
    done = command("replay", written.url, "closed", "--encryption-key-file", str(written.key_file))
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(SECRET in line["value"] for line in lines) == COUNT
    done = command("doctor", written.url, written.bootstrap, key_file=written.key_file)
    assert done.returncode == 0, done.stdout + done.stderr
    done = command("replay", written.url, "closed")
    assert done.returncode != 0
    assert "local:a" in done.stderr
    assert SECRET not in done.stdout
    done = command("segment", "verify", written.url)
    assert done.returncode == 0, done.stdout + done.stderr
