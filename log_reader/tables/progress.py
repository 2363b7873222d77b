"""How far a target has come, and what a batch reads next. Pure.

Invariants: a batch begins where the last commit ended, partition by partition, and any two ingests
that continue from one commit want the same number for their next: the target lets one of them have
it. A commit carries on the end offsets of topics that it did not read.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict

from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.log_reader.tables.change_rule import ChangeRule

Place: TypeAlias = tuple[str, int]
"""A topic's name and a partition of it."""
Offsets: TypeAlias = Mapping[Place, int]

_LISTED = 10


class IngestConflictError(BucketlogError):
    """Another ingest has committed the batch; nothing of this one's was."""

    code = "INGEST_CONFLICT"
    retriable = True

    def __init__(self, target: str, batch: int) -> None:
        super().__init__(
            f"another ingest has committed batch {batch} of {target}",
            remedy="let one ingest write to a target; to continue after that batch, begin again",
        )


class CommitContentionError(BucketlogError):
    """Each try of a commit was lost to other writers of the table; nothing was committed."""

    code = "COMMIT_CONTENTION"
    retriable = True

    def __init__(self, target: str, batch: int, tries: int) -> None:
        super().__init__(
            f"batch {batch} was not committed to {target}: other writers changed the table during "
            f"each of {tries} tries",
            remedy="run the ingest again when maintenance and other writers of the table are idle",
        )


class TopicEnds(BaseModel):
    """`topic_id` empty: not known. `ends` are by partition: the next offset to ingest."""

    model_config = ConfigDict(frozen=True)

    topic_id: str
    ends: dict[int, int]


class DeadLetterFiles(BaseModel):
    """Files with the dead letters of a batch, which belong to `table` once the batch is committed.
    `after` is the attempt whose dead letters the table had before, None if it had none."""

    model_config = ConfigDict(frozen=True)

    table: str
    after: str | None
    files: tuple[str, ...]
    records: int


class Commit(BaseModel):
    """What a target says of a batch, and of everything before it. `attempt` tells those apart who
    wanted the same `batch`. `changes` is the rule of a table of changes. Its format is 2, which
    versions that only append refuse."""

    model_config = ConfigDict(frozen=True)

    format: Literal[1, 2] = 1
    batch: int
    attempt: str
    topics: dict[str, TopicEnds]
    dead_letters: DeadLetterFiles | None = None
    changes: ChangeRule | None = None


class TargetState(NamedTuple):
    """Where a target is. `commit` is the last one, None if there was none. `resumed_files` counts
    files of a committed batch that an earlier run left unpublished."""

    commit: Commit | None
    resumed_files: int = 0

    @property
    def found_in(self) -> Literal["nothing", "commit"]:
        """What tells where the target is."""
        return "commit" if self.commit else "nothing"

    @property
    def attempt(self) -> str | None:
        """Of the last commit."""
        return self.commit.attempt if self.commit else None

    @property
    def topics(self) -> Mapping[str, TopicEnds]:
        return self.commit.topics if self.commit else {}

    @property
    def changes(self) -> ChangeRule | None:
        """The rule of a table of changes."""
        return self.commit.changes if self.commit else None

    @property
    def next_batch(self) -> int:
        return self.commit.batch + 1 if self.commit else 1


class LogPartition(NamedTuple):
    """A partition as the log holds it now: records `start` ≤ offset < `end`, `start` being where an
    ingest begins that has none of it yet."""

    topic: str
    topic_id: str
    partition: int
    start: int
    end: int

    @property
    def place(self) -> Place:
        return self.topic, self.partition


class Gap(NamedTuple):
    """Offsets `start` to `end` (excluded) that the log held no more when they were needed."""

    topic: str
    partition: int
    start: int
    end: int


class IngestStart(NamedTuple):
    at: Offsets
    gaps: Sequence[Gap]
    recreated: Sequence[str]
    """Topics that were deleted and created again since."""


def begin(
    topics: Mapping[str, TopicEnds], log: Iterable[LogPartition], *, fail_on_data_loss: bool
) -> IngestStart:
    """Where to continue. Raises `ConfigurationError` where the log is not the one that was
    ingested, and, with `fail_on_data_loss`, where records are gone that were not."""
    at: dict[Place, int] = {}
    gaps: list[Gap] = []
    recreated: dict[str, None] = {}
    for part in log:
        known = topics.get(part.topic)
        if known and known.topic_id and known.topic_id != part.topic_id:
            recreated[part.topic] = None
            known = None
        end = known.ends.get(part.partition) if known else None
        if end is None:
            at[part.place] = part.start
            continue
        if end > part.end:
            raise ConfigurationError(
                f"the target holds {part.topic}-{part.partition} up to offset {end}, the log ends "
                f"at {part.end}",
                remedy="give the log that was ingested before; if the bucket was restored from an "
                "older copy, roll the target back to it, or ingest into a new one",
            )
        if end < part.start:
            gaps.append(Gap(part.topic, part.partition, end, part.start))
        at[part.place] = max(end, part.start)
    if fail_on_data_loss:
        _refuse_losses(gaps, list(recreated))
    return IngestStart(at, gaps, list(recreated))


def _refuse_losses(gaps: Sequence[Gap], recreated: Sequence[str]) -> None:
    if recreated:
        raise ConfigurationError(
            f"deleted and created again since they were ingested: {', '.join(recreated)}",
            remedy="ingest into a new target, or begin at the new topics' first offsets with "
            "--fail-on-data-loss false",
        )
    if gaps:
        listed = ", ".join(
            f"{gap.topic}-{gap.partition} {gap.start} to {gap.end - 1}" for gap in gaps[:_LISTED]
        )
        more = f" and {len(gaps) - _LISTED} more" if len(gaps) > _LISTED else ""
        raise ConfigurationError(
            f"offsets were deleted before they were ingested: {listed}{more}",
            remedy="ingest more often than retention deletes; to continue without them: "
            "--fail-on-data-loss false",
        )


def next_ends(at: Offsets, until: Offsets, max_offsets: int) -> Offsets:
    """Where a batch of at most `max_offsets` ends: each partition has a share by what it has left,
    as in Spark's Kafka source."""
    left = {place: until[place] - at[place] for place in at}
    total = sum(left.values())
    if total <= max_offsets:
        return dict(until)
    ends = {place: at[place] + count * max_offsets // total for place, count in left.items()}
    spare = max_offsets - sum(ends[place] - at[place] for place in at)
    for place in ends:
        if spare and ends[place] < until[place]:
            ends[place] += 1
            spare -= 1
    return ends


def advanced(
    topics: Mapping[str, TopicEnds], log: Iterable[LogPartition], ends: Offsets
) -> dict[str, TopicEnds]:
    """`topics` with `ends` in place of what they said of these partitions."""
    ids: dict[str, str] = {}
    found: dict[str, dict[int, int]] = {}
    for part in log:
        ids[part.topic] = part.topic_id
        found.setdefault(part.topic, {})[part.partition] = ends[part.place]
    for name, known in topics.items():
        if name in ids and known.topic_id in ("", ids[name]):
            found[name] = {**known.ends, **found[name]}
    return {
        **topics,
        **{
            name: TopicEnds(topic_id=ids[name], ends=dict(sorted(by.items())))
            for name, by in found.items()
        },
    }
