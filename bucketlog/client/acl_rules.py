"""ACLs as the SDK and the command line name them. Pure; it loads no client.

Names are those of Apache Kafka's protocol. `producer_acls` and `consumer_acls` are what kafka-acls
adds for `--producer` and `--consumer`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal, cast, get_args

from bucketlog.log_format.errors import ConfigurationError

AclResourceName = Literal[
    "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"
]
AclOperationName = Literal[
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
]
AclPermissionName = Literal["ALLOW", "DENY"]
AclPatternName = Literal["LITERAL", "PREFIXED"]
AclPatternFilter = Literal["LITERAL", "PREFIXED", "ANY", "MATCH"]

ANY, MATCH = 1, 2
"""In filters: any value; any pattern that matches the name."""
RESOURCE_NUMBERS: Mapping[str, int] = {
    name: number for number, name in enumerate(get_args(AclResourceName), 2)
}
OPERATION_NUMBERS: Mapping[str, int] = {
    name: number for number, name in enumerate(get_args(AclOperationName), 2)
}
PERMISSION_NUMBERS: Mapping[str, int] = {"DENY": 2, "ALLOW": 3}
PATTERN_NUMBERS: Mapping[str, int] = {"LITERAL": 3, "PREFIXED": 4}
FILTER_PATTERN_NUMBERS: Mapping[str, int] = {"ANY": ANY, "MATCH": MATCH, **PATTERN_NUMBERS}
WILDCARD = "*"
CLUSTER_NAME = "kafka-cluster"
"""The only name of the resource type CLUSTER."""

OPERATIONS: Mapping[AclResourceName, tuple[AclOperationName, ...]] = {
    "TOPIC": (
        *("ALL", "READ", "WRITE", "CREATE", "DESCRIBE", "DELETE", "ALTER"),
        *("DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
    ),
    "GROUP": ("ALL", "READ", "DESCRIBE", "DELETE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
    "CLUSTER": (
        *("ALL", "CREATE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "IDEMPOTENT_WRITE"),
        *("DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
    ),
    "TRANSACTIONAL_ID": ("ALL", "DESCRIBE", "WRITE", "TWO_PHASE_COMMIT"),
    "DELEGATION_TOKEN": ("ALL", "DESCRIBE"),
    "USER": ("ALL", "CREATE_TOKENS", "DESCRIBE_TOKENS"),
}
"""What each type of resource supports. Source: Kafka's AclEntry.supportedOperations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acl:
    """Access rule: a principal is allowed or denied an operation on a resource.

    Args:
        principal: Type and name of the principal, as in `User:ann`; `User:*` means everyone.
        operation: Kafka's name of the operation, such as "READ", "WRITE" or "ALL".
        resource: Type of the resource: "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID",
            "DELEGATION_TOKEN" or "USER".
        name: Name of the topic, group, transactional id or user; `*` means every name. A cluster
            needs no name.
        pattern: "LITERAL" for this name alone, "PREFIXED" for all names that begin with it.
        permission: "ALLOW" or "DENY". A denial goes before all permissions.
        host: Address of the client; `*` means every address.

    Examples:
        >>> rule = bucketlog.Acl(
        ...     principal="User:ann", operation="READ", resource="TOPIC", name="orders"
        ... )
        >>> print(rule)
        ALLOW User:ann READ on TOPIC orders
    """

    principal: str
    operation: AclOperationName
    resource: AclResourceName
    name: str = ""
    pattern: AclPatternName = "LITERAL"
    permission: AclPermissionName = "ALLOW"
    host: str = WILDCARD

    def __post_init__(self) -> None:
        if self.resource == "CLUSTER" and not self.name:
            object.__setattr__(self, "name", CLUSTER_NAME)

    def __str__(self) -> str:
        """Write the rule as in `ALLOW User:ann READ on TOPIC orders`."""
        verb = f"{self.permission} {self.principal} {self.operation}"
        name = self.name + ("…" if self.pattern == "PREFIXED" else "")
        where = "" if self.host == WILDCARD else f" from {self.host}"
        return f"{verb} on {self.resource} {name}{where}"


def checked(acl: Acl) -> Acl:
    """Raises `ConfigurationError` for a rule that brokers would refuse, or that could never
    match."""
    for what, value, known in (
        ("resource", acl.resource, RESOURCE_NUMBERS),
        ("operation", acl.operation, OPERATION_NUMBERS),
        ("pattern", acl.pattern, PATTERN_NUMBERS),
        ("permission", acl.permission, PERMISSION_NUMBERS),
    ):
        if value not in known:
            raise ConfigurationError(
                f"the {what} {value!r} does not exist", remedy=f"choose one of {', '.join(known)}"
            )
    if acl.operation not in OPERATIONS[acl.resource]:
        raise ConfigurationError(
            f"the operation {acl.operation} does not exist for {acl.resource}",
            remedy=f"choose one of {', '.join(OPERATIONS[acl.resource])}",
        )
    check_principal(acl.principal)
    if not acl.name:
        raise ConfigurationError(
            f"an ACL for {acl.resource} without a name", remedy="give the name, or * for all"
        )
    if acl.resource == "CLUSTER" and (acl.name != CLUSTER_NAME or acl.pattern != "LITERAL"):
        raise ConfigurationError(
            f"the cluster {acl.name!r} ({acl.pattern}) does not exist",
            remedy=f"leave the name out, or give {CLUSTER_NAME}, and the pattern LITERAL",
        )
    _check_host(acl.host)
    return acl


def check_principal(principal: str) -> None:
    """Raises `ConfigurationError`."""
    kind, colon, name = principal.partition(":")
    if not (kind and colon and name):
        raise ConfigurationError(
            f"the principal {principal!r} has no type", remedy=f"write User:{name or kind}"
        )


def _check_host(host: str) -> None:
    try:
        if host != WILDCARD:
            ip_address(host)
    except ValueError:
        raise ConfigurationError(
            f"the host {host!r} is not an address, so the rule would match no client",
            remedy="give an address, or * for all hosts; names and networks do not match",
        ) from None


def producer_acls(
    principal: str,
    *,
    topics: tuple[str, ...] = (),
    transactional_ids: tuple[str, ...] = (),
    idempotent: bool = False,
    pattern: AclPatternName = "LITERAL",
    host: str = WILDCARD,
) -> list[Acl]:
    """The rules of a producer to the topics, with the transactional ids if there are any."""
    wanted: list[tuple[AclResourceName, tuple[str, ...], tuple[AclOperationName, ...]]] = [
        ("TOPIC", topics, ("WRITE", "DESCRIBE", "CREATE")),
        ("TRANSACTIONAL_ID", transactional_ids, ("WRITE", "DESCRIBE")),
    ]
    rules = _rules(wanted, principal, pattern, host)
    if idempotent:
        rules.append(
            Acl(principal=principal, operation="IDEMPOTENT_WRITE", resource="CLUSTER", host=host)
        )
    return rules


def consumer_acls(
    principal: str,
    *,
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    pattern: AclPatternName = "LITERAL",
    host: str = WILDCARD,
) -> list[Acl]:
    """The rules of a consumer of the topics, as a member of the groups."""
    wanted: list[tuple[AclResourceName, tuple[str, ...], tuple[AclOperationName, ...]]] = [
        ("TOPIC", topics, ("READ", "DESCRIBE")),
        ("GROUP", groups, ("READ",)),
    ]
    return _rules(wanted, principal, pattern, host)


def _rules(
    wanted: list[tuple[AclResourceName, tuple[str, ...], tuple[AclOperationName, ...]]],
    principal: str,
    pattern: AclPatternName,
    host: str,
) -> list[Acl]:
    return [
        Acl(
            principal=principal,
            operation=operation,
            resource=resource,
            name=name,
            pattern=pattern,
            host=host,
        )
        for resource, names, operations in wanted
        for name in names
        for operation in operations
    ]


def acl_of(principal: str, host: str, numbers: tuple[int, int, int, int], name: str) -> Acl:
    """`numbers`: operation, permission, resource type and pattern type. A number that this release
    does not know is shown as it is."""
    operation, permission, resource, pattern = numbers
    return Acl(
        principal=principal,
        operation=cast(AclOperationName, _name(OPERATION_NUMBERS, operation)),
        resource=cast(AclResourceName, _name(RESOURCE_NUMBERS, resource)),
        name=name,
        pattern=cast(AclPatternName, _name(PATTERN_NUMBERS, pattern)),
        permission=cast(AclPermissionName, _name(PERMISSION_NUMBERS, permission)),
        host=host,
    )


def _name(numbers: Mapping[str, int], wanted: int) -> str:
    found = (name for name, number in numbers.items() if number == wanted)
    return next(found, f"UNKNOWN({wanted})")
