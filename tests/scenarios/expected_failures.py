"""Tests of Kafka clients that are expected to fail or to be skipped, each with its reason.

`make prove WHAT=compat` fails if a test fails or is skipped without a row here, and if a test
passes although a row says that the test fails. `docs/compatibility.md` shows the rows.
"""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tests.scenarios.client_suites import Outcome, Outcomes
from tests.scenarios.known_suites import KAFKA_GO_PANICS, LIBRDKAFKA_WITHOUT_CREATION


class Cause(StrEnum):
    KAFKA_TOO = "Apache Kafka too"
    """The test does not pass on Apache Kafka 4.3.1 either. The full form checks this claim."""
    CHANCE = "chance"
    """The test passes or fails by chance."""
    SETUP = "setup"
    """The test needs something that this run does not give, for example a login."""
    HERE = "bucketlog"
    """A documented difference or gap of bucketlog."""


@dataclass(frozen=True, slots=True)
class Expectation:
    suite: str
    tests: str
    """A pattern of the shell for names of tests."""
    cause: Cause
    reason: str
    """For the page on compatibility, in Markdown."""

    def covers(self, suite: str, test: str) -> bool:
        return suite == self.suite and fnmatch.fnmatchcase(test, self.tests)


@dataclass(slots=True)
class Verdict:
    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """Failed or skipped, without an expectation."""
    expected: dict[Expectation, list[str]] = field(default_factory=dict)
    """Failed, with an expectation."""
    skipped: dict[Expectation, list[str]] = field(default_factory=dict)
    surprises: list[str] = field(default_factory=list)
    """Passed, although a row says that the test does not pass."""


def judge(
    suite: str, outcomes: Outcomes, expectations: Sequence[Expectation] | None = None
) -> Verdict:
    """Compare the outcomes of a suite with the expectations; default: `EXPECTED`."""
    rows = EXPECTED if expectations is None else expectations
    verdict = Verdict()
    for name, outcome in sorted(outcomes.items()):
        row = next((row for row in rows if row.covers(suite, name)), None)
        match outcome:
            case Outcome.PASSED:
                verdict.passed.append(name)
                if row is not None and row.cause is not Cause.CHANCE:
                    verdict.surprises.append(name)
            case _ if row is None:
                verdict.failed.append(name)
            case Outcome.FAILED:
                verdict.expected.setdefault(row, []).append(name)
            case Outcome.SKIPPED:
                verdict.skipped.setdefault(row, []).append(name)
    return verdict


NO_LOGINS = "the run has no listener with logins; other tests cover [logins](logins.md)"
NO_TLS = "the run has no listener with TLS; other tests cover [TLS](tls.md)"
BEFORE_3_0 = "for brokers older than Kafka 3.0"
NO_AUTO_CREATION = "for brokers that do not create topics automatically"
AUTO_CREATION = "for brokers that create topics automatically"
OF_A_SUBTEST = "fails with its subtest"
KNOWN_PROBLEMS = "librdkafka marks the test as one with known problems"
ONE_REPLICA = "each partition has one replica, on its leader, and the brokers choose the leader"
IN_CONTAINERS = "the test stops a broker, reads its log or runs Java, in a Docker container"
SWITCHED_OFF = "the suite has switched the test off"
EXPECTED: tuple[Expectation, ...] = (
    Expectation(
        "kafka-python",
        "*::test_alter_replica_log_dirs",
        Cause.HERE,
        "AlterReplicaLogDirs is not served: the bucket is the only log directory",
    ),
    Expectation(
        "kafka-python",
        "*::test_describe_metadata_quorum",
        Cause.HERE,
        "DescribeQuorum returns INVALID_REQUEST: there is no quorum",
    ),
    Expectation(
        "kafka-python",
        "*::test_kafka_consumer_offsets_for_time_old",
        Cause.SETUP,
        "only for brokers older than 0.10.1",
    ),
    Expectation(
        "kafka-python",
        "test.integration.test_sasl_integration::*",
        Cause.SETUP,
        "the suite logs in only to brokers that it starts itself; other tests cover "
        "[logins](logins.md)",
    ),
    Expectation(
        "kafka-python",
        "test.integration.test_ssl_integration.*",
        Cause.SETUP,
        "the suite uses TLS only with brokers that it starts itself",
    ),
    Expectation("franz-go", "TestSCRAMAuth*", Cause.SETUP, NO_LOGINS),
    Expectation(
        "aiokafka",
        "*::test_exclude_internal_topics",
        Cause.HERE,
        "committed offsets are not in a topic: `__consumer_offsets` does not exist",
    ),
    Expectation(
        "aiokafka",
        "*::test_subscribe_manual",
        Cause.HERE,
        "gets a warning of the consumer that `test_exclude_internal_topics` leaves open",
    ),
    Expectation("aiokafka", "*::test_ssl_consume", Cause.SETUP, NO_TLS),
    Expectation("aiokafka", "*::test_producer_ssl", Cause.SETUP, NO_TLS),
    Expectation("aiokafka", "*::test_create_ssl_context", Cause.SETUP, NO_TLS),
    Expectation("aiokafka", "tests.test_sasl.TestKafkaSASL::*", Cause.SETUP, NO_LOGINS),
    Expectation(
        "aiokafka",
        "tests.test_protocol::*[[]NOTSET-*",
        Cause.SETUP,
        "the suite has no parameters for the test",
    ),
    Expectation(
        "confluent-kafka-python", "*::test_describe_operations[[]sasl*", Cause.SETUP, NO_LOGINS
    ),
    Expectation(
        "confluent-kafka-python",
        "*::test_incremental_alter_configs",
        Cause.HERE,
        "a new cluster of Kafka stores `min.insync.replicas` as a config of all brokers, so the "
        "test expects its value with a source that bucketlog does not show",
    ),
    Expectation(
        "confluent-kafka-python",
        "*::test_consumer_upgrade_downgrade",
        Cause.SETUP,
        "for runs with the consumer protocol",
    ),
    *(
        Expectation(
            "kafka-go",
            f"TestReaderConsumerGroup/{test}",
            Cause.SETUP,
            "the test calls a nil function, which ends the program",
        )
        for test in KAFKA_GO_PANICS
    ),
    Expectation("kafka-go", "TestClientAdd*ToTxn", Cause.SETUP, BEFORE_3_0),
    Expectation("kafka-go", "TestClientTxnOffsetCommit", Cause.SETUP, BEFORE_3_0),
    Expectation("kafka-go", "TestClientInitProducerId", Cause.SETUP, BEFORE_3_0),
    Expectation("kafka-go", "TestReadTruncatedMessages", Cause.SETUP, SWITCHED_OFF),
    Expectation("kafka-go", "TestConsumerGroupWithMissingTopic", Cause.SETUP, NO_AUTO_CREATION),
    Expectation("kafka-go", "TestUnsupportedSASLMechanism", Cause.SETUP, NO_LOGINS),
    Expectation("kafka-go", "TestWriter/writing_a_message_with_SASL*", Cause.SETUP, NO_LOGINS),
    Expectation("kafka-go", "TestWriter", Cause.SETUP, OF_A_SUBTEST),
    Expectation(
        "kafka-go",
        "TestReaderReadCompactedMessage",
        Cause.KAFKA_TOO,
        "the test sets `segment.bytes=200`, and the least value is 1 MiB",
    ),
    Expectation(
        "kafka-go",
        "TestReaderConsumerGroup/consumer_group_rebalance",
        Cause.KAFKA_TOO,
        "the test expects that two members have one partition each before the first record",
    ),
    Expectation("kafka-go", "TestReaderConsumerGroup", Cause.KAFKA_TOO, OF_A_SUBTEST),
    Expectation("librdkafka", "0028_long_topicnames", Cause.SETUP, KNOWN_PROBLEMS),
    Expectation("librdkafka", "0047_partial_buf_tmout", Cause.SETUP, KNOWN_PROBLEMS),
    Expectation("librdkafka", "0045_subscribe_update_[nt]*", Cause.SETUP, NO_AUTO_CREATION),
    Expectation("librdkafka", "0107_topic_recreate", Cause.SETUP, NO_AUTO_CREATION),
    Expectation("librdkafka", "0111_delay_create_topics", Cause.SETUP, NO_AUTO_CREATION),
    Expectation(
        "librdkafka",
        "0109_auto_create_topics",
        Cause.CHANCE,
        "failed in one run of three, and passes alone; the cause is not known",
    ),
    Expectation(
        "librdkafka", "0101_fetch_from_follower", Cause.SETUP, "for three brokers in three racks"
    ),
    *(
        Expectation(LIBRDKAFKA_WITHOUT_CREATION, test, Cause.SETUP, AUTO_CREATION)
        for test in (
            "0045_resubscribe_with_regex",
            "0045_subscribe_many_updates",
            "0045_subscribe_update",
        )
    ),
    Expectation("librdkafka", "0082_fetch_max_bytes", Cause.SETUP, "not part of the quick forms"),
    Expectation(
        "librdkafka",
        "0092_mixed_msgver",
        Cause.SETUP,
        "for brokers older than Kafka 4.0, which have message format 1",
    ),
    Expectation("librdkafka", "0097_ssl_verify", Cause.SETUP, NO_TLS),
    Expectation("librdkafka", "0126_oauthbearer_oidc", Cause.SETUP, NO_LOGINS),
    Expectation("librdkafka", "0135_sasl_credentials", Cause.SETUP, NO_LOGINS),
    Expectation("librdkafka", "0142_reauthentication", Cause.SETUP, NO_LOGINS),
    *(
        Expectation("kafkajs", test, Cause.SETUP, NO_LOGINS)
        for test in (
            "Producer support SASL *",
            "Producer throws an error if SASL * fails to authenticate",
        )
    ),
    Expectation("kafkajs", "Producer support SSL connections", Cause.SETUP, NO_TLS),
    Expectation(
        "kafkajs",
        "Broker > TxnOffsetCommit ignores invalid transaction fields",
        Cause.KAFKA_TOO,
        "the test expects that brokers accept offsets of an unknown transaction",
    ),
    *(
        Expectation(
            "confluent-kafka-go", f"TestIntegration/TestAdminClient_{test}", Cause.SETUP, NO_LOGINS
        )
        for test in (
            "DescribeCluster",
            "DescribeConsumerGroupsAuthorizedOperations",
            "DescribeTopics",
        )
    ),
    Expectation(
        "confluent-kafka-go",
        "TestIntegration/TestAdminTopics",
        Cause.HERE,
        "a replication factor above the number of brokers is accepted",
    ),
    Expectation("confluent-kafka-go", "TestIntegration", Cause.HERE, OF_A_SUBTEST),
    Expectation("sarama", "TestConsumerFetchFollowerFailover", Cause.HERE, ONE_REPLICA),
    Expectation("sarama", "TestFuncAdminAlterPartitionReassignments", Cause.HERE, ONE_REPLICA),
    Expectation(
        "sarama",
        "TestFuncAdminIncrementalAlterConfigs",
        Cause.HERE,
        "bucketlog does not have the setting `log.cleaner.backoff.ms`",
    ),
    *(
        Expectation("sarama", test, Cause.SETUP, IN_CONTAINERS)
        for test in (
            "TestFuncAdminListConsumerGroupOffsets",
            "TestFuncIdempotentBufferedSequence",
            "TestFuncJavaInteropCooperativeRebalance",
            "TestFuncTxnProduceWithBrokerFailure",
            "TestJava*Interop",
            "TestJava*RoundTrip",
        )
    ),
    Expectation("sarama", "TestReadOnlyAndAllCommittedMessages", Cause.SETUP, SWITCHED_OFF),
    *(
        Expectation("topicctl", f"TestBrokerClient{test}", Cause.HERE, ONE_REPLICA)
        for test in ("AddPartitions", "AlterAssignments", "UpdateTopicConfig")
    ),
    Expectation(
        "topicctl",
        "TestBrokerClientBrokers",
        Cause.HERE,
        "bucketlog does not have the setting `leader.replication.throttled.rate`",
    ),
    Expectation(
        "kaf",
        "*::test_a_group_is_reset",
        Cause.KAFKA_TOO,
        "kaf sends version 1 of OffsetCommit, which Kafka 4.0 removed",
    ),
    Expectation(
        "kafkajs",
        "Producer emits the request timeout event",
        Cause.CHANCE,
        "fails if a broker answers within 1 ms",
    ),
)
