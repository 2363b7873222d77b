"""A broker that does not hear of the sequencer does not trust the ACLs that it knows."""

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.patience import eventually
from tests.rigs.wire_client import WireClient
from tests.servers.broker_process import Start
from tests.servers.own_valkey import OwnValkey


def test_rights_end_with_the_way_to_the_sequencer(start: Start, valkey: OwnValkey) -> None:
    broker = start(
        redis_url=f"unix://{valkey.path}",
        authorization="true",
        allow_everyone_if_no_acl_found="true",
        authorization_staleness_ms_max="2500",
    ).wait_until_ready()
    with WireClient(broker.bootstrap) as client:

        def error() -> int:
            found = client.call(
                ApiKey.METADATA, 7, topics=[{"name": "t"}], allow_auto_topic_creation=False
            )
            return int(found.topics[0].error_code)

        missing = ErrorCode.unknown_topic_or_partition
        assert error() == missing
        valkey.pause()
        eventually(lambda: error() == ErrorCode.topic_authorization_failed, "still trusted")
        valkey.go_on()
        eventually(lambda: error() == missing, "trusted no more")
