"""What is kept of segments in memory: never another's bytes, never more than there is room for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.log_format.model import SegmentId, StoredObject, WriterId
from bucketlog.metadata.partition_log import StoredRange
from bucketlog.stateless_broker.fetch.segment_cache import SegmentCache

SIZE = 64
SEGMENTS = [SegmentId(WriterId("w"), seq) for seq in range(6)]
OBJECTS: dict[StoredObject, bytes] = {
    segment: bytes((7 * segment.seq + at) % 251 for at in range(SIZE)) for segment in SEGMENTS
}


def stored(seq: int, position: int, length: int) -> StoredRange:
    return StoredRange(SEGMENTS[seq], position, length)


def bytes_of(wanted: StoredRange) -> bytes:
    return OBJECTS[wanted.object][wanted.position : wanted.position + wanted.length]


def found(cache: SegmentCache, wanted: StoredRange) -> bytes | None:
    parts = cache.find(wanted)
    return None if parts is None else b"".join(parts)


def some_ranges() -> st.SearchStrategy[StoredRange]:
    return st.builds(
        lambda seq, start, length: stored(seq, start, min(length, SIZE - start)),
        st.integers(0, len(SEGMENTS) - 1),
        st.integers(0, SIZE - 1),
        st.integers(1, SIZE),
    )


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("show"), st.integers(0, len(SEGMENTS) - 1), st.booleans()),
            st.tuples(st.just("keep"), some_ranges(), st.just(False)),
        ),
        max_size=30,
    ),
    st.lists(some_ranges(), min_size=1, max_size=10),
    st.integers(0, 4 * SIZE),
    st.integers(0, 3 * SIZE),
)
def test_it_tells_what_is_in_the_object_or_nothing(
    steps: list[tuple[str, int | StoredRange, bool]],
    asked: list[StoredRange],
    recent_max: int,
    history_max: int,
) -> None:
    cache = SegmentCache(recent_bytes_max=recent_max, history_bytes_max=history_max)
    for step, what, is_own in steps:
        if isinstance(what, int):
            segment = SEGMENTS[what]
            parts = [OBJECTS[segment][:10], OBJECTS[segment][10:]] if is_own else []
            cache.became_visible(segment, SIZE, parts)
        else:
            cache.keep(what, bytes_of(what))
        assert step in ("show", "keep")
        assert cache.recent_bytes <= recent_max
        assert cache.history_bytes <= history_max
        for wanted in asked:
            assert found(cache, wanted) in (None, bytes_of(wanted))


def test_what_this_broker_wrote_is_kept_as_it_is() -> None:
    cache = SegmentCache(recent_bytes_max=2 * SIZE, history_bytes_max=0)
    body = bytearray(OBJECTS[SEGMENTS[0]])
    cache.became_visible(SEGMENTS[0], SIZE, [memoryview(body)[:20], memoryview(body)[20:]])
    wanted = stored(0, 15, 10)
    parts = cache.find(wanted)
    assert parts is not None
    assert [len(part) for part in parts] == [5, 5]
    assert b"".join(parts) == bytes_of(wanted)
    body[15] ^= 1  # it is the same memory
    assert b"".join(parts) != bytes_of(wanted)


def test_pieces_of_large_requests_are_copied() -> None:
    """Otherwise, a small batch would keep its whole request in memory."""
    cache = SegmentCache(recent_bytes_max=2 * SIZE, history_bytes_max=0)
    data = OBJECTS[SEGMENTS[0]]
    large = bytearray(data[:10] + bytes(3 * SIZE))
    small = bytearray(data[10:])
    cache.became_visible(SEGMENTS[0], SIZE, [memoryview(large)[:10], memoryview(small)])
    large.clear()  # possible only if no view is left
    with pytest.raises(BufferError):
        small.clear()
    assert found(cache, stored(0, 0, SIZE)) == data


def test_the_newest_stay() -> None:
    cache = SegmentCache(recent_bytes_max=2 * SIZE, history_bytes_max=0)
    for segment in SEGMENTS:
        cache.became_visible(segment, SIZE, [OBJECTS[segment]])
    assert [cache.is_recent(segment) for segment in SEGMENTS] == [False] * 4 + [True] * 2
    assert found(cache, stored(3, 0, 1)) is None
    assert found(cache, stored(4, 0, SIZE)) == OBJECTS[SEGMENTS[4]]


def test_history_never_drives_out_what_is_recent() -> None:
    cache = SegmentCache(recent_bytes_max=SIZE, history_bytes_max=SIZE)
    cache.became_visible(SEGMENTS[5], SIZE, [OBJECTS[SEGMENTS[5]]])
    for seq in range(5):
        whole = stored(seq, 0, SIZE)
        cache.keep(whole, bytes_of(whole))
    assert found(cache, stored(5, 3, 4)) == bytes_of(stored(5, 3, 4))
    assert found(cache, stored(4, 3, 4)) == bytes_of(stored(4, 3, 4))
    assert found(cache, stored(3, 3, 4)) is None


def test_what_was_used_last_stays() -> None:
    cache = SegmentCache(recent_bytes_max=0, history_bytes_max=2 * SIZE)
    for seq in (0, 1):
        cache.keep(stored(seq, 0, SIZE), OBJECTS[SEGMENTS[seq]])
    assert found(cache, stored(0, 1, 1)) is not None
    cache.keep(stored(2, 0, SIZE), OBJECTS[SEGMENTS[2]])
    assert found(cache, stored(0, 1, 1)) is not None
    assert found(cache, stored(1, 1, 1)) is None


def test_a_part_of_a_recent_object_is_not_taken_for_all_of_it() -> None:
    cache = SegmentCache(recent_bytes_max=SIZE, history_bytes_max=SIZE)
    cache.became_visible(SEGMENTS[0], SIZE)
    part = stored(0, 0, 10)
    cache.keep(part, bytes_of(part))
    assert found(cache, part) is None
    cache.keep(stored(0, 0, SIZE), OBJECTS[SEGMENTS[0]])
    assert found(cache, stored(0, 5, 10)) == bytes_of(stored(0, 5, 10))
