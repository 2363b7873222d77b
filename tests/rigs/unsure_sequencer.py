"""A way to the sequencer that fails as a test says."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from redis.asyncio import Redis

from bucketlog.log_format.errors import SequencerUnavailableError
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.requests import VisibleSegment
from bucketlog.metadata.sequencer.scripts import SequencerVerb as SequencerVerb


class UnsureSequencer(Sequencer):
    """A sequencer whose answers get lost, or whose calls do not arrive for a while."""

    def __init__(
        self,
        redis: Redis | None,
        *,
        cluster_id: str,
        stream_segments_max: int,
        stream_bytes_max: int,
    ) -> None:
        super().__init__(
            redis,
            cluster_id=cluster_id,
            stream_segments_max=stream_segments_max,
            stream_bytes_max=stream_bytes_max,
        )
        self.calls: Counter[SequencerVerb] = Counter()
        self.lost = 0
        self.held = 0
        self.on_their_way = 0
        self._lose: SequencerVerb | None = None
        self._hold: SequencerVerb | None = None
        self._holds_all = False
        self._gate = asyncio.Event()
        self._stream_gate = asyncio.Event()
        self._stream_gate.set()

    def lose_answer(self, verb: SequencerVerb) -> None:
        """The next call of `verb` is carried out, and its answer does not arrive."""
        self._lose = verb

    def hold(self, verb: SequencerVerb) -> None:
        """Calls of `verb` do not arrive before `let_go`."""
        self._hold = verb

    def hold_all(self) -> None:
        """As `hold`, of every verb; and the stream's answers."""
        self._holds_all = True
        self.hold_stream()

    def let_go(self) -> None:
        self._hold = None
        self._holds_all = False
        self._gate.set()
        self.let_stream_go()

    def hold_stream(self) -> None:
        """What the stream of visible segments answers does not arrive before `let_stream_go`."""
        self._stream_gate.clear()

    def let_stream_go(self) -> None:
        self._stream_gate.set()

    async def read_visible(
        self, epoch: int, after: int, *, block_ms: int, count: int = 1000
    ) -> list[VisibleSegment]:
        entries = await super().read_visible(epoch, after, block_ms=block_ms, count=count)
        await self._stream_gate.wait()
        return entries

    async def _run(
        self, verb: SequencerVerb, *args: str | bytes | int, extra: Sequence[str] = ()
    ) -> Any:
        self.calls[verb] += 1
        if verb is self._hold or self._holds_all:
            self.held += 1
            await self._gate.wait()
        self.on_their_way += 1
        try:
            answer = await super()._run(verb, *args, extra=extra)
        finally:
            self.on_their_way -= 1
        if verb is self._lose:
            self._lose = None
            self.lost += 1
            raise SequencerUnavailableError("injected: the answer was lost")
        return answer
