"""Compresses produced batches as their topics want it: `compression.type`.

Invariant: a batch of the topic's codec stays as it was sent, whatever its level, as in Kafka.
Source: Kafka's LogValidator (which batches are recompressed) and UnifiedLog (their size is checked
again).
"""

from typing import NamedTuple

from bucketlog.log_format.batch import (
    HEADER_LENGTH,
    BatchHeader,
    BatchTooLargeError,
    Codec,
    read_header,
)
from bucketlog.log_format.compression import decompress
from bucketlog.log_format.rewriting import recompressed_batch
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.topic_configs import COMPRESSION_LEVELS, COMPRESSION_TYPE, MAX_MESSAGE_BYTES
from bucketlog.metadata.topic_defaults import TopicDefaults

AS_SENT = "producer"
CODECS = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


class Compression(NamedTuple):
    """The codec of a topic's batches. `level` None: the codec has no levels."""

    codec: Codec
    level: int | None
    batch_bytes_max: int


def compression_of(topic: TopicState, defaults: TopicDefaults) -> Compression | None:
    """Return the compression that the topic prescribes. None: batches stay as they were sent."""
    name = defaults.effective(topic.configs, COMPRESSION_TYPE)
    if name == AS_SENT:
        return None
    level = COMPRESSION_LEVELS.get(name)
    return Compression(
        CODECS[name],
        None if level is None else int(defaults.effective(topic.configs, level)),
        int(defaults.effective(topic.configs, MAX_MESSAGE_BYTES)),
    )


class RecompressedBatch(NamedTuple):
    data: memoryview
    header: BatchHeader


def recompress(
    data: memoryview, header: BatchHeader, wanted: Compression, *, max_bytes: int, where: str
) -> RecompressedBatch:
    """Compress a batch anew. `data` is one valid batch, which needs another codec. `max_bytes`
    bounds its decompressed records; `where` names the topic-partition in errors. Raises
    `InvalidBatchError`, `BatchTooLargeError`."""
    raw = decompress(
        header.codec,
        data[HEADER_LENGTH : header.size_bytes],
        max_bytes=max_bytes,
        single_frame=True,
    )
    batch = recompressed_batch(header, raw, wanted.codec, level=wanted.level)
    if len(batch) > wanted.batch_bytes_max:
        raise BatchTooLargeError(
            f"a batch of {len(batch)} bytes, recompressed, is too large in {where}: "
            f"{MAX_MESSAGE_BYTES} is {wanted.batch_bytes_max}"
        )
    return RecompressedBatch(memoryview(batch), read_header(batch))
