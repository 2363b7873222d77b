"""Credentials through facts, folds and checkpoints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.log_format.checkpoint import SECURITY_VERSION
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.metadata.checkpoint_state import decode_state, encode_state, state_version
from bucketlog.metadata.facts import (
    decode_fact,
    encode_fact,
)
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.security_facts import (
    CredentialFact,
    ScramCredentialDeleted,
    ScramCredentialSet,
)

short = st.binary(max_size=80)
names = st.sampled_from(["ann", "bob", ""]) | st.text(max_size=5)
mechanisms = st.sampled_from(["SCRAM-SHA-256", "SCRAM-SHA-512"])
sets = st.builds(
    ScramCredentialSet,
    user=names,
    mechanism=mechanisms,
    iterations=st.integers(1, 2**31 - 1),
    salt=short,
    key_id=short,
    sealed=short,
    by=names,
    at_ms=st.integers(0, 2**53),
)
deletions = st.builds(
    ScramCredentialDeleted,
    user=names,
    mechanism=mechanisms,
    by=names,
    at_ms=st.integers(0, 2**53),
)


def folded(facts: list[CredentialFact]) -> LogState:
    state = LogState()
    for fact in facts:
        decoded = decode_fact(encode_fact(fact))
        assert decoded == fact
        state.scram_credentials.apply(fact)
    return state


@given(st.lists(sets | deletions, max_size=12))
def test_a_checkpoint_has_what_was_set_last(facts: list[CredentialFact]) -> None:
    state = folded(facts)
    data = encode_state(state)
    again = decode_state(data, version=state_version(state))
    assert again.scram_credentials == state.scram_credentials
    last = {(fact.user, fact.mechanism): fact for fact in facts}
    expected = {name for name, fact in last.items() if isinstance(fact, ScramCredentialSet)}
    assert state.scram_credentials.by_name.keys() == expected
    for name, credential in state.scram_credentials.by_name.items():
        fact = last[name]
        assert isinstance(fact, ScramCredentialSet)
        assert credential == (fact.iterations, fact.salt, fact.key_id, fact.sealed)


@given(sets, st.data())
def test_a_cut_checkpoint_is_refused(fact: ScramCredentialSet, data: st.DataObject) -> None:
    whole = encode_state(folded([fact]))
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(InvalidDataError):
        decode_state(cut, version=SECURITY_VERSION)
