"""The fact about data keys of encrypted topics."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from bucketlog.log_format.wrapped_key import DATA_KEY_ID_BYTES
from bucketlog.metadata.fact_model import FactKind, FactModel, Milliseconds

WRAPPED_KEY_BYTES_MAX = 8_192
"""AWS KMS answers at most 6,144 bytes."""
WRAPPED_BY_CHARS_MAX = 1_000


class DataKeyCreated(FactModel):
    """A data key of a topic, encrypted by the key-encryption key `wrapped_by`. Batches name the
    data key that encrypts them (docs/format/segment.md#encrypted-batches)."""

    kind: Literal[FactKind.DATA_KEY_CREATED] = Field(FactKind.DATA_KEY_CREATED, exclude=True)
    topic_id: UUID
    key_id: Annotated[bytes, Field(min_length=DATA_KEY_ID_BYTES, max_length=DATA_KEY_ID_BYTES)]
    wrapped_by: Annotated[str, Field(min_length=1, max_length=WRAPPED_BY_CHARS_MAX)]
    wrapped: Annotated[bytes, Field(min_length=1, max_length=WRAPPED_KEY_BYTES_MAX)]
    at_ms: Milliseconds
