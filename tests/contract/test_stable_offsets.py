"""Pending offsets of transactions: stable fetches, deletion, expiry. The facts appear as another
broker's, because brokers do not write them yet."""

from collections.abc import AsyncIterator

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.consumers.group_messages import ANYBODY
from bucketlog.log_format.model import TopicIdPartition
from tests.models.indexes import end, initialise, send_offsets
from tests.rigs.coordinators import Seat, SharedView, seats
from tests.servers.sequencing import Sequencing


class Watched:
    """A broker, and the view of all."""

    def __init__(self, seat: Seat, shown: SharedView) -> None:
        self.seat = seat
        self.shown = shown

    async def stable(self) -> tuple[dict[int, int], set[int]]:
        """Committed offsets of `t` by partition, and the partitions with pending ones."""
        found = await self.seat.offsets.fetch("g", require_stable=True)
        assert not isinstance(found, ErrorCode), found
        return (
            {key.partition: row.offset for key, row in found.committed.items()},
            {key.partition for key in found.pending},
        )

    def send(self, offsets: dict[int, int]) -> None:
        rows: dict[TopicIdPartition, int] = {
            self.seat.partition(number): offset for number, offset in offsets.items()
        }
        self.shown.show(send_offsets("x", 7, 0, "g", rows))


@pytest.fixture
async def watched(sequencing: Sequencing) -> AsyncIterator[Watched]:
    async with seats(sequencing) as (first, _):
        first.shown.show(initialise("x", 7))
        yield Watched(first, first.shown)


async def test_a_stable_fetch_tells_what_is_pending(watched: Watched) -> None:
    seat = watched.seat
    assert await seat.commit(3, ANYBODY) is ErrorCode.none
    watched.send({0: 9, 1: 8})
    assert await watched.stable() == ({0: 3}, {0, 1})
    assert await seat.committed(stable=False) == {0: 3}
    plain = await seat.offsets.fetch("g", require_stable=False)
    assert not isinstance(plain, ErrorCode)
    assert plain.pending == frozenset()
    watched.shown.show(end("x", 7, commit=True))
    assert await watched.stable() == ({0: 9, 1: 8}, set())


async def test_an_abort_leaves_what_was_committed(watched: Watched) -> None:
    assert await watched.seat.commit(3, ANYBODY) is ErrorCode.none
    watched.send({0: 9, 1: 8})
    watched.shown.show(end("x", 7, commit=False))
    assert await watched.stable() == ({0: 3}, set())


async def test_a_deleted_group_loses_its_pending_offsets(watched: Watched) -> None:
    """As in Kafka (OffsetMetadataManager.deleteAllOffsets); without them there is no such group."""
    offsets = watched.seat.offsets
    assert await offsets.delete_group("g") is ErrorCode.group_id_not_found
    watched.send({0: 9})
    assert watched.seat.view.groups() == ["g"]
    assert await offsets.delete_group("g") is ErrorCode.none
    watched.shown.show(end("x", 7, commit=True))
    assert await watched.stable() == ({}, set())


async def test_deleting_an_offset_deletes_the_pending_one(watched: Watched) -> None:
    watched.send({0: 9, 1: 8})
    first = watched.seat.partition(0)
    assert await watched.seat.offsets.delete("g", [first]) == [ErrorCode.none]
    assert await watched.stable() == ({}, {1})
    watched.shown.show(end("x", 7, commit=True))
    assert await watched.stable() == ({1: 8}, set())


async def test_pending_offsets_keep_committed_ones_and_their_group(watched: Watched) -> None:
    """OffsetMetadataManager.cleanupExpiredOffsets."""
    seat = watched.seat
    assert await seat.commit(3, ANYBODY) is ErrorCode.none
    assert await seat.commit(4, ANYBODY, 1) is ErrorCode.none
    watched.send({0: 9})
    seat.pass_ms(10**12)
    await seat.offsets.expire()
    assert await watched.stable() == ({0: 3}, {0})
    watched.shown.show(end("x", 7, commit=False))
    await seat.offsets.expire()
    assert await watched.stable() == ({}, set())
    assert seat.view.groups() == []
