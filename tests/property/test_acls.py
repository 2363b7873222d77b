"""ACLs through facts, folds and checkpoints; their decisions beside those of a reference."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.log_format.checkpoint import SECURITY_VERSION
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.metadata.acl_bindings import (
    ANY,
    MATCH,
    AclBinding,
    AclFilter,
    AclOperation,
    PatternType,
    Permission,
    ResourceType,
)
from bucketlog.metadata.acls import Acls, Requester, Resource
from bucketlog.metadata.checkpoint_state import decode_state, encode_state, state_version
from bucketlog.metadata.facts import decode_fact, encode_fact
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.security_facts import AclFact, AclsCreated, AclsDeleted
from tests.models.access_rules import filter_matches, may, may_on_any

PRINCIPALS = ["User:a", "User:b", "User:*"]
HOSTS = ["10.0.0.1", "*"]
NAMES = ["t", "to", "top", "tot", "x", "*"]
OPERATIONS = [
    AclOperation.ALL,
    AclOperation.READ,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.ALTER_CONFIGS,
    AclOperation.DESCRIBE_CONFIGS,
]
TYPES = [ResourceType.TOPIC, ResourceType.GROUP]
bindings = st.builds(
    AclBinding,
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from(OPERATIONS),
    st.sampled_from(Permission),
    st.sampled_from(TYPES),
    st.sampled_from(NAMES),
    st.sampled_from(PatternType),
)
rows = st.lists(bindings, max_size=8).map(tuple)
facts = st.builds(
    AclsCreated, acls=rows, by=st.text(max_size=3), at_ms=st.integers(0, 2**53)
) | st.builds(AclsDeleted, acls=rows, by=st.text(max_size=3), at_ms=st.integers(0, 2**53))


def folded(history: list[AclFact]) -> LogState:
    state = LogState()
    for fact in history:
        decoded = decode_fact(encode_fact(fact))
        assert decoded == fact
        assert isinstance(decoded, AclsCreated | AclsDeleted)
        state.acls.apply(decoded)
    return state


def left_of(history: list[AclFact]) -> set[AclBinding]:
    left: set[AclBinding] = set()
    for fact in history:
        left = left | {*fact.acls} if isinstance(fact, AclsCreated) else left - {*fact.acls}
    return left


@given(st.lists(facts, max_size=8))
def test_a_checkpoint_has_the_acls_that_are_left(history: list[AclFact]) -> None:
    state = folded(history)
    again = decode_state(encode_state(state), version=state_version(state))
    assert set(state.acls.bindings) == set(again.acls.bindings) == left_of(history)
    assert again.acls == state.acls
    assert (state_version(state) == SECURITY_VERSION) is bool(left_of(history))


@given(st.lists(bindings, min_size=1, max_size=3), st.data())
def test_a_cut_checkpoint_is_refused(some: list[AclBinding], data: st.DataObject) -> None:
    state = LogState()
    state.acls.add(some)
    whole = encode_state(state)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(InvalidDataError):
        decode_state(cut, version=SECURITY_VERSION)


def test_a_checkpoint_with_an_unknown_operation_is_refused() -> None:
    state = LogState()
    state.acls.add(
        [
            AclBinding(
                "User:a",
                "*",
                AclOperation.TWO_PHASE_COMMIT,
                Permission.ALLOW,
                ResourceType.TRANSACTIONAL_ID,
                "x",
                PatternType.LITERAL,
            )
        ]
    )
    whole = encode_state(state)
    damaged = whole.replace(bytes([15, 3, 5, 3]), bytes([99, 3, 5, 3]))
    assert damaged != whole
    with pytest.raises(InvalidDataError, match="99 is not a valid AclOperation"):
        decode_state(damaged, version=SECURITY_VERSION)


def some_acls(chance: random.Random) -> Acls:
    """Rules about few names, so that they meet; some of them were deleted again."""
    acls = Acls()
    for _ in range(chance.randint(1, 4)):
        rules = tuple(some_rule(chance) for _ in range(chance.randint(0, 5)))
        acls.apply(AclsCreated(acls=rules, by="", at_ms=0))
        if acls.bindings and chance.random() < 0.5:
            gone = tuple(chance.sample([*acls.bindings], chance.randint(1, len(acls))))
            acls.apply(AclsDeleted(acls=gone, by="", at_ms=0))
    return acls


def some_rule(chance: random.Random) -> AclBinding:
    return AclBinding(
        chance.choice(PRINCIPALS),
        chance.choice(HOSTS),
        chance.choice(OPERATIONS),
        chance.choice([*Permission]),
        chance.choice(TYPES),
        chance.choice(NAMES),
        chance.choice([*PatternType]),
    )


def some_requester(chance: random.Random) -> Requester:
    return Requester(chance.choice(PRINCIPALS), chance.choice(HOSTS))


@pytest.mark.parametrize("seed", range(20))
def test_decisions_are_those_of_the_reference(seed: int) -> None:
    chance, seen = random.Random(seed), set()
    for _ in range(200):
        acls, requester, without_rules = (
            some_acls(chance),
            some_requester(chance),
            chance.random() < 0.5,
        )
        operation, resource = chance.choice(OPERATIONS), Resource(TYPES[0], chance.choice(NAMES))
        expected = may(acls.bindings, requester, operation, resource, without_rules=without_rules)
        assert acls.may(requester, operation, resource, without_rules=without_rules) is expected
        seen.add(expected)
    assert seen == {True, False}


@pytest.mark.parametrize("seed", range(20))
def test_a_right_on_any_resource_is_that_of_the_reference(seed: int) -> None:
    chance, seen = random.Random(seed), set()
    for _ in range(200):
        acls, requester = some_acls(chance), some_requester(chance)
        operation, resource_type = chance.choice(OPERATIONS), chance.choice(TYPES)
        expected = may_on_any(acls.bindings, requester, operation, resource_type)
        assert acls.may_on_any(requester, operation, resource_type) is expected
        seen.add(expected)
    assert seen == {True, False}


@pytest.mark.parametrize("seed", range(20))
def test_a_right_on_all_resources_is_one_on_each(seed: int) -> None:
    """Names of rules, names that begin with those, and a name that no rule has."""
    chance, seen = random.Random(seed), set()
    names = [*NAMES[:-1], "*x", "unnamed"]
    for _ in range(400):
        acls, requester = some_acls(chance), some_requester(chance)
        without_rules = chance.random() < 0.3
        if chance.random() < 0.7:
            deny = [rule for rule in acls.bindings if rule.permission is Permission.DENY]
            acls.apply(AclsDeleted(acls=tuple(deny), by="", at_ms=0))
        operation, kind = chance.choice(OPERATIONS), chance.choice(TYPES)
        on_each = all(
            may(
                acls.bindings,
                requester,
                operation,
                Resource(kind, name),
                without_rules=without_rules,
            )
            for name in names
        )
        found = acls.may_on_all(requester, operation, kind, without_rules=without_rules)
        assert on_each or not found
        if not without_rules:
            assert found is on_each
        seen.add((found, without_rules))
    assert len(seen) == 4


@pytest.mark.parametrize("seed", range(20))
def test_filters_match_as_the_reference(seed: int) -> None:
    chance, found = random.Random(seed), 0
    for _ in range(200):
        acls = some_acls(chance)
        wanted = AclFilter(
            chance.choice([None, None, *PRINCIPALS]),
            chance.choice([None, None, *HOSTS]),
            chance.choice([ANY, ANY, 99, *OPERATIONS]),
            chance.choice([ANY, ANY, 99, *Permission]),
            chance.choice([ANY, ANY, 99, *TYPES]),
            chance.choice([None, *NAMES]),
            chance.choice([ANY, MATCH, MATCH, 99, *PatternType]),
        )
        expected = [each for each in acls.bindings if filter_matches(wanted, each)]
        assert acls.matching(wanted) == expected
        found += len(expected)
    assert found


def test_each_change_has_a_version_of_its_own() -> None:
    state = LogState()
    binding = AclBinding(
        "User:a",
        "*",
        AclOperation.READ,
        Permission.ALLOW,
        ResourceType.TOPIC,
        "t",
        PatternType.LITERAL,
    )
    versions = [state.acls.version]
    for make in (AclsCreated, AclsDeleted, AclsCreated):
        state.acls.apply(make(acls=(binding,), by="User:a", at_ms=0))
        versions.append(state.acls.version)
    assert len(set(versions)) == 4
