"""ACLs in the fold, and the decisions that they make. Pure.

Invariants: a rule that denies wins over all rules that allow. Two administrators may create or
delete the same rule at the same time: the second change has no effect. Source: Kafka's
StandardAuthorizerData, and `Authorizer.authorizeByResourceType`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from bucketlog.metadata.acl_bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclFilter,
    AclOperation,
    PatternType,
    Permission,
    ResourceType,
)
from bucketlog.metadata.host_addresses import canonical_host
from bucketlog.metadata.security_facts import AclFact, AclsCreated

IMPLYING: Mapping[AclOperation, frozenset[AclOperation]] = {
    AclOperation.DESCRIBE: frozenset(
        {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
}
"""Operations that imply another one, in rules that allow."""


class Requester(NamedTuple):
    """Client that asks for a decision: a principal as `User:name`, and the canonical address of its
    host."""

    principal: str
    host: str


class Resource(NamedTuple):
    type: ResourceType
    name: str


class Acls:
    """All rules of the log. `version` grows with each change."""

    def __init__(self) -> None:
        self.bindings: dict[AclBinding, None] = {}
        """The rules, in the order of their creation."""
        self.version = 0
        self._literal: dict[Resource, set[AclBinding]] = {}
        self._prefixed: dict[Resource, set[AclBinding]] = {}
        self._prefix_lengths: dict[ResourceType, Counter[int]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Acls) and self.bindings.keys() == other.bindings.keys()

    __hash__ = None  # type: ignore[assignment]  # values change

    def __len__(self) -> int:
        return len(self.bindings)

    def apply(self, fact: AclFact) -> None:
        change = self._add if isinstance(fact, AclsCreated) else self._remove
        for binding in fact.acls:
            change(binding)
        self.version += 1

    def add(self, bindings: Iterable[AclBinding]) -> None:
        for binding in bindings:
            self._add(binding)
        self.version += 1

    def matching(self, wanted: AclFilter) -> list[AclBinding]:
        return [binding for binding in self.bindings if wanted.matches(binding)]

    def may(
        self,
        requester: Requester,
        operation: AclOperation,
        resource: Resource,
        *,
        without_rules: bool,
    ) -> bool:
        """Return whether the rules allow the operation. `without_rules` is the answer if no rule
        names the resource, whoever the rules are about."""
        allowed = is_named = False
        for binding in self._naming(resource):
            is_named = True
            if not _is_about(binding, requester) or not _covers(binding, operation):
                continue
            if binding.permission is Permission.DENY:
                return False
            allowed = True
        return allowed if is_named else without_rules

    def may_on_any(
        self, requester: Requester, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Return whether the rules allow the operation on at least one resource of the type: a rule
        allows it, and no other rule takes that back in whole (KIP-679)."""
        allowed: list[AclBinding] = []
        denied: set[tuple[PatternType, str]] = set()
        for binding in self.bindings:
            if (
                binding.resource_type is not resource_type
                or binding.operation not in (operation, AclOperation.ALL)
                or not _is_about(binding, requester)
            ):
                continue
            if binding.permission is Permission.ALLOW:
                allowed.append(binding)
            else:
                denied.add((binding.pattern_type, binding.name))
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        return any(not _is_taken_back(binding, denied) for binding in allowed)

    def may_on_all(
        self,
        requester: Requester,
        operation: AclOperation,
        resource_type: ResourceType,
        *,
        without_rules: bool,
    ) -> bool:
        """Return whether the rules allow the operation on all resources of the type, also on those
        that no rule names: a rule allows it for every name, and no rule denies it for any name.
        `without_rules` is the answer if no rule is about the type."""
        allowed = is_named = False
        for binding in self.bindings:
            if binding.resource_type is not resource_type:
                continue
            is_named = True
            if not _is_about(binding, requester) or not _covers(binding, operation):
                continue
            if binding.permission is Permission.DENY:
                return False
            if binding.pattern_type is PatternType.LITERAL and binding.name == WILDCARD:
                allowed = True
        return allowed if is_named else without_rules

    def _naming(self, resource: Resource) -> Iterator[AclBinding]:
        """The rules that name the resource."""
        kind, name = resource
        yield from self._literal.get(resource, ())
        if name != WILDCARD:
            yield from self._literal.get(Resource(kind, WILDCARD), ())
        for length in self._prefix_lengths.get(kind, ()):
            if length <= len(name):
                yield from self._prefixed.get(Resource(kind, name[:length]), ())

    def _add(self, binding: AclBinding) -> None:
        if binding in self.bindings:
            return
        self.bindings[binding] = None
        resource = Resource(binding.resource_type, binding.name)
        if binding.pattern_type is PatternType.LITERAL:
            self._literal.setdefault(resource, set()).add(binding)
            return
        self._prefixed.setdefault(resource, set()).add(binding)
        self._prefix_lengths.setdefault(resource.type, Counter())[len(binding.name)] += 1

    def _remove(self, binding: AclBinding) -> None:
        if binding not in self.bindings:
            return
        del self.bindings[binding]
        resource = Resource(binding.resource_type, binding.name)
        is_literal = binding.pattern_type is PatternType.LITERAL
        by_resource = self._literal if is_literal else self._prefixed
        by_resource[resource].remove(binding)
        if not by_resource[resource]:
            del by_resource[resource]
        if not is_literal:
            lengths = self._prefix_lengths[resource.type]
            lengths[len(binding.name)] -= 1
            lengths += Counter()  # drops lengths without rules


def _is_about(binding: AclBinding, requester: Requester) -> bool:
    if binding.principal not in (requester.principal, WILDCARD_PRINCIPAL):
        return False
    return binding.host in (requester.host, WILDCARD) or (
        canonical_host(binding.host) == requester.host
    )


def _covers(binding: AclBinding, operation: AclOperation) -> bool:
    """Implied operations are allowed, never denied."""
    if binding.operation in (operation, AclOperation.ALL):
        return True
    return binding.permission is Permission.ALLOW and binding.operation in IMPLYING.get(
        operation, ()
    )


def _is_taken_back(binding: AclBinding, denied: set[tuple[PatternType, str]]) -> bool:
    """Return whether a rule of `denied` covers everything that the binding allows. A wildcard is
    only taken back by a wildcard."""
    name = binding.name
    if binding.pattern_type is PatternType.LITERAL:
        if name == WILDCARD:
            return False
        if (PatternType.LITERAL, name) in denied:
            return True
    return any((PatternType.PREFIXED, name[:end]) in denied for end in range(1, len(name) + 1))
