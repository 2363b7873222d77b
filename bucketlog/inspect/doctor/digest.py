"""A log's digest, and in what two of them differ. Pure.

Invariant: a digest depends on what clients can read, and on nothing else: not on segments, batches,
codecs or who wrote them. Of a partition it is taken over each record, in offset order: offset,
timestamp, key, value, headers.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TypeVar

DIGEST_BYTES = 16
_PLACE = struct.Struct(">qqi")
_LENGTH = struct.Struct(">i")
_Name = TypeVar("_Name", str, tuple[str, int])
Headers = Sequence[tuple[str, bytes | None]]


class RecordHash:
    """Records of one partition, as they come."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=DIGEST_BYTES)
        self.records = 0

    def add(
        self,
        offset: int,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> None:
        pieces = [_PLACE.pack(offset, timestamp_ms, len(headers)), *_framed(key), *_framed(value)]
        for name, content in headers:
            pieces += [*_framed(name.encode()), *_framed(content)]
        self._hash.update(b"".join(pieces))
        self.records += 1

    @property
    def hex(self) -> str:
        return self._hash.hexdigest()


def _framed(data: bytes | None) -> tuple[bytes, ...]:
    return (_LENGTH.pack(-1),) if data is None else (_LENGTH.pack(len(data)), data)


def as_clients_show(metadata: str) -> str:
    """Of a committed offset: up to the first zero character. librdkafka's bindings for Python end
    it with one when they commit, and show it without."""
    return metadata.partition("\0")[0]


@dataclass(frozen=True, slots=True)
class PartitionDigest:
    """`earliest` is the first offset kept, `latest` the next one to be given."""

    earliest: int
    latest: int
    records: int
    digest: str


@dataclass(frozen=True, slots=True)
class TopicDigest:
    """`configs` are those that were set, by Kafka's names."""

    partitions: tuple[PartitionDigest, ...]
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CommittedDigest:
    offset: int
    leader_epoch: int
    metadata: str


@dataclass(frozen=True, slots=True)
class LogDigest:
    """Topics by name; committed offsets by group, topic and partition. `withheld` batches are
    committed behind a gap that may still be filled, and are in no digest."""

    cluster_id: str
    topics: Mapping[str, TopicDigest] = field(default_factory=dict)
    groups: Mapping[str, Mapping[tuple[str, int], CommittedDigest]] = field(default_factory=dict)
    withheld: int = 0

    @property
    def records(self) -> int:
        return sum(part.records for topic in self.topics.values() for part in topic.partitions)

    @property
    def digest(self) -> str:
        """One for all of it."""
        whole = blake2b(digest_size=DIGEST_BYTES)
        for name, topic in sorted(self.topics.items()):
            whole.update(repr((name, topic.partitions, sorted(topic.configs.items()))).encode())
        for group, rows in sorted(self.groups.items()):
            whole.update(repr((group, sorted(rows.items(), key=lambda row: row[0]))).encode())
        return whole.hexdigest()


def differences(ours: LogDigest, theirs: LogDigest) -> Iterator[str]:
    """What differs, a line each: first what the one says, then the other."""
    if ours.cluster_id != theirs.cluster_id:
        yield f"cluster id: {ours.cluster_id} and {theirs.cluster_id}"
    for name in _names(ours.topics, theirs.topics):
        mine, other = ours.topics.get(name), theirs.topics.get(name)
        if mine is None or other is None:
            yield f"topic {name}: {_only_in(mine is not None)}"
        else:
            yield from _topic_differences(name, mine, other)
    for group in _names(ours.groups, theirs.groups):
        rows, others = ours.groups.get(group, {}), theirs.groups.get(group, {})
        for topic, number in _names(rows, others):
            one, two = rows.get((topic, number)), others.get((topic, number))
            if one != two:
                yield f"group {group}, {topic}-{number}: {_row(one)} and {_row(two)}"


def _topic_differences(name: str, ours: TopicDigest, theirs: TopicDigest) -> Iterator[str]:
    for config in _names(ours.configs, theirs.configs):
        mine, other = ours.configs.get(config), theirs.configs.get(config)
        if mine != other:
            yield f"topic {name}, {config}: {mine or 'not set'} and {other or 'not set'}"
    if len(ours.partitions) != len(theirs.partitions):
        yield f"topic {name}: {len(ours.partitions)} and {len(theirs.partitions)} partitions"
    for number, (one, two) in enumerate(zip(ours.partitions, theirs.partitions, strict=False)):
        for what in ("earliest", "latest", "records", "digest"):
            if getattr(one, what) != getattr(two, what):
                yield f"{name}-{number}, {what}: {getattr(one, what)} and {getattr(two, what)}"


def _names(ours: Iterable[_Name], theirs: Iterable[_Name]) -> list[_Name]:
    return sorted(set(ours) | set(theirs))


def _only_in(first: bool) -> str:
    return f"only in the {'first' if first else 'second'}"


def _row(row: CommittedDigest | None) -> str:
    if row is None:
        return "nothing"
    return f"{row.offset} (leader epoch {row.leader_epoch}, metadata {row.metadata!r})"
