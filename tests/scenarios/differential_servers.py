"""Apache Kafka and bucketlog, one broker each, with settings that make their answers comparable.

Invariant: the settings change how fast the brokers answer, and no answer.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from localstack.apache_kafka import ScramUser, running_kafka
from tests.rigs.logins import SHA_256, authenticate, handshake, log_in
from tests.rigs.patience import Deadline
from tests.rigs.users import add_user, write_key_file
from tests.rigs.wire_client import WireClient
from tests.scenarios.differential_model import Step
from tests.scenarios.differential_side import Addresses, Side, is_not_ready
from tests.servers.lone_broker import listener, lone_broker

KAFKA_PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.check.interval.ms": "86400000",
    "log.initial.task.delay.ms": "86400000",
    "log.cleaner.backoff.ms": "86400000",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignor.offload.enable": "false",
}
"""One partition of each internal topic: the coordinators are ready sooner. No retention: the
timestamps of the records are old. Of compacted topics, the cleaner deletes records by retention.
"""


ANN = ScramUser("ann", "ann-secret")
"""May do what ACLs allow; other clients may do everything."""


class BothBrokers(NamedTuple):
    kafka: Addresses
    here: Addresses


@contextmanager
def both_brokers(folder: Path) -> Iterator[BothBrokers]:
    """With their coordinators. Ours stays coordinator if a busy machine delays heartbeats.

    Raises `ConfigurationError` without Kafka."""
    with (
        running_kafka(folder / "kafka", user=ANN, properties=KAFKA_PROPERTIES) as kafka,
        lone_broker(
            folder / "here",
            listeners="IN:PLAINTEXT://127.0.0.1:0,LOGIN:SASL_PLAINTEXT://127.0.0.1:0",
            credentials_key_file=str(write_key_file(folder / "keys")),
            sasl_mechanisms=SHA_256,
            authorization="true",
            super_users="User:ANONYMOUS",
            transactions="true",
            node_id="1",
            zone="",
            log_retention_check_interval_ms="0",
            session_timeout_ms="600000",
            group_initial_rebalance_delay_ms="0",
            group_consumer_assignment_interval_ms="0",
        ) as broker,
    ):
        _warm_up(kafka.bootstrap)
        ours = listener(broker, "IN")
        add_user(ours, ANN.name, SHA_256, ANN.password)
        assert kafka.login_bootstrap is not None
        yield BothBrokers(
            Addresses(kafka.bootstrap, kafka.login_bootstrap, _log_in_by_plain),
            Addresses(ours, listener(broker, "LOGIN"), _log_in_by_scram),
        )


def _log_in_by_plain(client: WireClient) -> None:
    assert handshake(client, "PLAIN") is ErrorCode.none
    answer = authenticate(client, f"\0{ANN.name}\0{ANN.password}".encode())
    assert answer.error_code is ErrorCode.none, answer


def _log_in_by_scram(client: WireClient) -> None:
    answer = log_in(client, ANN.name, ANN.password)
    assert answer.error_code is ErrorCode.none, answer


def _warm_up(bootstrap: str) -> None:
    """Kafka creates the topics of its coordinators when somebody asks for them."""
    rows = [{"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}]
    commit = Step(
        ApiKey.OFFSET_COMMIT,
        7,
        {
            "group_id": "@warm",
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "topics": [{"name": "@t0", "partitions": rows}],
        },
    )
    init = Step(
        ApiKey.INIT_PRODUCER_ID,
        3,
        {
            "transactional_id": "@warm",
            "transaction_timeout": 60_000,
            "producer_id": -1,
            "producer_epoch": -1,
        },
    )
    kafka = Side(Addresses(bootstrap, "", _log_in_by_plain))
    try:
        for kind, step in ((0, commit), (1, init)):
            where = Step(ApiKey.FIND_COORDINATOR, 3, {"key": "@warm", "key_type": kind})
            deadline = Deadline("Kafka's coordinators are not ready")
            while any(is_not_ready(kafka.ask(each)) for each in (where, step)):
                deadline.pause()
    finally:
        kafka.close()
