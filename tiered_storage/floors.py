"""Floors: tickets below which the log may have been thinned out (docs/format/floor.md). Pure.

A floor is written when two sound checkpoints stand at its ticket or above, and says what is
readable below it. What is not may be deleted once the floor is older than the safety age. The
highest one always stays. Invariant: nothing is deleted that a floor does not leave out; hence who
began with a checkpoint at or above the highest floor *after* his listings has missed nothing, and
all the batches that he found are still there. No clock is needed to tell, and none to delete: ages
are differences between times of one store.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import CorruptObjectError, StaleCheckpointError
from bucketlog.log_format.model import Buffer, Ticket, WriterId
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import ObjectInfo

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Seqs from the first to before the second, ascending."""


@dataclass(frozen=True, slots=True)
class Floor:
    """`positions` are those of the writers of the ticket's epoch: so many of their segments stand
    below it. Chains of earlier epochs stand below it whole. `readable` are the segments that a
    batch of one of the two checkpoints stands in."""

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

    def readable_of(self, writer: WriterId) -> set[int]:
        return {seq for start, end in self.readable.get(writer, ()) for seq in range(start, end)}


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
    content = _Content(positions=dict(floor.positions), readable=dict(floor.readable))
    return content.model_dump_json().encode()


def decode_floor(key: str, data: Buffer) -> Floor:
    """Raises `CorruptObjectError`, `InvalidDataError`."""
    try:
        content = _Content.model_validate_json(bytes(data))
    except ValidationError as error:
        raise CorruptObjectError(key, 0, f"it is no floor: {error.errors()[0]['msg']}") from error
    return Floor(keys.parse_floor(key), content.positions, content.readable)


def highest_floor(listed: Iterable[ObjectInfo]) -> Ticket | None:
    """Raises `InvalidDataError` for a key that is none."""
    return max((keys.parse_floor(info.key) for info in listed), default=None)


def check_not_below(checkpoint: Checkpoint | None, listed: Iterable[ObjectInfo]) -> None:
    """`listed` are all floors, listed after what was read beyond `checkpoint`. Raises
    `StaleCheckpointError`."""
    floor = highest_floor(listed)
    if floor is None or (checkpoint is not None and checkpoint.ticket >= floor):
        return
    begun = "no checkpoint" if checkpoint is None else keys.checkpoint(checkpoint.ticket)
    raise StaleCheckpointError(
        f"reading began with {begun}, and what is below {keys.floor(floor)} may be deleted by now",
        remedy="begin again; if there is no sound checkpoint above it, restore one from a version "
        "or a copy of the bucket",
    )
