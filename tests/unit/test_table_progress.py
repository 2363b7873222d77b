"""Where an ingest goes on, and where a batch ends."""

import pytest

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.tables.progress import (
    Gap,
    LogPartition,
    TopicEnds,
    advanced,
    begin,
    next_ends,
)

LOG = [
    LogPartition("orders", "id-1", 0, 0, 100),
    LogPartition("orders", "id-1", 1, 20, 50),
]


def ends(topic_id: str = "id-1", **by: int) -> dict[str, TopicEnds]:
    return {"orders": TopicEnds(topic_id=topic_id, ends={int(name[1:]): by[name] for name in by})}


def test_a_first_run_begins_where_the_log_does() -> None:
    start = begin({}, LOG, fail_on_data_loss=True)
    assert start == ({("orders", 0): 0, ("orders", 1): 20}, [], [])


def test_a_run_goes_on_and_takes_new_partitions_from_their_start() -> None:
    start = begin(ends(p0=70), LOG, fail_on_data_loss=True)
    assert start.at == {("orders", 0): 70, ("orders", 1): 20}


@pytest.mark.parametrize("topic_id", ["id-1", ""])
def test_retention_that_was_faster_is_told(topic_id: str) -> None:
    with pytest.raises(ConfigurationError, match=r"deleted before.*orders-1 5 to 19"):
        begin(ends(topic_id, p0=100, p1=5), LOG, fail_on_data_loss=True)
    start = begin(ends(topic_id, p0=100, p1=5), LOG, fail_on_data_loss=False)
    assert start.at == {("orders", 0): 100, ("orders", 1): 20}
    assert start.gaps == [Gap("orders", 1, 5, 20)]


def test_a_topic_that_was_created_again_is_told() -> None:
    with pytest.raises(ConfigurationError, match=r"created again.*orders"):
        begin(ends("id-0", p0=40, p1=40), LOG, fail_on_data_loss=True)
    start = begin(ends("id-0", p0=40, p1=40), LOG, fail_on_data_loss=False)
    assert start.at == {("orders", 0): 0, ("orders", 1): 20}
    assert start.recreated == ["orders"]
    made = advanced(ends("id-0", p0=40, p7=1), LOG, {("orders", 0): 3, ("orders", 1): 20})
    assert made == ends("id-1", p0=3, p1=20)


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_a_log_that_ends_before_what_was_ingested_is_refused(fail_on_data_loss: bool) -> None:
    with pytest.raises(ConfigurationError, match="orders-0 up to offset 101, the log ends at 100"):
        begin(ends(p0=101, p1=20), LOG, fail_on_data_loss=fail_on_data_loss)


def test_a_commit_carries_on_what_it_did_not_read() -> None:
    before = {**ends(p0=5, p2=9), "refunds": TopicEnds(topic_id="id-2", ends={0: 7})}
    made = advanced(before, LOG, {("orders", 0): 30, ("orders", 1): 40})
    assert made == {**ends(p0=30, p1=40, p2=9), "refunds": before["refunds"]}


@pytest.mark.parametrize("max_offsets", [1, 2, 3, 7, 99, 100, 1000])
def test_batches_are_bounded_and_reach_the_end(max_offsets: int) -> None:
    until = {("a", 0): 100, ("a", 1): 7, ("b", 0): 3}
    at = {("a", 0): 10, ("a", 1): 7, ("b", 0): 0}
    batches = 0
    while at != until:
        reached = next_ends(at, until, max_offsets)
        taken = [reached[place] - at[place] for place in at]
        assert all(count >= 0 for count in taken)
        assert 0 < sum(taken) <= max_offsets
        assert sum(taken) == max_offsets or reached == until
        at = dict(reached)
        batches += 1
    assert batches == -(-93 // max_offsets)
