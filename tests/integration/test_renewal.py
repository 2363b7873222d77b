"""A new epoch because of many closed writers."""

from kio.schema.errors import ErrorCode

from bucketlog.tiered_storage import keys
from tests.rigs.broker_rig import Rig, end_of, produce, until
from tests.rigs.several_brokers import Brokers, stored

NONE = ErrorCode.none


def registered(brokers: Brokers, epoch: int) -> int:
    return len(list(brokers.memory.list(f"{keys.WRITERS}{keys.number(epoch)}/")))


def are_in(rigs: tuple[Rig, ...], epoch: int) -> bool:
    return all(rig.epoch == epoch and rig.health.ready for rig in rigs)


async def test_many_closed_writers_begin_a_new_epoch(brokers: Brokers) -> None:
    pair = await brokers.pair(epoch_closed_writers_max=2)
    count = 0
    for _ in range(3):
        await pair[0].duties.renewal.go_round()
        assert are_in(pair, 1)
        passer_by = await brokers.start(epoch_closed_writers_max=2)
        assert await produce(passer_by) == (NONE, count)
        count += 1
        await passer_by.stop()
        await until(lambda: all(len(rig.membership.members) == 2 for rig in pair))
    assert registered(brokers, 1) == 5
    await pair[0].duties.renewal.go_round()
    await until(lambda: are_in(pair, 2))
    assert brokers.claims() == 2
    assert registered(brokers, 2) == 2
    for rig in pair:
        assert await produce(rig) == (NONE, count)
        count += 1
    assert await end_of(pair[0]) == count  # waits for the other broker's record
    assert len(await stored(pair[0])) == count
