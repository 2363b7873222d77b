"""A log's digest: what it depends on, and what two of them differ in."""

from dataclasses import replace

import pytest

from bucketlog.inspect.doctor.digest import (
    CommittedDigest,
    LogDigest,
    PartitionDigest,
    RecordHash,
    TopicDigest,
    differences,
)

PART = PartitionDigest(0, 3, 3, "aa")
TOPIC = TopicDigest((PART, PART), {"retention.ms": "5"})
ROW = CommittedDigest(2, -1, "")
LOG = LogDigest("c", {"t": TOPIC, "u": TOPIC}, {"g": {("t", 0): ROW}})


def test_equal_logs_have_no_differences() -> None:
    assert list(differences(LOG, LOG)) == []
    other = replace(LOG, topics={"u": TOPIC, "t": TOPIC})
    assert other.digest == LOG.digest


def topic(changed: TopicDigest) -> LogDigest:
    return replace(LOG, topics={"t": changed, "u": TOPIC})


def part(changed: PartitionDigest) -> LogDigest:
    return topic(replace(TOPIC, partitions=(PART, changed)))


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (replace(LOG, cluster_id="d"), "cluster id: c and d"),
        (replace(LOG, topics={"t": TOPIC}), "topic u: only in the first"),
        (replace(LOG, topics={**LOG.topics, "v": TOPIC}), "topic v: only in the second"),
        (topic(replace(TOPIC, configs={})), "topic t, retention.ms: 5 and not set"),
        (topic(replace(TOPIC, partitions=(PART,))), "topic t: 2 and 1 partitions"),
        (part(replace(PART, earliest=1)), "t-1, earliest: 0 and 1"),
        (part(replace(PART, latest=4)), "t-1, latest: 3 and 4"),
        (part(replace(PART, records=4)), "t-1, records: 3 and 4"),
        (part(replace(PART, digest="bb")), "t-1, digest: aa and bb"),
        (
            replace(LOG, groups={"g": {("t", 0): replace(ROW, offset=3)}}),
            "group g, t-0: 2 (leader epoch -1, metadata '') and 3 (leader epoch -1, metadata '')",
        ),
        (replace(LOG, groups={}), "group g, t-0: 2 (leader epoch -1, metadata '') and nothing"),
    ],
)
def test_every_difference_is_told(other: LogDigest, expected: str) -> None:
    assert list(differences(LOG, other)) == [expected]
    if other.cluster_id == LOG.cluster_id:
        assert other.digest != LOG.digest


Row = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def hashed(*rows: Row) -> str:
    found = RecordHash()
    for row in rows:
        found.add(*row)
    return found.hex


def test_each_part_of_a_record_counts() -> None:
    row: Row = (0, 5, b"k", b"v", [("h", b"1")])
    others: list[Row] = [
        (1, 5, b"k", b"v", [("h", b"1")]),
        (0, 6, b"k", b"v", [("h", b"1")]),
        (0, 5, b"kv", b"", [("h", b"1")]),
        (0, 5, None, b"v", [("h", b"1")]),
        (0, 5, b"", b"v", [("h", b"1")]),
        (0, 5, b"k", None, [("h", b"1")]),
        (0, 5, b"k", b"v", [("h", None)]),
        (0, 5, b"k", b"v", [("h1", b"")]),
        (0, 5, b"k", b"v", []),
    ]
    assert len({hashed(row), *(hashed(other) for other in others)}) == len(others) + 1
    assert hashed(row, others[0]) != hashed(others[0], row)
