"""Apache Kafka and bucketlog with SCRAM logins and ACLs: what both are asked in the same way.

Invariant: both have one listener (SASL_PLAINTEXT) that is named to clients, and one super user, the
administrator. Further users and all rules come from whoever compares the two.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from localstack.apache_kafka import SCRAM_MECHANISMS, ScramUser, running_kafka
from tests.rigs.users import add_user, write_key_file
from tests.servers.lone_broker import listener, lone_broker

ADMIN = ScramUser("admin", "admin-secret")
PASSWORD = "secret"
MECHANISM = SCRAM_MECHANISMS[0]
LIBRDKAFKA_MS = "300000"
"""How long a request may take: librdkafka's maximum. It ends failures only."""


@dataclass(frozen=True, slots=True)
class SecuredBroker:
    name: str
    bootstrap: str
    folder: Path
    """For the files of clients."""

    def config(self, user: str, **more: str) -> dict[str, str]:
        """librdkafka's; underscores in the names of `more` are dots."""
        return {
            "bootstrap.servers": self.bootstrap,
            "socket.timeout.ms": LIBRDKAFKA_MS,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": MECHANISM,
            "sasl.username": user,
            "sasl.password": ADMIN.password if user == ADMIN.name else PASSWORD,
        } | {name.replace("_", "."): value for name, value in more.items()}

    def java_config(self, user: str) -> Path:
        """A file of properties."""
        known = self.config(user)
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        login = f'{module} required username="{user}" password="{known["sasl.password"]}";'
        names = ("security.protocol", "sasl.mechanism")
        found = {name: known[name] for name in names} | {"sasl.jaas.config": login}
        file = self.folder / f"{user}.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in found.items()))
        return file


@contextmanager
def secured_kafka(folder: Path) -> Iterator[SecuredBroker]:
    """Raises `ConfigurationError` where Apache Kafka is not installed."""
    with running_kafka(folder / "kafka", admin=ADMIN) as kafka:
        yield SecuredBroker(f"Apache Kafka {kafka.version}", kafka.bootstrap, folder)


@contextmanager
def secured_bucketlog(folder: Path) -> Iterator[SecuredBroker]:
    """The administrator's user is added through a second listener, in plain text."""
    with lone_broker(
        folder,
        listeners="IN:SASL_PLAINTEXT://127.0.0.1:0,FIRST:PLAINTEXT://127.0.0.1:0",
        credentials_key_file=str(write_key_file(folder / "keys")),
        delegation_token_key_file=str(folder / "keys"),
        sasl_mechanisms=",".join(SCRAM_MECHANISMS),
        authorization="true",
        super_users=f"User:{ADMIN.name};User:ANONYMOUS",
        transactions="true",
        node_id="1",
    ) as broker:
        for mechanism in SCRAM_MECHANISMS:
            add_user(listener(broker, "FIRST"), ADMIN.name, mechanism, ADMIN.password)
        yield SecuredBroker("bucketlog", listener(broker, "IN"), folder)
