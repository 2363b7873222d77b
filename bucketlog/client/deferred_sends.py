"""Records that asyncio has sent and that cannot be encoded yet: their format asks a server first.

Invariants: the loop never waits for the server, a thread does. Records keep their order: what is
sent behind one that is held back is held back, too. Where the server is out of reach, those of that
topic that wait are refused, with the reason; the next one sent asks again. Each one is queued or
refused, whatever is raised on the way.
"""

import asyncio
import copy
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from bucketlog.client.sending import Encoded, encoded
from bucketlog.client.topic import Headers, Topic
from bucketlog.log_format.errors import BucketlogError, InvalidDataError

D = TypeVar("D")

_REFUSALS = (
    BucketlogError,
    *(TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError),
)
"""What a record, or a format, raises that cannot be sent; `send` would raise the same."""


class SendArguments(NamedTuple):
    """Arguments of `send`."""

    topic: Topic[Any, Any]
    value: Any
    key: Any
    headers: Headers | None
    partition: int | None
    timestamp_ms: int | None

    def encodes_at_once(self) -> bool:
        value_waits, key_waits = self.topic.value_waits, self.topic.key_waits
        return (value_waits is None or self.value is None or value_waits.encodes_at_once()) and (
            key_waits is None or self.key is None or key_waits.encodes_at_once()
        )


class DeferredSends(Generic[D]):
    """`queue` takes a record when its turn has come, `refuse` says why it never will."""

    def __init__(
        self, queue: Callable[[Encoded, D], None], refuse: Callable[[D, BucketlogError], None]
    ) -> None:
        self._queue = queue
        self._refuse = refuse
        self._held: deque[tuple[SendArguments, D]] = deque()
        self._releasing: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._held)

    def add(self, given: SendArguments, delivery: D) -> None:
        self._held.append((given, delivery))
        if self._releasing is None:
            self._releasing = asyncio.get_running_loop().create_task(self._release())

    async def wait(self) -> None:
        """Until none is held back."""
        while self._releasing is not None:
            await asyncio.wait([self._releasing])

    def give_up(self, why: Callable[[], BucketlogError]) -> None:
        while self._held:
            self._refuse(self._held.popleft()[1], why())

    async def _release(self) -> None:
        try:
            while self._held:
                given, _ = self._held[0]
                try:
                    await prepare(given.topic, value=given.value, key=given.key)
                except _REFUSALS as error:
                    self._refuse_all(given.topic, _encoding_error(given.topic, error))
                else:
                    self._pass_on()
        except Exception as error:
            while self._held:
                given, delivery = self._held.popleft()
                self._refuse(delivery, _encoding_error(given.topic, error))
            raise
        finally:
            self._releasing = None

    def _pass_on(self) -> None:
        while self._held and self._held[0][0].encodes_at_once():
            given, delivery = self._held[0]
            try:
                self._queue(encoded(*given), delivery)
            except _REFUSALS as error:
                self._refuse(delivery, _encoding_error(given.topic, error))
            self._held.popleft()

    def _refuse_all(self, topic: Topic[Any, Any], error: BucketlogError) -> None:
        held = list(self._held)
        self._held.clear()
        for given, delivery in held:
            if given.topic is topic:
                self._refuse(delivery, copy.copy(error))
            else:
                self._held.append((given, delivery))


def _encoding_error(topic: Topic[Any, Any], error: Exception) -> BucketlogError:
    if isinstance(error, BucketlogError):
        return error
    told = InvalidDataError(
        f"a record for topic {topic.name!r} cannot be sent: {type(error).__name__}: {error}",
        remedy="send what the topic was declared with",
    )
    told.__cause__ = error
    return told


async def prepare(topic: Topic[Any, Any], *, value: object, key: object) -> None:
    """Let the formats of what is not None ask what they need. Raises `BucketlogError`."""
    for waits, part in ((topic.value_waits, value), (topic.key_waits, key)):
        if waits is not None and part is not None and not waits.encodes_at_once():
            await asyncio.to_thread(waits.prepare_to_encode)
