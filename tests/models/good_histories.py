"""A log that some made-up producers wrote, and the history of all who watched it: nothing is wrong
with it."""

import random

from kio.schema.errors import ErrorCode

from tests.models.history import (
    Acknowledged,
    Commit,
    CommittedSeen,
    EndSeen,
    History,
    Log,
    Place,
    Read,
    Refused,
    Seen,
    Sent,
)

PARTITIONS = 3
PRODUCERS = 3
GROUP = "readers"


def good_history(seed: int, records: int) -> tuple[History, Log]:
    """Time is counted in records. Some are refused, some time out, and some of these are there;
    reservations that came to nothing leave gaps, each with its seal. Each partition has records."""
    source = random.Random(seed)
    seals: list[float] = []
    history = History(seals=seals)
    log: dict[int, list[tuple[int, Sent]]] = {number: [] for number in range(PARTITIONS)}
    ends = dict.fromkeys(log, 0)
    numbers = dict.fromkeys(range(PRODUCERS), 0)
    for at in range(records):
        producer, partition = source.randrange(PRODUCERS), at % PARTITIONS
        sent = Sent(f"producer-{producer}", numbers[producer])
        numbers[producer] += 1
        history.invoke(sent, at)
        fate = source.random() if at >= PARTITIONS else 1.0
        if fate < 0.03:
            history.refused.append(Refused(sent, ErrorCode.not_enough_replicas, at))
            seals.append(at)
            ends[partition] += source.randrange(3)
            continue
        if fate < 0.06:
            history.refused.append(Refused(sent, ErrorCode.request_timed_out, at))
        else:
            history.acknowledged.append(Acknowledged(sent, Place(partition, ends[partition]), at))
        log[partition].append((ends[partition], sent))
        ends[partition] += 1
        _watch(source, history, log, partition, at)
    return history, log


def _watch(
    source: random.Random,
    history: History,
    log: dict[int, list[tuple[int, Sent]]],
    partition: int,
    at: float,
) -> None:
    rows = log[partition]
    end = rows[-1][0] + 1
    if source.random() < 0.02 or len(rows) == 1:
        first = source.randrange(max(0, end - 500), end)
        shown = [row for row in rows[-1000:] if row[0] >= first]
        until = source.randrange(len(shown) + 1)
        history.reads.append(Read("some", partition, first, shown[:until], at + 0.5))
        history.reads.append(Read("all", partition, first, shown, at + 0.5, to_end=True))
    history.high_watermarks.append(Seen("watch", partition, end))
    history.ends.append(EndSeen("watch", partition, end, at + 0.5))
    history.positions.append(Seen("reader", partition, end))
    history.commits.append(Commit(GROUP, partition, end, at + 0.6))
    history.committed_seen.append(CommittedSeen(GROUP, partition, end, at + 0.7, at + 0.8))
