"""Client quotas through facts, folds and checkpoints; which one applies to a client."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.log_format.checkpoint import SECURITY_VERSION, CoveredWriter
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import FactEntry, Ticket
from bucketlog.metadata.checkpoint import extended
from bucketlog.metadata.checkpoint_state import decode_state, encode_state, state_version
from bucketlog.metadata.client_quotas import ClientQuotas, Quota
from bucketlog.metadata.facts import decode_fact, encode_fact
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.quota_entities import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    DEFAULT,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    QuotaChange,
    QuotaEntity,
    entity_of,
    problem_of_value,
)
from bucketlog.metadata.security_facts import ClientQuotasAltered
from bucketlog.metadata.view import View
from bucketlog.metadata.view_comparison import ViewComparison
from tests.models.indexes import WRITER, segment

names = st.sampled_from(["a", "b", DEFAULT])
entities = (
    st.builds(QuotaEntity, user=names)
    | st.builds(QuotaEntity, client_id=names)
    | st.builds(QuotaEntity, user=names, client_id=names)
    | st.builds(QuotaEntity, ip=st.sampled_from(["10.0.0.1", "::1", DEFAULT]))
)
keys = st.sampled_from([PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE])
values = st.floats(allow_nan=False, allow_infinity=False)
changes = st.builds(
    lambda entity, key, value: QuotaChange(entity.user, entity.client_id, entity.ip, key, value),
    entities,
    keys,
    st.none() | values,
)
facts = st.builds(
    ClientQuotasAltered,
    changes=st.lists(changes, max_size=8).map(tuple),
    by=st.text(max_size=3),
    at_ms=st.integers(0, 2**53),
)


@given(st.lists(facts, max_size=8))
def test_a_checkpoint_has_the_quotas_that_are_left(history: list[ClientQuotasAltered]) -> None:
    state, left = LogState(), dict[tuple[QuotaEntity, str], float]()
    for fact in history:
        decoded = decode_fact(encode_fact(fact))
        assert decoded == fact
        assert isinstance(decoded, ClientQuotasAltered)
        state.client_quotas.apply(decoded)
        for change in fact.changes:
            left.pop((change.entity, change.key), None)
            if change.value is not None:
                left[change.entity, change.key] = change.value
    again = decode_state(encode_state(state), version=state_version(state))
    assert state.client_quotas.rows() == again.client_quotas.rows() == left
    assert again.client_quotas == state.client_quotas
    assert set(state.client_quotas.by_entity) == {entity for entity, _ in left}
    assert (state_version(state) == SECURITY_VERSION) is bool(left)


@given(st.lists(changes, min_size=1, max_size=3), st.data())
def test_a_cut_checkpoint_is_refused(some: list[QuotaChange], data: st.DataObject) -> None:
    state = LogState()
    for change in some:
        state.client_quotas.put(change._replace(value=1.0))
    whole = encode_state(state)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(InvalidDataError):
        decode_state(cut, version=SECURITY_VERSION)


@pytest.mark.parametrize(
    ("good", "bad", "problem"),
    [
        (b"\x01\x3f\xf0", b"\x08\x3f\xf0", "unknown entity"),
        (b"\x01\x3f\xf0", b"\x00\x3f\xf0", "unknown entity"),
        (b"\x01\x3f\xf0", b"\x01\x7f\xf0", "not a finite number"),
    ],
)
def test_a_damaged_quota_is_refused(good: bytes, bad: bytes, problem: str) -> None:
    state = LogState()
    state.client_quotas.put(QuotaChange("a", None, None, REQUEST_PERCENTAGE, 1.0))
    whole = encode_state(state)
    assert whole.count(good) == 1
    with pytest.raises(InvalidDataError, match=problem):
        decode_state(whole.replace(good, bad), version=SECURITY_VERSION)


@pytest.mark.parametrize("value", [b"NaN", b"Infinity", b"1e999"])
def test_a_fact_with_an_infinite_quota_is_refused(value: bytes) -> None:
    payload = b'{"changes":[["a",null,null,"request_percentage",%s]],"by":"","at_ms":0}' % value
    with pytest.raises(InvalidDataError):
        decode_fact(FactEntry(18, 1, payload))


def test_the_precedence_is_that_of_kafka() -> None:
    """The order of Kafka's ClientQuotaManager: each quota is taken away after it applied."""
    order = [
        QuotaEntity("u", "c"),
        QuotaEntity("u", DEFAULT),
        QuotaEntity("u"),
        QuotaEntity(DEFAULT, "c"),
        QuotaEntity(DEFAULT, DEFAULT),
        QuotaEntity(DEFAULT),
        QuotaEntity(client_id="c"),
        QuotaEntity(client_id=DEFAULT),
    ]
    quotas = ClientQuotas()
    for limit, entity in reversed(list(enumerate(order))):
        quotas.put(QuotaChange(*entity, PRODUCER_BYTE_RATE, float(limit)))
        quotas.put(QuotaChange("other", "c", None, PRODUCER_BYTE_RATE, 99.0))
    for limit, entity in enumerate(order):
        found = quotas.of_client(PRODUCER_BYTE_RATE, "u", "c")
        assert found == Quota(entity, float(limit))
        assert quotas.of_client(CONSUMER_BYTE_RATE, "u", "c") is None
        quotas.put(QuotaChange(*entity, PRODUCER_BYTE_RATE, None))
    assert quotas.of_client(PRODUCER_BYTE_RATE, "u", "c") is None


def test_an_address_comes_before_the_default() -> None:
    quotas = ClientQuotas()
    quotas.put(QuotaChange(None, None, DEFAULT, CONNECTION_CREATION_RATE, 1.0))
    quotas.put(QuotaChange(None, None, "10.0.0.1", CONNECTION_CREATION_RATE, 2.0))
    first, other = (quotas.of_ip(CONNECTION_CREATION_RATE, f"10.0.0.{i}") for i in (1, 2))
    assert first == Quota(QuotaEntity(ip="10.0.0.1"), 2.0)
    assert other == Quota(QuotaEntity(ip=DEFAULT), 1.0)


EMPTY = "Invalid empty client quota entity"
COMBINED = "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([("user", "a")], QuotaEntity("a")),
        ([("client-id", None), ("user", "a")], QuotaEntity("a", DEFAULT)),
        ([("ip", "0:0::1")], QuotaEntity(ip="::1")),
        ([("ip", None)], QuotaEntity(ip=DEFAULT)),
        ([], EMPTY),
        ([("ip", "::ffff:10.0.0.1")], QuotaEntity(ip="10.0.0.1")),
        ([("user", "a"), ("ip", "::1")], COMBINED),
        ([("user", "a"), ("user", "b")], QuotaEntity("b")),
        ([("group", "a")], "Unhandled client quota entity type: group"),
        ([("client-id", "")], "Empty client-id not supported"),
        ([("ip", "host")], "host is not a valid IP address; host names are not resolved."),
    ],
)
def test_entities_of_requests(
    parts: list[tuple[str, str | None]], expected: QuotaEntity | str
) -> None:
    assert entity_of(parts) == expected


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (PRODUCER_BYTE_RATE, 1.0, None),
        (PRODUCER_BYTE_RATE, 1.5, "producer_byte_rate cannot be a fractional value."),
        (PRODUCER_BYTE_RATE, 1e300, "producer_byte_rate is too large for a LONG."),
        (PRODUCER_BYTE_RATE, 0.0, "Quota producer_byte_rate must be greater than 0"),
        (REQUEST_PERCENTAGE, -1.0, "Quota request_percentage must be greater than 0"),
        (REQUEST_PERCENTAGE, 1.5, None),
        (REQUEST_PERCENTAGE, float("nan"), "must be a finite number"),
        (REQUEST_PERCENTAGE, float("inf"), "must be a finite number"),
        (CONNECTION_CREATION_RATE, 1.0, "Invalid configuration key connection_creation_rate"),
    ],
)
def test_values_of_requests(key: str, value: float, problem: str | None) -> None:
    found = problem_of_value(QuotaEntity("a"), key, value)
    assert found is None if problem is None else problem in (found or "")


def test_addresses_have_keys_of_their_own() -> None:
    address = QuotaEntity(ip="::1")
    assert problem_of_value(address, CONNECTION_CREATION_RATE, 1.0) is None
    assert problem_of_value(address, PRODUCER_BYTE_RATE, 1.0) is not None
    assert problem_of_value(address, CONNECTION_CREATION_RATE, 2.0**40) is not None


@pytest.mark.parametrize("value", [None, 2.0])
def test_a_view_with_another_quota_contradicts(value: float | None) -> None:
    """Unless a later segment is about the quota."""
    first, second = (
        ClientQuotasAltered(
            changes=(QuotaChange("a", None, None, PRODUCER_BYTE_RATE, each),), by="", at_ms=0
        )
        for each in (1.0, value)
    )
    covered, changed = segment(0, None, first), segment(1, None, second)
    made = extended(
        None, [covered], Ticket(1, 1), [CoveredWriter(WRITER, 1, 1, False)], created_ms=1
    )
    comparison = ViewComparison(View.of([covered, changed]), made)
    for _ in comparison.steps():
        pass
    assert comparison.unexplained([changed]) == []
    (named,) = comparison.unexplained([])
    assert "the quota producer_byte_rate" in named
