"""Data keys through facts, folds, checkpoints and comparisons with a view."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.log_format.checkpoint import DATA_KEYS_VERSION, CoveredWriter
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import FactEntry, SegmentIndex, Ticket, TopicId
from bucketlog.log_format.wrapped_key import WrappedKey
from bucketlog.metadata.checkpoint import contradiction, extended
from bucketlog.metadata.checkpoint_state import decode_state, encode_state, state_version
from bucketlog.metadata.encryption_facts import DataKeyCreated
from bucketlog.metadata.facts import Fact, decode_fact, encode_fact
from bucketlog.metadata.fold import LogState, fold
from bucketlog.metadata.view import View
from bucketlog.metadata.view_comparison import ViewComparison
from tests.models.indexes import WRITER, create, delete, segment, topic_id

TOPICS = 3
keys = st.builds(
    DataKeyCreated,
    topic_id=st.integers(1, TOPICS).map(lambda number: UUID(bytes=topic_id(number))),
    key_id=st.integers(0, 5).map(lambda number: bytes([number]) * 16),
    wrapped_by=st.sampled_from(["local:a", "aws-kms:alias/b"]),
    wrapped=st.binary(min_size=1, max_size=200),
    at_ms=st.integers(0, 2**53),
)


def key(number: int = 1, topic: int = 1, by: str = "local:a") -> DataKeyCreated:
    return DataKeyCreated(
        topic_id=UUID(bytes=topic_id(topic)),
        key_id=bytes([number]) * 16,
        wrapped_by=by,
        wrapped=b"w%d" % number,
        at_ms=number,
    )


def written(*facts: Fact) -> list[SegmentIndex]:
    return [segment(number, None, fact) for number, fact in enumerate(facts)]


@given(st.lists(keys, max_size=10), st.sets(st.integers(1, TOPICS)))
def test_a_checkpoint_has_the_keys_of_topics_that_are_left(
    history: list[DataKeyCreated], deleted: set[int]
) -> None:
    created: list[Fact] = [create(number) for number in range(1, TOPICS + 1)]
    gone: list[Fact] = [delete(number) for number in sorted(deleted)]
    state = fold(written(*created, *history, *gone))
    first: dict[tuple[TopicId, bytes], WrappedKey] = {}
    for fact in history:
        assert decode_fact(encode_fact(fact)) == fact
        of = TopicId(fact.topic_id.bytes)
        made = WrappedKey(of, fact.key_id, fact.wrapped_by, fact.wrapped, fact.at_ms)
        if of not in {topic_id(number) for number in deleted}:
            first.setdefault((of, fact.key_id), made)
    again = decode_state(encode_state(state), version=state_version(state))
    assert sorted(state.data_keys) == sorted(again.data_keys) == sorted(first.values())
    assert again.data_keys == state.data_keys
    assert (state_version(state) == DATA_KEYS_VERSION) is bool(first)


@given(st.lists(keys, min_size=1, max_size=3), st.data())
def test_a_cut_checkpoint_is_refused(some: list[DataKeyCreated], data: st.DataObject) -> None:
    created: list[Fact] = [create(number) for number in range(1, TOPICS + 1)]
    whole = encode_state(fold(written(*created, *some)))
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(InvalidDataError):
        decode_state(cut, version=DATA_KEYS_VERSION)


@pytest.mark.parametrize(
    ("good", "bad", "problem"),
    [
        (bytes([2]) * 16, bytes([1]) * 16, "a data key twice"),
        (topic_id(1) + bytes([1]) * 16, topic_id(9) + bytes([1]) * 16, "does not exist"),
    ],
)
def test_a_wrong_data_key_is_refused(good: bytes, bad: bytes, problem: str) -> None:
    whole = encode_state(fold(written(create(1), key(1), key(2))))
    assert whole.count(good) == 1
    with pytest.raises(InvalidDataError, match=problem):
        decode_state(whole.replace(good, bad), version=DATA_KEYS_VERSION)


def test_a_key_for_a_topic_that_is_gone_has_no_effect() -> None:
    state = fold(written(create(1), delete(1), key(1)))
    assert not state.data_keys.by_topic
    assert not LogState().data_keys.of_topic(topic_id(1))


def test_the_newest_key_is_that_of_its_key_encryption_key() -> None:
    state = fold(written(create(1), key(1), key(2), key(3, by="local:b"), key(2)))
    newest = state.data_keys.newest(topic_id(1), "local:a")
    assert newest is not None
    assert newest.key_id == bytes([2]) * 16
    assert state.data_keys.newest(topic_id(1), "local:c") is None


@pytest.mark.parametrize(
    "payload",
    [
        b'{"topic_id":"%s","key_id":"AAAA","wrapped_by":"local:a","wrapped":"AA==","at_ms":1}',
        b'{"topic_id":"%s","key_id":"AAAAAAAAAAAAAAAAAAAAAA==","wrapped_by":"",'
        b'"wrapped":"AA==","at_ms":1}',
        b'{"topic_id":"%s","key_id":"AAAAAAAAAAAAAAAAAAAAAA==","wrapped_by":"local:a",'
        b'"wrapped":"","at_ms":1}',
    ],
)
def test_a_fact_with_a_wrong_field_is_refused(payload: bytes) -> None:
    with pytest.raises(InvalidDataError, match="DataKeyCreated does not decode"):
        decode_fact(FactEntry(19, 1, payload % str(UUID(int=1)).encode()))


def test_a_checkpoint_without_a_key_contradicts_the_log() -> None:
    history = written(create(1), key(1), key(2))
    ticket, end = Ticket(1, 3), [CoveredWriter(WRITER, 1, 3, False)]
    right = extended(None, history, ticket, end, created_ms=1)
    assert contradiction(right, history) is None
    wrong = extended(None, [*history[:2], segment(2, None, key(3))], ticket, end, created_ms=1)
    assert contradiction(wrong, history) == "its data_keys are not those of the log"


@pytest.mark.parametrize("is_explained", [True, False])
def test_a_view_is_compared_by_its_keys(is_explained: bool) -> None:
    history = written(create(1), key(1), key(2))
    made = extended(
        None, history[:2], Ticket(1, 2), [CoveredWriter(WRITER, 1, 2, False)], created_ms=1
    )
    comparison = ViewComparison(View.of(history), made)
    for _ in comparison.steps():
        pass
    expected = [f"the data key {'02' * 16} of topic {topic_id(1).hex()}"]
    after = history[2:] if is_explained else []
    assert comparison.unexplained(after) == ([] if is_explained else expected)
