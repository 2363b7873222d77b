"""Idle idempotent producers: a new epoch does not load those that expired."""

from functools import partial

from kio.schema.errors import ErrorCode

from bucketlog.metadata.checkpoint import restored
from tests.rigs.broker_rig import create_topic, produce
from tests.rigs.several_brokers import Brokers
from tests.servers.own_valkey import OwnValkey

NONE = ErrorCode.none
DAY_MS = 86_400_000
OLD, BUSY, NEW = 7, 8, 9


async def test_a_new_epoch_loads_no_producers_that_have_expired(
    valkey: OwnValkey, brokers: Brokers
) -> None:
    first = await brokers.start(producer_id_expiration_ms=DAY_MS)
    first.clock_ms = DAY_MS
    await create_topic(first, "t")
    send_as = partial(produce, producer_epoch=0)
    for producer in (OLD, BUSY):
        assert (await send_as(first, producer_id=producer, base_sequence=0))[0] is NONE
    first.clock_ms += DAY_MS
    assert (await send_as(first, producer_id=BUSY, base_sequence=1))[0] is NONE
    assert (await produce(first))[0] is NONE
    made = await first.checkpointer.write()
    assert made is not None
    (part,) = restored(made).partitions.values()
    assert part.producers.keys() == {OLD, BUSY}
    first.clock_ms += 1
    assert (await send_as(first, producer_id=NEW, base_sequence=0))[0] is NONE
    assert (await produce(first))[0] is NONE
    made = await first.checkpointer.write()
    assert made is not None
    (part,) = restored(made).partitions.values()
    assert part.producers.keys() == {BUSY, NEW}
    assert len(part.producers[BUSY]) == 2
    await first.stop()
    valkey.wipe()
    second = await brokers.start()
    answers = {
        producer: await send_as(second, producer_id=producer, base_sequence=sequence)
        for producer, sequence in ((OLD, 1), (BUSY, 2), (NEW, 1))
    }
    assert answers == {
        OLD: (ErrorCode.unknown_producer_id, -1),
        BUSY: (NONE, 6),
        NEW: (NONE, 7),
    }
    assert await send_as(second, producer_id=OLD, base_sequence=0) == (NONE, 8)
