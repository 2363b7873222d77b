"""Copies of small parts of large objects, so that a response does not keep whole objects. Pure.

Invariant: a response holds at most twice its own size in memory. Parts of an object are not copied
if all partitions of the response together take at least half of it: copying costs CPU time.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from bucketlog.log_format.model import Buffer, StoredObject
from bucketlog.stateless_broker.handlers.fetch_plan import FetchedRecords, PlannedRead


def own_parts(parts: Iterable[Buffer], taken_bytes: int = 0) -> list[Buffer]:
    """Copy small parts of large objects. `taken_bytes`: the number of bytes that the whole
    response takes from each of these objects; 0 if unknown."""
    return [
        bytes(part)
        if isinstance(part, memoryview)
        and 2 * max(part.nbytes, taken_bytes) < memoryview(part.obj).nbytes
        else part
        for part in parts
    ]


def own_records(found: list[FetchedRecords]) -> list[FetchedRecords]:
    """Copy the parts of objects of which all partitions together take less than half."""
    taken = Counter[int]()
    views = [part for each in found for part in each.parts if isinstance(part, memoryview)]
    for view in views:
        taken[id(view.obj)] += view.nbytes
    large = {
        id(view.obj) for view in views if 2 * taken[id(view.obj)] < memoryview(view.obj).nbytes
    }
    if not large:
        return found

    def owned(part: Buffer) -> Buffer:
        return bytes(part) if isinstance(part, memoryview) and id(part.obj) in large else part

    return [each._replace(parts=[owned(part) for part in each.parts]) for each in found]


def taken_bytes(reads: Iterable[PlannedRead]) -> Mapping[StoredObject, int]:
    """The number of bytes that all reads of a response together take from each log segment."""
    taken = Counter[StoredObject]()
    for read in reads:
        for wanted in read.ranges:
            taken[wanted.object] += wanted.length
    return taken
