"""A broker's certificate is replaced again and again under load, and clients live through it.

Judged: no producer is told of an error, each record is in the log once and in order, and every
connection that begins after a change gets the new certificate.
"""

import socket
import ssl
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from confluent_kafka.admin import AdminClient

from tests.rigs.certificate_authority import Authority, KeyPair
from tests.rigs.client_tls import ClientTls
from tests.rigs.patience import PATIENCE_S, eventually
from tests.scenarios.clients import KINDS
from tests.scenarios.paced_producers import PACED
from tests.scenarios.round_trip import create_topic
from tests.servers.broker_process import BrokerProcess
from tests.servers.lone_broker import listener, login_broker

RELOAD_MS = "200"
NEW_CONNECTIONS = 5
READERS = {"java": "confluent-kafka"}
"""Who reads the records of a producer that has no reader of its own."""


@dataclass(frozen=True, slots=True)
class Figures:
    replacements: int
    new_connections: int
    """After a change, all of them with the new certificate."""
    records: dict[str, int]
    """By producer: acknowledged, and in the log once and in order."""
    slowest_s: float
    """From the new files to the first connection with the new certificate."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def shown_certificate(where: str, tls: ClientTls) -> bytes:
    """What the broker shows to a new connection: DER."""
    host, port = where.split(":")
    with (
        socket.create_connection((host, int(port)), PATIENCE_S) as plain,
        tls.context().wrap_socket(plain, server_hostname=host) as secure,
    ):
        return secure.getpeercert(binary_form=True) or b""


def _der(issued: KeyPair) -> bytes:
    pem = issued.certificate.read_text()
    end = "-----END CERTIFICATE-----\n"
    return ssl.PEM_cert_to_DER_cert(pem[: pem.index(end) + len(end)])


def certificate_changes(replacements: int, producers: Sequence[str]) -> Figures:
    """`producers`: names in `PACED`. Raises `AssertionError` where a promise is broken."""
    with TemporaryDirectory(prefix="bucketlog-certificates-") as name:
        root = Authority(Path(name))
        with login_broker(root, ssl_reload_interval_ms=RELOAD_MS) as broker:
            return _changes(broker, root, replacements, producers)


def _changes(
    broker: BrokerProcess, root: Authority, replacements: int, producers: Sequence[str]
) -> Figures:
    where, tls, enough = listener(broker, "SSL"), ClientTls(root.file), threading.Event()
    for each in producers:
        create_topic(listener(broker, "ADMIN"), each, 1)
    took_s, seen = [], 0
    with ThreadPoolExecutor(len(producers)) as pool:
        sending = {
            each: pool.submit(PACED[each], where, tls, each, enough.is_set) for each in producers
        }
        try:
            for _ in range(replacements):
                began = time.monotonic()
                wanted = _der(root.issue("broker"))
                eventually(
                    lambda: shown_certificate(where, tls) == wanted,  # noqa: B023  # ends within the round
                    lambda: broker.log.read_text()[-2000:],
                )
                took_s.append(time.monotonic() - began)
                for _ in range(NEW_CONNECTIONS):
                    assert shown_certificate(where, tls) == wanted, "an old certificate came back"
                    seen += 1
                fresh = AdminClient({"bootstrap.servers": where, **tls.librdkafka()})
                assert fresh.list_topics(timeout=PATIENCE_S).brokers
                _check_progress(broker, len(producers))
        finally:
            enough.set()
        sent = {each: future.result(PATIENCE_S) for each, future in sending.items()}
    for each, count in sent.items():
        assert count, f"{each} sent nothing"
        found = KINDS[READERS.get(each, each)](tls).consume(where, each, 1, count)
        values = [int(value or b"") for _, value in found[0]]
        assert values == list(range(count)), f"{each}: records are lost, repeated or out of order"
    return Figures(replacements, seen, sent, round(max(took_s), 2))


def _check_progress(broker: BrokerProcess, producers: int) -> None:
    """All producers together get a few more records acknowledged with each certificate."""
    name = 'bucketlog_request_seconds_count{api="Produce"}'
    before = broker.metrics().get(name, 0.0)
    eventually(lambda: broker.metrics().get(name, 0.0) > before + 3 * producers)
