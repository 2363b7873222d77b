"""The data keys in a checkpoint's state, for version 7. Pure.

This part follows the state of version 6 (docs/format/checkpoint.md). A checkpoint has it only if
the log has data keys. They stay encrypted here, as in the log.
"""

import struct

from bucketlog.log_format.model import TopicId
from bucketlog.log_format.wrapped_key import DATA_KEY_ID_BYTES, WrappedKey
from bucketlog.metadata.checkpoint_bytes import COUNT, StateReader, binary, text_bytes
from bucketlog.metadata.fold import LogState

_KEY = struct.Struct(f">16s{DATA_KEY_ID_BYTES}sq")


def has_data_keys(state: LogState) -> bool:
    return bool(state.data_keys.by_topic)


def encode_data_keys(state: LogState) -> list[bytes]:
    pieces = [COUNT.pack(len(state.data_keys))]
    for key in state.data_keys:
        pieces += [
            _KEY.pack(key.topic_id, key.key_id, key.created_ms),
            text_bytes(key.wrapped_by),
            binary(key.wrapped),
        ]
    return pieces


def decode_data_keys(reader: StateReader, state: LogState) -> None:
    """Decode into `state`. Raises `InvalidDataError`."""
    (count,) = reader.take(COUNT)
    reader.expect(count, _KEY)
    for _ in range(count):
        topic_id, key_id, created_ms = reader.take(_KEY)
        if topic_id not in state.topics:
            raise reader.wrong("a data key is of a topic that does not exist")
        wrapped_by = reader.text()
        key = WrappedKey(TopicId(topic_id), key_id, wrapped_by, reader.binary(), created_ms)
        state.data_keys.add(key)
    if len(state.data_keys) != count:
        raise reader.wrong("it has a data key twice")
