"""Writers' chains, from listings alone. Pure.

A segment is committed if and only if every key before it in its chain holds a segment. Everything
after a seal is void. Invariant: no order of a listing is trusted; a chain's density is checked.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from bucketlog.log_format.errors import CorruptObjectError
from bucketlog.log_format.model import WriterId
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import ObjectInfo
from bucketlog.tiered_storage.segment import MIN_SEGMENT_LENGTH, is_seal


@dataclass(frozen=True, slots=True)
class Chain:
    """A writer's chain. `committed` are the segments from `start` on. `end` is the seq of the seal
    or of the next object. `void` are objects past it. In a sealed chain, they will never count. In
    an open chain, they are PUTs that overtook an earlier one."""

    writer: WriterId
    start: int
    committed: tuple[ObjectInfo, ...]
    end: int
    sealed: bool
    void: tuple[ObjectInfo, ...]


def read_chain(writer: WriterId, objects: Iterable[ObjectInfo], start: int = 0) -> Chain:
    """The chain of `writer`, from the listing of its objects, as from seq `start`."""
    by_seq: dict[int, ObjectInfo] = {}
    for info in objects:
        seq = keys.parse_segment(info.key).seq
        if not is_seal(info.size_bytes) and info.size_bytes < MIN_SEGMENT_LENGTH:
            raise CorruptObjectError(
                info.key,
                0,
                f"{info.size_bytes} bytes are neither a segment nor a seal",
                remedy="no broker wrote it: move it away, then restart the brokers",
            )
        by_seq[seq] = info
    end = start
    while end in by_seq and not is_seal(by_seq[end].size_bytes):
        end += 1
    return Chain(
        writer=writer,
        start=start,
        committed=tuple(by_seq[seq] for seq in range(start, end)),
        end=end,
        sealed=end in by_seq,
        void=tuple(by_seq[seq] for seq in sorted(by_seq) if seq > end),
    )


def read_chains(objects: Iterable[ObjectInfo]) -> dict[WriterId, Chain]:
    """Return all chains under `log/`, from one listing."""
    by_writer: dict[WriterId, list[ObjectInfo]] = {}
    for info in objects:
        by_writer.setdefault(keys.parse_segment(info.key).writer, []).append(info)
    return {writer: read_chain(writer, infos) for writer, infos in by_writer.items()}
