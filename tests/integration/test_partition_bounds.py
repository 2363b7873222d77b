"""How many partitions all topics may have together: at every way in, and given back by deletes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import WireClient
from tests.servers.broker_process import Start

MAX, DEFAULT = 6, 3
TOO_MANY = ErrorCode.policy_violation


class Admin:
    def __init__(self, client: WireClient, log: Path) -> None:
        self._client = client
        self.log = log

    def create(self, name: str, partitions: int, *, only_check: bool = False) -> int:
        row = {"name": name, "num_partitions": partitions, "replication_factor": 1}
        answer = self._client.call(ApiKey.CREATE_TOPICS, 5, topics=[row], validate_only=only_check)
        if answer.topics[0].error_code == TOO_MANY:
            assert "BUCKETLOG_CLUSTER_PARTITIONS_MAX" in answer.topics[0].error_message
        return int(answer.topics[0].error_code)

    def grow(self, name: str, total: int) -> int:
        row = {"name": name, "count": total, "assignments": None}
        answer = self._client.call(
            ApiKey.CREATE_PARTITIONS, 2, topics=[row], timeout=20_000, validate_only=False
        )
        return int(answer.results[0].error_code)

    def delete(self, name: str) -> int:
        answer = self._client.call(ApiKey.DELETE_TOPICS, 5, topic_names=[name], timeout=20_000)
        return int(answer.responses[0].error_code)

    def names(self) -> set[str]:
        return {row.name for row in self._client.call(ApiKey.METADATA, 1, topics=None).topics}

    def ask_to_create(self, name: str) -> int:
        answer = self._client.call(
            ApiKey.METADATA, 4, topics=[{"name": name}], allow_auto_topic_creation=True
        )
        return int(answer.topics[0].error_code)


@pytest.fixture
def admin(start: Start) -> Iterator[Admin]:
    broker = start(cluster_partitions_max=str(MAX), num_partitions=str(DEFAULT))
    with WireClient(broker.wait_until_ready().bootstrap) as client:
        yield Admin(client, broker.log)
    assert broker.terminate() == 0


def test_the_bound_of_all_partitions(admin: Admin) -> None:
    assert admin.create("a", MAX - 2) == ErrorCode.none
    for only_check in (True, False):
        assert admin.create("b", 3, only_check=only_check) == TOO_MANY
        assert admin.create("b", -1, only_check=only_check) == TOO_MANY, "the default counts too"
    assert admin.grow("a", MAX + 1) == TOO_MANY
    assert admin.names() == {"a"}
    assert admin.create("b", 1) == ErrorCode.none
    assert admin.grow("b", 2) == ErrorCode.none
    assert admin.create("c", 1) == TOO_MANY
    assert admin.grow("b", 3) == TOO_MANY
    assert admin.delete("a") == ErrorCode.none
    assert admin.create("c", -1) == ErrorCode.none
    assert admin.names() == {"b", "c"}


def test_automatic_creation_is_bound_too(admin: Admin) -> None:
    assert admin.create("a", MAX - DEFAULT + 1) == ErrorCode.none
    admin.ask_to_create("b")
    admin.ask_to_create("b")
    assert admin.create("c", DEFAULT - 1) == ErrorCode.none, "b took nothing"
    assert admin.names() == {"a", "c"}
    assert "automatic creation of 'b' is refused" in admin.log.read_text()
