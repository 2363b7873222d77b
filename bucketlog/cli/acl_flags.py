"""The flags that name ACLs, as kafka-acls has them, and the rules and filters that they mean.

`with_rules` gives a command the flags of rules, `with_filters` those of filters.
"""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, Concatenate, Literal, NamedTuple, ParamSpec, TypeVar, cast
from typing import get_args as names_of

import typer

from bucketlog.cli.shared_flags import signature_with
from bucketlog.client.acl_rules import (
    CLUSTER_NAME,
    WILDCARD,
    Acl,
    AclOperationName,
    AclPatternFilter,
    AclPatternName,
    AclPermissionName,
    AclResourceName,
    check_principal,
    checked,
    consumer_acls,
    producer_acls,
)
from bucketlog.log_format.errors import ConfigurationError

P = ParamSpec("P")
R = TypeVar("R")
Names = tuple[str, ...]
Pattern = Literal["literal", "prefixed"]
FilterPattern = Literal["literal", "prefixed", "any", "match"]
Permission = Literal["allow", "deny"]
OPERATIONS: Mapping[str, AclOperationName] = {
    name.replace("_", "").lower(): name for name in names_of(AclOperationName)
}
"""Operations by their letters alone: kafka-acls writes `AlterConfigs`, others `alter-configs`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceFlags:
    """Resources that `--topic` and similar flags name."""

    topic: Names | None = None
    group: Names | None = None
    transactional_id: Names | None = None
    cluster: bool = False
    user_principal: Names | None = None
    delegation_token: Names | None = None
    operation: Names | None = None

    def resources(self) -> list[tuple[AclResourceName, str]]:
        by_type: list[tuple[AclResourceName, Names | None]] = [
            ("TOPIC", self.topic),
            ("GROUP", self.group),
            ("TRANSACTIONAL_ID", self.transactional_id),
            ("CLUSTER", (CLUSTER_NAME,) if self.cluster else None),
            ("USER", self.user_principal),
            ("DELEGATION_TOKEN", self.delegation_token),
        ]
        return [(kind, name) for kind, names in by_type for name in names or ()]

    def operations(self) -> list[AclOperationName]:
        """Raises `ConfigurationError`."""
        return [_operation(text) for text in self.operation or ()]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFlags(ResourceFlags):
    allow_principal: Names | None = None
    deny_principal: Names | None = None
    allow_host: Names | None = None
    deny_host: Names | None = None
    pattern: Pattern = "literal"
    producer: bool = False
    consumer: bool = False
    idempotent: bool = False

    def rules(self) -> list[Acl]:
        """The rules that the flags mean, each once; none without flags. Raises
        `ConfigurationError`."""
        if not self.allow_principal and not self.deny_principal:
            if self != RuleFlags(pattern=self.pattern):
                raise ConfigurationError(
                    "the rules name no principal",
                    remedy="give --allow-principal or --deny-principal",
                )
            return []
        self._check_hosts()
        found = self._of_clients() if self.producer or self.consumer else self._of_resources()
        return [checked(acl) for acl in dict.fromkeys(found)]

    def _check_hosts(self) -> None:
        for side, principals, hosts in (
            ("allow", self.allow_principal, self.allow_host),
            ("deny", self.deny_principal, self.deny_host),
        ):
            if hosts and not principals:
                raise ConfigurationError(
                    f"--{side}-host without --{side}-principal", remedy="add the principal"
                )

    def _of_clients(self) -> Iterator[Acl]:
        """The rules of `--producer` and `--consumer`."""
        if self.deny_principal or self.operation or self.cluster:
            raise ConfigurationError(
                "--producer and --consumer choose the operations that they allow",
                remedy="leave out --deny-principal, --operation and --cluster",
            )
        topics, groups = self.topic or (), self.group or ()
        if not topics:
            raise ConfigurationError("--producer and --consumer need a topic", remedy="add --topic")
        if self.consumer and not groups:
            raise ConfigurationError(
                "--consumer needs a group", remedy="add --group NAME, or --group '*'"
            )
        if groups and not self.consumer:
            raise ConfigurationError(
                "--group with --producer", remedy="add --consumer, or leave out --group"
            )
        pattern = cast(AclPatternName, self.pattern.upper())
        for who, host in self._allowed():
            if self.producer:
                yield from producer_acls(
                    who,
                    topics=topics,
                    transactional_ids=self.transactional_id or (),
                    idempotent=self.idempotent,
                    pattern=pattern,
                    host=host,
                )
            if self.consumer:
                yield from consumer_acls(
                    who, topics=topics, groups=groups, pattern=pattern, host=host
                )

    def _of_resources(self) -> Iterator[Acl]:
        if self.idempotent:
            raise ConfigurationError(
                "--idempotent without --producer",
                remedy="add --producer, or use --operation idempotent-write --cluster",
            )
        resources = self.resources()
        if not resources:
            raise ConfigurationError(
                "the rules name no resource",
                remedy="give --topic, --group, --cluster or another resource",
            )
        denied = product(self.deny_principal or (), self.deny_host or (WILDCARD,))
        sides: list[tuple[AclPermissionName, Iterator[tuple[str, str]]]] = [
            ("ALLOW", self._allowed()),
            ("DENY", iter(denied)),
        ]
        for permission, pairs in sides:
            for (who, host), (kind, name), operation in product(
                pairs, resources, self.operations() or ["ALL"]
            ):
                yield Acl(
                    principal=who,
                    operation=cast(AclOperationName, operation),
                    resource=kind,
                    name=name,
                    pattern="LITERAL"
                    if kind == "CLUSTER"
                    else cast(AclPatternName, self.pattern.upper()),
                    permission=permission,
                    host=host,
                )

    def _allowed(self) -> Iterator[tuple[str, str]]:
        return iter(product(self.allow_principal or (), self.allow_host or (WILDCARD,)))


class AclQuestion(NamedTuple):
    """The arguments of `log.acls.list`."""

    principal: str | None
    host: str | None
    operation: AclOperationName | None
    permission: AclPermissionName | None
    resource: AclResourceName | None
    name: str | None
    pattern: AclPatternFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterFlags(ResourceFlags):
    principal: Names | None = None
    host: Names | None = None
    permission: Permission | None = None
    pattern: FilterPattern = "any"

    @property
    def is_empty(self) -> bool:
        return self == FilterFlags(pattern=self.pattern)

    def questions(self) -> list[AclQuestion]:
        """Make a question for each combination of the flags. Raises `ConfigurationError`."""
        for principal in self.principal or ():
            check_principal(principal)
        permission = None if self.permission is None else self.permission.upper()
        resources: Sequence[tuple[AclResourceName | None, str | None]] = self.resources()
        operations: Sequence[AclOperationName | None] = self.operations()
        return [
            AclQuestion(
                principal,
                host,
                operation,
                cast(AclPermissionName | None, permission),
                kind,
                name,
                cast(AclPatternFilter, self.pattern.upper()),
            )
            for (kind, name), principal, host, operation in product(
                resources or [(None, None)],
                self.principal or [None],
                self.host or [None],
                operations or [None],
            )
        ]


def _operation(text: str) -> AclOperationName:
    found = OPERATIONS.get(text.replace("-", "").replace("_", "").lower())
    if found is None:
        known = ", ".join(name.lower().replace("_", "-") for name in OPERATIONS.values())
        raise ConfigurationError(
            f"the operation {text!r} does not exist", remedy=f"choose one of {known}"
        )
    return found


def _many(name: str, text: str, metavar: str = "NAME") -> Any:
    return Annotated[list[str] | None, typer.Option(name, help=text, metavar=metavar)]


def _switch(name: str, text: str) -> Any:
    return Annotated[bool, typer.Option(name, help=text)]


_RESOURCES: Mapping[str, Any] = {
    "topic": _many("--topic", "A topic; '*': all topics. You can repeat flags that take a name."),
    "group": _many("--group", "A consumer group; '*': all groups."),
    "transactional_id": _many("--transactional-id", "A transactional id; '*': all ids.", "ID"),
    "cluster": _switch("--cluster", "The cluster."),
    "user_principal": _many(
        "--user-principal", "A user whose delegation tokens the rule is about.", "USER"
    ),
    "delegation_token": _many("--delegation-token", "A delegation token.", "TOKEN"),
    "operation": _many(
        "--operation", "Operation, such as read or alter-configs. Default: all.", "OPERATION"
    ),
}
_PRINCIPAL = "TYPE:NAME"
_RULES: Mapping[str, Any] = {
    "allow_principal": _many(
        "--allow-principal", "Principal to allow, such as User:ann.", _PRINCIPAL
    ),
    "deny_principal": _many("--deny-principal", "Principal to deny.", _PRINCIPAL),
    **_RESOURCES,
    "pattern": Annotated[
        Pattern,
        typer.Option(
            "--pattern", case_sensitive=False, help="Whether names are full names or prefixes."
        ),
    ],
    "allow_host": _many("--allow-host", "Address to allow. Default: all.", "ADDRESS"),
    "deny_host": _many("--deny-host", "Address to deny. Default: all.", "ADDRESS"),
    "producer": _switch("--producer", "All rights that a producer to --topic needs."),
    "consumer": _switch("--consumer", "All rights that a consumer of --topic in --group needs."),
    "idempotent": _switch("--idempotent", "With --producer: for brokers before Kafka 3.0."),
}
_FILTERS: Mapping[str, Any] = {
    "principal": _many("--principal", "Rules about this principal, such as User:ann.", _PRINCIPAL),
    **_RESOURCES,
    "pattern": Annotated[
        FilterPattern,
        typer.Option(
            "--pattern",
            case_sensitive=False,
            help="Pattern type of the rules; match: all rules that apply to the given names.",
        ),
    ],
    "host": _many("--host", "Rules about this host.", "ADDRESS"),
    "permission": Annotated[
        Permission | None,
        typer.Option(
            "--permission",
            case_sensitive=False,
            help="Only rules that allow, or only rules that deny.",
        ),
    ],
}


def with_rules(command: Callable[Concatenate[RuleFlags, P], R]) -> Callable[P, R]:
    """Fill the first parameter of a command from the flags of rules."""
    return _filled(command, _RULES, RuleFlags)


def with_filters(command: Callable[Concatenate[FilterFlags, P], R]) -> Callable[P, R]:
    """Fill the first parameter of a command from the flags of filters."""
    return _filled(command, _FILTERS, FilterFlags)


F = TypeVar("F", RuleFlags, FilterFlags)


def _filled(
    command: Callable[Concatenate[F, P], R], flags: Mapping[str, Any], kind: type[F]
) -> Callable[P, R]:
    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        given = {name: kwargs.pop(name) for name in flags if name in kwargs}
        several: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given.items()
        }
        return command(kind(**several), *args, **kwargs)

    first = next(iter(inspect.signature(command).parameters))
    signature_with(run, command, flags, kind(), replaced=first)
    return run
