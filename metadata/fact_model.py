"""The kinds of the log's facts, and the bases of their models."""

from enum import IntEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from bucketlog.log_format.model import MAX_OFFSET, TOPIC_PARTITIONS_MAX


class FactKind(IntEnum):
    TOPIC_CREATED = 1
    TOPIC_DELETED = 2
    PARTITIONS_ADDED = 3
    OFFSETS_COMMITTED = 4
    OFFSETS_FORGOTTEN = 5
    TOPIC_CONFIGURED = 6
    TIERS_SWAPPED = 7
    LOG_STARTS_MOVED = 8
    TIERS_SWEPT = 9
    PRODUCER_INITIALISED = 10
    TRANSACTION_ENDED = 11
    TRANSACTION_OFFSETS = 12
    TRANSACTIONAL_IDS_FORGOTTEN = 13
    SCRAM_CREDENTIAL_SET = 14
    SCRAM_CREDENTIAL_DELETED = 15
    ACLS_CREATED = 16
    ACLS_DELETED = 17
    CLIENT_QUOTAS_ALTERED = 18
    DATA_KEY_CREATED = 19
    SHARE_PARTITIONS_TAKEN = 25
    SHARE_STATE_WRITTEN = 26
    SHARE_OFFSETS_SET = 27
    SHARE_OFFSETS_FORGOTTEN = 28
    CONFIGS_ALTERED = 20
    DELEGATION_TOKEN_CREATED = 30
    DELEGATION_TOKEN_RENEWED = 31
    DELEGATION_TOKENS_FORGOTTEN = 32


Milliseconds = Annotated[int, Field(ge=0, lt=2**63)]
"""Since 1970-01-01 UTC."""
Count = Annotated[int, Field(ge=0, lt=2**63)]
Offset = Annotated[int, Field(ge=0, le=MAX_OFFSET + 1)]
"""Offset of a record, or the end of a log."""
PartitionNumber = Annotated[int, Field(ge=0, lt=TOPIC_PARTITIONS_MAX)]
PRINCIPAL_CHARS_MAX = 1_024
Principal = Annotated[str, Field(min_length=1, max_length=PRINCIPAL_CHARS_MAX)]
"""The principal that asked for a change, as in `User:ann`."""
ShortBytes = Annotated[bytes, Field(max_length=1_024)]


class FactModel(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=False,
        ser_json_bytes="base64",
        val_json_bytes="base64",
    )


class AttributedFact(FactModel):
    """A fact that a client may ask for. `by` is the client's principal; None: the client has none,
    or a broker made the change by itself. Only version 2 has `by`."""

    by: Principal | None = None
