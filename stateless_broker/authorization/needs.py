"""The rights that APIs need, as the table of routes names them."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Generic, TypeAlias, TypeGuard, TypeVar

from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.stateless_broker.authorization.authorizer import Access

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")
CLUSTER_NOT_AUTHORIZED = "Cluster authorization failed."
GROUP_NOT_AUTHORIZED = "Group authorization failed."
TOPIC_NOT_AUTHORIZED = "Topic authorization failed."
"""Kafka's messages of answers without a right."""


class NeedsInHandler(Enum):
    """Rights that no check before the handler decides. `BY_RESOURCE`: the handler checks rights for
    each resource that a request names. `NOTHING`: the API is for everyone, also before a login."""

    BY_RESOURCE = auto()
    NOTHING = auto()


@dataclass(frozen=True, slots=True)
class NeedsCluster(Generic[RequestT, ResponseT]):
    """A right on the cluster, by one of `operations`; the dispatcher checks it. `refuse` makes the
    response for a requester without the right."""

    operations: tuple[AclOperation, ...]
    refuse: Callable[[RequestT], ResponseT]


Needs: TypeAlias = NeedsInHandler | NeedsCluster[RequestT, ResponseT]
BY_RESOURCE, NOTHING = NeedsInHandler.BY_RESOURCE, NeedsInHandler.NOTHING


def is_denied(
    needs: Needs[RequestT, ResponseT], access: Access
) -> TypeGuard[NeedsCluster[RequestT, ResponseT]]:
    """Return whether the API needs a right on the cluster that the requester does not have."""
    if not isinstance(needs, NeedsCluster):
        return False
    *others, last = needs.operations
    quiet = access.quiet
    return not (any(map(quiet.may_on_cluster, others)) or access.may_on_cluster(last))
