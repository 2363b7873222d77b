"""An Apache Kafka broker (KRaft, one node) as a process on 127.0.0.1, to compare with.

Invariants: the broker is ready when the `with` block begins, and is terminated by its pid at the
end. It writes only to the given folder. The jars are those of `scripts/install.sh kafka-tools`.
"""

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bucketlog.log_format.errors import BucketlogError
from bucketlog.log_format.private_files import make_folder
from localstack.kafka_jars import installed_jars, java_program
from localstack.servers import free_port

CLUSTER_ID = "bucketlogAAAAAAAAAAAAA"
HEAP = "1g"
"""What Kafka's own start script gives a broker."""
READY_TIMEOUT_S = 300.0
"""Limit for failures: a broker listens after seconds, or after minutes on a busy machine."""
STOP_TIMEOUT_S = 30.0
SESSION_TIMEOUT_MS = 120_000
"""Kafka's default is 9 s. On a busy machine, a broker's heartbeat may take longer."""
RETENTION_DELAY_MS = 24 * 60 * 60 * 1000
"""Kafka's default is 30 s, after which retention would delete batches with old timestamps while
they are compared."""
SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
TLS_CIPHER = "TLS_AES_256_GCM_SHA384"
"""What OpenSSL's clients prefer, too."""
FSYNC = "log.flush.interval.messages=1\n"
LOG_TAIL_LINES = 20


class KafkaStartError(BucketlogError):
    """The broker ended by itself, or did not listen in time."""

    code = "KAFKA_START"


@dataclass(frozen=True, slots=True)
class ScramUser:
    """A user of a broker that decides by ACLs. Passwords have no quotes and no brackets."""

    name: str
    password: str


@dataclass(frozen=True, slots=True)
class RunningKafka:
    bootstrap: str
    pid: int
    version: str
    tls_bootstrap: str | None = None
    login_bootstrap: str | None = None


@contextmanager
def running_kafka(
    folder: Path,
    *,
    fsync: bool = False,
    port: int = 0,
    partitions: int = 1,
    admin: ScramUser | None = None,
    tls_pem: Path | None = None,
    user: ScramUser | None = None,
    properties: Mapping[str, str] | None = None,
) -> Iterator[RunningKafka]:
    """Run one broker of Apache Kafka in `folder`.

    `fsync`: after each batch. By default, Kafka leaves this to the operating system. `port`: 0
    selects a free port. `partitions`: the number of partitions of automatically created topics.
    `admin`: clients log in by SCRAM (SASL_PLAINTEXT), the StandardAuthorizer decides by ACLs, and
    this user may do everything.
    `tls_pem`: a key and its certificates, for a second listener with TLS 1.3. `user`: logs in by
    PLAIN at a second listener, and the StandardAuthorizer decides by ACLs. Clients of the first
    listener may do everything. `properties`: further ones of the server.

    Raises `ConfigurationError` (not installed), `KafkaStartError`.
    """
    jars = installed_jars()
    port, controller, second = port or free_port(), free_port(), free_port()
    make_folder(folder)
    config = folder / "server.properties"
    listeners = ("" if tls_pem is None else _with_tls(port, second, controller, tls_pem)) + (
        "" if user is None else _with_login(port, second, controller, user)
    )
    text = _properties(folder, port, controller)
    text += (_PLAIN_TEXT if admin is None else _secured(admin)) + listeners
    text += f"num.partitions={partitions}\n" + (FSYNC if fsync else "")
    text += "".join(f"{name}={value}\n" for name, value in (properties or {}).items())
    config.write_text(text)
    java = [java_program(), "-cp", f"{jars}/*", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    log_path = folder / "server.log"
    named = ["-t", CLUSTER_ID, "-c", str(config)]
    for mechanism in SCRAM_MECHANISMS if admin is not None else ():
        assert admin is not None
        named += ["--add-scram", f"{mechanism}=[name={admin.name},password={admin.password}]"]
    with log_path.open("wb") as log:
        done = subprocess.run(
            [*java, "kafka.tools.StorageTool", "format", "--standalone", *named],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
        )
        if done.returncode:
            raise _failure("its storage could not be formatted", log_path)
        process = subprocess.Popen(
            [*java, f"-Xms{HEAP}", f"-Xmx{HEAP}", "-XX:+UseG1GC", "kafka.Kafka", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        _wait_until_ready(process, port, log_path)
        address = f"127.0.0.1:{second}"
        yield RunningKafka(
            f"127.0.0.1:{port}",
            process.pid,
            _version(jars),
            tls_bootstrap=None if tls_pem is None else address,
            login_bootstrap=None if user is None else address,
        )
    finally:
        _stop(process)


def _version(jars: Path) -> str:
    (jar,) = jars.glob("kafka-clients-*.jar")
    return jar.stem.removeprefix("kafka-clients-")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _properties(folder: Path, port: int, controller: int) -> str:
    """Return Kafka's defaults, with four exceptions: addresses, the needs of a single-node cluster,
    a late check of retention, and a session of the broker that outlives pauses of a busy machine.
    """
    return f"""process.roles=broker,controller
node.id=1
listeners=IN://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=IN://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
inter.broker.listener.name=IN
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
log.dirs={folder}/logs
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
broker.session.timeout.ms={SESSION_TIMEOUT_MS}
log.initial.task.delay.ms={RETENTION_DELAY_MS}
"""


_PLAIN_TEXT = "listener.security.protocol.map=IN:PLAINTEXT,CONTROLLER:PLAINTEXT\n"


def _secured(admin: ScramUser) -> str:
    """The controller's listener is in plain text, so the broker's own requests to the controller
    come from the user ANONYMOUS."""
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    jaas = f'{module} required username="{admin.name}" password="{admin.password}";'
    return f"""listener.security.protocol.map=IN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms={",".join(SCRAM_MECHANISMS)}
sasl.mechanism.inter.broker.protocol={SCRAM_MECHANISMS[0]}
listener.name.in.scram-sha-256.sasl.jaas.config={jaas}
listener.name.in.scram-sha-512.sasl.jaas.config={jaas}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:{admin.name};User:ANONYMOUS
delegation.token.secret.key=a key of delegation tokens
"""


def _with_login(port: int, login_port: int, controller: int, user: ScramUser) -> str:
    """These lines replace earlier ones of the same names."""
    first = f"PLAIN://127.0.0.1:{port}"
    places = f"{first},LOGIN://127.0.0.1:{login_port},CONTROLLER://127.0.0.1:{controller}"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return f"""listeners={places}
advertised.listeners={places}
listener.security.protocol.map=PLAIN:PLAINTEXT,LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAIN
sasl.enabled.mechanisms=PLAIN
listener.name.login.plain.sasl.jaas.config={module} required user_{user.name}="{user.password}";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""


def _with_tls(port: int, tls_port: int, controller: int, pem: Path) -> str:
    """These lines replace earlier ones of the same names."""
    places = (
        f"PLAIN://127.0.0.1:{port},TLS://127.0.0.1:{tls_port},CONTROLLER://127.0.0.1:{controller}"
    )
    return f"""listeners={places}
advertised.listeners={places}
listener.security.protocol.map=PLAIN:PLAINTEXT,TLS:SSL,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAIN
ssl.keystore.type=PEM
ssl.keystore.location={pem}
ssl.enabled.protocols=TLSv1.3
ssl.cipher.suites={TLS_CIPHER}
"""


def _wait_until_ready(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise _failure(f"it ended (exit code {process.returncode})", log)
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise _failure(f"it does not listen after {READY_TIMEOUT_S:g} s", log)


def _failure(what: str, log: Path) -> KafkaStartError:
    lines = log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]
    error = KafkaStartError(f"Apache Kafka: {what}", remedy=f"see {log}")
    error.add_note("\n".join(lines))
    return error
