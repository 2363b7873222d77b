"""A topic's data key as the log keeps it: encrypted by a key that is not in the bucket."""

from typing import NamedTuple

from bucketlog.log_format.model import TopicId

DATA_KEY_ID_BYTES = 16


class WrappedKey(NamedTuple):
    """The data key `key_id` of a topic (docs/format/segment.md#data-keys). `wrapped_by` names the
    key-encryption key as the topic config `encryption.key.id` does. `created_ms`: since 1970."""

    topic_id: TopicId
    key_id: bytes
    wrapped_by: str
    wrapped: bytes
    created_ms: int
