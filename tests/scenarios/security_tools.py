"""Apache Kafka's own tools against a broker with ACLs: kafka-acls, users by kafka-configs, and
tools of clients with and without rights.

Invariant: an outcome is the exit code and what the tool printed, without addresses, times, ids and
log lines of the JVM's threads, sorted: the order of sets is not compared.
"""

import re
from collections.abc import Iterator

from tests.scenarios.security_steps import ANN, BOB, CLOSED, GROUP, TOPIC, Run
from tests.servers.kafka_tools import KafkaTools
from tests.servers.secured_brokers import ADMIN, SecuredBroker

_CHANGING = (
    (re.compile(r"127\.0\.0\.1:\d+"), "HOST:PORT"),
    (re.compile(r"correlation id \d+"), "correlation id N"),
    (re.compile(r"TopicId: \S+"), "TopicId: ID"),
    (re.compile(r"\(id: \d+ "), "(id: N "),
    (re.compile(r"/\S+\.properties"), "FILE"),
    (re.compile(r"\tElr:.*|min\.insync\.replicas=1,"), ""),  # no security: bucketlog has no ISR
    (re.compile(r"\s+(\d+)\s+\d+\s+(Complete\w+|Ongoing)$"), r" \1 ID \2"),  # a producer id
    (re.compile(r"ProducerId\s+"), "ProducerId "),
    (re.compile(r"Request Request\(.*\) needs"), "Request REQUEST needs"),
)
_NOISE = re.compile(r"^\s+at |^\s*\.\.\. \d+ more|^\[[\w| -]+\] (WARN|INFO)|^WARN|^SLF4J")


def tool(name: str, *arguments: str, user: str = ADMIN.name, stdin: bytes = b"") -> Run:
    """`{user}` in arguments is the step's user."""

    def run(broker: SecuredBroker, _: str) -> str:
        config = ("--command-config", str(broker.java_config(user)))
        done = KafkaTools(broker.bootstrap).run(name, *config, *arguments, stdin=stdin)
        printed = (done.stdout + b"\n" + done.stderr).decode(errors="replace")
        return f"{done.returncode}: {' | '.join(sorted(_told(printed)))}"

    return run


def _told(printed: str) -> Iterator[str]:
    for line in printed.splitlines():
        if line.strip() and not _NOISE.search(line):
            text = line.strip()
            for pattern, instead in _CHANGING:
                text = pattern.sub(instead, text)
            if found := _SET.match(text):
                begin, items = found.groups()
                text = begin + ", ".join(sorted(items.rstrip("]").split(", ")))
            yield text


_SET = re.compile(
    r"(SCRAM credential configs for user-principal '.*' are "
    r"|ResourceType TOPIC only supports operations \[)(.*)"
)
"""Lines with sets, which are printed in any order."""
_PREFIXED = ("--topic", "pre-", "--resource-pattern-type", "prefixed")
_OF_USERS = ("--entity-type", "users")
_SCRAM = "SCRAM-SHA-512=[iterations=4096,password=secret]"


def _acl_steps() -> Iterator[tuple[str, Run]]:
    def acls(title: str, *arguments: str, user: str = ADMIN.name) -> tuple[str, Run]:
        return f"kafka-acls: {title}", tool("kafka-acls", *arguments, user=user)

    cal = ("--allow-principal", "User:cal")
    yield acls("add a producer", "--add", *cal, "--producer", "--topic", "a")
    yield acls("add a consumer", "--add", *cal, "--consumer", "--topic", "a", "--group", "h")
    yield acls("add a prefix", "--add", *cal, "--operation", "Write", *_PREFIXED)
    yield acls("add a wildcard", "--add", *cal, "--operation", "Describe", "--topic", "*")
    yield acls(
        "deny from a host",
        *("--add", "--deny-principal", "User:cal", "--deny-host", "10.9.9.9"),
        *("--operation", "All", "--topic", "a"),
    )
    yield acls("add a right on the cluster", "--add", *cal, "--operation", "Alter", "--cluster")
    yield acls(
        "add a transactional id", "--add", *cal, "--operation", "Write", "--transactional-id", "y"
    )
    yield acls("add the same again", "--add", *cal, "--operation", "Write", *_PREFIXED)
    yield acls("list all", "--list")
    yield acls("list a topic", "--list", "--topic", "a")
    yield acls(
        "list what matches", "--list", "--topic", "pre-1", "--resource-pattern-type", "match"
    )
    yield acls("list a principal", "--list", "--principal", "User:cal")
    yield acls("list nothing", "--list", "--topic", "no-such-rule")
    yield acls("remove a producer", "--remove", "--force", *cal, "--producer", "--topic", "a")
    yield acls("remove what is not there", "--remove", "--force", *cal, "--topic", "none")
    yield acls("remove a prefix", "--remove", "--force", *_PREFIXED)
    yield acls("list what is left", "--list")
    yield acls("an unknown operation", "--add", *cal, "--operation", "Jump", "--topic", "a")
    yield acls(
        "an operation that the resource lacks",
        *("--add", *cal, "--operation", "IdempotentWrite", "--topic", "a"),
    )
    yield acls(
        "a principal without a type",
        *("--add", "--allow-principal", "cal", "--operation", "Read", "--topic", "a"),
    )
    yield acls("an empty topic", "--add", *cal, "--operation", "Read", "--topic", "")
    yield acls("without a resource", "--add", *cal, "--operation", "Read")
    yield acls("list without rights", "--list", user=BOB)
    yield acls("add without rights", "--add", *cal, "--producer", "--topic", "a", user=BOB)
    yield acls("remove without rights", "--remove", "--force", "--topic", "a", user=BOB)


def _user_steps() -> Iterator[tuple[str, Run]]:
    def users(title: str, *arguments: str, user: str = ADMIN.name) -> tuple[str, Run]:
        return f"kafka-configs: {title}", tool("kafka-configs", *arguments, user=user)

    cal = (*_OF_USERS, "--entity-name", "cal")
    yield users("add a user", "--alter", *cal, "--add-config", _SCRAM)
    yield users("describe the user", "--describe", *cal)
    yield users(
        "change the iterations", "--alter", *cal, "--add-config", _SCRAM.replace("4096", "8192")
    )
    yield users("describe all users", "--describe", *_OF_USERS)
    yield users("delete the user", "--alter", *cal, "--delete-config", "SCRAM-SHA-512")
    yield users("delete it again", "--alter", *cal, "--delete-config", "SCRAM-SHA-512")
    yield users("describe the deleted user", "--describe", *cal)
    yield users(
        "too few iterations", "--alter", *cal, "--add-config", _SCRAM.replace("4096", "100")
    )
    yield users("describe without rights", "--describe", *_OF_USERS, user=BOB)
    yield users("add without rights", "--alter", *cal, "--add-config", _SCRAM, user=BOB)


def _client_steps() -> Iterator[tuple[str, Run]]:
    def step(title: str, user: str, name: str, *words: str, stdin: bytes = b"") -> tuple[str, Run]:
        return f"{name}: {title} as {user}", tool(name, *words, user=user, stdin=stdin)

    topic = ("--entity-type", "topics", "--entity-name", TOPIC)
    more = "--add-config", "retention.ms=999999999"
    reading = ("--from-beginning", "--max-messages", "1", "--timeout-ms", "20000")
    for user in (BOB, ANN):
        yield step("list", user, "kafka-topics", "--list", "--exclude-internal")
        yield step(f"describe {TOPIC}", user, "kafka-topics", "--describe", "--topic", TOPIC)
        new = ("--create", "--topic", f"java-{user}", "--partitions", "1")
        yield step("create", user, "kafka-topics", *new, "--replication-factor", "1")
        yield step("produce", user, "kafka-console-producer", "--topic", TOPIC, stdin=b"line\n")
        of_closed = ("--topic", CLOSED)
        yield step(
            f"produce to {CLOSED}", user, "kafka-console-producer", *of_closed, stdin=b"line\n"
        )
        in_group = ("--topic", TOPIC, "--group", GROUP)
        yield step("consume", user, "kafka-console-consumer", *in_group, *reading)
        yield step("offsets", user, "kafka-get-offsets", "--topic", TOPIC, "--time", "earliest")
        yield step("list", user, "kafka-consumer-groups", "--list")
        yield step("describe", user, "kafka-consumer-groups", "--describe", "--group", "other")
        yield step("describe a topic", user, "kafka-configs", "--describe", *topic)
        yield step("alter a topic", user, "kafka-configs", "--alter", *topic, *more)
        yield step("list", user, "kafka-transactions", "list")


TOOL_STEPS = dict([*_acl_steps(), *_user_steps(), *_client_steps()])
