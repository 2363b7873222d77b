"""What the flags of `bucketlog acl` mean."""

import pytest

from bucketlog.cli.acl_flags import FilterFlags, RuleFlags
from bucketlog.client import acl_rules
from bucketlog.client.acl_rules import OPERATIONS, Acl
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.metadata import acl_bindings
from bucketlog.metadata.acl_bindings import AclOperation, PatternType, Permission, ResourceType
from bucketlog.stateless_broker.authorization.authorizer import SUPPORTED_OPERATIONS

ANN = ("User:ann",)


def shown(**flags: object) -> list[str]:
    return [str(acl) for acl in RuleFlags(**flags).rules()]  # type: ignore[arg-type]  # by name


def test_rules_are_a_product() -> None:
    assert shown(
        allow_principal=("User:ann", "User:bob"),
        deny_principal=("User:eve",),
        allow_host=("10.0.0.1", "::1"),
        topic=("t",),
        group=("g",),
        operation=("Read", "describe_configs"),
    ) == [
        f"ALLOW {who} {operation} on {what} from {host}"
        for who in ("User:ann", "User:bob")
        for host in ("10.0.0.1", "::1")
        for what in ("TOPIC t", "GROUP g")
        for operation in ("READ", "DESCRIBE_CONFIGS")
    ] + [
        f"DENY User:eve {operation} on {what}"
        for what in ("TOPIC t", "GROUP g")
        for operation in ("READ", "DESCRIBE_CONFIGS")
    ]


def test_defaults() -> None:
    assert shown() == []
    assert shown(allow_principal=ANN, topic=("*",)) == ["ALLOW User:ann ALL on TOPIC *"]
    assert shown(allow_principal=ANN, topic=("a-", "a-"), pattern="prefixed") == [
        "ALLOW User:ann ALL on TOPIC a-…"
    ]
    both = RuleFlags(allow_principal=ANN, topic=("t",), cluster=True, pattern="prefixed").rules()
    assert [(acl.name, acl.pattern) for acl in both] == [
        ("t", "PREFIXED"),
        ("kafka-cluster", "LITERAL"),
    ]


@pytest.mark.parametrize("text", ["TwoPhaseCommit", "two-phase-commit", "TWO_PHASE_COMMIT"])
def test_ways_to_write_an_operation(text: str) -> None:
    wanted = ["ALLOW User:ann TWO_PHASE_COMMIT on TRANSACTIONAL_ID id"]
    assert shown(allow_principal=ANN, transactional_id=("id",), operation=(text,)) == wanted


def test_producers_and_consumers() -> None:
    assert shown(
        allow_principal=ANN,
        producer=True,
        idempotent=True,
        topic=("t",),
        transactional_id=("id",),
    ) == [
        "ALLOW User:ann WRITE on TOPIC t",
        "ALLOW User:ann DESCRIBE on TOPIC t",
        "ALLOW User:ann CREATE on TOPIC t",
        "ALLOW User:ann WRITE on TRANSACTIONAL_ID id",
        "ALLOW User:ann DESCRIBE on TRANSACTIONAL_ID id",
        "ALLOW User:ann IDEMPOTENT_WRITE on CLUSTER kafka-cluster",
    ]
    assert shown(
        allow_principal=ANN, consumer=True, topic=("t-",), group=("g",), pattern="prefixed"
    ) == [
        "ALLOW User:ann READ on TOPIC t-…",
        "ALLOW User:ann DESCRIBE on TOPIC t-…",
        "ALLOW User:ann READ on GROUP g…",
    ]
    both = shown(allow_principal=ANN, producer=True, consumer=True, topic=("t",), group=("g",))
    assert len(both) == len(set(both)) == 5


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"topic": ("t",)}, "give --allow-principal or --deny-principal"),
        ({"allow_principal": ANN}, "the rules name no resource"),
        ({"allow_principal": ("ann",), "topic": ("t",)}, "write User:ann"),
        ({"allow_principal": ("User:",), "topic": ("t",)}, "has no type"),
        ({"allow_principal": ANN, "topic": ("",)}, "without a name"),
        ({"allow_principal": ANN, "topic": ("t",), "operation": ("reed",)}, "'reed'"),
        ({"allow_principal": ANN, "group": ("g",), "operation": ("write",)}, "READ, DESCRIBE"),
        ({"allow_principal": ANN, "topic": ("t",), "allow_host": ("app",)}, "not an address"),
        ({"allow_principal": ANN, "topic": ("t",), "deny_host": ("::1",)}, "--deny-principal"),
        ({"allow_principal": ANN, "topic": ("t",), "idempotent": True}, "add --producer"),
        ({"allow_principal": ANN, "producer": True}, "add --topic"),
        ({"allow_principal": ANN, "consumer": True, "topic": ("t",)}, "add --group"),
        ({"deny_principal": ANN, "producer": True, "topic": ("t",)}, "--deny-principal"),
        (
            {"allow_principal": ANN, "producer": True, "topic": ("t",), "group": ("g",)},
            "add --consumer",
        ),
        (
            {"allow_principal": ANN, "producer": True, "topic": ("t",), "operation": ("read",)},
            "leave out",
        ),
    ],
)
def test_what_is_wrong(flags: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        shown(**flags)
    assert said in str(caught.value)


def test_filters() -> None:
    assert FilterFlags().is_empty
    assert FilterFlags(pattern="match").is_empty
    assert not FilterFlags(cluster=True).is_empty
    (whole,) = FilterFlags().questions()
    assert whole == (None, None, None, None, None, None, "ANY")
    found = FilterFlags(
        principal=("User:ann", "User:bob"),
        topic=("t",),
        group=("g",),
        operation=("read",),
        permission="deny",
        pattern="match",
    ).questions()
    assert [(each.resource, each.name, each.principal) for each in found] == [
        ("TOPIC", "t", "User:ann"),
        ("TOPIC", "t", "User:bob"),
        ("GROUP", "g", "User:ann"),
        ("GROUP", "g", "User:bob"),
    ]
    assert {each[1:4] + each[6:] for each in found} == {(None, "READ", "DENY", "MATCH")}
    with pytest.raises(ConfigurationError, match="write User:ann"):
        FilterFlags(principal=("ann",)).questions()


def test_the_table_of_operations_is_that_of_the_broker() -> None:
    for resource, operations in SUPPORTED_OPERATIONS.items():
        found = OPERATIONS[resource.name]  # type: ignore[index]  # a name
        assert {AclOperation[name] for name in found} == {AclOperation.ALL, *operations}
    assert list(OPERATIONS) == [each.name for each in ResourceType]


def test_numbers_and_names_are_those_of_the_broker() -> None:
    for numbers, kind in (
        (acl_rules.RESOURCE_NUMBERS, ResourceType),
        (acl_rules.OPERATION_NUMBERS, AclOperation),
        (acl_rules.PERMISSION_NUMBERS, Permission),
        (acl_rules.PATTERN_NUMBERS, PatternType),
    ):
        assert numbers == {each.name: int(each) for each in kind}
    for name in ("ANY", "MATCH", "WILDCARD", "CLUSTER_NAME"):
        assert getattr(acl_rules, name) == getattr(acl_bindings, name)
    (wrong,) = [acl_rules.acl_of("User:x", "*", (99, 3, 2, 3), "t")]
    assert str(wrong) == "ALLOW User:x UNKNOWN(99) on TOPIC t"
    with pytest.raises(ConfigurationError, match=r"UNKNOWN\(99\)"):
        acl_rules.checked(wrong)


def test_a_cluster_has_one_name() -> None:
    acl = Acl(principal="User:ann", operation="CREATE", resource="CLUSTER")
    assert acl.name == "kafka-cluster"
