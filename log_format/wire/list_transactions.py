"""ListTransactions' response, encoded by hand: it may have 100,000 transactional ids.

Source: KIP-664, KIP-994; Kafka's ListTransactionsResponse.json, versions 0 and 1, which are alike.
"""

from collections.abc import Iterable, Sequence

from bucketlog.log_format.wire.frames import FrameWriter


def write_row(transactional_id: str, producer_id: int, state: str) -> bytes:
    """One element of `rows`."""
    out = FrameWriter(flexible=True)
    out.nullable_string(transactional_id)
    out.int64(producer_id)
    out.nullable_string(state)
    out.tags()
    return bytes(out.data)


def write_response(error: int, unknown_states: Iterable[str], rows: Sequence[bytes]) -> bytes:
    """`unknown_states`: names in the request's filter that are not states of transactions."""
    unknown = list(unknown_states)
    out = FrameWriter(flexible=True)
    out.int32(0)
    out.int16(error)
    out.array_length(len(unknown))
    for each in unknown:
        out.nullable_string(each)
    out.array_length(len(rows))
    end = FrameWriter(flexible=True)
    end.tags()
    return b"".join([out.data, *rows, end.data])
