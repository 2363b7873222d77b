"""`bucketlog doctor`: the bucket alone and the brokers say the same, and what differs is told."""

import json
import os
import shutil
import struct
from pathlib import Path
from uuid import UUID

import pytest
from crc32c import crc32c

import bucketlog
from bucketlog import Topic
from bucketlog.client.options import Compression
from bucketlog.inspect.doctor.digest import LogDigest, differences
from bucketlog.inspect.doctor.of_bucket import digest_of_bucket
from bucketlog.inspect.doctor.of_cluster import digest_of_cluster
from bucketlog.log_format.batch import CRC_START, Codec
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError
from bucketlog.log_format.records import DecodedRecord, encode_batch
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.identity import FORMAT_VERSION, ClusterIdentity
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.shell import Shell
from tests.rigs.written_log import START_MS, WrittenLog
from tests.servers.broker_process import BrokerProcess, Start

pytestmark = pytest.mark.long

CODECS: tuple[Compression, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
CONFIGURED, GONE = Topic("configured"), Topic("gone")


@pytest.fixture
def written(start: Start) -> BrokerProcess:
    """Topics with configs and partitions added, each codec, deleted topics, groups."""
    broker = start(group_initial_rebalance_delay_ms="0").wait_until_ready()
    with bucketlog.connect(broker.bootstrap) as log:
        log.topics.create("configured", partitions=2, configs={"retention.ms": "86400000"})
        log.topics.add_partitions("configured", 3)
        log.topics.create("empty")
        log.topics.create("gone")
        for codec in CODECS:
            with log.producer(compression=codec) as producer:
                for number in range(20):
                    producer.send(
                        CONFIGURED,
                        f"{codec}-{number}".encode(),
                        key=str(number).encode() if number % 3 else None,
                        headers={"codec": codec.encode()},
                        partition=number % 3,
                    )
                producer.send(GONE, b"soon")
        log.topics.delete("gone")
    shell = Shell(broker.bootstrap)
    shell.ok("consume", "configured", "--group", "g", "--from", "start", "-n", "50")
    shell.ok("group", "reset", "h", "--topic", "configured", "--to", "2", "-y")
    return broker


def of_bucket(folder: Path) -> LogDigest:
    bucket = open_sync_bucket(f"file://{folder}")
    try:
        return digest_of_bucket(bucket)
    finally:
        bucket.close()


def test_bucket_and_brokers_say_the_same(written: BrokerProcess, tmp_path: Path) -> None:
    told, found = digest_of_cluster(written.bootstrap), of_bucket(tmp_path / "bucket")
    assert list(differences(found, told)) == []
    assert found.digest == told.digest
    assert found.records == 100
    assert set(found.topics) == {"configured", "empty"}
    assert len(found.topics["configured"].partitions) == 3
    assert found.topics["configured"].configs == {"retention.ms": "86400000"}
    assert set(found.groups) == {"g", "h"}
    bucket = open_sync_bucket(f"file://{tmp_path}/bucket")
    write_checkpoint(bucket)
    assert digest_of_bucket(bucket) == found, "from a checkpoint, too"
    bucket.close()


def test_the_command(written: BrokerProcess, tmp_path: Path) -> None:
    place = f"file://{tmp_path}/bucket"
    shell = Shell(written.bootstrap)
    table = shell.ok("doctor", place).decode()
    assert "retention.ms=86400000" in table
    assert "2 topics, 4 partitions, 100 records, 2 groups" in table
    whole = json.loads(shell.ok("doctor", written.bootstrap, "-o", "json"))
    assert whole["digest"] in table
    assert shell.ok("doctor", place, written.bootstrap).startswith(b"0 differences")
    shutil.copytree(tmp_path / "bucket", tmp_path / "copy")
    assert shell.ok("doctor", place, str(tmp_path / "copy")).startswith(b"0 differences")
    shell.ok("produce", "empty", stdin=b"more\n")
    done = shell("doctor", f"file://{tmp_path}/copy", place)
    assert done.returncode == 1
    assert b"DIFFERS empty-0, latest: 0 and 1" in done.stdout
    assert b"3 differences" in done.stdout
    told = json.loads(shell("doctor", str(tmp_path / "copy"), place, "-o", "json").stdout)
    assert len(told["differences"]) == 3


def test_damage_and_no_log_are_named(written: BrokerProcess, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no log"):
        digest_of_bucket(MemoryBucket())
    shell = Shell(written.bootstrap)
    largest = max((tmp_path / "bucket").rglob("log/*/*"), key=os.path.getsize)
    data = bytearray(largest.read_bytes())
    data[120] ^= 1
    largest.chmod(0o600)
    largest.write_bytes(data)
    assert largest.name in shell.failing(1, "doctor", f"file://{tmp_path}/bucket")
    damaged = f"file://{tmp_path}/bucket"
    assert damaged in shell.failing(1, "doctor", written.bootstrap, damaged, lines=2)
    assert "no broker answers" in shell.failing(1, "doctor", "127.0.0.1:1")


def test_a_batch_that_holds_no_records_is_named() -> None:
    """Brokers store what is sound by its checksum, whatever it holds."""
    identity = ClusterIdentity(
        cluster_id=UUID(int=1), format_version=FORMAT_VERSION, created_ms=START_MS
    )
    log = WrittenLog(MemoryBucket())
    log.bucket.create(keys.CLUSTER, [identity.model_dump_json().encode()])
    log.create_topic("orders", 2)
    log.append("orders", 1, [DecodedRecord(0, START_MS, None, b"sound")])
    batch = bytearray(encode_batch([DecodedRecord(1, START_MS, None, b"plain")]))
    batch[22] |= Codec.GZIP
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[CRC_START:])))
    log.append_batch(log.partition("orders", 1), bytes(batch))
    log.flush()
    with pytest.raises(InvalidDataError, match=r"^orders\[1\], offsets 1 to 1: .*decompress"):
        digest_of_bucket(log.bucket)
