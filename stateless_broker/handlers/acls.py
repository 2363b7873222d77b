"""DescribeAcls, CreateAcls, DeleteAcls.

Invariant: a change is answered once this broker's view shows it. Source: KIP-140, KIP-290; Kafka's
AclApis and AclControlManager. Numbers that Kafka does not know, or that only filters may have, are
refused with INVALID_REQUEST.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import WallClock
from bucketlog.log_format.wire.messages.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from bucketlog.log_format.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from bucketlog.log_format.wire.messages.describe_acls import (
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from bucketlog.metadata.acl_bindings import (
    ANY,
    CLUSTER_NAME,
    MATCH,
    AclBinding,
    AclFilter,
    AclOperation,
    PatternType,
    Permission,
    ResourceType,
)
from bucketlog.metadata.security_facts import AclsCreated, AclsDeleted
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.needs import CLUSTER_NOT_AUTHORIZED
from bucketlog.stateless_broker.handlers.security_changes import DONE, Refusal, SecurityChanges
from bucketlog.stateless_broker.network.apis import Request
from bucketlog.stateless_broker.network.turns import Slices, Turns

ACLS_A_UNIT = 20
BEHIND = Refusal(
    ErrorCode.request_timed_out,
    "This broker cannot tell whether it knows all ACLs: try again.",
)
DENIED = Refusal(ErrorCode.cluster_authorization_failed, CLUSTER_NOT_AUTHORIZED)
NO_AUTHORIZER = Refusal(
    ErrorCode.security_disabled,
    "No Authorizer is configured.",
)
_MAY_HAVE = {
    "resourceType": frozenset(ResourceType),
    "patternType": frozenset(PatternType),
    "operation": frozenset(AclOperation),
    "permissionType": frozenset(Permission),
}


class AclLimits(NamedTuple):
    acls_max: int
    principal_bytes_max: int
    host_bytes_max: int
    name_bytes_max: int


class AclsHandler:
    """`has_authorizer` is false if ACLs decide nothing: they can be neither seen nor changed then.
    `catch_up` waits until the view shows all that is visible now."""

    def __init__(
        self,
        *,
        view: View,
        changes: SecurityChanges,
        has_authorizer: bool,
        limits: AclLimits,
        catch_up: Callable[[], Awaitable[bool]],
        now_ms: WallClock,
        turns: Turns,
    ) -> None:
        self._view = view
        self._changes = changes
        self._has_authorizer = has_authorizer
        self._limits = limits
        self._catch_up = catch_up
        self._now_ms = now_ms
        self._turns = turns

    # DescribeAcls ----------------------------------------------------------------------------

    async def describe(
        self, request: Request, message: DescribeAclsRequest
    ) -> DescribeAclsResponse:
        if not self._has_authorizer:
            text = "No Authorizer is configured on the broker"
            return _not_described(Refusal(ErrorCode.security_disabled, text))
        wanted = acl_filter(message)
        if _unknown_part(wanted) is not None:
            text = "The filter has an unknown element."
            return _not_described(Refusal(ErrorCode.invalid_request, text))
        if not await self._catch_up():
            return _not_described(BEHIND)
        slices = Slices(self._turns)
        by_pattern: dict[tuple[ResourceType, str, PatternType], list[AclBinding]] = {}
        matching = self._view.acls.matching(wanted)
        await slices.spend(len(self._view.acls) // ACLS_A_UNIT)
        for acl in matching:
            pattern = acl.resource_type, acl.name, acl.pattern_type
            by_pattern.setdefault(pattern, []).append(acl)
        resources: list[DescribeAclsResource] = []
        for (resource_type, name, pattern_type), acls in by_pattern.items():
            resources.append(
                {
                    "resource_type": resource_type,
                    "resource_name": name,
                    "pattern_type": pattern_type,
                    "acls": [
                        {
                            "principal": acl.principal,
                            "host": acl.host,
                            "operation": acl.operation,
                            "permission_type": acl.permission,
                        }
                        for acl in acls
                    ],
                }
            )
            await slices.spend(1 + len(acls) // ACLS_A_UNIT)
        return {"error_code": ErrorCode.none, "error_message": None, "resources": resources}

    # CreateAcls ------------------------------------------------------------------------------

    async def create(self, request: Request, message: CreateAclsRequest) -> CreateAclsResponse:
        """Create all valid ACLs of the request at once, or none."""
        if not self._has_authorizer:
            return refused_creation(message, NO_AUTHORIZER)
        is_current, slices = await self._catch_up(), Slices(self._turns)
        known, wanted = self._view.acls.bindings, dict[AclBinding, None]()
        found: list[AclBinding | Refusal] = []
        for creation in message.creations:
            binding = self._checked(creation)
            found.append(binding)
            if isinstance(binding, AclBinding) and not (is_current and binding in known):
                wanted[binding] = None
            await slices.spend(1)
        outcome = self._too_many(wanted)
        if outcome is None and wanted:
            by = request.principal
            fact = AclsCreated(acls=tuple(wanted), by=by, at_ms=self._now_ms())
            outcome = await self._changes.commit(fact)
        results = [each if isinstance(each, Refusal) else outcome or DONE for each in found]
        return {
            "results": [
                {"error_code": each.error, "error_message": each.message} for each in results
            ]
        }

    def _checked(self, wanted: AclCreation) -> AclBinding | Refusal:
        invalid, limits = ErrorCode.invalid_request, self._limits
        if wanted.resource_type == ResourceType.CLUSTER and wanted.resource_name != CLUSTER_NAME:
            text = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
            return Refusal(invalid, text)
        if not wanted.resource_name:
            return Refusal(invalid, "Invalid empty resource name")
        for what, number in (
            ("resourceType", wanted.resource_type),
            ("patternType", wanted.resource_pattern_type),
            ("operation", wanted.operation),
            ("permissionType", wanted.permission_type),
        ):
            if number not in _MAY_HAVE[what]:
                return Refusal(invalid, f"Invalid {what} {_number_name(what, number)}")
        for what, value, setting, limit in (
            ("principal", wanted.principal, "PRINCIPAL", limits.principal_bytes_max),
            ("host", wanted.host, "HOST", limits.host_bytes_max),
            ("resource name", wanted.resource_name, "NAME", limits.name_bytes_max),
        ):
            if len(value.encode()) > limit:
                text = f"The {what} has more than {limit} bytes (BUCKETLOG_ACL_{setting}_BYTES_MAX)"
                return Refusal(invalid, text)
        if ":" not in wanted.principal:
            text = (
                f"Could not parse principal from `{wanted.principal}` (no colon is present "
                "separating the principal type from the principal name)"
            )
            return Refusal(invalid, text)
        return AclBinding(
            wanted.principal,
            wanted.host,
            AclOperation(wanted.operation),
            Permission(wanted.permission_type),
            ResourceType(wanted.resource_type),
            wanted.resource_name,
            PatternType(wanted.resource_pattern_type),
        )

    def _too_many(self, wanted: dict[AclBinding, None]) -> Refusal | None:
        known = self._view.acls
        limit = self._limits.acls_max
        if len(known) + len(wanted.keys() - known.bindings.keys()) <= limit:
            return None
        text = f"The cluster may have {limit} ACLs (BUCKETLOG_ACLS_MAX)"
        return Refusal(ErrorCode.policy_violation, text)

    # DeleteAcls ------------------------------------------------------------------------------

    async def delete(self, request: Request, message: DeleteAclsRequest) -> DeleteAclsResponse:
        """Delete all ACLs that a filter matches at once, or none."""
        if not self._has_authorizer:
            return refused_deletion(message, NO_AUTHORIZER)
        if not await self._catch_up():
            return refused_deletion(message, BEHIND)
        slices, gone = Slices(self._turns), dict[AclBinding, None]()
        found: list[list[AclBinding] | Refusal] = []
        left = self._limits.acls_max
        for asked in message.filters:
            matching = self._matching(acl_filter(asked), left)
            found.append(matching)
            if not isinstance(matching, Refusal):
                gone.update(dict.fromkeys(matching))
                left -= len(matching)
            await slices.spend(1 + len(self._view.acls) // ACLS_A_UNIT)
        outcome = None
        if gone:
            by = request.principal
            outcome = await self._changes.commit(
                AclsDeleted(acls=tuple(gone), by=by, at_ms=self._now_ms())
            )
        results: list[DeleteAclsFilterResult] = []
        for each in found:
            if isinstance(each, Refusal):
                results.append(_filter_result(each, []))
            elif outcome is not None:
                results.append(_filter_result(outcome, []))
            else:
                results.append(_filter_result(DONE, [_deleted(acl) for acl in each]))
                await slices.spend(1 + len(each) // ACLS_A_UNIT)
        return {"filter_results": results}

    def _matching(self, wanted: AclFilter, left: int) -> list[AclBinding] | Refusal:
        """Return the ACLs that the filter matches, or a refusal. `left` is the number of rows that
        the response may still have."""
        unknown = _unknown_part(wanted)
        if unknown is not None:
            return Refusal(ErrorCode.invalid_request, f"Unknown {unknown}.")
        matching = self._view.acls.matching(wanted)
        if len(matching) <= left:
            return matching
        limit = self._limits.acls_max
        text = f"Cannot remove more than {limit} acls in a single delete operation."
        return Refusal(ErrorCode.policy_violation, text)


def _not_described(refusal: Refusal) -> DescribeAclsResponse:
    return {"error_code": refusal.error, "error_message": refusal.message, "resources": ()}


def refused_creation(message: CreateAclsRequest, refusal: Refusal) -> CreateAclsResponse:
    return {
        "results": [
            {"error_code": refusal.error, "error_message": refusal.message}
            for _ in message.creations
        ]
    }


def refused_deletion(message: DeleteAclsRequest, refusal: Refusal) -> DeleteAclsResponse:
    return {"filter_results": [_filter_result(refusal, []) for _ in message.filters]}


def deny_describe(message: DescribeAclsRequest) -> DescribeAclsResponse:
    return _not_described(DENIED)


def deny_create(message: CreateAclsRequest) -> CreateAclsResponse:
    return refused_creation(message, DENIED)


def deny_delete(message: DeleteAclsRequest) -> DeleteAclsResponse:
    return refused_deletion(message, DENIED)


def _filter_result(
    refusal: Refusal, matching: Sequence[DeleteAclsMatchingAcl]
) -> DeleteAclsFilterResult:
    return {
        "error_code": refusal.error,
        "error_message": refusal.message,
        "matching_acls": matching,
    }


def _deleted(acl: AclBinding) -> DeleteAclsMatchingAcl:
    return {
        "error_code": ErrorCode.none,
        "error_message": None,
        "resource_type": acl.resource_type,
        "resource_name": acl.name,
        "pattern_type": acl.pattern_type,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission,
    }


def acl_filter(asked: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
    )


def _unknown_part(wanted: AclFilter) -> str | None:
    """The part of a filter that has a number which Kafka does not know."""
    has_pattern = wanted.pattern_type in {ANY, MATCH, *PatternType}
    if not has_pattern or wanted.resource_type not in {ANY, *ResourceType}:
        return "patternFilter"
    has_permission = wanted.permission in {ANY, *Permission}
    return None if has_permission and wanted.operation in {ANY, *AclOperation} else "entryFilter"


def _number_name(what: str, number: int) -> str:
    if what == "patternType" and number == MATCH:
        return "MATCH"
    return "ANY" if number == ANY else "UNKNOWN"
