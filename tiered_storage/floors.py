"""Floors: tickets below which the log may have been thinned out (docs/format/floor.md). Pure.

A floor is written when two sound checkpoints are at its ticket or above, and says what is readable
below it. All other objects below it may be deleted once the floor is older than the safety age. The
highest floor always stays. Invariant: nothing is deleted that a floor does not leave out. Take a
reader that began with a checkpoint at or above the highest floor *after* its listings. It has
missed nothing, and all the batches that it found still exist. Neither this decision nor deletion
needs a clock: ages are differences between times of one store.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import (
    CorruptObjectError,
    InvalidDataError,
    StaleCheckpointError,
)
from bucketlog.log_format.model import Buffer, Ticket, WriterId
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import ObjectInfo, Span

FLOOR_BYTES_MAX = 4 * 1024 * 1024
"""Limit of a floor's bytes: about 200,000 ranges. Parsing takes up to 40 times as much memory."""
FLOOR_SPAN = Span(0, FLOOR_BYTES_MAX + 1)
"""The part of a floor to read: all of the floor, or enough to refuse it."""
_OBJECTS = 3
_RANGE_JSON_BYTES_MIN = 5
_WRITER_JSON_BYTES_MIN = 36
_SEQ_MAX = 2**63

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Seqs from the first to before the second, ascending."""


@dataclass(frozen=True, slots=True)
class Floor:
    """A floor. `positions` are those of the writers of the ticket's epoch: the number of their
    segments that are below it. Chains of earlier epochs are below it as a whole. `readable` are the
    segments with a batch of one of the two checkpoints."""

    ticket: Ticket
    positions: Mapping[WriterId, int]
    readable: Mapping[WriterId, Ranges]

    @classmethod
    def of(cls, older: Checkpoint, newer: Checkpoint) -> "Floor":
        """Laid at the older one."""
        rows = (row for row in older.writers if row.epoch == older.ticket.epoch)
        readable: dict[WriterId, set[int]] = {}
        for checkpoint in (older, newer):
            found = [readable.setdefault(row.writer, set()) for row in checkpoint.writers]
            for part in checkpoint.partitions.values():
                *_, writers, seqs, _ = part.batches.columns
                for at, seq in zip(writers, seqs, strict=True):
                    found[at].add(seq)
        return cls(
            older.ticket,
            {row.writer: row.end for row in rows},
            {writer: _ranges(seqs) for writer, seqs in readable.items() if seqs},
        )

    def readable_of(self, writer: WriterId) -> Ranges:
        return self.readable.get(writer, ())


def is_among(ranges: Ranges, seq: int) -> bool:
    at = bisect_right(ranges, seq, key=lambda each: each[0]) - 1
    return at >= 0 and seq < ranges[at][1]


def below(ranges: Ranges, end: int) -> Ranges:
    """The parts of the ranges below `end`."""
    return tuple((start, min(stop, end)) for start, stop in ranges if start < end)


def _ranges(seqs: Iterable[int]) -> Ranges:
    found: list[tuple[int, int]] = []
    for seq in sorted(seqs):
        if found and found[-1][1] == seq:
            found[-1] = (found[-1][0], seq + 1)
        else:
            found.append((seq, seq + 1))
    return tuple(found)


class _Content(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    positions: dict[WriterId, int]
    readable: dict[WriterId, Ranges]


def encode_floor(floor: Floor) -> bytes:
    """Encode a floor. Raises `InvalidDataError` for a floor that is too large."""
    content = _Content(positions=dict(floor.positions), readable=dict(floor.readable))
    data = content.model_dump_json().encode()
    if len(data) > FLOOR_BYTES_MAX:
        raise InvalidDataError(
            f"the floor of {tuple(floor.ticket)} has {len(data)} bytes, more than the limit of "
            f"{FLOOR_BYTES_MAX}",
            remedy="check that compaction runs, which leaves fewer log segments with batches",
        )
    return data


def decode_floor(key: str, data: Buffer) -> Floor:
    """Decode a floor. Raises `CorruptObjectError`, `InvalidDataError`."""
    text = bytes(memoryview(data)[: FLOOR_SPAN.length])
    if len(text) > FLOOR_BYTES_MAX:
        raise CorruptObjectError(
            key,
            0,
            f"it has more bytes than the limit of {FLOOR_BYTES_MAX}",
            remedy="no broker wrote it: delete it; brokers will write another one",
        )
    brackets, commas = text.count(b"["), text.count(b",")
    if (
        text.count(b"{") > _OBJECTS
        or _RANGE_JSON_BYTES_MIN * brackets > len(text)
        or commas > 1 + 2 * brackets + len(text) // _WRITER_JSON_BYTES_MIN
    ):
        raise CorruptObjectError(key, 0, "it is not a floor: its JSON has too many values")
    try:
        content = _Content.model_validate_json(text)
    except ValidationError as error:
        raise CorruptObjectError(
            key, 0, f"it is not a floor: {error.errors()[0]['msg']}"
        ) from error
    if min(content.positions.values(), default=0) < 0 or not all(
        map(_are_ascending, content.readable.values())
    ):
        raise CorruptObjectError(key, 0, "it is not a floor: impossible positions or ranges")
    return Floor(keys.parse_floor(key), content.positions, content.readable)


def _are_ascending(ranges: Ranges) -> bool:
    end = -1
    for start, stop in ranges:
        if not end < start < stop < _SEQ_MAX:
            return False
        end = stop
    return True


def highest_floor(listed: Iterable[ObjectInfo]) -> Ticket | None:
    """Return the ticket of the highest floor; None if there is none. Raises `InvalidDataError` for
    a key that is not a floor's."""
    return max((keys.parse_floor(info.key) for info in listed), default=None)


def check_not_below(checkpoint: Checkpoint | None, listed: Iterable[ObjectInfo]) -> None:
    """Check that `checkpoint` is not below a floor. `listed` are all floors, listed after what was
    read beyond the checkpoint. Raises `StaleCheckpointError`."""
    floor = highest_floor(listed)
    if floor is None or (checkpoint is not None and checkpoint.ticket >= floor):
        return
    begun = "no checkpoint" if checkpoint is None else keys.checkpoint(checkpoint.ticket)
    raise StaleCheckpointError(
        f"reading began with {begun}, and what is below {keys.floor(floor)} may be deleted by now",
        remedy="begin again; if there is no sound checkpoint above it, restore one from a version "
        "or a copy of the bucket",
    )
