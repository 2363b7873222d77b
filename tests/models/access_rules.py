"""What ACLs allow, said plainly: every rule is looked at for every decision.

Source: the documentation of Kafka's Authorizer, KIP-11, KIP-290 and KIP-679.
"""

from collections.abc import Collection

from bucketlog.metadata.acl_bindings import (
    AclBinding,
    AclFilter,
    AclOperation,
    PatternType,
    Permission,
    ResourceType,
)
from bucketlog.metadata.acls import Requester, Resource

WHAT_ALLOWS = {
    AclOperation.DESCRIBE: {"DESCRIBE", "READ", "WRITE", "DELETE", "ALTER"},
    AclOperation.DESCRIBE_CONFIGS: {"DESCRIBE_CONFIGS", "ALTER_CONFIGS"},
}


def _names(rule: AclBinding, resource: Resource) -> bool:
    if rule.resource_type != resource.type:
        return False
    if rule.pattern_type == PatternType.PREFIXED:
        return resource.name[: len(rule.name)] == rule.name
    return rule.name == "*" or rule.name == resource.name


def _about(rule: AclBinding, requester: Requester) -> bool:
    same_host = rule.host == "*" or rule.host == requester.host
    return same_host and (rule.principal == "User:*" or rule.principal == requester.principal)


def may(
    rules: Collection[AclBinding],
    requester: Requester,
    operation: AclOperation,
    resource: Resource,
    *,
    without_rules: bool,
) -> bool:
    naming = [rule for rule in rules if _names(rule, resource)]
    if not naming:
        return without_rules
    mine = [rule for rule in naming if _about(rule, requester)]
    exactly = {"ALL", operation.name}
    if any(rule.permission == Permission.DENY and rule.operation.name in exactly for rule in mine):
        return False
    allowing = exactly | WHAT_ALLOWS.get(operation, set())
    return any(
        rule.permission == Permission.ALLOW and rule.operation.name in allowing for rule in mine
    )


def may_on_any(
    rules: Collection[AclBinding],
    requester: Requester,
    operation: AclOperation,
    resource_type: ResourceType,
) -> bool:
    mine = [
        rule
        for rule in rules
        if rule.resource_type == resource_type
        and _about(rule, requester)
        and rule.operation.name in {"ALL", operation.name}
    ]
    literal = {rule.name for rule in mine if _is(rule, Permission.DENY, PatternType.LITERAL)}
    prefixes = {rule.name for rule in mine if _is(rule, Permission.DENY, PatternType.PREFIXED)}
    if "*" in literal:
        return False
    for rule in mine:
        if rule.permission == Permission.DENY:
            continue
        if rule.pattern_type == PatternType.LITERAL and rule.name == "*":
            return True
        if rule.pattern_type == PatternType.LITERAL and rule.name in literal:
            continue
        if not any(rule.name.startswith(prefix) for prefix in prefixes):
            return True
    return False


def _is(rule: AclBinding, permission: Permission, pattern_type: PatternType) -> bool:
    return rule.permission == permission and rule.pattern_type == pattern_type


def filter_matches(wanted: AclFilter, rule: AclBinding) -> bool:
    for asked, found in (
        (wanted.resource_type, rule.resource_type),
        (wanted.operation, rule.operation),
        (wanted.permission, rule.permission),
    ):
        if asked not in (1, found):
            return False
    for text, found_text in ((wanted.principal, rule.principal), (wanted.host, rule.host)):
        if text is not None and text != found_text:
            return False
    if wanted.pattern_type == 2:
        return wanted.name is None or _names(rule, Resource(rule.resource_type, wanted.name))
    if wanted.pattern_type not in (1, rule.pattern_type):
        return False
    return wanted.name is None or wanted.name == rule.name
