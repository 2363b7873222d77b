"""Tails: the parts of the writers' chains after a checkpoint, or whole chains without one. Pure.

Invariant: a writer that may still have segments which the checkpoint does not cover has a tail, if
it was registered when the registrations were listed. Without a checkpoint, one listing covers the
whole log, and the registrations are listed after it. With a checkpoint, registrations are listed
first, and then each open writer's chain from the checkpoint's position on.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import SegmentId, WriterId
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import ObjectInfo
from bucketlog.tiered_storage.chains import Chain, read_chain, read_chains


class Tail(NamedTuple):
    """The part of a chain that is not covered, and the epoch in which its writer is registered."""

    epoch: int
    chain: Chain


class TailStart(NamedTuple):
    """The beginning of an open writer's tail. `prefix` and `start_after` are the listing's
    arguments."""

    writer: WriterId
    epoch: int
    seq: int

    @property
    def prefix(self) -> str:
        return keys.chain(self.writer)

    @property
    def start_after(self) -> str:
        return keys.before(SegmentId(self.writer, self.seq))

    def read(self, listed: Iterable[ObjectInfo]) -> Tail:
        return Tail(self.epoch, read_chain(self.writer, listed, self.seq))


def registered_epochs(registrations: Iterable[ObjectInfo]) -> dict[WriterId, int]:
    """Return each writer's epoch. A broker registers each of its writers once. A second
    registration would make brokers leave the chain unsealed, or delete it. So it raises
    `InvalidDataError`."""
    epochs: dict[WriterId, int] = {}
    for info in registrations:
        epoch, writer = keys.parse_writer_registration(info.key)
        if epochs.setdefault(writer, epoch) != epoch:
            raise _registered_twice(writer, epochs[writer], epoch)
    return epochs


def _registered_twice(writer: WriterId, *epochs: int) -> InvalidDataError:
    first, second = (keys.writer_registration(epoch, writer) for epoch in sorted(epochs))
    return InvalidDataError(
        f"{first!r} and {second!r} register one writer in two epochs",
        remedy="delete the one that no broker wrote: `bucketlog segment inspect` shows the epoch "
        "of the writer's segments",
    )


def registered_after(checkpoint: Checkpoint) -> str:
    """Writers of earlier epochs are closed: their registrations are before this key."""
    return f"{keys.WRITERS}{keys.number(checkpoint.ticket.epoch)}"


def tail_starts(checkpoint: Checkpoint, registrations: Iterable[ObjectInfo]) -> list[TailStart]:
    """Return the beginning of the tail of each registered writer; closed chains have none. Raises
    `InvalidDataError`."""
    covered = {row.writer: row for row in checkpoint.writers}
    starts = []
    for writer, epoch in registered_epochs(registrations).items():
        row = covered.get(writer)
        if row is not None and row.epoch != epoch:
            raise _registered_twice(writer, row.epoch, epoch)
        if epoch >= checkpoint.ticket.epoch and not (row is not None and row.closed):
            starts.append(TailStart(writer, epoch, row.end if row is not None else 0))
    return starts


def all_starts(registrations: Iterable[ObjectInfo]) -> list[TailStart]:
    """Return the beginning of each registered writer's chain, for a log without a checkpoint.
    Raises `InvalidDataError`."""
    found = registered_epochs(registrations)
    return [TailStart(writer, epoch, 0) for writer, epoch in found.items()]


def whole_log(
    listed: Iterable[ObjectInfo], registrations: Iterable[ObjectInfo]
) -> dict[WriterId, Tail]:
    """Return all chains from their beginnings. Raises `InvalidDataError`."""
    chains = read_chains(listed)
    epochs = registered_epochs(registrations)
    for writer in chains:
        if writer not in epochs:
            raise InvalidDataError(
                f"{keys.chain(writer)!r} holds the chain of a writer that never registered",
                remedy="keep other objects out of the log, and restore a bucket as a whole",
            )
    return {
        writer: Tail(epoch, chains.get(writer) or read_chain(writer, ()))
        for writer, epoch in epochs.items()
    }


def chains_of(tails: Mapping[WriterId, Tail]) -> dict[WriterId, Chain]:
    return {writer: tail.chain for writer, tail in tails.items()}
