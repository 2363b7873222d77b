"""`bucketlog locate`: the object, bytes, batch and producer of a record."""

from typing import Annotated, Any

import typer

from bucketlog.cli.options import BucketUrl, OutputFormat
from bucketlog.terminal import Output, print_rows, say, time_text

COLUMNS = ("key", "first_byte", "last_byte", "base_offset", "last_offset", "records")


def locate(
    bucket: BucketUrl,
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    partition: Annotated[int, typer.Argument(metavar="PARTITION", min=0)],
    offset: Annotated[int, typer.Argument(metavar="OFFSET", min=0, max=2**63 - 2)],
    output: OutputFormat = Output.TABLE,
) -> None:
    """Show where a record is: the object, its bytes, the record batch and the producer.

    Reads the bucket, without a broker."""
    from bucketlog.inspect.batch_location import locate_batch
    from bucketlog.log_format.batch import CODEC_MASK, CONTROL, SEALED, TRANSACTIONAL, codec_name
    from bucketlog.metadata.producers import last_sequence

    found = locate_batch(bucket, topic, partition, offset)
    row = found.row
    has_producer = row.producer_id >= 0
    has_sequence = has_producer and row.base_sequence >= 0
    shown: dict[str, Any] = {
        "key": found.key,
        "kind": found.kind,
        "first_byte": row.position,
        "last_byte": row.position + row.length - 1,
        "base_offset": row.base_offset,
        "last_offset": row.next_offset - 1,
        "records": row.record_count,
        "max_timestamp": row.max_timestamp,
        "codec": codec_name(row.attributes & CODEC_MASK),
        "transactional": bool(row.attributes & TRANSACTIONAL),
        "control": bool(row.attributes & CONTROL),
        "encrypted": bool(row.attributes & SEALED),
        "producer_id": row.producer_id if has_producer else None,
        "producer_epoch": row.producer_epoch if has_producer else None,
        "sequence": last_sequence(row.base_sequence, offset - row.base_offset + 1)
        if has_sequence
        else None,
    }
    if output is not Output.TABLE:
        print_rows([shown], COLUMNS, output)
        return
    if row.max_timestamp >= 0:
        shown["max_timestamp"] = time_text(row.max_timestamp)
    for name, value in shown.items():
        say(f"{name.replace('_', ' '):<16}{'-' if value is None else value}")
