"""What went in, compared with what comes out: per carrier a count, a checksum and every record.

Invariant: the expectation is built from the source alone, before anything is sent; records of one
key must come back in the source's order, from one partition, at ascending offsets.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import md5
from typing import Any

from bucketlog.client.topic import Record
from bucketlog.demo.flights import Flight

CHECKSUM_DIGITS = 15
"""Hexadecimal digits of each value's MD5 that are summed up: 60 bits, as Spark's `conv` can do."""


def checksum_of(value: bytes) -> int:
    return int(md5(value, usedforsecurity=False).hexdigest()[:CHECKSUM_DIGITS], 16)


@dataclass(slots=True)
class CarrierTally:
    """`checksum` is the sum over all values. `rows` are the fields of each flight, in order."""

    checksum: int = 0
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    consumed: int = 0
    partition: int | None = None


class Tally:
    def __init__(self) -> None:
        self.carriers: dict[str, CarrierTally] = {}
        self.produced = 0
        self.consumed = 0
        self.mismatches: list[str] = []
        self._last_offset: dict[int, int] = {}

    def expecting(
        self, flights: Iterable[Flight], encode: Callable[[Flight], bytes]
    ) -> Iterator[Flight]:
        """Note each flight on its way to the producer."""
        for flight in flights:
            tally = self.carriers.setdefault(flight.carrier, CarrierTally())
            tally.checksum += checksum_of(encode(flight))
            tally.rows.append(tuple(flight.__dict__.values()))
            self.produced += 1
            yield flight

    def compare(self, records: Iterable[Record[str, Flight]]) -> None:
        for record in records:
            self.consumed += 1
            if record.offset <= self._last_offset.get(record.partition, -1):
                self._differs(record, "its offset does not ascend")
            self._last_offset[record.partition] = record.offset
            tally = self.carriers.get(record.key or "")
            if tally is None:
                self._differs(record, f"no carrier {record.key!r} was sent")
                continue
            at, tally.consumed = tally.consumed, tally.consumed + 1
            if tally.partition is None:
                tally.partition = record.partition
            if tally.partition != record.partition:
                self._differs(record, f"{record.key} was in partition {tally.partition} before")
            elif at >= len(tally.rows):
                self._differs(record, f"only {len(tally.rows)} flights of {record.key} were sent")
            elif tuple(record.value.__dict__.values()) != tally.rows[at]:
                self._differs(record, f"not flight {at} of {record.key}, which is {tally.rows[at]}")

    def compare_replay(self, replayed: dict[str, tuple[int, int]]) -> int:
        """`replayed` gives count and checksum by carrier; returns how many records in all."""
        for carrier in sorted(self.carriers.keys() | replayed.keys()):
            mine = self.carriers.get(carrier, CarrierTally())
            if replayed.get(carrier) != (len(mine.rows), mine.checksum):
                self.mismatches.append(
                    f"Spark replayed {replayed.get(carrier)} (count, checksum) of {carrier}, "
                    f"not {(len(mine.rows), mine.checksum)}"
                )
        return sum(count for count, _ in replayed.values())

    def _differs(self, record: Record[str, Flight], reason: str) -> None:
        self.mismatches.append(f"{record.where}: {reason}")
