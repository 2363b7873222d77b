"""Decisions that are remembered, and when they are forgotten."""

from collections.abc import Callable

import pytest

from bucketlog.metadata.acl_bindings import (
    AclBinding,
    AclOperation,
    PatternType,
    Permission,
    ResourceType,
)
from bucketlog.metadata.acls import Acls, Requester, Resource
from bucketlog.metadata.host_addresses import canonical_host
from bucketlog.stateless_broker.authorization.authorizer import (
    CLUSTER,
    NAME_CHARS_KEPT,
    Access,
    Authorizer,
    AuthorizerRules,
)
from bucketlog.stateless_broker.authorization.needs import (
    BY_RESOURCE,
    NOTHING,
    NeedsCluster,
    is_denied,
)
from bucketlog.stateless_broker.fetch.feed import ViewAge

BOB = "User:bob"
HOST = "10.0.0.1"
TOPIC_T = Resource(ResourceType.TOPIC, "t")


def rule(
    operation: AclOperation = AclOperation.READ,
    *,
    permission: Permission = Permission.ALLOW,
    host: str = "*",
    resource: Resource = TOPIC_T,
) -> AclBinding:
    kind, name = resource
    return AclBinding(BOB, host, operation, permission, kind, name, PatternType.LITERAL)


class CountedAcls(Acls):
    """Counts the decisions that are made anew."""

    def __init__(self) -> None:
        super().__init__()
        self.made = 0

    def may(
        self,
        requester: Requester,
        operation: AclOperation,
        resource: Resource,
        *,
        without_rules: bool,
    ) -> bool:
        self.made += 1
        return super().may(requester, operation, resource, without_rules=without_rules)


class Desk:
    """An authorizer whose ACLs and age a test sets."""

    def __init__(self, *, everyone: bool = False, decisions_max: int = 100) -> None:
        self.acls = CountedAcls()
        self.is_stale = False
        rules = AuthorizerRules(frozenset({"User:root"}), everyone, decisions_max)
        self.authorizer = Authorizer(rules, acls=lambda: self.acls, is_stale=lambda: self.is_stale)

    def access(self, principal: str = BOB, host: str = HOST) -> Access:
        return Access.of(principal, host, self.authorizer)

    def may_read(self, name: str = "t", principal: str = BOB) -> bool:
        return self.access(principal).may_topic(AclOperation.READ, name)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_only_refusals_are_reported(desk: Desk) -> None:
    reported: list[tuple[AclOperation, Resource]] = []
    desk.acls.add([rule()])
    access = Access.of(BOB, HOST, desk.authorizer, lambda *denied: reported.append(denied))
    assert access.may_topic(AclOperation.READ, "t")
    assert access.operations(*TOPIC_T)
    assert not access.cluster_operations()
    assert not access.may_on_any_topic(AclOperation.WRITE)
    assert not access.quiet.may_topic(AclOperation.WRITE, "t")
    assert not reported
    assert not access.may_topic(AclOperation.WRITE, "t")
    assert reported.pop() == (AclOperation.WRITE, TOPIC_T)
    either = NeedsCluster((AclOperation.ALTER, AclOperation.CLUSTER_ACTION), str)
    assert is_denied(either, access)
    assert reported == [(AclOperation.CLUSTER_ACTION, CLUSTER)]


def test_a_decision_is_made_once(desk: Desk) -> None:
    desk.acls.add([rule()])
    assert [desk.may_read() for _ in range(5)] == [True] * 5
    assert [desk.may_read("u") for _ in range(5)] == [False] * 5
    assert desk.acls.made == 2


def test_a_change_counts_at_once(desk: Desk) -> None:
    assert not desk.may_read()
    desk.acls.add([rule()])
    assert desk.may_read()
    desk.acls.add([rule(permission=Permission.DENY)])
    assert not desk.may_read()


def test_other_acls_of_the_same_version_count_at_once(desk: Desk) -> None:
    """The view is read from the bucket anew, and has its own count of changes."""
    desk.acls.add([rule()])
    assert desk.may_read()
    version = desk.acls.version
    desk.acls = CountedAcls()
    desk.acls.add([rule(resource=Resource(ResourceType.TOPIC, "u"))])
    assert desk.acls.version == version
    assert not desk.may_read()
    assert desk.may_read("u")


def test_a_right_on_any_topic_follows_changes(desk: Desk) -> None:
    access = desk.access()
    assert not access.may_on_any_topic(AclOperation.READ)
    desk.acls.add([rule()])
    assert access.may_on_any_topic(AclOperation.READ)
    assert not access.may_on_any_topic(AclOperation.WRITE)
    desk.acls.add([rule(permission=Permission.DENY)])
    assert not access.may_on_any_topic(AclOperation.READ)
    desk.is_stale = True
    assert not access.may_on_any_topic(AclOperation.READ)
    assert desk.access("User:root").may_on_any_topic(AclOperation.READ)


def test_a_right_on_all_topics_follows_changes(desk: Desk) -> None:
    access, every = desk.access(), Resource(ResourceType.TOPIC, "*")
    desk.acls.add([rule()])
    assert not access.may_on_all_topics(AclOperation.READ)
    desk.acls.add([rule(resource=every)])
    assert access.may_on_all_topics(AclOperation.READ)
    assert not access.may_on_all_topics(AclOperation.WRITE)
    assert desk.access("User:root").may_on_all_topics(AclOperation.WRITE)
    desk.is_stale = True
    assert not access.may_on_all_topics(AclOperation.READ)
    desk.is_stale = False
    desk.acls.add([rule(permission=Permission.DENY)])
    assert not access.may_on_all_topics(AclOperation.READ)


def test_without_rules_everyone_has_a_right_on_all_topics_if_the_setting_says_so() -> None:
    desk = Desk(everyone=True)
    assert desk.access().may_on_all_topics(AclOperation.READ)
    desk.acls.add([rule()])
    assert not desk.access().may_on_all_topics(AclOperation.READ)


def test_an_old_view_decides_for_nobody_but_super_users(desk: Desk) -> None:
    desk.acls.add([rule()])
    assert desk.may_read()
    desk.is_stale = True
    assert not desk.may_read()
    assert desk.may_read(principal="User:root")
    desk.is_stale = False
    assert desk.may_read()


def test_an_old_view_does_not_allow_everyone() -> None:
    desk = Desk(everyone=True)
    assert desk.may_read()
    desk.is_stale = True
    assert not desk.may_read()


def test_super_users_ask_no_rules(desk: Desk) -> None:
    desk.acls.add([rule(permission=Permission.DENY)])
    assert desk.may_read(principal="User:root")
    assert not desk.may_read(principal="User:roo")
    assert desk.acls.made == 1


def test_everyone_may_use_what_no_rule_names() -> None:
    desk = Desk(everyone=True)
    assert desk.may_read("u", "User:ann")
    desk.acls.add([rule()])
    assert desk.may_read()
    assert not desk.may_read(principal="User:ann")
    assert desk.may_read("u", "User:ann")


def test_remembered_decisions_are_limited() -> None:
    desk = Desk(decisions_max=10)
    for number in range(95):
        assert not desk.may_read(str(number))
    assert len(desk.authorizer._decisions) <= 10
    assert desk.acls.made == 95


def test_decisions_about_long_names_are_not_remembered(desk: Desk) -> None:
    longest, too_long = "n" * NAME_CHARS_KEPT, "n" * (NAME_CHARS_KEPT + 1)
    desk.acls.add([rule(resource=Resource(ResourceType.TOPIC, too_long))])
    for name in (longest, too_long):
        assert [desk.may_read(name) for _ in range(3)] == [name == too_long] * 3
    assert {resource.name for _, _, resource in desk.authorizer._decisions} == {longest}


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("2001:DB8::0:7", "2001:db8::7"),
        ("*", "*"),
        ("broker.example.com", "broker.example.com"),
        ("", ""),
    ],
)
def test_addresses_have_one_notation(text: str, canonical: str) -> None:
    assert canonical_host(text) == canonical


@pytest.mark.parametrize(
    ("written", "host", "may"),
    [
        ("0:0:0:0:0:0:0:1", "::1", True),
        ("::1", "::1", True),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.0/8", "10.0.0.1", False),
    ],
)
def test_hosts(desk: Desk, written: str, host: str, may: bool) -> None:
    desk.acls.add([rule(host=written)])
    assert desk.access(host=host).may_topic(AclOperation.READ, "t") is may


def test_operations_are_a_bit_field(desk: Desk) -> None:
    cluster = Resource(ResourceType.CLUSTER, "kafka-cluster")
    access = desk.access()
    desk.acls.add([rule(AclOperation.ALTER), rule(AclOperation.ALTER, resource=cluster)])
    assert access.operations(ResourceType.TOPIC, "t") == 1 << 7 | 1 << 8
    assert access.cluster_operations() == 1 << 7 | 1 << 8
    desk.acls.add([rule(AclOperation.DESCRIBE, permission=Permission.DENY, resource=cluster)])
    assert access.cluster_operations() == 0


def test_without_an_authorizer_everything_is_allowed() -> None:
    access = Access.of(BOB, HOST, None)
    assert access.may_topic(AclOperation.DELETE, "t")
    assert access.may_on_any_topic(AclOperation.WRITE)
    every = (1 << 3) | (1 << 6) | (1 << 8) | (1 << 10) | (1 << 11)
    assert access.operations(ResourceType.GROUP, "g") == every


def test_one_of_the_operations_on_the_cluster_is_enough(desk: Desk) -> None:
    refuse: Callable[[object], str] = lambda _: "refused"  # noqa: E731  # has a type
    needs = NeedsCluster((AclOperation.ALTER, AclOperation.CLUSTER_ACTION), refuse)
    access = desk.access()
    assert is_denied(needs, access)
    assert not is_denied(BY_RESOURCE, access)
    assert not is_denied(NOTHING, access)
    cluster = Resource(ResourceType.CLUSTER, "kafka-cluster")
    desk.acls.add([rule(AclOperation.CLUSTER_ACTION, resource=cluster)])
    assert not is_denied(needs, access)


def test_the_age_of_a_view_is_counted_from_the_last_answer() -> None:
    now_s = 100.0
    age = ViewAge(lambda: now_s)
    now_s += 10
    assert not age.is_over(10)
    now_s += 1
    assert age.is_over(10)
    age.note_current()
    assert not age.is_over(10)
