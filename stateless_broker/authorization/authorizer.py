"""Decisions about clients, by the ACLs of the view.

Invariants: a decision is remembered only as long as the ACLs are the same. While the view is too
old, nobody but super users may do anything: a right that was taken away may still be there.
Source: Kafka's StandardAuthorizer and AuthHelper.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from bucketlog.metadata.acl_bindings import CLUSTER_NAME, AclOperation, ResourceType
from bucketlog.metadata.acls import Acls, Requester, Resource
from bucketlog.metadata.host_addresses import canonical_host

CLUSTER = Resource(ResourceType.CLUSTER, CLUSTER_NAME)
SUPPORTED_OPERATIONS: Mapping[ResourceType, tuple[AclOperation, ...]] = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
    ),
}
"""The operations in the bit fields of answers. Source: Kafka's AclEntry.supportedOperations."""
_HOSTS_KEPT = 10_000
NAME_CHARS_KEPT = 256
"""Decisions about longer names are not remembered: clients choose names, and names take memory."""
_ANY_NAME = "hardcode"
"""The name by which Kafka asks whether a principal may do something to all resources of a type."""
_Key = tuple[Requester, AclOperation, Resource]
OnDenied: TypeAlias = Callable[[AclOperation, Resource], None]


@dataclass(frozen=True, slots=True)
class AuthorizerRules:
    """Rules of authorization. `decisions_max` bounds the memory of remembered decisions."""

    super_users: frozenset[str]
    allow_everyone_if_no_acl_found: bool
    decisions_max: int


class Authorizer:
    """Decides by ACLs. `acls` returns the ACLs of the view, `is_stale` whether the view is too old
    to decide."""

    def __init__(
        self, rules: AuthorizerRules, *, acls: Callable[[], Acls], is_stale: Callable[[], bool]
    ) -> None:
        self._rules = rules
        self._acls = acls
        self._is_stale = is_stale
        self._known: Acls | None = None
        self._version = -1
        self._changes = 0
        """Number of changes of the ACLs that this authorizer has noticed. It looks only when
        asked."""
        self._decisions: dict[_Key, bool] = {}
        self._on_any: dict[tuple[Requester, AclOperation, ResourceType], bool] = {}
        self._on_all: dict[tuple[Requester, AclOperation, ResourceType], bool] = {}

    def may(self, requester: Requester, operation: AclOperation, resource: Resource) -> bool:
        if requester.principal in self._rules.super_users:
            return True
        if self._is_stale():
            return False
        acls = self._current()
        key = requester, operation, resource
        found = self._decisions.get(key)
        if found is None:
            found = acls.may(
                requester,
                operation,
                resource,
                without_rules=self._rules.allow_everyone_if_no_acl_found,
            )
            if len(self._decisions) >= self._rules.decisions_max:
                self._decisions.clear()
            if len(resource.name) <= NAME_CHARS_KEPT:
                self._decisions[key] = found
        return found

    def may_on_any(
        self, requester: Requester, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Return whether the requester may do the operation on at least one resource of the type
        (KIP-679)."""
        if self.may(requester, operation, Resource(resource_type, _ANY_NAME)):
            return True
        if self._is_stale():
            return False
        acls = self._current()
        key = requester, operation, resource_type
        found = self._on_any.get(key)
        if found is None:
            if len(self._on_any) >= self._rules.decisions_max:
                self._on_any.clear()
            found = self._on_any[key] = acls.may_on_any(requester, operation, resource_type)
        return found

    def may_on_all(
        self, requester: Requester, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Return whether the requester may do the operation on all resources of the type, also on
        those that do not exist yet."""
        if requester.principal in self._rules.super_users:
            return True
        if self._is_stale():
            return False
        acls = self._current()
        key = requester, operation, resource_type
        found = self._on_all.get(key)
        if found is None:
            if len(self._on_all) >= self._rules.decisions_max:
                self._on_all.clear()
            found = self._on_all[key] = acls.may_on_all(
                *key, without_rules=self._rules.allow_everyone_if_no_acl_found
            )
        return found

    def basis(self, requester: Requester) -> object:
        """Return a value that stays equal as long as all decisions about the requester stay the
        same."""
        if requester.principal in self._rules.super_users:
            return requester
        self._current()
        return requester, self._is_stale(), self._changes

    def _current(self) -> Acls:
        """The ACLs. Forgets all decisions if the ACLs have changed."""
        acls = self._acls()
        if acls is not self._known or acls.version != self._version:
            self._changes += 1
            self._decisions.clear()
            self._on_any.clear()
            self._on_all.clear()
            self._known, self._version = acls, acls.version
        return acls


@dataclass(frozen=True, slots=True)
class Access:
    """The rights of a requester. Without an authorizer, everyone may do everything. `on_denied` is
    called with each right that the requester lacks, except for those that `quiet` asks for."""

    requester: Requester
    authorizer: Authorizer | None
    on_denied: OnDenied | None = None

    @classmethod
    def of(
        cls,
        principal: str,
        host: str,
        authorizer: Authorizer | None,
        on_denied: OnDenied | None = None,
    ) -> "Access":
        if authorizer is None:
            return UNRESTRICTED
        return cls(Requester(principal, _host(host)), authorizer, on_denied)

    def basis(self) -> object:
        """Return a value that stays equal as long as the requester's rights stay the same."""
        return None if self.authorizer is None else self.authorizer.basis(self.requester)

    @property
    def quiet(self) -> "Access":
        """The same access, without reports of denied rights. It is for questions whose answer may
        be no without a refusal: another right may be enough, or a list is just shorter."""
        return self if self.on_denied is None else replace(self, on_denied=None)

    def may(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        if self.authorizer is None:
            return True
        resource = Resource(resource_type, name)
        is_allowed = self.authorizer.may(self.requester, operation, resource)
        if not is_allowed and self.on_denied is not None:
            self.on_denied(operation, resource)
        return is_allowed

    def may_topic(self, operation: AclOperation, name: str) -> bool:
        return self.may(operation, ResourceType.TOPIC, name)

    def may_group(self, operation: AclOperation, group_id: str) -> bool:
        return self.may(operation, ResourceType.GROUP, group_id)

    def may_id(self, operation: AclOperation, transactional_id: str) -> bool:
        return self.may(operation, ResourceType.TRANSACTIONAL_ID, transactional_id)

    def may_on_cluster(self, operation: AclOperation) -> bool:
        return self.may(operation, *CLUSTER)

    def may_on_any_topic(self, operation: AclOperation) -> bool:
        """Does not call `on_denied`."""
        return self.authorizer is None or self.authorizer.may_on_any(
            self.requester, operation, ResourceType.TOPIC
        )

    def may_on_all_topics(self, operation: AclOperation) -> bool:
        """Does not call `on_denied`."""
        return self.authorizer is None or self.authorizer.may_on_all(
            self.requester, operation, ResourceType.TOPIC
        )

    def operations(self, resource_type: ResourceType, name: str) -> int:
        """The operations that are allowed, as a bit field (KIP-430)."""
        quiet = self.quiet
        return sum(
            1 << operation
            for operation in SUPPORTED_OPERATIONS[resource_type]
            if quiet.may(operation, resource_type, name)
        )

    def cluster_operations(self) -> int:
        """Return the operations on the cluster that the requester may do, as bits like
        `operations`. No bit is set for a requester that may not describe the cluster."""
        if not self.quiet.may_on_cluster(AclOperation.DESCRIBE):
            return 0
        return self.operations(*CLUSTER)


UNRESTRICTED = Access(Requester("", ""), None)
"""The access of everyone if there is no authorizer. Every request has it, so it is made once."""
_host = lru_cache(_HOSTS_KEPT)(canonical_host)
