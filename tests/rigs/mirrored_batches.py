"""Batches as a mirror sends them, over a scripted connection."""

from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import read_header, stamp_base_offset
from bucketlog.log_format.rewriting import left_out_batch
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import uvarint
from bucketlog.log_format.wire.produce import MIRROR_TAG
from tests.rigs.wire_client import WireClient, build_batch, decode_response, encode_request

VERSION = 9
RECORDS = build_batch([(b"a", b"1"), (b"b", b"2"), (b"c", b"3")])


def at(batch: bytes, offset: int) -> bytes:
    placed = bytearray(batch)
    stamp_base_offset(memoryview(placed), offset)
    return bytes(placed)


def gap(offset: int, offsets: int) -> bytes:
    """An empty batch in the place of `offsets` offsets."""
    header = read_header(RECORDS)._replace(last_offset_delta=offsets - 1, max_timestamp=-1)
    return at(left_out_batch(header), offset)


def mirror(
    client: WireClient, topic: str, batch: bytes, **changed: object
) -> tuple[ErrorCode, int, str | None]:
    """Error, base offset and message."""
    rows = [{"index": 0, "records": batch}]
    values = {
        "acks": -1,
        "timeout": 20_000,
        "topic_data": [{"name": topic, "partition_data": rows}],
        **changed,
    }
    plain = encode_request(ApiKey.PRODUCE, VERSION, 7, values)
    tag = b"\1" + uvarint(MIRROR_TAG) + b"\0"
    client.send_frame(plain[:-1] + tag)
    frame = client.read_frame()
    assert frame is not None
    row = decode_response(ApiKey.PRODUCE, VERSION, frame)[1].responses[0].partition_responses[0]
    return ErrorCode(row.error_code), row.base_offset, row.error_message
