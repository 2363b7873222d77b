"""Configs of brokers, groups and subscriptions in facts, folds, checkpoints and comparisons."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.log_format.checkpoint import CONFIGS_VERSION
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.metadata.checkpoint_state import decode_state, encode_state, state_version
from bucketlog.metadata.config_facts import ConfigsAltered, ConfiguredKind
from bucketlog.metadata.facts import decode_fact, encode_fact
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.resource_configs import ResourceName

names = st.sampled_from(["", "a", "b"])
configs = st.dictionaries(
    st.sampled_from(["x", "y", "z"]), st.none() | st.text(max_size=3), max_size=3
)
altered = st.builds(
    ConfigsAltered,
    resource_type=st.sampled_from(ConfiguredKind),
    name=names,
    configs=configs,
    replaces_all=st.booleans(),
    by=st.just("User:ann"),
    at_ms=st.integers(0, 2**53),
)


def folded(facts: list[ConfigsAltered]) -> LogState:
    state = LogState()
    for fact in facts:
        assert decode_fact(encode_fact(fact)) == fact
        state.resource_configs.apply(fact)
    return state


@given(st.lists(altered, max_size=12))
def test_a_checkpoint_has_the_configs_that_are_left(facts: list[ConfigsAltered]) -> None:
    state = folded(facts)
    again = decode_state(encode_state(state), version=state_version(state))
    assert again.resource_configs == state.resource_configs
    expected: dict[tuple[int, str], dict[str, str]] = {}
    for fact in facts:
        own = expected.setdefault((fact.resource_type, fact.name), {})
        if fact.replaces_all:
            own.clear()
        for name, value in fact.configs.items():
            own.pop(name, None)
            if value is not None:
                own[name] = value
    left = {place: own for place, own in expected.items() if own}
    assert {
        tuple(each): dict(state.resource_configs.of(each)) for each in state.resource_configs
    } == (left)


@given(
    altered.filter(lambda fact: any(value is not None for value in fact.configs.values())),
    st.data(),
)
def test_a_cut_checkpoint_is_refused(fact: ConfigsAltered, data: st.DataObject) -> None:
    state = folded([fact])
    whole = encode_state(state)
    assert state_version(state) == CONFIGS_VERSION
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(InvalidDataError):
        decode_state(cut, version=CONFIGS_VERSION)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (b"\x20\0\0\0\x01", b"\x21\0\0\0\x01", "of kind 33"),
        (b"\x20\0\0\0\x01", b"\x20\0\0\0\0", "has no configs"),
    ],
)
def test_resources_that_cannot_be_are_refused(before: bytes, after: bytes, message: str) -> None:
    state = LogState()
    state.resource_configs.put(ResourceName(ConfiguredKind.GROUP, "g"), {"x": "1"})
    whole = encode_state(state)
    with pytest.raises(InvalidDataError, match=message):
        decode_state(whole.replace(before, after), version=CONFIGS_VERSION)
