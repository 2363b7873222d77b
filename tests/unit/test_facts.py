"""Facts: what they look like in the log, and what is refused."""

import json
from uuid import UUID

import pytest

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import TOPIC_PARTITIONS_MAX, FactEntry, TopicId
from bucketlog.metadata.fact_model import PRINCIPAL_CHARS_MAX, AttributedFact, FactKind
from bucketlog.metadata.facts import (
    SKIP_BIT,
    Fact,
    OffsetRow,
    OffsetsCommitted,
    OffsetsForgotten,
    PartitionRow,
    PartitionsAdded,
    ProducerInitialised,
    TopicConfigured,
    TopicCreated,
    TopicDeleted,
    TopicFact,
    TransactionalIdsForgotten,
    TransactionEnded,
    TransactionKept,
    TransactionOffsets,
    decode_fact,
    encode_fact,
    topic_id_of,
)
from tests.models.indexes import begin, partition, swap, swapped, swept, tier_row

TOPIC = UUID(int=5)
TOPIC_FACTS: list[TopicFact] = [
    TopicCreated(topic_id=TOPIC, name="t", partitions=3, configs={"retention.ms": "5"}),
    TopicCreated(topic_id=TOPIC, name="t" * 249, partitions=TOPIC_PARTITIONS_MAX),
    TopicDeleted(topic_id=TOPIC, name="t"),
    PartitionsAdded(topic_id=TOPIC, name="t", partitions=9),
    TopicConfigured(topic_id=TOPIC, name="t", configs={"retention.ms": "5", "segment.ms": None}),
    TopicConfigured(topic_id=TOPIC, name="t", configs={}, replaces_all=True),
]
FACTS: list[Fact] = [
    *TOPIC_FACTS,
    OffsetsCommitted(
        group="g", committed_ms=7, offsets=(OffsetRow(TOPIC, 2, 2**53 - 1, -1, 'a "b" \n ü'),)
    ),
    OffsetsCommitted(group="", committed_ms=7, expires_ms=9, offsets=()),
    OffsetsForgotten(group="g", partitions=(PartitionRow(TOPIC, 0), PartitionRow(TOPIC, 1))),
    OffsetsForgotten(group="g"),
    swapped(
        swap(partition(5), 0, 9, tier_row(0, 4), tier_row(4, 9, manifest=True)),
        swap(partition(5, 2), 4, 9, replaced=["a", "b"], removed=[(4, "c")], cleaned_to=7),
        planned=(3, 2**53),
    ),
    begin({partition(5): 7, partition(5, 1): 2**53 - 1}),
    swept(3, 4),
    ProducerInitialised(
        id="app-1",
        producer_id=2**63 - 1,
        producer_epoch=32_767,
        timeout_ms=60_000,
        version=2,
        at_ms=7,
    ),
    TransactionEnded(
        id="app-1",
        producer_id=5,
        producer_epoch=1,
        committed=True,
        next_producer_id=5,
        next_epoch=2,
        by="client",
        version=2,
        at_ms=8,
    ),
    TransactionOffsets(
        id="app-1",
        producer_id=5,
        producer_epoch=1,
        group="g",
        offsets=(OffsetRow(TOPIC, 2, 9, -1, ""),),
        at_ms=9,
    ),
    TransactionalIdsForgotten(ids=("app-1", "app-2")),
]


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: type(fact).__name__)
def test_there_and_back(fact: Fact) -> None:
    assert decode_fact(encode_fact(fact)) == fact


@pytest.mark.parametrize("fact", TOPIC_FACTS, ids=lambda fact: type(fact).__name__)
def test_the_topic_of_a_fact(fact: TopicFact) -> None:
    assert topic_id_of(fact) == TopicId(TOPIC.bytes)


def test_the_stored_form_does_not_change() -> None:
    """Logs hold these bytes: a change needs a new version."""
    assert encode_fact(FACTS[0]) == FactEntry(
        1,
        1,
        b'{"topic_id":"00000000-0000-0000-0000-000000000005","name":"t","partitions":3,'
        b'"configs":{"retention.ms":"5"}}',
    )
    assert [(entry.kind, entry.version) for entry in map(encode_fact, FACTS)] == [
        (1, 1),
        (1, 1),
        (2, 1),
        (3, 1),
        (6, 1),
        (6, 1),
        (4, 1),
        (4, 1),
        (5, 1),
        (5, 1),
        (7, 1),
        (8, 1),
        (9, 1),
        (10, 1),
        (11, 1),
        (12, 1),
        (13, 1),
    ]
    assert [entry.payload for entry in map(encode_fact, FACTS[4:])] == [
        b'{"topic_id":"00000000-0000-0000-0000-000000000005","name":"t",'
        b'"configs":{"retention.ms":"5","segment.ms":null},"replaces_all":false}',
        b'{"topic_id":"00000000-0000-0000-0000-000000000005","name":"t",'
        b'"configs":{},"replaces_all":true}',
        b'{"group":"g","committed_ms":7,"expires_ms":null,"offsets":'
        b'[["00000000-0000-0000-0000-000000000005",2,9007199254740991,-1,'
        b'"a \\"b\\" \\n \xc3\xbc"]]}',
        b'{"group":"","committed_ms":7,"expires_ms":9,"offsets":[]}',
        b'{"group":"g","partitions":[["00000000-0000-0000-0000-000000000005",0],'
        b'["00000000-0000-0000-0000-000000000005",1]]}',
        b'{"group":"g","partitions":null}',
        b'{"planned":[3,9007199254740992],"swaps":[["00000000-0000-0000-0000-000000000005",0,0,9,[],'
        b'[[0,4,"0-4",false,1000,900,4,1],[4,9,"4-9",true,1000,900,9,1]],[],-1],'
        b'["00000000-0000-0000-0000-000000000005",2,4,9,["a","b"],[],[[4,"c"]],7]]}',
        b'{"partitions":[["00000000-0000-0000-0000-000000000005",0,7],'
        b'["00000000-0000-0000-0000-000000000005",1,9007199254740991]]}',
        b'{"below":[3,4]}',
        b'{"id":"app-1","producer_id":"9223372036854775807","producer_epoch":32767,'
        b'"last_producer_id":"-1","last_producer_epoch":-1,"timeout_ms":60000,"version":2,'
        b'"two_phase":false,"at_ms":7}',
        b'{"id":"app-1","producer_id":"5","producer_epoch":1,"committed":true,'
        b'"next_producer_id":"5","next_epoch":2,"by":"client","version":2,"at_ms":8}',
        b'{"id":"app-1","producer_id":"5","producer_epoch":1,"group":"g","offsets":'
        b'[["00000000-0000-0000-0000-000000000005",2,9,-1,""]],"at_ms":9}',
        b'{"ids":["app-1","app-2"]}',
    ]


def test_an_init_that_keeps_a_transaction_has_version_2() -> None:
    fact = TransactionKept(
        id="app-1",
        producer_id=2**63 - 1,
        producer_epoch=4,
        timeout_ms=60_000,
        version=2,
        two_phase=True,
        at_ms=7,
        txn_producer_id=5,
        txn_producer_epoch=3,
    )
    entry = encode_fact(fact)
    assert (entry.kind, entry.version) == (10, 2)
    assert entry.payload == (
        b'{"id":"app-1","producer_id":"9223372036854775807","producer_epoch":4,'
        b'"last_producer_id":"-1","last_producer_epoch":-1,"timeout_ms":60000,"version":2,'
        b'"two_phase":true,"at_ms":7,"txn_producer_id":"5","txn_producer_epoch":3}'
    )
    assert decode_fact(entry) == fact
    with pytest.raises(InvalidDataError, match="txn_producer_id"):
        decode_fact(FactEntry(10, 1, entry.payload))


ATTRIBUTED = [fact for fact in FACTS if isinstance(fact, AttributedFact)]


@pytest.mark.parametrize("fact", ATTRIBUTED, ids=lambda fact: type(fact).__name__)
def test_a_fact_that_names_who_asked_has_version_2(fact: Fact) -> None:
    """Without a name, the bytes are those of version 1, which older brokers read."""
    named = fact.model_copy(update={"by": "User:änn"})
    entry, plain = encode_fact(named), encode_fact(fact)
    assert (entry.kind, entry.version, plain.version) == (fact.kind, 2, 1)
    assert entry.payload == b'{"by":"User:\xc3\xa4nn",' + plain.payload[1:]
    decoded = decode_fact(entry)
    assert decoded == named
    with pytest.raises(InvalidDataError, match="of version 1 has the field by"):
        decode_fact(FactEntry(entry.kind, 1, entry.payload))
    with pytest.raises(InvalidDataError, match="of version 2 lacks the field by"):
        decode_fact(FactEntry(entry.kind, 2, plain.payload))


@pytest.mark.parametrize("by", ["null", '""', '"' + "n" * (PRINCIPAL_CHARS_MAX + 1) + '"', "7"])
def test_who_asked_has_a_name_of_bounded_length(by: str) -> None:
    payload = f'{{"by":{by},"topic_id":"{TOPIC}","name":"t"}}'
    with pytest.raises(InvalidDataError, match="TopicDeleted"):
        decode_fact(FactEntry(2, 2, payload.encode()))


def test_the_kinds_that_name_who_asked() -> None:
    assert {type(fact).__name__ for fact in ATTRIBUTED} == {
        "TopicCreated",
        "TopicDeleted",
        "PartitionsAdded",
        "TopicConfigured",
        "OffsetsForgotten",
        "LogStartsMoved",
    }


@pytest.mark.parametrize(
    ("kind", "version"), [(10, 3), (11, 2), (1, 3), (1, 0), (4, 2), (7, 2), (14, 2)]
)
def test_an_unknown_version_is_refused(kind: int, version: int) -> None:
    with pytest.raises(InvalidDataError, match=f"kind {kind} version {version}.*upgrade"):
        decode_fact(FactEntry(kind, version, b"{}"))


@pytest.mark.parametrize("kind", [0, 24, 0x7FFF])
def test_an_unknown_kind_is_refused(kind: int) -> None:
    with pytest.raises(InvalidDataError, match=f"kind {kind} version 1.*upgrade"):
        decode_fact(FactEntry(kind, 1, b"{}"))


@pytest.mark.parametrize("kind", [SKIP_BIT, SKIP_BIT | 1, 0xFFFF])
def test_an_unknown_kind_with_the_skip_bit_is_skipped(kind: int) -> None:
    assert decode_fact(FactEntry(kind, 9, b"anything")) is None


def test_a_newer_version_of_a_known_kind_is_refused() -> None:
    entry = encode_fact(FACTS[0])
    with pytest.raises(InvalidDataError, match=r"kind 1 version 3.*upgrade"):
        decode_fact(FactEntry(entry.kind, 3, entry.payload))


GOOD = {"topic_id": str(TOPIC), "name": "t", "partitions": 1, "configs": {}}
BAD_PAYLOADS: dict[str, bytes] = {
    "empty": b"",
    "not json": b"{",
    "not text": b"\xff\xfe",
    "a list": b"[]",
    "a field missing": json.dumps({"name": "t", "partitions": 1}).encode(),
    "a field too many": json.dumps({**GOOD, "replicas": 3}).encode(),
    "no partitions": json.dumps({**GOOD, "partitions": 0}).encode(),
    "an id that is none": json.dumps({**GOOD, "topic_id": "x"}).encode(),
    "another kind's": json.dumps({**GOOD, "kind": 2}).encode(),
    "configs that are no text": json.dumps({**GOOD, "configs": {"a": None}}).encode(),
}


@pytest.mark.parametrize("case", BAD_PAYLOADS)
def test_a_damaged_payload_is_refused(case: str) -> None:
    with pytest.raises(InvalidDataError, match="a fact TopicCreated does not decode"):
        decode_fact(FactEntry(FactKind.TOPIC_CREATED, 1, BAD_PAYLOADS[case]))


GOOD_ROW = [str(TOPIC), 0, 5, -1, ""]
BAD_OFFSETS: dict[str, object] = {
    "a row too short": [GOOD_ROW[:4]],
    "a row too long": [[*GOOD_ROW, 1]],
    "a partition below 0": [[str(TOPIC), -1, 5, -1, ""]],
    "an offset that is none": [[str(TOPIC), 0, "x", -1, ""]],
    "no metadata": [[str(TOPIC), 0, 5, -1, None]],
    "no rows": None,
}


@pytest.mark.parametrize("case", BAD_OFFSETS)
def test_damaged_offsets_are_refused(case: str) -> None:
    payload = {"group": "g", "committed_ms": 1, "offsets": [GOOD_ROW]}
    good = FactEntry(FactKind.OFFSETS_COMMITTED, 1, json.dumps(payload).encode())
    assert isinstance(decode_fact(good), OffsetsCommitted)
    bad = json.dumps({**payload, "offsets": BAD_OFFSETS[case]}).encode()
    with pytest.raises(InvalidDataError, match="a fact OffsetsCommitted does not decode"):
        decode_fact(FactEntry(FactKind.OFFSETS_COMMITTED, 1, bad))


@pytest.mark.parametrize(
    ("kind", "values", "place"),
    [
        (FactKind.TOPIC_CREATED, {"partitions": TOPIC_PARTITIONS_MAX + 1}, "partitions"),
        (FactKind.OFFSETS_COMMITTED, {"offsets": [[str(TOPIC), 0, 2**63, 0, ""]]}, "offsets.0.2"),
        (FactKind.OFFSETS_COMMITTED, {"offsets": [[str(TOPIC), 0, 0, 2**31, ""]]}, "offsets.0.3"),
        (FactKind.OFFSETS_COMMITTED, {"committed_ms": 2**63, "offsets": []}, "committed_ms"),
        (FactKind.LOG_STARTS_MOVED, {"partitions": [[str(TOPIC), 0, 2**54]]}, "partitions.0.2"),
        (FactKind.LOG_STARTS_MOVED, {"partitions": [[str(TOPIC), 2**31, 0]]}, "partitions.0.1"),
        (FactKind.TIERS_SWEPT, {"below": [0, 2**63]}, "below.1"),
    ],
)
def test_numbers_that_nothing_can_hold_are_refused(
    kind: FactKind, values: dict[str, object], place: str
) -> None:
    known: dict[FactKind, dict[str, object]] = {
        FactKind.TOPIC_CREATED: {"topic_id": str(TOPIC), "name": "t"},
        FactKind.OFFSETS_COMMITTED: {"group": "g", "committed_ms": 0},
    }
    payload = json.dumps(known.get(kind, {}) | values).encode()
    with pytest.raises(InvalidDataError, match=rf"does not decode: {place}: Input should be"):
        decode_fact(FactEntry(kind, 1, payload))


def test_the_error_of_many_bad_rows_is_short() -> None:
    rows = [[str(TOPIC), -1, "x" * 100, 0, ""]] * 5_000
    payload = json.dumps({"group": "g", "committed_ms": 0, "offsets": rows}).encode()
    with pytest.raises(InvalidDataError) as caught:
        decode_fact(FactEntry(FactKind.OFFSETS_COMMITTED, 1, payload))
    assert len(str(caught.value)) < 300
