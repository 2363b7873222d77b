"""Records that asyncio holds back: each one is queued or refused, whatever is raised."""

from collections.abc import Callable
from typing import Any

import pytest

from bucketlog import Topic
from bucketlog.client.deferred_sends import DeferredSends, SendArguments
from bucketlog.client.sending import Encoded
from bucketlog.log_format.errors import (
    BucketlogError,
    InvalidDataError,
    SchemaRegistryUnavailableError,
)


class Asking:
    """A format that asks somebody first."""

    name = "asking"

    def __init__(self, answer: Callable[[], object]) -> None:
        self._answer = answer
        self._is_ready = False

    def encodes_at_once(self) -> bool:
        return self._is_ready

    def prepare_to_encode(self) -> None:
        self._answer()
        self._is_ready = True

    def decodes_at_once(self, data: bytes) -> bool:
        return True

    def encode(self, value: bytes) -> bytes:
        return value

    def decode(self, data: bytes) -> bytes:
        return data


async def fates(answer: Callable[[], object], refused: bytes = b"") -> dict[int, object]:
    """What becomes of three records, by their number; `refused` is one that is not taken."""
    told: dict[int, object] = {}

    def queue(record: Encoded, number: int) -> None:
        if record[1] == refused:
            raise TypeError("no such header")
        told[number] = record[1]

    held: DeferredSends[int] = DeferredSends(queue, told.__setitem__)
    topic: Topic[bytes, Any] = Topic("t", value=Asking(answer))
    for number, value in enumerate((b"a", b"b", b"c")):
        held.add(SendArguments(topic, value, None, None, None, None), number)
    await held.wait()
    assert not held
    return told


def raising(error: Exception) -> Callable[[], object]:
    def answer() -> None:
        raise error

    return answer


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RecursionError("too deep"), InvalidDataError),
        (Exception("of a kind that nobody knows"), InvalidDataError),
        (SchemaRegistryUnavailableError("gone"), SchemaRegistryUnavailableError),
    ],
)
async def test_whatever_the_question_raises(error: Exception, kind: type[BucketlogError]) -> None:
    told = await fates(raising(error))
    assert [type(told[number]) for number in range(3)] == [kind] * 3
    assert all(str(error.args[0]) in str(one) for one in told.values())


async def test_one_that_is_not_taken_keeps_no_other_back() -> None:
    told = await fates(lambda: None, refused=b"b")
    assert (told[0], told[2]) == (b"a", b"c")
    assert isinstance(told[1], InvalidDataError)
    assert "no such header" in told[1].message
