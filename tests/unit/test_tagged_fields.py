"""Tagged fields are skipped (KIP-482), and their number is bounded before any is read."""

import pytest

from bucketlog.log_format.wire.frames import FrameReader, MalformedRequestError, uvarint
from bucketlog.log_format.wire.messages.metadata import METADATA
from bucketlog.stateless_broker.network.message_reader import read_message

ITEMS_MAX = 10_000


def test_tagged_fields_count_as_items() -> None:
    tags = uvarint(2_000_000) + bytes(4_000_000)
    reader = FrameReader(memoryview(tags), flexible=True, items_max=100)
    with pytest.raises(MalformedRequestError, match="ask for less"):
        reader.tags()
    assert reader.at == len(uvarint(2_000_000)), "none of them was looked at"


def test_tagged_fields_of_a_message_count_as_items() -> None:
    body = b"\1\0\0" + uvarint(ITEMS_MAX + 1) + b"\x09\0" * (ITEMS_MAX + 1)
    with pytest.raises(MalformedRequestError, match="ask for less"):
        read_message(METADATA, 11, memoryview(body), 0, items_max=ITEMS_MAX)


def test_more_tagged_fields_than_the_frame_holds_are_refused() -> None:
    reader = FrameReader(memoryview(uvarint(2**31) + bytes(100)), flexible=True)
    with pytest.raises(MalformedRequestError, match="does not fit"):
        reader.tags()
