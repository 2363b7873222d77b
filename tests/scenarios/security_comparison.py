"""The same steps against Apache Kafka and bucketlog, both with logins and ACLs, side by side.

Invariant: outcomes that differ are either in `DOCUMENTED`, with both outcomes and the place of the
documentation, or problems. A documented difference that is gone is a problem, too.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.models.sample_requests import Named
from tests.rigs.logins import log_in
from tests.rigs.patience import PATIENCE_S, eventually
from tests.rigs.users import add_user
from tests.rigs.wire_client import WireClient
from tests.scenarios.api_walk import answers, leaf_codes
from tests.scenarios.security_steps import (
    ANN,
    BOB,
    CLIENT_STEPS,
    CLOSED,
    GROUP,
    ID,
    TOPIC,
    Run,
    admin,
    rule,
)
from tests.scenarios.security_tools import TOOL_STEPS
from tests.servers.secured_brokers import (
    ADMIN,
    MECHANISM,
    PASSWORD,
    SecuredBroker,
    secured_bucketlog,
    secured_kafka,
)

BY_NAME = (ApiKey.METADATA, ApiKey.DELETE_TOPICS)
"""Requests that name a topic by its name or its id, not by both."""
NO_ID = uuid.UUID(int=0)
_markers = count()


class Documented(NamedTuple):
    kafka: str
    here: str
    place: str


_CLOSED, _DENIED = "closed", "cluster_authorization_failed"


def _texts(right: str, command: str) -> Documented:
    """Kafka's text of the error has the broker's objects."""
    error = "org.apache.kafka.common.errors.ClusterAuthorizationException"

    def printed(text: str) -> str:
        told = f"{error}: {text}"
        failed = "java.util.concurrent.ExecutionException"
        if command == "ACL":
            between = f"Error while executing ACL command: {told}"
        else:
            between = f"Error while executing config command with args '{command}'"
        return f"1: Caused by: {told} | {between} | {failed}: {told}"

    return Documented(
        printed(f"Request REQUEST needs {right} permission."),
        printed("Cluster authorization failed."),
        "docs/compatibility.md#acls",
    )


_ADD = (
    "--bootstrap-server HOST:PORT --command-config FILE --alter --entity-type users "
    "--entity-name cal --add-config SCRAM-SHA-512=[iterations=4096,password=secret]"
)
_ACL_APIS = ("DescribeAcls", "CreateAcls", "DeleteAcls")
DOCUMENTED: dict[str, Documented] = {
    "InitProducerId 6 as bob": Documented(
        _CLOSED, _DENIED, "docs/compatibility.md#two-phase-commit"
    ),
    **{
        f"{api} {version} as bob": Documented(_CLOSED, _DENIED, "docs/compatibility.md#acls")
        for api in _ACL_APIS
        for version in (1, 2, 3)
    },
    "kafka-acls: list without rights": _texts("DESCRIBE", "ACL"),
    "kafka-acls: add without rights": _texts("DESCRIBE", "ACL"),
    "kafka-acls: remove without rights": _texts("ALTER", "ACL"),
    "kafka-configs: add without rights": _texts("ALTER", _ADD),
}
"""By step. The requests about ACLs have the number 0 in their enumerations."""


@dataclass(frozen=True, slots=True)
class Compared:
    step: str
    kafka: str
    here: str

    @property
    def verdict(self) -> str:
        known = DOCUMENTED.get(self.step)
        if known is not None:
            is_so = (self.kafka, self.here) == (known.kafka, known.here)
            return f"documented: {known.place}" if is_so else "NOT AS DOCUMENTED"
        return "yes" if self.kafka == self.here else "NO"

    @property
    def is_problem(self) -> bool:
        return self.verdict in ("NO", "NOT AS DOCUMENTED")


@contextmanager
def both() -> Iterator[tuple[SecuredBroker, SecuredBroker]]:
    """Kafka first. Raises `ConfigurationError` where Apache Kafka is not installed."""
    with TemporaryDirectory(prefix="bucketlog-security-") as name, ExitStack() as closing:
        folders = [Path(name) / each for each in ("theirs", "ours")]
        for folder in folders:
            folder.mkdir()
        kafka = closing.enter_context(secured_kafka(folders[0]))
        yield kafka, closing.enter_context(secured_bucketlog(folders[1]))


def prepare(broker: SecuredBroker) -> None:
    """The users, two topics, and the rights of `ann`."""
    client = admin(broker, ADMIN.name)
    eventually(lambda: _is_served(client), f"{broker.name} does not know its administrator")
    for user in (ANN, BOB):
        add_user(broker.bootstrap, user, MECHANISM, PASSWORD, broker.config(ADMIN.name))
        eventually(lambda: _is_known(broker, user), f"{broker.name} does not know {user}")  # noqa: B023  # used at once
    for future in client.create_topics([NewTopic(name, 1, 1) for name in (TOPIC, CLOSED)]).values():
        future.result(PATIENCE_S)
    rights = [
        rule(ANN, ResourceType.TOPIC, TOPIC, AclOperation.ALL),
        rule(ANN, ResourceType.TOPIC, f"new-{ANN}", AclOperation.ALL),
        rule(ANN, ResourceType.TOPIC, f"java-{ANN}", AclOperation.ALL),
        rule(ANN, ResourceType.GROUP, GROUP, AclOperation.ALL),
        rule(ANN, ResourceType.TRANSACTIONAL_ID, ID, AclOperation.ALL),
    ]
    for future in client.create_acls(rights).values():
        future.result(PATIENCE_S)
    settle(broker)


def _is_served(client: AdminClient) -> bool:
    try:
        return bool(client.list_topics(timeout=3).brokers)
    except KafkaException:
        return False


def _is_known(broker: SecuredBroker, user: str) -> bool:
    with WireClient(broker.bootstrap) as connection:
        return not log_in(connection, user, PASSWORD, MECHANISM).error_code


def settle(broker: SecuredBroker) -> None:
    """Until all users and rules count that were changed so far: a rule that is added after them,
    and removed again, counts and no longer counts."""
    marker = f"marker-{next(_markers)}"
    wanted = rule(BOB, ResourceType.TOPIC, marker, AclOperation.DESCRIBE)
    client = admin(broker, ADMIN.name)
    with WireClient(broker.bootstrap) as connection:
        assert not log_in(connection, BOB, PASSWORD, MECHANISM).error_code

        def counts() -> bool:
            found = connection.call(
                ApiKey.METADATA, 7, topics=[{"name": marker}], allow_auto_topic_creation=False
            )
            return bool(found.topics[0].error_code != ErrorCode.topic_authorization_failed)

        for future in client.create_acls([wanted]).values():
            future.result(PATIENCE_S)
        eventually(counts, f"{broker.name} does not know a new rule")
        for future in client.delete_acls([_filter(wanted)]).values():
            future.result(PATIENCE_S)
        eventually(lambda: not counts(), f"{broker.name} still knows a rule that was removed")


def _filter(wanted: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        wanted.restype,
        wanted.name,
        wanted.resource_pattern_type,
        wanted.principal,
        wanted.host,
        wanted.operation,
        wanted.permission_type,
    )


def walk_codes(broker: SecuredBroker, user: str) -> dict[str, str]:
    """By API and version: the error codes of a request that names `t` everywhere."""
    found, named = {}, topic_named(broker)
    for key, version, answer in answers(
        broker.bootstrap,
        lambda key: Named(TOPIC, NO_ID) if key in BY_NAME else named,
        lambda client: log_in(client, user, PASSWORD, MECHANISM),
    ):
        codes = {code.name for code in leaf_codes(answer)} if answer is not None else {"closed"}
        found[f"{key.message_name} {version} as {user}"] = ", ".join(sorted(codes))
    return found


def topic_named(broker: SecuredBroker) -> Named:
    with WireClient(broker.bootstrap) as client:
        log_in(client, ADMIN.name, ADMIN.password, MECHANISM)
        found = client.call(
            ApiKey.METADATA,
            12,
            topics=[{"topic_id": NO_ID, "name": TOPIC}],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
    return Named(TOPIC, found.topics[0].topic_id)


def compare(
    brokers: Sequence[SecuredBroker], steps: Mapping[str, Run], user: str
) -> Iterator[Compared]:
    """Each step runs at both brokers at the same time. What it changes counts before the next."""

    def run(broker: SecuredBroker, step: Run) -> str:
        try:
            return step(broker, user)
        finally:
            settle(broker)

    with ThreadPoolExecutor(len(brokers)) as pool:
        for name, step in steps.items():
            kafka, here = pool.map(run, brokers, [step] * len(brokers))
            yield Compared(f"{name} as {user}" if user else name, kafka, here)


def security(*, with_tools: bool, tell: Callable[[Compared], None]) -> list[Compared]:
    """A request of each API and version without rights, all steps by librdkafka without and with
    rights, then the tools."""
    found: list[Compared] = []

    def take(rows: Iterable[Compared]) -> None:
        for row in rows:
            tell(row)
            found.append(row)

    try:
        with both() as brokers:
            with ThreadPoolExecutor(len(brokers)) as pool:
                list(pool.map(prepare, brokers))
            kafka, here = (walk_codes(each, BOB) for each in brokers)
            take(Compared(name, kafka[name], here[name]) for name in kafka)
            for user in (BOB, ANN):
                take(compare(brokers, CLIENT_STEPS, user))
            if with_tools:
                take(compare(brokers, TOOL_STEPS, ""))
    finally:
        admin.cache_clear()
    return found
