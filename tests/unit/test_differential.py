"""The comparison of two brokers' answers: sequences, normalisation, the table of differences."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import build, build_batch, request_schema
from tests.scenarios.differences import KNOWN, PAGE, page
from tests.scenarios.differential import Pair, is_completing, misses_a_topic
from tests.scenarios.differential_answers import Difference, Plain, compared, flattened
from tests.scenarios.differential_model import (
    LOGGED_IN,
    Batch,
    Generation,
    MemberEpoch,
    MemberId,
    OwnedBy,
    Step,
    TopicId,
)
from tests.scenarios.differential_side import Addresses, Side
from tests.scenarios.differential_steps import sequence


class FakeSide(Side):
    """Answers by its own rule."""

    def __init__(self, bad: Step | None, needs: Step | None) -> None:
        super().__init__(Addresses("nobody:1", "", lambda _: None))
        self._bad, self._needs = bad, needs
        self._seen: list[Step] = []

    def begin(self, prefix: str) -> None:
        super().begin(prefix)
        self._seen = []

    def send(self, step: Step) -> None:
        self._seen.append(step)

    def receive(self, step: Step) -> Plain:
        is_bad = step == self._bad and self._needs in self._seen
        return {".error_code": 7 if is_bad else 0}


class FakePair(Pair):
    """Has nothing to wait for."""

    def create_first_topics(self, seeds: Sequence[int]) -> dict[int, str]:
        return {}

    def settle(self, *prefixes: str) -> None:
        return

    def settle_configs(self, step: Step) -> None:
        return

    def settle_acls(self) -> None:
        return

    def settle_transaction(self, step: Step) -> None:
        return


def test_the_page_is_that_of_the_table() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.scenarios.differences"
    assert len({known.reason for known in KNOWN if known.reason != "as above"}) > 1


def test_sequences_follow_from_their_seeds() -> None:
    assert sequence(3) == sequence(3) != sequence(4)
    apis = {step.api for seed in range(200) for step in sequence(seed)}
    assert {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.END_TXN, ApiKey.OFFSET_COMMIT} <= apis
    assert {ApiKey.SYNC_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CREATE_ACLS} <= apis
    senders = {step.by for seed in range(200) for step in sequence(seed)}
    assert senders == {"", "m0", "m1", LOGGED_IN}


def resolved(value: Any) -> Any:
    """As a run would fill it in."""
    if isinstance(value, Batch):
        return build_batch([(None, b"x")])
    if isinstance(value, OwnedBy | Generation | MemberEpoch):
        return 0
    if isinstance(value, MemberId):
        return ""
    if isinstance(value, TopicId):
        return UUID(int=1)
    if isinstance(value, dict):
        return {name: resolved(each) for name, each in value.items()}
    return [resolved(each) for each in value] if isinstance(value, list) else value


def test_each_request_can_be_encoded() -> None:
    for seed in range(300):
        for step in sequence(seed):
            for each in (step, *step.others):
                build(request_schema(each.api, each.version), resolved(each.values))


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_a_difference_is_reduced_to_its_steps(seed: int) -> None:
    steps = sequence(seed)
    bad, needs = steps[-1], steps[0]
    pair = FakePair(FakeSide(None, None), FakeSide(bad, needs))
    pair.read_s = 0.0
    found = next(pair.find([seed]))
    assert list(found.steps) == [needs, bad]
    (differing,) = found.differences
    assert differing[:4] == (bad.api.message_name, ".error_code", "0", "7")
    assert f"after {needs.api.message_name}" in differing.beside
    assert f"seed {seed}" in str(found)


def test_equal_answers_are_no_finding() -> None:
    pair = FakePair(FakeSide(None, None), FakeSide(None, None))
    assert [*pair.find([5])] == []


def test_rows_may_be_in_any_order() -> None:
    schema = request_schema(ApiKey.CREATE_PARTITIONS, 3)
    rows = [{"name": name, "count": 1, "assignments": None} for name in ("a", "b")]
    entities = [
        build(schema, {"topics": each, "timeout": 1, "validate_only": False})
        for each in (rows, rows[::-1])
    ]
    first, second = map(flattened, entities)
    assert first == second
    assert first[".topics[a].count"] == 1
    other = flattened(build(schema, {"topics": rows[:1], "timeout": 1, "validate_only": True}))
    paths = {each.path for each in compared(first, other, ApiKey.CREATE_PARTITIONS)}
    assert {".topics.len", ".validate_only", ".topics[b].count"} <= paths


def test_an_epoch_may_differ_only_beside_a_revocation() -> None:
    epoch, count = ".member_epoch", ".assignment.topic_partitions.len"
    here = {epoch: 4, count: 1}
    revoked = compared({epoch: 2, count: 0}, here, ApiKey.CONSUMER_GROUP_HEARTBEAT)
    assert [each.path for each in revoked if each.reason is None] == []
    unshown = compared({epoch: 2, count: None}, here, ApiKey.CONSUMER_GROUP_HEARTBEAT)
    assert [each.path for each in unshown if each.reason is None] == [epoch]


def test_a_deleted_record_may_be_found_only_after_delete_records() -> None:
    kafka, here = {".topics[a].partitions[0].offset": 2}, {".topics[a].partitions[0].offset": -1}
    before = compared(kafka, here, ApiKey.LIST_OFFSETS, [ApiKey.PRODUCE])
    assert [each.reason for each in before] == [None]
    after = compared(kafka, here, ApiKey.LIST_OFFSETS, [ApiKey.DELETE_RECORDS])
    assert [each.reason for each in after] != [None]


def test_only_a_commit_is_sent_again_to_a_coordinator_that_misses_a_topic() -> None:
    row = Difference("OffsetCommit", ".e", repr(ErrorCode.unknown_topic_id), "<ErrorCode.none: 0>")
    commit, produce = Step(ApiKey.OFFSET_COMMIT, 10, {}), Step(ApiKey.PRODUCE, 13, {})
    assert misses_a_topic(commit, [row])
    assert not misses_a_topic(produce, [row])
    assert not misses_a_topic(commit, [row, row._replace(kafka="<ErrorCode.none: 0>")])
    assert not misses_a_topic(commit, [])


@pytest.mark.parametrize(
    ("state", "expected"), [("PrepareAbort", True), ("CompleteAbort", False), ("Ongoing", False)]
)
def test_a_transaction_completes_when_its_markers_are_written(state: str, expected: bool) -> None:
    assert is_completing({".transaction_states[0].transaction_state": state}) is expected
