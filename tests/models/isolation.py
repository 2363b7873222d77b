"""A consumer of `read_committed`, as Kafka's: which batches of an answer it shows."""

from collections.abc import Iterator, Sequence

from bucketlog.log_format.batch import BatchHeader, read_header
from bucketlog.log_format.control_batch import decode_marker


def batches_of(data: bytes) -> Iterator[tuple[BatchHeader, bytes]]:
    at = 0
    while at < len(data):
        header = read_header(data, at)
        yield header, data[at : at + header.size_bytes]
        at += header.size_bytes


def shown_of(data: bytes, aborted: Sequence[tuple[int, int]]) -> list[BatchHeader]:
    """The batches of one response whose records are shown: CompletedFetch.nextFetchedRecord. The
    list of aborted transactions counts for this response only."""
    waiting = sorted(aborted, key=lambda each: each[1], reverse=True)
    dropping: set[int] = set()
    shown = []
    for header, batch in batches_of(data):
        while waiting and waiting[-1][1] < header.next_offset:
            dropping.add(waiting.pop()[0])
        if header.is_control:
            if header.record_count and not decode_marker(batch).committed:
                dropping.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in dropping):
            shown.append(header)
    return shown
