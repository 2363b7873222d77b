"""Administration of ACLs: list, create, delete, and wait until all brokers enforce them.

Invariant: `wait` asks every live broker, and a broker answers only when its view shows all that was
visible before. librdkafka does not have all operations and resource types, so these requests go
over connections of this client. Source: KIP-140, KIP-290; Kafka's messages DescribeAcls 3,
CreateAcls 3, DeleteAcls 3.
"""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

from confluent_kafka import KafkaError

from bucketlog.client.acl_rules import (
    ANY,
    FILTER_PATTERN_NUMBERS,
    OPERATION_NUMBERS,
    PATTERN_NUMBERS,
    PERMISSION_NUMBERS,
    RESOURCE_NUMBERS,
    Acl,
    AclOperationName,
    AclPatternFilter,
    AclPermissionName,
    AclResourceName,
    acl_of,
    checked,
)
from bucketlog.client.admin import Admin
from bucketlog.client.broker_connection import Address
from bucketlog.client.broker_requests import BrokerRequests
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.security import Security
from bucketlog.log_format.errors import ConfigurationError, LogError
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import FrameReader, FrameWriter

VERSION = 3
WAIT_S = 30.0
PAUSE_S = 0.1
"""Between two questions whether all brokers know the rules."""
TIMED_OUT = 7
WAITING = "waiting for ACLs"
_REMEDIES = {
    "CLUSTER_AUTHORIZATION_FAILED": "use a super user, or a principal with ALTER on the cluster",
    "INVALID_REQUEST": "correct the rule",
    "POLICY_VIOLATION": "delete rules that nobody needs, or raise BUCKETLOG_ACLS_MAX",
    "SECURITY_DISABLED": "set BUCKETLOG_AUTHORIZATION=true at all brokers, as docs/acls.md says",
}


class _Filter(NamedTuple):
    """None and `ANY` match everything."""

    resource: int = ANY
    name: str | None = None
    pattern: int = ANY
    principal: str | None = None
    host: str | None = None
    operation: int = ANY
    permission: int = ANY

    def write(self, body: FrameWriter) -> None:
        body.data.append(self.resource)
        body.nullable_string(self.name)
        body.data.append(self.pattern)
        body.nullable_string(self.principal)
        body.nullable_string(self.host)
        body.data.append(self.operation)
        body.data.append(self.permission)


class AclAdmin:
    """Administration of access rules (KIP-140, KIP-290). Used for `log.acls`.

    Examples:
        >>> rule = bucketlog.Acl(
        ...     principal="User:ann", operation="READ", resource="TOPIC", name="orders"
        ... )
        >>> try:
        ...     log.acls.create([rule])
        ... except bucketlog.LogError as error:  # this cluster has no access rules
        ...     print(error.code)
        SECURITY_DISABLED
    """

    def __init__(
        self, admin: Admin, config: Mapping[str, Any], security: Security | None = None
    ) -> None:
        self._requests = BrokerRequests(
            admin, config, security, if_closed="use brokers that serve ACLs, or try again"
        )

    def list(
        self,
        *,
        principal: str | None = None,
        host: str | None = None,
        operation: AclOperationName | None = None,
        permission: AclPermissionName | None = None,
        resource: AclResourceName | None = None,
        name: str | None = None,
        pattern: AclPatternFilter = "ANY",
    ) -> list[Acl]:
        """List the rules that match all given arguments, in their order.

        Args:
            principal: Principal, as in `User:ann`; None means all principals.
            host: Address; None means all hosts.
            operation: Kafka's name of the operation; None means all operations.
            permission: "ALLOW" or "DENY"; None means both.
            resource: Type of the resource; None means all types.
            name: Name of the resource; None means all names.
            pattern: "LITERAL", "PREFIXED", or "ANY" for both. "MATCH" means all rules that apply to
                `name`: those of this name, of its prefixes, and of `*`.

        Returns:
            The matching rules.

        Raises:
            ConfigurationError: If an argument is not valid.
            LogError: If no broker answers, or if it refuses.
        """
        if name is not None and resource is None:
            raise ConfigurationError(f"the name {name!r} of which resource?", remedy="give it, too")
        wanted = _Filter(
            _number(RESOURCE_NUMBERS, resource, "resource"),
            name,
            _number(FILTER_PATTERN_NUMBERS, pattern, "pattern"),
            principal,
            host,
            _number(OPERATION_NUMBERS, operation, "operation"),
            _number(PERMISSION_NUMBERS, permission, "permission"),
        )
        doing = "listing ACLs"
        body = FrameWriter(flexible=True)
        wanted.write(body)
        answer = self._requests.ask_any(ApiKey.DESCRIBE_ACLS, VERSION, body, doing)
        return sorted(_read_all(answer, doing), key=_order)

    def create(self, acls: Iterable[Acl]) -> None:
        """Create rules, all at once. Existing rules are not changed.

        Args:
            acls: Rules to create.

        Raises:
            ConfigurationError: If a rule is not valid.
            LogError: If the broker refuses a rule. Its message names the rule.
        """
        rules = [checked(acl) for acl in acls]
        if not rules:
            return
        doing = "creating ACLs"
        body = FrameWriter(flexible=True)
        body.array_length(len(rules))
        for each in map(_exactly, rules):
            each.write(body)
            body.tags()
        answer = self._requests.ask_any(ApiKey.CREATE_ACLS, VERSION, body, doing)
        answer.int32()
        for acl in rules[: answer.array_length(3)]:
            _check(answer, f"{doing}: {acl}")
            answer.tags()

    def delete(self, acls: Iterable[Acl]) -> Sequence[Acl]:
        """Delete rules, all at once.

        Args:
            acls: Rules to delete.

        Returns:
            The rules that existed. If a first broker did not answer, rules that it deleted are
            missing.

        Raises:
            ConfigurationError: If a rule is not valid.
            LogError: If the broker refuses.
        """
        rules = [checked(acl) for acl in acls]
        if not rules:
            return ()
        doing = "deleting ACLs"
        body = FrameWriter(flexible=True)
        body.array_length(len(rules))
        for each in map(_exactly, rules):
            each.write(body)
            body.tags()
        answer = self._requests.ask_any(ApiKey.DELETE_ACLS, VERSION, body, doing)
        answer.int32()
        found: dict[Acl, None] = {}
        for acl in rules[: answer.array_length(4)]:
            _check(answer, f"{doing}: {acl}")
            for _ in range(answer.array_length(10)):
                _check(answer, f"{doing}: {acl}")
                resource, name, pattern = answer.int8(), answer.string(), answer.int8()
                found[_read_entry(answer, resource, name, pattern)] = None
            answer.tags()
        return tuple(found)

    def wait(
        self,
        *,
        created: Iterable[Acl] = (),
        deleted: Iterable[Acl] = (),
        timeout_s: float = WAIT_S,
    ) -> int:
        """Wait until all live brokers enforce changed rules.

        Without rules, wait until all brokers have the same rules. A broker that has not heard of
        the sequencer for BUCKETLOG_AUTHORIZATION_STALENESS_MS_MAX refuses everyone but super users.

        Args:
            created: Rules that all brokers must have.
            deleted: Rules that no broker may have.
            timeout_s: Longest wait, in seconds. Default: 30.

        Returns:
            The number of brokers.

        Raises:
            ConfigurationError: If a rule is in both lists.
            LogError: With the code REQUEST_TIMED_OUT, and the name of a broker that lacks a change.
        """
        wanted = _Wanted({checked(acl) for acl in created}, {checked(acl) for acl in deleted})
        if both := wanted.present & wanted.absent:
            raise ConfigurationError(
                f"{min(both, key=_order)} is in both lists", remedy="leave it out of one"
            )
        deadline, done = time.monotonic() + timeout_s, set[int]()
        while True:
            try:
                brokers = self._requests.brokers(WAITING)
                behind = self._behind(brokers, wanted, done)
            except LogError as error:
                if not error.retriable:
                    raise
                behind = error.message.removeprefix(f"{WAITING}: ")
            if behind is None:
                return len(brokers)
            if time.monotonic() >= deadline:
                raise LogError(
                    f"{WAITING}: after {timeout_s:g} s, {behind}",
                    code="REQUEST_TIMED_OUT",
                    kafka_code=TIMED_OUT,
                    retriable=True,
                    remedy="look at /readyz of that broker, and try again",
                )
            time.sleep(PAUSE_S)

    def _behind(
        self, brokers: Mapping[int, Address], wanted: "_Wanted", done: set[int]
    ) -> str | None:
        """What the first broker lacks that is not in `done`. Adds the others to `done`."""
        if not brokers:
            return "no broker is live"
        expected: Set[Acl] | None = None
        for node_id, address in sorted(brokers.items()):
            if node_id in done:
                continue
            who = f"broker {node_id} at {address[0]}:{address[1]}"
            shown: Set[Acl] = frozenset(self._shown(address, f"{WAITING}: {who}"))
            if wanted.is_empty:
                expected = shown if expected is None else expected
                missing, extra = expected - shown, shown - expected
            else:
                missing, extra = wanted.present - shown, wanted.absent & shown
                if not missing and not extra:
                    done.add(node_id)
            if missing:
                return f"{who} does not have {min(missing, key=_order)}"
            if extra:
                return f"{who} has {min(extra, key=_order)}"
        return None

    def _shown(self, address: Address, doing: str) -> Collection[Acl]:
        """All rules, as one broker has them."""
        body = FrameWriter(flexible=True)
        _Filter().write(body)
        answer = self._requests.ask(address, ApiKey.DESCRIBE_ACLS, VERSION, body, doing)
        return _read_all(answer, doing)


class _Wanted(NamedTuple):
    present: Set[Acl]
    absent: Set[Acl]

    @property
    def is_empty(self) -> bool:
        return not self.present and not self.absent


def _exactly(acl: Acl) -> _Filter:
    """In a CreateAcls, the rule itself: the fields are the same."""
    return _Filter(
        RESOURCE_NUMBERS[acl.resource],
        acl.name,
        PATTERN_NUMBERS[acl.pattern],
        acl.principal,
        acl.host,
        OPERATION_NUMBERS[acl.operation],
        PERMISSION_NUMBERS[acl.permission],
    )


def _number(numbers: Mapping[str, int], name: str | None, what: str) -> int:
    """Raises `ConfigurationError`."""
    if name is None:
        return ANY
    if name not in numbers:
        raise ConfigurationError(
            f"the {what} {name!r} does not exist", remedy=f"choose one of {', '.join(numbers)}"
        )
    return numbers[name]


def _order(acl: Acl) -> tuple[str, ...]:
    where = (acl.resource, acl.name, acl.pattern)
    return (*where, acl.principal, acl.permission, acl.operation, acl.host)


def _read_all(answer: FrameReader, doing: str) -> Collection[Acl]:
    """The rules of a DescribeAcls."""
    answer.int32()
    _check(answer, doing)
    found: list[Acl] = []
    for _ in range(answer.array_length(5)):
        resource, name, pattern = answer.int8(), answer.string(), answer.int8()
        found += [
            _read_entry(answer, resource, name, pattern) for _ in range(answer.array_length(5))
        ]
        answer.tags()
    return found


def _read_entry(answer: FrameReader, resource: int, name: str, pattern: int) -> Acl:
    principal, host = answer.string(), answer.string()
    operation, permission = answer.int8(), answer.int8()
    answer.tags()
    return acl_of(principal, host, (operation, permission, resource, pattern), name)


def _check(answer: FrameReader, doing: str) -> None:
    """Reads an error and its message."""
    code, message = answer.int16(), answer.nullable_string()
    if not code:
        return
    error = log_error(KafkaError(code, message or None), doing)
    error.remedy = _REMEDIES.get(error.code, error.remedy)
    raise error
