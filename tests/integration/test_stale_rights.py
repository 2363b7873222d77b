"""Revocation: how soon a rule that was deleted at one broker ends at another, and what a broker
does that does not hear of the sequencer. Times are logged, not asserted: machines may be slow."""

import logging
import time
from pathlib import Path

from kio.schema.errors import ErrorCode

from bucketlog import Security
from bucketlog.client.broker_connection import BrokerConnection, open_connection
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import FrameWriter
from bucketlog.metadata.acl_bindings import AclOperation, PatternType, Permission
from tests.rigs.patience import PATIENCE_S, eventually
from tests.rigs.rights import EVERYTHING, OK, TOPIC, TOPIC_DENIED, TwoBrokers, create_topics
from tests.rigs.users import PASSWORD, add_user, write_key_file
from tests.rigs.wire_client import WireClient
from tests.servers.broker_process import BrokerProcess, Start
from tests.servers.own_valkey import OwnValkey
from tests.servers.way import State, Way

logger = logging.getLogger(__name__)

STALENESS_MS = 2500
EVERYONE_DESCRIBES = {
    "resource_type": TOPIC,
    "resource_name": "t",
    "resource_pattern_type": PatternType.LITERAL,
    "principal": "User:ANONYMOUS",
    "host": "*",
    "operation": AclOperation.DESCRIBE,
    "permission_type": Permission.ALLOW,
}


def error_of_topic(client: WireClient) -> int:
    found = client.call(ApiKey.METADATA, 7, topics=[{"name": "t"}], allow_auto_topic_creation=False)
    return int(found.topics[0].error_code)


def test_a_deleted_rule_ends_at_the_other_broker(rights: TwoBrokers) -> None:
    for _ in range(3):
        rights.grant((TOPIC, "t", AclOperation.DESCRIBE))
        assert error_of_topic(rights.client) == OK
        deleted = rights.admin.call(ApiKey.DELETE_ACLS, 3, filters=[EVERYTHING])
        assert len(deleted.filter_results[0].matching_acls) == 2
        began = time.monotonic()
        eventually(lambda: error_of_topic(rights.client) == TOPIC_DENIED, "the rule still counts")
        logger.info("denied %.0f ms after the answer", (time.monotonic() - began) * 1000)


def test_a_broker_that_is_cut_off_ends_all_rights_but_those_of_super_users(
    start: Start, valkey: OwnValkey, tmp_path: Path
) -> None:
    """Meanwhile, the rule is deleted at a broker that is not cut off."""
    shared = {
        "authorization": "true",
        "credentials_key_file": str(write_key_file(tmp_path / "keys")),
    }
    with Way(valkey.path, tmp_path / "way.sock") as way:
        first = start(
            redis_url=f"unix://{valkey.path}", super_users="User:ANONYMOUS", **shared
        ).wait_until_ready()
        second = start(
            redis_url=f"unix://{tmp_path}/way.sock",
            super_users="User:root",
            listeners="PLAIN:PLAINTEXT://127.0.0.1:0,IN:SASL_PLAINTEXT://127.0.0.1:0",
            authorization_staleness_ms_max=str(STALENESS_MS),
            **shared,
        ).wait_until_ready()
        add_user(first.bootstrap, "root", "SCRAM-SHA-512")
        with (
            WireClient(first.bootstrap) as admin,
            WireClient(str(second.ready["listeners"]["PLAIN"])) as client,
        ):
            create_topics(admin, "t")
            admin.call(ApiKey.CREATE_ACLS, 3, creations=[EVERYONE_DESCRIBES])
            eventually(lambda: error_of_topic(client) == OK, "the rule does not arrive")
            with super_user(second) as root:
                way.be(State.BLACK_HOLE)
                began = time.monotonic()
                deleted = admin.call(ApiKey.DELETE_ACLS, 3, filters=[EVERYTHING])
                assert len(deleted.filter_results[0].matching_acls) == 1
                eventually(lambda: error_of_topic(client) == TOPIC_DENIED, "still trusted")
                took_ms = (time.monotonic() - began) * 1000
                logger.info("denied %.0f ms after the cut (bound %d ms)", took_ms, STALENESS_MS)
                assert error_seen_by(root) == OK
                way.be(State.OPEN)
                admin.call(ApiKey.CREATE_ACLS, 3, creations=[EVERYONE_DESCRIBES])
                eventually(lambda: error_of_topic(client) == OK, "trusted no more")


def super_user(broker: BrokerProcess) -> BrokerConnection:
    host, _, port = str(broker.ready["listeners"]["IN"]).rpartition(":")
    security = Security(username="root", password=PASSWORD, tls=False)
    return open_connection((host, int(port)), security, PATIENCE_S)


def error_seen_by(connection: BrokerConnection) -> int:
    """Of the topic `t`, by Metadata 4."""
    body = FrameWriter(flexible=False)
    body.array_length(1)
    body.nullable_string("t")
    body.data += b"\0"  # create no topics
    answer = connection.ask(ApiKey.METADATA, 4, body)
    answer.int32()
    for _ in range(answer.array_length(10)):
        answer.int32(), answer.string(), answer.int32(), answer.nullable_string()
    answer.nullable_string(), answer.int32()
    assert answer.array_length(9) == 1
    return answer.int16()


def test_rights_end_with_the_way_to_the_sequencer(start: Start, valkey: OwnValkey) -> None:
    broker = start(
        redis_url=f"unix://{valkey.path}",
        authorization="true",
        allow_everyone_if_no_acl_found="true",
        authorization_staleness_ms_max=str(STALENESS_MS),
    ).wait_until_ready()
    with WireClient(broker.bootstrap) as client:
        missing = ErrorCode.unknown_topic_or_partition
        assert error_of_topic(client) == missing
        valkey.pause()
        eventually(lambda: error_of_topic(client) == TOPIC_DENIED, "still trusted")
        valkey.go_on()
        eventually(lambda: error_of_topic(client) == missing, "trusted no more")
