"""From librdkafka's errors to `LogError`: one table of what is worth trying again and what to do.

Names are those of Kafka's protocol guide; librdkafka's own (negative codes) start with '_'.
"""

from typing import TYPE_CHECKING, NamedTuple

from bucketlog.log_format.errors import LogError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError


class Advice(NamedTuple):
    retriable: bool
    remedy: str


CHECK_ADDRESS = "check the address and that the broker runs; `bucketlog dev` starts one"
_CHECK_LISTENER = (
    "check the address; TLS and logins need security=Security(...), or --tls and --username"
)
_WAIT = "the cluster is settling: try again in a moment"

_NEW_LEADER = "the partition has another leader: try again in a moment"
_NEW_SESSION = "the broker closed this consumer's session: poll again to begin a new session"
_NEW_TOPIC = "the topic was deleted or created again: read its metadata again"
_CHOOSING = "the cluster is choosing other leaders: try again in a moment"
_GIVEN_UP = "its producer was stopped before the record was acknowledged"
_WAITED_FOR_CONTROLLER = "waiting for controller"
"""In librdkafka's reason of a timeout: the controller that it knows does not answer."""

KAFKA_NAMES = {
    "INVALID_MSG": "CORRUPT_MESSAGE",
    "INVALID_MSG_SIZE": "INVALID_FETCH_SIZE",
    "MSG_SIZE_TOO_LARGE": "MESSAGE_TOO_LARGE",
    "NOT_LEADER_FOR_PARTITION": "NOT_LEADER_OR_FOLLOWER",
    "NO_ERROR": "NONE",
    "STALE_CTRL_EPOCH": "STALE_CONTROLLER_EPOCH",
    "TOPIC_EXCEPTION": "INVALID_TOPIC_EXCEPTION",
    "UNKNOWN": "UNKNOWN_SERVER_ERROR",
    "UNKNOWN_TOPIC_OR_PART": "UNKNOWN_TOPIC_OR_PARTITION",
}
"""Librdkafka's names that are not Kafka's."""

ADVICE: dict[str, Advice] = {
    "BROKER_NOT_AVAILABLE": Advice(True, _WAIT),
    "CLUSTER_AUTHORIZATION_FAILED": Advice(False, "use credentials that may do this"),
    "CONCURRENT_TRANSACTIONS": Advice(True, _WAIT),
    "COORDINATOR_LOAD_IN_PROGRESS": Advice(True, _WAIT),
    "COORDINATOR_NOT_AVAILABLE": Advice(True, _WAIT),
    "CORRUPT_MESSAGE": Advice(True, "the bytes were damaged on their way: send again"),
    "ELECTION_NOT_NEEDED": Advice(True, "the partition already has this leader: nothing to do"),
    "ELIGIBLE_LEADERS_NOT_AVAILABLE": Advice(True, _WAIT),
    "FENCED_INSTANCE_ID": Advice(
        False, "another member joined with this instance_id: give each member its own"
    ),
    "FENCED_LEADER_EPOCH": Advice(True, _NEW_LEADER),
    "FENCED_MEMBER_EPOCH": Advice(True, "the group continued without this member: poll to rejoin"),
    "FETCH_SESSION_ID_NOT_FOUND": Advice(True, _NEW_SESSION),
    "GROUP_AUTHORIZATION_FAILED": Advice(False, "use credentials that may use this group"),
    "GROUP_ID_NOT_FOUND": Advice(False, "see `bucketlog group list` for the groups there are"),
    "GROUP_MAX_SIZE_REACHED": Advice(
        False,
        "the group is full: run fewer members, or raise BUCKETLOG_GROUP_MEMBERS_MAX at the brokers",
    ),
    "GROUP_SUBSCRIBED_TO_TOPIC": Advice(False, "stop the members that read this topic first"),
    "ILLEGAL_GENERATION": Advice(
        True, "the group continued without this member: poll again, it rejoins"
    ),
    "INCONSISTENT_GROUP_PROTOCOL": Advice(
        False, "use an assignor that all members have, or another group"
    ),
    "INCONSISTENT_TOPIC_ID": Advice(True, _NEW_TOPIC),
    "INVALID_COMMIT_OFFSET_SIZE": Advice(False, "commit fewer partitions at once"),
    "INVALID_CONFIG": Advice(False, "correct the topic's configs"),
    "INVALID_FETCH_SESSION_EPOCH": Advice(True, _NEW_SESSION),
    "INVALID_GROUP_ID": Advice(False, "choose another name for the group"),
    "INVALID_PARTITIONS": Advice(
        False, "ask for more partitions than there are, and at most BUCKETLOG_PARTITIONS_MAX"
    ),
    "INVALID_PRODUCER_EPOCH": Advice(False, "another producer took over: open a new one"),
    "INVALID_PRODUCER_ID_MAPPING": Advice(
        False, "the cluster has not assigned this producer's id: open a new producer"
    ),
    "INVALID_RECORD": Advice(False, "the record breaks a rule of the topic: correct it"),
    "INVALID_REPLICATION_FACTOR": Advice(
        False, "leave the replication factor at 1: the bucket replicates"
    ),
    "INVALID_REQUEST": Advice(False, "the broker and this client disagree: compare their versions"),
    "INVALID_SESSION_TIMEOUT": Advice(
        False, "keep session_timeout_s within BUCKETLOG_GROUP_SESSION_TIMEOUT_MS_MIN and _MAX"
    ),
    "INVALID_SHARE_SESSION_EPOCH": Advice(True, _NEW_SESSION),
    "INVALID_TIMESTAMP": Advice(False, "correct the record's timestamp"),
    "INVALID_TRANSACTION_TIMEOUT": Advice(
        False,
        "use a shorter timeout_s, or raise BUCKETLOG_TRANSACTION_TIMEOUT_MS_MAX at the brokers",
    ),
    "INVALID_TXN_STATE": Advice(False, "abort the transaction, and run it again"),
    "INVALID_TOPIC_EXCEPTION": Advice(False, "choose another name"),
    "KAFKA_STORAGE_ERROR": Advice(True, "the bucket is unreachable: see the broker's log"),
    "LEADER_NOT_AVAILABLE": Advice(True, _WAIT),
    "LISTENER_NOT_FOUND": Advice(
        True, "the leader has no such listener: give all brokers the same listeners"
    ),
    "MEMBER_ID_REQUIRED": Advice(True, _WAIT),
    "MESSAGE_TOO_LARGE": Advice(False, "send smaller records, or raise max.message.bytes"),
    "NETWORK_EXCEPTION": Advice(True, _WAIT),
    "NON_EMPTY_GROUP": Advice(
        False, "stop its members first: `bucketlog group describe` lists them"
    ),
    "NOT_CONTROLLER": Advice(True, _WAIT),
    "NOT_COORDINATOR": Advice(True, _WAIT),
    "NOT_ENOUGH_REPLICAS": Advice(True, _WAIT),
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": Advice(
        True, "the record may have been written: send it again with an idempotent producer"
    ),
    "NOT_LEADER_OR_FOLLOWER": Advice(True, _WAIT),
    "OFFSET_METADATA_TOO_LARGE": Advice(
        False,
        "commit shorter metadata, or raise BUCKETLOG_OFFSET_METADATA_BYTES_MAX at the brokers",
    ),
    "OFFSET_NOT_AVAILABLE": Advice(True, _WAIT),
    "OFFSET_OUT_OF_RANGE": Advice(
        False, "start from the earliest or the latest record, or from an offset between them"
    ),
    "OUT_OF_ORDER_SEQUENCE_NUMBER": Advice(False, "an earlier batch was lost: open a new producer"),
    "POLICY_VIOLATION": Advice(
        False,
        "end the mirror of the topic by a cut-over, or raise the limit that the broker names",
    ),
    "PREFERRED_LEADER_NOT_AVAILABLE": Advice(True, _WAIT),
    "PRODUCER_FENCED": Advice(False, "another producer took over: open a new one"),
    "REBALANCE_IN_PROGRESS": Advice(True, "the group is rebalancing: poll, then commit again"),
    "RECORD_LIST_TOO_LARGE": Advice(False, "send smaller batches (batch.size)"),
    "REPLICA_NOT_AVAILABLE": Advice(True, _WAIT),
    "REQUEST_TIMED_OUT": Advice(
        True, "the broker could not commit in time: see its log, try again"
    ),
    "RESOURCE_NOT_FOUND": Advice(False, "see `bucketlog user list` for the users there are"),
    "SASL_AUTHENTICATION_FAILED": Advice(False, "check user and password"),
    "SECURITY_DISABLED": Advice(
        False, "set BUCKETLOG_CREDENTIALS_KEY_FILE at all brokers, as docs/logins.md says"
    ),
    "SHARE_SESSION_LIMIT_REACHED": Advice(
        True, "the broker has no room for another share session: try again in a moment"
    ),
    "SHARE_SESSION_NOT_FOUND": Advice(True, _NEW_SESSION),
    "STALE_MEMBER_EPOCH": Advice(True, "the group continued without this member: poll to rejoin"),
    "THROTTLING_QUOTA_EXCEEDED": Advice(True, "slow down, or ask for a larger quota"),
    "TOPIC_ALREADY_EXISTS": Advice(False, "use topics.ensure, or another name"),
    "TOPIC_AUTHORIZATION_FAILED": Advice(False, "use credentials that may use this topic"),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": Advice(
        False, "set BUCKETLOG_TRANSACTIONS=true at all brokers"
    ),
    "UNACCEPTABLE_CREDENTIAL": Advice(False, "use 4096 to 16384 iterations, and a shorter name"),
    "UNKNOWN_LEADER_EPOCH": Advice(True, _WAIT),
    "UNKNOWN_MEMBER_ID": Advice(
        True, "the group continued without this member: poll again, it rejoins"
    ),
    "UNKNOWN_PRODUCER_ID": Advice(False, "the cluster forgot this producer: open a new one"),
    "UNKNOWN_TOPIC_ID": Advice(True, _NEW_TOPIC),
    "UNKNOWN_TOPIC_OR_PARTITION": Advice(
        False, "create it: `bucketlog topic create NAME`, or log.topics.ensure(topic)"
    ),
    "UNRELEASED_INSTANCE_ID": Advice(
        False, "another member has this instance_id: stop it, or give each member its own"
    ),
    "UNSTABLE_OFFSET_COMMIT": Advice(True, "a transaction is about to end: try again in a moment"),
    "UNSUPPORTED_ASSIGNOR": Advice(False, "use an assignor that the broker offers"),
    "UNSUPPORTED_COMPRESSION_TYPE": Advice(False, "use gzip, snappy, lz4, zstd or none"),
    "UNSUPPORTED_FOR_MESSAGE_FORMAT": Advice(False, "use a client of Kafka 0.11 or newer"),
    "UNSUPPORTED_VERSION": Advice(False, "this broker does not offer it: compare versions"),
    "_ALL_BROKERS_DOWN": Advice(True, _CHECK_LISTENER),
    "_ASSIGNMENT_LOST": Advice(
        True, "its partitions went to other members: poll again, it rejoins"
    ),
    "_AUTHENTICATION": Advice(False, "check user and password"),
    "_AUTO_OFFSET_RESET": Advice(
        False,
        "the offset is gone or not there yet: start from the earliest or latest record, or between",
    ),
    "_BAD_MSG": Advice(False, "damaged bytes: run `bucketlog segment verify` over the bucket"),
    "_CONFLICT": Advice(False, "use one kind of assignor: cooperative-sticky cannot be combined"),
    "_FATAL": Advice(False, "this client cannot continue: open a new one"),
    "_FENCED": Advice(False, "another client took over: stop this one, or open a new one"),
    "_INVALID_DIFFERENT_RECORD": Advice(
        False, "another record of its batch breaks a rule of the topic: correct that one"
    ),
    "_INVALID_ARG": Advice(False, "correct the setting that is named"),
    "_MAX_POLL_EXCEEDED": Advice(
        True, "a loop body took too long: raise max_poll_interval_s, or poll fewer records"
    ),
    "_MSG_TIMED_OUT": Advice(True, "the broker did not acknowledge in time: see its log"),
    "_NO_OFFSET": Advice(False, "nothing was read yet that could be committed"),
    "_PURGE_INFLIGHT": Advice(False, _GIVEN_UP),
    "_PURGE_QUEUE": Advice(False, _GIVEN_UP),
    "_QUEUE_FULL": Advice(True, "the broker is slower than this producer: wait, then continue"),
    "_RESOLVE": Advice(True, "the host name is unknown: check the address"),
    "_SSL": Advice(False, "check certificates and that the listener speaks TLS"),
    "_STATE": Advice(False, "open a new consumer: it continues after what was committed"),
    "_TIMED_OUT": Advice(True, _CHECK_LISTENER),
    "_TIMED_OUT_QUEUE": Advice(True, "the broker is slower than this producer: try again"),
    "_TRANSPORT": Advice(True, _CHECK_LISTENER),
    "_UNKNOWN_GROUP": Advice(False, "see `bucketlog group list` for the groups there are"),
    "_UNKNOWN_PARTITION": Advice(False, "ask for a partition that the topic has"),
    "_UNKNOWN_TOPIC": Advice(
        False, "create it: `bucketlog topic create NAME`, or log.topics.ensure(topic)"
    ),
    "_WAIT_COORD": Advice(True, _WAIT),
}

UNADVISED = Advice(False, "see the broker's log")


def log_error(error: "KafkaError", doing: str) -> LogError:
    """`doing` is what was tried, as in "sending to topic 'orders'"."""
    name = KAFKA_NAMES.get(error.name(), error.name())
    advice = ADVICE.get(name, UNADVISED)
    if _WAITED_FOR_CONTROLLER in error.str():
        advice = Advice(True, _CHOOSING)
    return LogError(
        f"{doing}: {error.str()} [{name}]",
        code=name.removeprefix("_"),
        kafka_code=error.code(),
        retriable=advice.retriable,
        remedy=advice.remedy,
    )
