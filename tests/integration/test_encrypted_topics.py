"""Encrypted topics on real brokers: clients see plain records, the bucket has none of them."""

import asyncio
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.inspect.verify import verify_log
from bucketlog.log_format.batch import read_header, stamp_base_offset
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.records import decode_records
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.partition_log import PartitionLog
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.encryption.key_service import CreatedKey, KeyUse
from bucketlog.tiered_storage.log_cut_reading import read_checkpoint
from tests.integration.test_compaction import SOON, compact, tier
from tests.rigs.broker_rig import Rig, create_topic, outcome, produce, send
from tests.rigs.patience import eventually_async
from tests.rigs.several_brokers import Brokers, fetch, stored
from tests.rigs.wire_client import Keyed, build_batch
from tests.servers.own_valkey import OwnValkey

NONE = ErrorCode.none
REFUSED = ErrorCode.topic_authorization_failed
SECRET = b"a secret that nobody may read"
ENCRYPTED = {"encryption.key.id": "local:a"}
AT_ONCE = {"encryption_data_key_kept_ms": 1, "encryption_refused_ms": 0}
"""Each use of a data key asks for the key-encryption key."""


def write_keys(path: Path, *names: str, known: str = "") -> Path:
    """A file with keys of these names; those that are there, or in `known`, stay."""
    path.touch(0o600)
    before = dict(line.split() for line in (path.read_text() + known).splitlines())
    path.write_text("".join(f"{n} {before.get(n) or secrets.token_hex(32)}\n" for n in names))
    return path


def text_of(path: Path) -> str:
    return path.read_text()


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return write_keys(tmp_path / "keys", "a", "b")


async def started(brokers: Brokers, key_file: Path | None, **settings: int) -> Rig:
    given: dict[str, Any] = {"encryption_key_file": key_file, **settings}
    return await brokers.start(**cast("dict[str, int]", given))


async def encrypted(brokers: Brokers, key_file: Path | None, **settings: int) -> Rig:
    rig = await started(brokers, key_file, **settings)
    assert await create_topic(rig, "t", 2, configs=ENCRYPTED) is NONE
    return rig


def objects(brokers: Brokers, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for info in brokers.memory.list(prefix):
        yield info.key, bytes(brokers.memory.get(info.key).data)


def log_of(rig: Rig, number: int = 0) -> PartitionLog:
    topic = rig.view.topic("t")
    assert topic is not None
    found = rig.view.log(TopicIdPartition(topic.topic_id, number))
    assert found is not None
    return found


async def alter(rig: Rig, **configs: str) -> None:
    rows = [
        {"name": name.replace("_", "."), "config_operation": 0, "value": value}
        for name, value in configs.items()
    ]
    resource = {"resource_type": 2, "resource_name": "t", "configs": rows}
    answer = await rig.call(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False
    )
    assert answer.responses[0].error_code == NONE, answer


async def test_clients_see_the_records_and_the_bucket_does_not(
    brokers: Brokers, key_file: Path
) -> None:
    rig = await encrypted(brokers, key_file)
    values = [SECRET + b" %d" % number for number in range(4)]
    assert await asyncio.gather(*(produce(rig, value) for value in values[:3])) == [
        (NONE, offset) for offset in range(3)
    ]
    sent = build_batch([(None, values[3])], codec=1)
    data = [{"name": "t", "partition_data": [{"index": 0, "records": sent}]}]
    assert await outcome(rig.send(ApiKey.PRODUCE, 9, acks=-1, timeout=20_000, topic_data=data)) == (
        NONE,
        3,
    )
    assert await stored(rig) == list(enumerate(values))
    row = await fetch(rig, 3)
    back = bytearray(row.records)
    assert back[17:] == sent[17:]  # but for the base offset, byte for byte as it was sent
    assert not [key for key, body in objects(brokers) if SECRET in body]
    assert verify_log(brokers.memory).damage == []
    beside = await started(brokers, key_file)
    assert await stored(beside) == list(enumerate(values))


async def test_one_data_key_serves_a_topic_for_a_day(brokers: Brokers, key_file: Path) -> None:
    rig = await encrypted(brokers, key_file)
    topic = rig.view.topic("t")
    assert topic is not None
    for day in range(3):
        await produce(rig, SECRET)
        await produce(rig, SECRET, partition=1)
        found = rig.view.data_keys.of_topic(topic.topic_id)
        assert len(found) == day + 1
        assert {key.wrapped_by for key in found.values()} == {"local:a"}
        rig.clock_ms += 86_400_000
    await alter(rig, encryption_key_id="local:b")
    await produce(rig, SECRET)
    newest = rig.view.data_keys.newest(topic.topic_id, "local:b")
    assert newest is not None
    assert len(await stored(rig)) == 4
    await alter(rig, encryption_key_id="")
    await produce(rig, b"not secret any more")
    assert (await stored(rig))[-1] == (4, b"not secret any more")
    assert [key for key, body in objects(brokers, keys.LOG) if b"not secret any more" in body]


async def test_two_brokers_share_keys_and_checkpoints_keep_them(
    valkey: OwnValkey, brokers: Brokers, key_file: Path
) -> None:
    rig = await encrypted(brokers, key_file)
    other = await started(brokers, key_file)
    for number in range(4):
        await produce(rig if number % 2 else other, SECRET + b"%d" % number)
    rig.clock_ms += 1_000_000
    assert await rig.checkpointer.write() is not None
    checkpoint = read_checkpoint(brokers.memory)
    assert checkpoint is not None
    assert checkpoint.version == 7
    before = await stored(rig)
    assert len(before) == 4
    for each in (rig, other):
        await each.stop()
    valkey.wipe()
    third = await started(brokers, key_file)
    assert len(third.view.data_keys) >= 1
    assert await stored(third) == before


async def test_tiers_and_key_compaction_keep_records_encrypted(
    brokers: Brokers, key_file: Path
) -> None:
    rig = await started(brokers, key_file, **SOON)
    compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    assert await create_topic(rig, "t", configs=compacted | ENCRYPTED) is NONE
    for number in range(6):
        assert (await produce(rig, Keyed(b"k%d" % (number % 2), SECRET)))[0] is NONE
    batch = build_batch([(b"k0", SECRET), (b"once", SECRET)])  # half of it stays, rewritten
    data = [{"name": "t", "partition_data": [{"index": 0, "records": batch}]}]
    await outcome(rig.send(ApiKey.PRODUCE, 9, acks=-1, timeout=20_000, topic_data=data))
    await produce(rig, Keyed(b"k0", SECRET + b"!"))
    await compact(rig)
    assert tier(rig)
    assert await stored(rig) == [(5, SECRET), (7, SECRET), (8, SECRET + b"!")]
    assert not [key for key, body in objects(brokers, keys.SEGMENTS) if SECRET in body]
    assert rig.node.parts.log.keys.counts.broken == 0
    rig.clock_ms += 100
    await compact(rig)
    assert await stored(await started(brokers, key_file)) == await stored(rig)
    assert verify_log(brokers.memory).damage == []


async def list_offset(rig: Rig, timestamp: int) -> tuple[ErrorCode, int, int]:
    wanted = [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": timestamp}]}]
    answer = await rig.call(ApiKey.LIST_OFFSETS, 7, replica_id=-1, isolation_level=0, topics=wanted)
    row = answer.topics[0].partitions[0]
    return ErrorCode(row.error_code), row.offset, row.timestamp


@pytest.mark.parametrize("in_tier", [False, True])
async def test_times_are_looked_up(brokers: Brokers, key_file: Path, in_tier: bool) -> None:
    rig = await encrypted(brokers, key_file, **AT_ONCE, **SOON)
    batch = build_batch([(None, SECRET)] * 5, timestamps=[1000, 2000, 3000, 4000, 5000])
    data = [{"name": "t", "partition_data": [{"index": 0, "records": batch}]}]
    await outcome(rig.send(ApiKey.PRODUCE, 9, acks=-1, timeout=20_000, topic_data=data))
    if in_tier:
        await compact(rig)
        assert tier(rig)
    assert await list_offset(rig, 2500) == (NONE, 2, 3000)
    assert await list_offset(rig, -3) == (NONE, 4, 5000)
    write_keys(key_file)
    assert await list_offset(rig, 2500) == (NONE, 0, 5000)  # by the header


async def test_a_deleted_key_erases_what_it_protects(brokers: Brokers, key_file: Path) -> None:
    rig = await encrypted(brokers, key_file, **AT_ONCE)
    await produce(rig, SECRET)
    await alter(rig, encryption_key_id="local:b")
    await produce(rig, SECRET + b" of b")
    assert len(await stored(rig)) == 2
    write_keys(key_file, "b")
    row = await fetch(rig, 0)
    assert (row.error_code, bytes(row.records or b"")) == (REFUSED, b"")
    row = await fetch(rig, 1)  # what another key protects is read on
    assert row.error_code == NONE
    assert rig.node.parts.log.keys.counts.refused >= 1
    assert rig.health.stopped is None
    await alter(rig, encryption_key_id="local:a")
    assert await produce(rig, SECRET) == (REFUSED, -1)
    assert verify_log(brokers.memory).damage == []
    bare = await started(brokers, None, **AT_ONCE)
    assert (await fetch(bare, 1)).error_code == REFUSED


async def test_a_fetch_returns_what_it_can_read(brokers: Brokers, key_file: Path) -> None:
    rig = await encrypted(brokers, key_file, **AT_ONCE)
    await produce(rig, SECRET)
    await alter(rig, encryption_key_id="local:b")
    await produce(rig, SECRET)
    write_keys(key_file, "a")
    row = await fetch(rig, 0)
    assert row.error_code == NONE
    assert read_header(row.records).next_offset == 1
    assert len(row.records) == read_header(row.records).size_bytes
    assert (await fetch(rig, 1)).error_code == REFUSED


async def test_the_log_names_the_key_and_the_remedy_once(
    brokers: Brokers, key_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rig = await encrypted(brokers, key_file, **AT_ONCE)
    await produce(rig, SECRET)
    write_keys(key_file)
    for _ in range(3):
        assert (await fetch(rig, 0)).error_code == REFUSED
    told = [each.message for each in caplog.records if "local:a" in each.message]
    assert len(told) == 1
    assert f"is not in {key_file} (add the line 'a KEY' to that file" in told[0]


async def test_a_key_that_comes_back_is_used(brokers: Brokers, key_file: Path) -> None:
    rig = await encrypted(brokers, key_file, **AT_ONCE)
    await produce(rig, SECRET)
    text = text_of(key_file)
    write_keys(key_file)
    assert (await fetch(rig, 0)).error_code == REFUSED
    write_keys(key_file, "a", known=text)
    assert await stored(rig) == [(0, SECRET)]


def replaced(brokers: Brokers, key: str, body: bytes) -> None:
    """As somebody does who may write to the bucket."""
    brokers.memory.delete([key])
    assert brokers.memory.create(key, [body])


def segment_of(rig: Rig, partition: int = 0) -> tuple[str, int, int]:
    """The object of the partition's first batch, and where the batch is in it."""
    stretch = log_of(rig, partition).ranges(0, 1, at_least_one=True)
    [where] = stretch
    return keys.object_key(where.object), where.position, where.length


@pytest.mark.parametrize("what", ["flipped", "moved"])
async def test_a_changed_or_moved_batch_is_corrupt(
    brokers: Brokers, key_file: Path, what: str
) -> None:
    rig = await encrypted(brokers, key_file)
    await produce(rig, SECRET)
    await produce(rig, SECRET, partition=1)
    key, at, length = segment_of(rig)
    body = bytearray(brokers.memory.get(key).data)
    if what == "flipped":
        body[at + length - 20] ^= 1
    else:
        other, there, same = segment_of(rig, 1)
        assert same == length
        body[at : at + length] = brokers.memory.get(other).data[there : there + length]
        stamp_base_offset(memoryview(body)[at : at + length], 0)
    replaced(brokers, key, bytes(body))
    beside = await started(brokers, key_file)
    assert (await fetch(beside, 0)).error_code == ErrorCode.corrupt_message
    assert beside.node.parts.log.keys.counts.broken == 1
    assert [offset for offset, _ in await stored(beside, 1)] == [0]
    assert await produce(beside, SECRET) == (NONE, 1)


async def test_clients_may_not_send_marked_batches(brokers: Brokers, key_file: Path) -> None:
    rig = await encrypted(brokers, key_file)
    await produce(rig, SECRET)
    key, at, length = segment_of(rig)
    sealed = bytes(brokers.memory.get(key).data[at : at + length])
    data = [{"name": "t", "partition_data": [{"index": 1, "records": sealed}]}]
    sent = rig.send(ApiKey.PRODUCE, 9, acks=-1, timeout=20_000, topic_data=data)
    assert await outcome(sent) == (ErrorCode.invalid_record, -1)


async def test_batches_wait_for_one_data_key_in_order(
    brokers: Brokers, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty batches come before the topic has a data key: one is created, and they keep their
    order."""
    rig = await encrypted(brokers, key_file)
    made = rig.node.parts.log.keys._source.create
    calls: list[str] = []

    def create(wrapped_by: str, use: KeyUse) -> CreatedKey:
        calls.append(wrapped_by)
        return made(wrapped_by, use)

    monkeypatch.setattr(rig.node.parts.log.keys._source, "create", create)
    sent = [
        send(rig, b"%d" % number, producer_id=7, producer_epoch=0, base_sequence=number)
        for number in range(20)
    ]
    assert [await outcome(each) for each in sent] == [(NONE, number) for number in range(20)]
    assert calls == ["local:a"]
    rig.clock_ms += 86_400_000
    keys_of, topic = rig.node.parts.log.keys, rig.view.topic("t")
    assert topic is not None
    same = (keys_of.sealing(topic.topic_id, "t", "local:a") for _ in range(5))
    assert len(set(await asyncio.gather(*same))) == 1, "of five connections at once"
    assert calls == ["local:a"] * 2
    assert [value for _, value in await stored(rig)] == [b"%d" % number for number in range(20)]


async def test_an_unencrypted_topic_costs_one_look_up(
    brokers: Brokers, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it goes through the seals."""
    rig = await started(brokers, key_file)
    assert await create_topic(rig, "t") is NONE

    async def never(*_: object) -> Any:
        raise AssertionError("an unencrypted topic was decrypted or encrypted")

    monkeypatch.setattr(rig.node.parts.log.keys, "opened", never)
    monkeypatch.setattr(rig.node.parts.log.keys, "sealing", never)
    await produce(rig, b"plain")
    assert await stored(rig) == [(0, b"plain")]
    await eventually_async(lambda: not rig.node.parts.log.keys.counts.sealed_bytes)


async def test_records_of_a_fetched_batch_decode(brokers: Brokers, key_file: Path) -> None:
    rig = await encrypted(brokers, key_file)
    await produce(rig, SECRET)
    row = await fetch(rig, 0)
    header = read_header(row.records)
    assert not header.is_sealed
    assert [each.value for each in decode_records(row.records, header)] == [SECRET]
