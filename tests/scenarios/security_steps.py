"""What librdkafka's clients get of a broker with ACLs: one step per operation, as two users.

Invariant: a step's outcome is a text without addresses, times and ids, so that the outcomes of two
brokers can be compared. `ann` has rights on `t`, `g` and `x`; `bob` has none. Users are described
by kafka-configs only: confluent-kafka 2.16 ends the process at an error to that request.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import cache
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._config import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
)
from confluent_kafka.admin._listoffsets import EarliestSpec, OffsetSpec
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic

from bucketlog.metadata.topic_configs import OWN_CONFIGS, TOPIC_CONFIGS
from tests.rigs.patience import PATIENCE_S, Deadline
from tests.servers.secured_brokers import SecuredBroker

ANN, BOB = "ann", "bob"
TOPIC, CLOSED, MISSING = "t", "closed", "missing"
GROUP, CLOSED_GROUP = "g", "closed-g"
ID, CLOSED_ID = "x", "closed-x"
DELIVERY_MS = "30000"
COMPARED_CONFIGS = TOPIC_CONFIGS.keys() - OWN_CONFIGS - {"min.insync.replicas"}
"""Kafka 4.3.1 sets `min.insync.replicas` for the cluster, and has no `record.validation`."""
Run = Callable[[SecuredBroker, str], str]


def outcome(call: Callable[[], object]) -> str:
    """What a call returns, as text, or the name of its error."""
    try:
        found = call()
    except KafkaException as error:
        return error_name(error.args[0])
    return "ok" if found is None else str(found)


def error_name(error: KafkaError) -> str:
    return str(error.name())


def all_of(futures: dict[Any, Future[Any]], show: Callable[[Any], object] | None = None) -> str:
    """One outcome per item of a request."""
    done = [
        outcome(lambda each=each: show(each.result(PATIENCE_S)) if show else _wait(each))  # type: ignore[misc]  # bound now
        for _, each in sorted(futures.items(), key=lambda item: str(item[0]))
    ]
    return ", ".join(done)


def _wait(future: Future[Any]) -> None:
    future.result(PATIENCE_S)


@cache
def admin(broker: SecuredBroker, user: str) -> AdminClient:
    """One client per user: a client without a reference would not end its requests."""
    return AdminClient({**broker.config(user), "log_level": 0})


def list_topics(broker: SecuredBroker, user: str) -> str:
    found = admin(broker, user).list_topics(timeout=PATIENCE_S).topics
    return ", ".join(sorted(name for name in found if not name.startswith("__"))) or "none"


def metadata_of(topic: str) -> Run:
    def run(broker: SecuredBroker, user: str) -> str:
        found = admin(broker, user).list_topics(topic, timeout=PATIENCE_S).topics[topic]
        return error_name(found.error) if found.error else f"{len(found.partitions)} partitions"

    return run


def produce(topic: str, **config: str) -> Run:
    def run(broker: SecuredBroker, user: str) -> str:
        settings = broker.config(user, message_timeout_ms=DELIVERY_MS, **config)
        told: list[str] = []
        producer = Producer({**settings, "log_level": 0})
        producer.produce(
            topic,
            b"v",
            on_delivery=lambda error, _: told.append(error_name(error) if error else "ok"),
        )
        producer.flush(PATIENCE_S)
        return ", ".join(told)

    return run


def consume(topic: str, group: str) -> Run:
    """The first record, or the first error, as a member of the group; then the commit."""

    def run(broker: SecuredBroker, user: str) -> str:
        config = broker.config(user, group_id=group, auto_offset_reset="earliest")
        consumer = Consumer({**config, "enable.auto.commit": False, "log_level": 0})
        consumer.subscribe([topic])
        deadline = Deadline(f"neither a record of {topic} nor an error")
        try:
            while (message := consumer.poll(0.5)) is None:
                deadline.check()
            error = message.error()
            if error is not None:
                return error_name(error)
            committed = outcome(
                lambda: consumer.commit(message=message, asynchronous=False) and None
            )
            return f"{message.value()!r}, commit {committed}"
        finally:
            consumer.close()

    return run


def _commit(consumer: Consumer, message: Any) -> None:
    consumer.commit(message=message, asynchronous=False)


def create_topic(broker: SecuredBroker, user: str) -> str:
    return all_of(admin(broker, user).create_topics([NewTopic(f"new-{user}", 1, 1)]))


def delete_topics(*names: str) -> Run:
    def run(broker: SecuredBroker, user: str) -> str:
        return all_of(admin(broker, user).delete_topics([name.format(user=user) for name in names]))

    return run


def create_partitions(broker: SecuredBroker, user: str) -> str:
    wanted = [NewPartitions(name, 2) for name in (f"new-{user}", CLOSED, MISSING)]
    return all_of(admin(broker, user).create_partitions(wanted))


def delete_records(broker: SecuredBroker, user: str) -> str:
    wanted = [TopicPartition(name, 0, 1) for name in (TOPIC, CLOSED)]
    return all_of(
        admin(broker, user).delete_records(wanted), lambda found: f"from {found.low_watermark}"
    )


def list_offsets(broker: SecuredBroker, user: str) -> str:
    earliest: OffsetSpec = EarliestSpec()  # type: ignore[no-untyped-call]  # theirs
    wanted = {TopicPartition(name, 0): earliest for name in (TOPIC, CLOSED)}
    return all_of(admin(broker, user).list_offsets(wanted), lambda found: f"at {found.offset}")


def _resources() -> list[ConfigResource]:
    return [ConfigResource(ConfigResource.Type.TOPIC, name) for name in (TOPIC, CLOSED, MISSING)]


def describe_configs(broker: SecuredBroker, user: str) -> str:
    return all_of(
        admin(broker, user).describe_configs(_resources()),
        lambda found: "; ".join(_described(found[name]) for name in sorted(COMPARED_CONFIGS)),
    )


def _described(entry: ConfigEntry) -> str:
    listed = [
        f"{ConfigSource(each.source).name} {each.name}={each.value}"
        for each in (entry, *entry.synonyms.values())
    ]
    return " < ".join(listed)


def describe_broker_configs(broker: SecuredBroker, user: str) -> str:
    client = admin(broker, user)
    (node,) = client.list_topics(timeout=PATIENCE_S).brokers
    named = ConfigResource(ConfigResource.Type.BROKER, str(node))
    return all_of(client.describe_configs([named]), lambda _: "ok")


def alter_configs(broker: SecuredBroker, user: str) -> str:
    wanted = _resources()
    for each in wanted:
        each.add_incremental_config(
            ConfigEntry("retention.ms", "777777777", incremental_operation=AlterConfigOpType.SET)
        )
    return all_of(admin(broker, user).incremental_alter_configs(wanted))


def replace_configs(broker: SecuredBroker, user: str) -> str:
    """By AlterConfigs, which newer clients no longer use."""
    wanted = _resources()[:2]
    for each in wanted:
        each.set_config("retention.ms", "888888888")
    return all_of(admin(broker, user).alter_configs(wanted))


def list_groups(broker: SecuredBroker, user: str) -> str:
    found = admin(broker, user).list_consumer_groups().result(PATIENCE_S)
    names = ", ".join(sorted(each.group_id for each in found.valid)) or "none"
    return ", ".join([names, *(error_name(each.args[0]) for each in found.errors)])


def describe_groups(broker: SecuredBroker, user: str) -> str:
    return all_of(
        admin(broker, user).describe_consumer_groups([GROUP, CLOSED_GROUP]),
        lambda found: f"{found.group_id} {found.state.name}",
    )


def group_offsets(broker: SecuredBroker, user: str) -> str:
    found = []
    for group in (GROUP, CLOSED_GROUP):
        for topic in (TOPIC, CLOSED):
            wanted = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])]
            found.append(
                all_of(admin(broker, user).list_consumer_group_offsets(wanted), _partitions)
            )
    return ", ".join(found)


def alter_group_offsets(broker: SecuredBroker, user: str) -> str:
    found = []
    for group, topic in ((GROUP, TOPIC), (GROUP, CLOSED), (CLOSED_GROUP, TOPIC)):
        wanted = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 1)])]
        found.append(all_of(admin(broker, user).alter_consumer_group_offsets(wanted), _partitions))
    return ", ".join(found)


def _partitions(found: ConsumerGroupTopicPartitions) -> str:
    return ", ".join(
        error_name(each.error) if each.error else f"at {each.offset}"
        for each in found.topic_partitions or ()
    )


def delete_groups(broker: SecuredBroker, user: str) -> str:
    return all_of(admin(broker, user).delete_consumer_groups([GROUP, CLOSED_GROUP]))


def transaction(transactional_id: str, topic: str, group: str) -> Run:
    """The outcomes of each call, until one fails."""

    def run(broker: SecuredBroker, user: str) -> str:
        config = broker.config(user, transactional_id=transactional_id)
        config["transaction.timeout.ms"] = config["socket.timeout.ms"]  # librdkafka's lower bound
        producer = Producer({**config, "message.timeout.ms": DELIVERY_MS, "log_level": 0})
        consumer = Consumer({**broker.config(user, group_id=group), "log_level": 0})
        told: list[str] = []

        def send() -> str:
            producer.produce(
                topic,
                b"v",
                on_delivery=lambda error, _: told.append(error_name(error) if error else "ok"),
            )
            producer.flush(PATIENCE_S)
            return told[0]

        members = consumer.consumer_group_metadata()
        offsets = [TopicPartition(TOPIC, 0, 1)]
        calls: list[Callable[[], object]] = [
            lambda: producer.init_transactions(PATIENCE_S),
            producer.begin_transaction,
            send,
            lambda: producer.send_offsets_to_transaction(offsets, members, PATIENCE_S),
            lambda: producer.commit_transaction(PATIENCE_S),
        ]
        done: list[str] = []
        for call in calls:
            done.append(outcome(call))
            if done[-1] != "ok":
                break
        consumer.close()
        return ", ".join(done)

    return run


def rule(user: str, kind: ResourceType, name: str, operation: AclOperation) -> AclBinding:
    return AclBinding(
        kind,
        name,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        operation,
        AclPermissionType.ALLOW,
    )


def create_acls(broker: SecuredBroker, user: str) -> str:
    wanted = rule("someone", ResourceType.TOPIC, "other", AclOperation.READ)
    return all_of(admin(broker, user).create_acls([wanted]))


def _about_someone() -> AclBindingFilter:
    return AclBindingFilter(
        ResourceType.ANY,
        None,  # type: ignore[arg-type]  # any name
        ResourcePatternType.ANY,
        "User:someone",
        None,  # type: ignore[arg-type]  # any host
        AclOperation.ANY,
        AclPermissionType.ANY,
    )


def describe_acls(broker: SecuredBroker, user: str) -> str:
    client = admin(broker, user)
    return outcome(lambda: len(client.describe_acls(_about_someone()).result(PATIENCE_S)))


def delete_acls(broker: SecuredBroker, user: str) -> str:
    return all_of(
        admin(broker, user).delete_acls([_about_someone()]), lambda found: f"{len(found)} deleted"
    )


def alter_users(broker: SecuredBroker, user: str) -> str:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    change = UserScramCredentialUpsertion("someone", info, password=b"secret")
    return all_of(admin(broker, user).alter_user_scram_credentials([change]))


def few_iterations(broker: SecuredBroker, user: str) -> str:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4095)
    change = UserScramCredentialUpsertion("someone", info, password=b"secret")
    return all_of(admin(broker, user).alter_user_scram_credentials([change]))


def describe_cluster(broker: SecuredBroker, user: str) -> str:
    def show() -> str:
        found = admin(broker, user).describe_cluster().result(PATIENCE_S)
        return f"{len(found.nodes)} broker"

    return outcome(show)


def _steps() -> Iterator[tuple[str, Run]]:
    yield "list topics", list_topics
    for topic in (TOPIC, CLOSED, MISSING):
        yield f"metadata of {topic}", metadata_of(topic)
    for topic in (TOPIC, CLOSED):
        yield f"produce to {topic}", produce(topic, enable_idempotence="false")
        yield f"produce to {topic}, idempotent", produce(topic, enable_idempotence="true")
    for topic, group in ((TOPIC, GROUP), (CLOSED, GROUP), (TOPIC, CLOSED_GROUP)):
        yield f"consume {topic} as a member of {group}", consume(topic, group)
    for transactional_id, topic, group in (
        (ID, TOPIC, GROUP),
        (CLOSED_ID, TOPIC, GROUP),
        (ID, CLOSED, GROUP),
        (ID, TOPIC, CLOSED_GROUP),
    ):
        named = f"transaction of {transactional_id} with {topic} and {group}"
        yield named, transaction(transactional_id, topic, group)
    yield "list offsets", list_offsets
    yield "delete records", delete_records
    yield "describe configs of topics", describe_configs
    yield "describe configs of the broker", describe_broker_configs
    yield "alter configs of topics", alter_configs
    yield "replace configs of topics", replace_configs
    yield "describe configs again", describe_configs
    yield "list groups", list_groups
    yield "describe groups", describe_groups
    yield "alter offsets of groups", alter_group_offsets
    yield "offsets of groups", group_offsets
    yield "delete groups", delete_groups
    yield "create a topic", create_topic
    yield "create partitions", create_partitions
    yield "delete topics", delete_topics("new-{user}", CLOSED, MISSING)
    yield "describe the cluster", describe_cluster
    yield "create ACLs", create_acls
    yield "describe ACLs", describe_acls
    yield "delete ACLs", delete_acls
    yield "add a user", alter_users
    yield "a user with too few iterations", few_iterations


CLIENT_STEPS = dict(_steps())
