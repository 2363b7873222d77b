"""A broker reads its own segments from the stream later and together: its view shows them already.

Here, the pause after such a read is longer than a test's patience. So a test fails if nothing ends
the pause when the broker needs an entry of another broker.
"""

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.metadata.sequencer.requests import VisibleSegment
from bucketlog.stateless_broker.fetch import feed
from tests.rigs.broker_rig import Rig, end_of, produce, until
from tests.rigs.patience import PATIENCE_S
from tests.rigs.several_brokers import Brokers, stored

NONE = ErrorCode.none


class Reads(list[list[VisibleSegment]]):
    """The answers to a broker's reads of the stream, without empty answers."""

    def __init__(self, rig: Rig) -> None:
        self._read: Any = rig.sequencer.read_visible
        rig.sequencer.read_visible = self._note  # type: ignore[method-assign]  # to count the reads

    async def _note(self, *given: Any, **named: Any) -> list[VisibleSegment]:
        found: list[VisibleSegment] = await self._read(*given, **named)
        if found:
            self.append(found)
        return found


@pytest.fixture(autouse=True)
def long_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "OWN_ENTRIES_PAUSE_S", 2 * PATIENCE_S)


async def test_own_segments_gather_in_the_stream(rig: Rig) -> None:
    reads = Reads(rig)
    for _ in range(20):
        assert (await produce(rig))[0] is NONE
    assert len(reads) <= 1


async def test_the_latest_offset_ends_the_pause(brokers: Brokers) -> None:
    a, b = await brokers.pair()
    for _ in range(3):
        assert (await produce(a))[0] is NONE
    error, offset = await produce(b, b"of another")
    assert error is NONE
    assert await end_of(a) == offset + 1
    assert (await stored(a))[-1] == (offset, b"of another")


async def test_an_own_segment_after_one_of_another_broker_ends_the_pause(brokers: Brokers) -> None:
    a, b = await brokers.pair()
    reads = Reads(a)
    for _ in range(3):
        assert (await produce(a))[0] is NONE
    assert (await produce(b))[0] is NONE
    assert (await produce(a))[0] is NONE
    await until(lambda: any(entry.segment.writer == b.writer for found in reads for entry in found))
