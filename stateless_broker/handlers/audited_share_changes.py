"""Changes that requests of administrators make in share groups, for the audit log. Pure.

`answer` is None if the handler has failed.
"""

from collections.abc import Iterable
from itertools import islice
from typing import cast

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from bucketlog.log_format.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from bucketlog.stateless_broker.handlers.audited_changes import DETAILS_MAX
from bucketlog.stateless_broker.network.apis import Answer
from bucketlog.stateless_broker.network.audit import Change

WHAT = "offsets of share group"


def altered_share_offsets(
    message: AlterShareGroupOffsetsRequest, answer: Answer
) -> Iterable[Change]:
    """A change for each topic and error, of the group that the request names."""
    group = message.group_id
    if answer is None:
        yield Change(WHAT, group, None)
        return
    response = cast(AlterShareGroupOffsetsResponse, answer)
    if response["error_code"]:
        yield Change(WHAT, group, response["error_code"])
        return
    starts = {
        (topic.topic_name, each.partition_index): each.start_offset
        for topic in message.topics
        for each in topic.partitions
    }
    for row in response["responses"]:
        found: dict[ErrorCode, dict[int, int]] = {}
        for part in row["partitions"]:
            number = part["partition_index"]
            offsets = found.setdefault(part["error_code"], {})
            offsets[number] = starts[row["topic_name"], number]
        for error, offsets in found.items():
            details: dict[str, object] = {"topic": row["topic_name"]}
            details["offsets"] = dict(islice(offsets.items(), DETAILS_MAX))
            yield Change(WHAT, group, error, details)


def deleted_share_offsets(
    message: DeleteShareGroupOffsetsRequest, answer: Answer
) -> Iterable[Change]:
    """A change for each topic, of the group that the request names."""
    group = message.group_id
    if answer is None:
        yield Change(WHAT, group, None)
        return
    response = cast(DeleteShareGroupOffsetsResponse, answer)
    if response["error_code"]:
        yield Change(WHAT, group, response["error_code"])
        return
    for row in response["responses"]:
        yield Change(WHAT, group, row["error_code"], {"topic": row["topic_name"]})
