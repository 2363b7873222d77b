"""Rows of a partition, packed: 16 bytes each, so that histories of millions of records fit."""

from array import array
from collections.abc import Sequence
from typing import overload

from tests.models.history import Sent

NUMBER_BITS = 40


class Names:
    """Producers' names as small numbers, shared by the rows of a history."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def pack(self, sent: Sent) -> int:
        number = self._numbers.get(sent.producer)
        if number is None:
            number = self._numbers[sent.producer] = len(self._names)
            self._names.append(sent.producer)
        return number << NUMBER_BITS | sent.number

    def unpack(self, packed: int) -> Sent:
        return Sent(self._names[packed >> NUMBER_BITS], packed & ((1 << NUMBER_BITS) - 1))


class PackedRows(Sequence[tuple[int, Sent]]):
    """Offsets and records, as they were appended."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._offsets = array("q")
        self._sent = array("q")

    def append(self, offset: int, sent: Sent) -> None:
        self._offsets.append(offset)
        self._sent.append(self._names.pack(sent))

    def __len__(self) -> int:
        return len(self._offsets)

    @overload
    def __getitem__(self, at: int) -> tuple[int, Sent]: ...
    @overload
    def __getitem__(self, at: slice) -> list[tuple[int, Sent]]: ...
    def __getitem__(self, at: int | slice) -> tuple[int, Sent] | list[tuple[int, Sent]]:
        if isinstance(at, slice):
            return list(
                zip(self._offsets[at], map(self._names.unpack, self._sent[at]), strict=True)
            )
        return self._offsets[at], self._names.unpack(self._sent[at])
