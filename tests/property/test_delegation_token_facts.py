"""Delegation tokens through facts, folds, checkpoints and comparisons."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.log_format.checkpoint import TOKENS_VERSION
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.metadata.checkpoint_state import decode_state, encode_state, state_version
from bucketlog.metadata.facts import decode_fact, encode_fact
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.token_facts import (
    DelegationTokenCreated,
    DelegationTokenRenewed,
    DelegationTokensForgotten,
    TokenFact,
)

ids = st.sampled_from(["a", "b", "c"])
times = st.integers(0, 2**53)
names = st.sampled_from(["User:ann", "User:bob"]) | st.text(min_size=1, max_size=5)
created = st.builds(
    DelegationTokenCreated,
    token_id=ids,
    owner=names,
    requester=names,
    renewers=st.lists(names, max_size=3).map(tuple),
    issued_ms=times,
    max_ms=times,
    expires_ms=times,
    key_id=st.binary(max_size=8),
)
renewed = st.builds(DelegationTokenRenewed, token_id=ids, expires_ms=times, by=names, at_ms=times)
forgotten = st.builds(
    DelegationTokensForgotten,
    token_ids=st.lists(ids, max_size=3).map(tuple),
    by=names,
    at_ms=times,
)


def folded(facts: list[TokenFact]) -> LogState:
    state = LogState()
    for fact in facts:
        decoded = decode_fact(encode_fact(fact))
        assert decoded == fact
        state.delegation_tokens.apply(fact)
    return state


@given(st.lists(created | renewed | forgotten, max_size=12))
def test_a_checkpoint_has_the_tokens_that_are_left(facts: list[TokenFact]) -> None:
    state = folded(facts)
    again = decode_state(encode_state(state), version=state_version(state))
    assert again.delegation_tokens == state.delegation_tokens
    expected: dict[str, tuple[str, int]] = {}
    ends: dict[str, int] = {}
    for fact in facts:
        if isinstance(fact, DelegationTokensForgotten):
            for token_id in fact.token_ids:
                expected.pop(token_id, None)
        elif isinstance(fact, DelegationTokenCreated):
            if fact.token_id not in expected:
                ends[fact.token_id] = fact.max_ms
                expected[fact.token_id] = (fact.owner, min(fact.expires_ms, fact.max_ms))
        elif fact.token_id in expected:
            owner, _ = expected[fact.token_id]
            expected[fact.token_id] = (owner, min(fact.expires_ms, ends[fact.token_id]))
    left = state.delegation_tokens.by_id
    assert {id_: (token.identity.owner, token.expires_ms) for id_, token in left.items()} == (
        expected
    )


@given(created, st.data())
def test_a_cut_checkpoint_is_refused(fact: DelegationTokenCreated, data: st.DataObject) -> None:
    whole = encode_state(folded([fact]))
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(InvalidDataError):
        decode_state(cut, version=TOKENS_VERSION)


def test_a_token_that_is_there_twice_is_refused() -> None:
    fact = DelegationTokenCreated(
        token_id="a",
        owner="User:ann",
        requester="User:ann",
        renewers=(),
        issued_ms=1,
        max_ms=3,
        expires_ms=2,
        key_id=b"k",
    )
    one, empty = encode_state(folded([fact])), encode_state(LogState())
    # without tokens, the parts of versions 4, 5, 6 and 7 have only their counts
    row = one[len(one) - (len(b"\0" * 28) + 5 + 5 + 12 + 12) :]
    assert row.endswith(b"User:ann")
    doubled = one.replace(b"\0\0\0\x01" + row, b"\0\0\0\x02" + row + row)
    assert len(doubled) == len(one) + len(row)
    assert len(empty) < len(one)
    with pytest.raises(InvalidDataError, match="a delegation token twice"):
        decode_state(doubled, version=TOKENS_VERSION)
