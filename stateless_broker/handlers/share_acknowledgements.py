"""Acknowledgements in ShareFetch and ShareAcknowledge: the partitions of a request, one by one."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.consumers.share.leader import ShareKey, ShareLeader
from bucketlog.consumers.share.window import Acknowledgement, refused_batches
from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.log_format.wire.messages.share_acknowledge import AcknowledgeTopic
from bucketlog.log_format.wire.messages.share_fetch import FetchTopic
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.authorizer import Access

NO_TOPIC = TopicId(bytes(16))


class NamedPartition(NamedTuple):
    """A partition of a request with its acknowledgements."""

    partition: TopicIdPartition
    batches: Sequence[Acknowledgement]


def named_partitions(
    topics: Iterable[FetchTopic] | Iterable[AcknowledgeTopic],
) -> list[NamedPartition]:
    """The partitions of a request, each once: the last one counts."""
    found: dict[TopicIdPartition, NamedPartition] = {}
    for topic in topics:
        for each in topic.partitions:
            partition = TopicIdPartition(topic_id_of(topic.topic_id), each.partition_index)
            batches = [
                Acknowledgement(row.first_offset, row.last_offset, row.acknowledge_types)
                for row in each.acknowledgement_batches
            ]
            found[partition] = NamedPartition(partition, batches)
    return list(found.values())


def topic_id_of(topic_id: UUID | None) -> TopicId:
    return NO_TOPIC if topic_id is None else TopicId(topic_id.bytes)


class ShareAcknowledgements:
    def __init__(self, *, view: View, leader: ShareLeader) -> None:
        self._view = view
        self._leader = leader

    def refusal(self, partition: TopicIdPartition, access: Access) -> ErrorCode:
        """Return why the client gets nothing of a partition; `none` if it may."""
        topic = self._view.topic_by_id(partition.topic_id)
        if topic is None:
            return ErrorCode.unknown_topic_id
        if not access.may_topic(AclOperation.READ, topic.name):
            return ErrorCode.topic_authorization_failed
        if not 0 <= partition.partition < topic.partitions:
            return ErrorCode.unknown_topic_or_partition
        return ErrorCode.none

    async def acknowledge(
        self,
        group: str,
        member: str,
        named: Sequence[NamedPartition],
        access: Access,
        *,
        may_renew: bool,
    ) -> Mapping[TopicIdPartition, ErrorCode]:
        """The outcome for each partition that has acknowledgements, once it is in the log."""
        wanted = [each for each in named if each.batches]
        found = await asyncio.gather(
            *(self._one(group, member, each, access, may_renew=may_renew) for each in wanted)
        )
        return {each.partition: error for each, error in zip(wanted, found, strict=True)}

    async def _one(
        self, group: str, member: str, named: NamedPartition, access: Access, *, may_renew: bool
    ) -> ErrorCode:
        partition, batches = named
        error = self.refusal(partition, access)
        if error is not ErrorCode.none:
            return error
        if refused_batches(batches, may_renew=may_renew):
            return ErrorCode.invalid_request
        return await self._leader.acknowledge(ShareKey(group, partition), member, batches)
