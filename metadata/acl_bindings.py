"""ACLs as values: what a rule names, and filters over rules. Pure.

The numbers are those of Kafka's protocol. Source: KIP-11, KIP-140, KIP-290; Kafka's AclBinding,
AclBindingFilter and ResourcePatternFilter.
"""

from enum import IntEnum
from typing import NamedTuple

WILDCARD = "*"
WILDCARD_PRINCIPAL = "User:*"
CLUSTER_NAME = "kafka-cluster"
"""The one name of the resource type CLUSTER."""


class ResourceType(IntEnum):
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """`LITERAL` with the name `*` matches every name."""

    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    DENY = 2
    ALLOW = 3


ANY = 1
"""The number for any resource type, pattern type, operation or permission, in a filter."""
MATCH = 2
"""The pattern type of a filter for all patterns that match its name."""


class AclBinding(NamedTuple):
    """A rule: the principal, from the host, is allowed or denied the operation on resources."""

    principal: str
    host: str
    operation: AclOperation
    permission: Permission
    resource_type: ResourceType
    name: str
    pattern_type: PatternType


class AclFilter(NamedTuple):
    """Matches rules. None and `ANY` match everything; an unknown number matches nothing."""

    principal: str | None
    host: str | None
    operation: int
    permission: int
    resource_type: int
    name: str | None
    pattern_type: int

    def matches(self, acl: AclBinding) -> bool:
        return (
            self.resource_type in (ANY, acl.resource_type)
            and self.pattern_type in (ANY, MATCH, acl.pattern_type)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (ANY, acl.operation)
            and self.permission in (ANY, acl.permission)
        )

    def _matches_name(self, acl: AclBinding) -> bool:
        if self.name is None:
            return True
        if self.pattern_type != MATCH:
            return self.name == acl.name
        if acl.pattern_type is PatternType.PREFIXED:
            return self.name.startswith(acl.name)
        return acl.name in (self.name, WILDCARD)
