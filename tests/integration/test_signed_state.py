"""Brokers with a key delete as before, but nothing because of planted objects."""

from dataclasses import replace
from pathlib import Path

import pytest

import bucketlog
from bucketlog.inspect.verify import verify_log
from bucketlog.log_format.errors import CorruptObjectError
from bucketlog.log_format.model import Ticket
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.file import FileBucket
from bucketlog.tiered_storage.checkpoint import decode_checkpoint, encode_checkpoint, newest_first
from bucketlog.tiered_storage.floors import Floor, encode_floor
from bucketlog.tiered_storage.log_cut_reading import read_log
from bucketlog.tiered_storage.signed_bucket import SignedSyncBucket
from bucketlog.tiered_storage.state_signature import NO_KEYS, StateKeys
from tests.integration.test_deletion import (
    Clock,
    delete_topic,
    names,
    second_epoch,
    write_two,
)
from tests.rigs.broker_rig import Rig, create_topic, produce
from tests.rigs.patience import eventually
from tests.rigs.readable_log import readable_in
from tests.rigs.several_brokers import Brokers, stored
from tests.servers.broker_process import Start
from tests.servers.own_valkey import OwnValkey

SECRET, OTHER = b"s" * 32, b"o" * 32
KEYS = StateKeys((SECRET,))


@pytest.fixture
def clock(brokers: Brokers) -> Clock:
    return Clock(brokers)


async def test_signed_objects_work_as_unsigned_ones_do(
    valkey: OwnValkey, brokers: Brokers, clock: Clock
) -> None:
    brokers.state_keys = KEYS
    rig, _ = await second_epoch(valkey, brokers)
    await write_two(rig)
    assert await rig.duties.deleter.round() == 0
    clock.pass_hours(24)
    await write_two(rig)
    assert await rig.duties.deleter.round() == 4
    before = await stored(rig)
    without_keys = SignedSyncBucket(brokers.memory)
    assert verify_log(without_keys).damage == []
    parts = readable_in(read_log(without_keys)).values()
    assert {part.end_offset for part in parts if part.batches} == {len(before)}
    await rig.stop()
    valkey.wipe()
    third = await brokers.start()
    assert await stored(third) == before


def oldest_of_two(brokers: Brokers) -> Ticket:
    _, older = newest_first(brokers.memory.list(keys.CHECKPOINTS))[:2]
    return keys.parse_checkpoint(older.key)


async def planted_floor(rig: Rig, brokers: Brokers, clock: Clock, state_keys: StateKeys) -> None:
    """A floor that calls nothing readable, with the name of the next floor, and old enough."""
    await create_topic(rig, "t", 4)
    await write_two(rig)
    floor = Floor(oldest_of_two(brokers), {rig.writer: 4}, {})
    SignedSyncBucket(brokers.memory, state_keys).create(
        keys.floor(floor.ticket), [encode_floor(floor)]
    )
    clock.pass_hours(24)
    await write_two(rig)


async def test_without_a_key_a_planted_floor_deletes_records(
    brokers: Brokers, clock: Clock
) -> None:
    """The attack that signatures prevent."""
    rig = await brokers.start()
    await planted_floor(rig, brokers, clock, NO_KEYS)
    there = names(brokers, keys.LOG)
    assert await rig.duties.deleter.round() > 0
    assert len(names(brokers, keys.LOG)) < len(there)
    assert verify_log(brokers.memory).damage


@pytest.mark.parametrize("forged", [NO_KEYS, StateKeys((OTHER,))], ids=["unsigned", "other key"])
async def test_with_a_key_a_planted_floor_deletes_nothing(
    brokers: Brokers, clock: Clock, forged: StateKeys
) -> None:
    brokers.state_keys = KEYS
    rig = await brokers.start()
    await planted_floor(rig, brokers, clock, forged)
    there = names(brokers, "")
    for _ in range(2):
        with pytest.raises(CorruptObjectError, match="floors/"):
            await rig.duties.deleter.round()
    assert set(there) <= set(names(brokers, ""))
    assert await produce(rig)


async def test_a_planted_checkpoint_is_passed_over(
    valkey: OwnValkey, brokers: Brokers, clock: Clock
) -> None:
    """The planted checkpoint says that the log is empty, and would be the newest."""
    brokers.state_keys = KEYS
    rig = await brokers.start()
    await create_topic(rig, "t", 4)
    await write_two(rig)
    before = await stored(rig)
    newest = newest_first(brokers.memory.list(keys.CHECKPOINTS))[0].key
    sound = decode_checkpoint(newest, SignedSyncBucket(brokers.memory, KEYS).get(newest).data)
    ticket = Ticket(sound.ticket.epoch, sound.ticket.number + 1)
    forged = encode_checkpoint(replace(sound, ticket=ticket, partitions={}))
    assert brokers.memory.create(keys.checkpoint(ticket), [forged])
    committed = rig.node.parts.storage.committed
    assert [each.ticket for each in await committed.checkpoints(1)] == [sound.ticket]
    await rig.stop()
    valkey.wipe()
    assert await stored(await brokers.start()) == before


async def test_a_cluster_begins_to_sign(valkey: OwnValkey, brokers: Brokers, clock: Clock) -> None:
    """Unsigned objects are accepted for a time; afterwards all objects that count are signed."""
    rig = await brokers.start()
    await create_topic(rig, "t", 4)
    await delete_topic(rig, "t")
    await create_topic(rig, "t", 4)
    await write_two(rig)
    await rig.duties.deleter.round()
    await rig.stop()
    brokers.state_keys = replace(KEYS, unsigned_accepted=True)
    rig = await brokers.start()
    await write_two(rig)
    await write_two(rig)
    clock.pass_hours(24)
    await write_two(rig)
    await rig.duties.deleter.round()
    clock.pass_hours(24)
    await write_two(rig)
    await rig.duties.deleter.round()
    before = await stored(rig)
    await rig.stop()
    valkey.wipe()
    brokers.state_keys = KEYS
    rig = await brokers.start()
    await write_two(rig)
    await rig.duties.deleter.round()
    assert (await stored(rig))[: len(before)] == before


def test_a_broker_process_reads_the_key_file(start: Start, tmp_path: Path) -> None:
    key_file = tmp_path / "state.key"
    key_file.write_text(f"{SECRET.hex()}\n")
    key_file.chmod(0o644)
    open_to_all = start(state_key_file=str(key_file))
    assert open_to_all.wait() == 2
    assert f"others may use the key file {key_file}" in open_to_all.log.read_text()
    key_file.chmod(0o600)
    broker = start(state_key_file=str(key_file), checkpoint_interval_ms="100").wait_until_ready()
    with bucketlog.connect(broker.bootstrap) as log:
        for name in ("a", "b", "c", "d"):  # the last segments are not covered
            log.topics.ensure(name)
    folder = FileBucket(tmp_path / "bucket" / "0")
    eventually(lambda: list(folder.list(keys.CHECKPOINTS)) != [], "a checkpoint is written")
    newest = newest_first(folder.list(keys.CHECKPOINTS))[0].key
    assert KEYS.open(newest, folder.get(newest).data).is_signed
