"""Clients x mechanisms x protocols x cases of a login: what each client gets, beside what it must.

Invariant: a cell's outcome is one word, so that a table can show all. That a login was refused, and
not the connection, follows from the cell of the right password beside it.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import count, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import aiokafka
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from kafka.errors import KafkaError

from tests.rigs.certificate_authority import Authority
from tests.rigs.client_tls import (
    AioKafkaTokens,
    ClientLogin,
    ClientTls,
    KafkaPythonTokens,
    TokenLogin,
)
from tests.rigs.patience import PATIENCE_S, Deadline
from tests.rigs.tokens import Provider
from tests.scenarios.clients import KINDS, Kcat
from tests.scenarios.paced_producers import PACED
from tests.scenarios.refused_logins import REFUSED
from tests.scenarios.round_trip import PARTITIONS, create_topic, differences, make_rows
from tests.servers.broker_process import BrokerProcess
from tests.servers.franz_go import GoClientError
from tests.servers.kafka_tools import KafkaTools
from tests.servers.lone_broker import (
    MECHANISMS,
    OAUTHBEARER,
    PASSWORD,
    USER,
    listener,
    login_broker,
)

CLIENTS = ("confluent-kafka", "aiokafka", "kafka-python", "kcat", "java", "franz-go")
LEFT_OUT = frozenset({("kcat", "OAUTHBEARER")})
"""kcat has no callback for tokens; tests/integration/test_keycloak.py tries its library."""
PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL")
RIGHT, WRONG, UNKNOWN, DENIED_TOPIC = CASES = (
    "right password",
    "wrong password",
    "unknown user",
    "denied topic",
)
RIGHT_TOKEN, FORGED, EXPIRED = "right token", "forged token", "expired token"
CASES_OF: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(MECHANISMS, CASES),
    OAUTHBEARER: (RIGHT_TOKEN, FORGED, EXPIRED, DENIED_TOPIC),
}
"""By mechanism: those with tokens have other cases."""
EXPIRED_S = -600.0
"""Longer ago than the clock skew that brokers allow."""
SERVED, REFUSED_LOGIN, DENIED = "served", "refused", "denied"
RECORDS = 20
AT_ONCE = 3
OWN, CLOSED = "own-", "closed"
SESSION_MS = "4000"
JAVA_MS = "120000"
"""How long a call of the Java client may take: it ends failures only."""
LAPSES = 4
"""On a busy machine, a client may miss the end of a session, at most once in so many logins."""
TOKENS = 'bucketlog_request_seconds_count{api="SaslAuthenticate"}'
RECONNECTS = frozenset({"aiokafka"})
"""Clients that do not authenticate again: they connect again."""
FAILURES = (
    AssertionError,
    OSError,
    KafkaException,
    aiokafka.errors.KafkaError,
    KafkaError,
    GoClientError,
)
"""Of all clients."""
_DENIAL = re.compile(r"topic ?authorization|not authorized to access topic", re.IGNORECASE)
LASTS_S = 1200.0
"""Of a good token."""
_files = count()


@cache
def kcat_knows_scram() -> bool:
    """librdkafka sent a wrong nonce before 2.6.1 (its pull request 4895)."""
    found = re.search(r"librdkafka (\d+)\.(\d+)\.(\d+)", Kcat().version())
    return found is not None and tuple(map(int, found.groups())) >= (2, 6, 1)


@cache
def forger() -> Provider:
    """Its tokens name the right key, and are signed by another."""
    return Provider()


class Cell(NamedTuple):
    client: str
    mechanism: str
    protocol: str
    case: str

    @property
    def expected(self) -> str:
        if self.mechanism in ("PLAIN", OAUTHBEARER) and self.protocol == "SASL_PLAINTEXT":
            return REFUSED_LOGIN  # not offered without TLS: docs/logins.md#plain
        if self.client == "kcat" and self.mechanism != "PLAIN" and not kcat_knows_scram():
            return REFUSED_LOGIN  # by Apache Kafka 4.3.1, too: docs/logins.md#clients
        return {RIGHT: SERVED, RIGHT_TOKEN: SERVED, DENIED_TOPIC: DENIED}.get(
            self.case, REFUSED_LOGIN
        )

    @property
    def topic(self) -> str:
        if self.case == DENIED_TOPIC:
            return CLOSED
        return f"{OWN}{self.client}-{self.mechanism}-{self.protocol}"

    def login(self, provider: Provider, root: Authority) -> ClientLogin | TokenLogin:
        if self.mechanism == OAUTHBEARER:
            signer = forger() if self.case == FORGED else provider
            lasts_s = EXPIRED_S if self.case == EXPIRED else LASTS_S
            return _token_login(self.client, signer, root, lasts_s)
        user = "nobody" if self.case == UNKNOWN else USER
        return ClientLogin(user, "mistaken" if self.case == WRONG else PASSWORD, self.mechanism)


def _token_login(
    client: str, signer: Provider, root: Authority, lasts_s: float = LASTS_S
) -> TokenLogin:
    kind = KafkaPythonTokens if client == "kafka-python" else AioKafkaTokens
    file = root.folder / f"token-{next(_files)}"
    # issued an hour ago, so that an expired token was valid once
    issued_s = int(time.time()) - 3600
    source = partial(str, signer.token(lasts_s=lasts_s, iat=issued_s))
    return TokenLogin(source, kind, file, seems_fresh=lasts_s < 0)


class CellResult(NamedTuple):
    cell: Cell
    outcome: str

    @property
    def is_problem(self) -> bool:
        return self.outcome != self.cell.expected


def login_matrix(
    clients: Sequence[str], mechanisms: Sequence[str], tell: Callable[[CellResult], None]
) -> list[CellResult]:
    """Raises `ConfigurationError` where a client is not installed."""
    cells = [
        Cell(*each, case)
        for each in product(clients, mechanisms, PROTOCOLS)
        for case in CASES_OF[each[1]]
        if each[:2] not in LEFT_OUT
    ]
    provider = Provider()
    with TemporaryDirectory(prefix="bucketlog-logins-") as name:
        root = Authority(Path(name))
        with login_broker(root, provider, authorization="true") as broker:
            _prepare(broker, cells)
            with ThreadPoolExecutor(AT_ONCE) as pool:
                found = []
                for each in pool.map(
                    lambda cell: CellResult(cell, _try(broker, root, provider, cell)), cells
                ):
                    tell(each)
                    found.append(each)
            log = broker.log.read_text()
    missing = [name for name in mechanisms if f"login by {name} failed" not in log]
    assert not missing, f"the broker logged no failure of {missing}"
    assert PASSWORD not in log
    return found


def _prepare(broker: BrokerProcess, cells: Sequence[Cell]) -> None:
    where = listener(broker, "ADMIN")
    for topic in sorted({CLOSED, *(cell.topic for cell in cells)}):
        create_topic(where, topic, PARTITIONS)
    wanted = (
        (ResourceType.TOPIC, OWN, ResourcePatternType.PREFIXED),
        (ResourceType.GROUP, "*", ResourcePatternType.LITERAL),
    )
    rules = [
        AclBinding(*each, f"User:{USER}", "*", AclOperation.ALL, AclPermissionType.ALLOW)
        for each in wanted
    ]
    client = AdminClient({"bootstrap.servers": where})
    for future in client.create_acls(rules).values():
        future.result(PATIENCE_S)


def _try(broker: BrokerProcess, root: Authority, provider: Provider, cell: Cell) -> str:
    login = cell.login(provider, root)
    tls = ClientTls(root.file, login=login, is_encrypted=cell.protocol == "SASL_SSL")
    where, topic = listener(broker, cell.protocol), cell.topic
    try:
        if cell.client == "java":
            return _java(where, tls, topic)
        if cell.expected == REFUSED_LOGIN:
            return _refused(cell.client, where, tls)
        client, rows = KINDS[cell.client](tls), make_rows(RECORDS, seed=1)
        client.produce(where, topic, rows, codec="none", idempotent=True)
        return (
            "; ".join(differences(rows, client.consume(where, topic, PARTITIONS, RECORDS)))
            or SERVED
        )
    except FAILURES as error:
        text = f"{type(error).__name__}: {error}"
        return DENIED if _DENIAL.search(text) else text[:200]


def _refused(name: str, where: str, tls: ClientTls) -> str:
    if name != "kcat":
        return REFUSED_LOGIN if REFUSED[name](where, tls) else SERVED
    try:
        Kcat(tls).list_brokers(where)
    except AssertionError:
        return REFUSED_LOGIN
    return SERVED


def _java(where: str, tls: ClientTls, topic: str) -> str:
    """Kafka's console tools."""
    tools = KafkaTools(where, *tls.java_options())
    file = tls.ca.with_name(f"login-{next(_files)}.properties")
    file.write_text(tls.java(default_api_timeout_ms=JAVA_MS, max_block_ms=JAVA_MS))
    config = ("--command-config", str(file), "--topic", topic)
    lines = [f"line {number}" for number in range(RECORDS)]
    sent = tools.run("kafka-console-producer", *config, stdin="\n".join(lines).encode())
    told = (sent.stdout + sent.stderr).decode()
    if "SaslAuthenticationException" in told or "UnsupportedSaslMechanism" in told:
        return REFUSED_LOGIN
    if _DENIAL.search(told) or "TopicAuthorizationException" in told:
        return DENIED
    read = tools.run(
        *("kafka-console-consumer", *config, "--from-beginning"),
        *("--max-messages", str(RECORDS)),
    )
    got = sorted(read.stdout.decode().splitlines())
    return SERVED if got == sorted(lines) else told[-200:]


class SessionResult(NamedTuple):
    client: str
    mechanism: str
    logins: int
    records: int
    outcome: str
    """`continues`: logs in again on its connections; `reconnects`; or what is wrong."""

    @property
    def is_problem(self) -> bool:
        return self.outcome != ("reconnects" if self.client in RECONNECTS else "continues")


def sessions(
    clients: Sequence[str], mechanisms: Sequence[str], logins: int
) -> Iterator[SessionResult]:
    """A client produces over TLS while its sessions end, until it has logged in this often."""
    for client, mechanism in product(clients, mechanisms):
        with TemporaryDirectory(prefix="bucketlog-sessions-") as name:
            root = Authority(Path(name))
            provider = Provider()
            login = (
                _token_login(client, provider, root)
                if mechanism == OAUTHBEARER
                else ClientLogin(USER, PASSWORD, mechanism)
            )
            tls = ClientTls(root.file, login=login)
            with login_broker(root, provider, connections_reauth_ms_max=SESSION_MS) as broker:
                yield SessionResult(
                    client, mechanism, logins, *_sessions(broker, tls, client, logins)
                )


def _sessions(broker: BrokerProcess, tls: ClientTls, client: str, logins: int) -> tuple[int, str]:
    """The records, and the outcome."""
    create_topic(listener(broker, "ADMIN"), "t", 1)
    is_scram = isinstance(tls.login, ClientLogin) and tls.login.mechanism != "PLAIN"
    tokens = logins * (2 if is_scram else 1)
    deadline, where = Deadline("the client does not log in again"), listener(broker, "SASL_SSL")

    def is_enough() -> bool:
        deadline.check()
        return broker.metrics().get(TOKENS, 0.0) >= tokens

    try:
        sent = PACED[client](where, tls, "t", is_enough)
        reader = KINDS.get(client, KINDS["confluent-kafka"])(tls)
        found = reader.consume(where, "t", 1, sent)
        values = [value for _, value in found[0]]
        if values != [b"%d" % number for number in range(sent)]:
            return sent, "records are lost, repeated or out of order"
    except FAILURES as error:
        return 0, f"{type(error).__name__}: {error}"[:200]
    log = broker.log.read_text()
    if "login by" in log:
        return sent, "a login failed"
    lapsed = log.count("its session has ended")
    return sent, "continues" if lapsed <= logins // LAPSES else "reconnects"
