"""A broker process with a TLS listener, and real clients."""

import signal
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

import bucketlog
from tests.integration.test_broker_process import CONFIGURATION, refusal
from tests.rigs.certificate_authority import Authority, rfc4514
from tests.rigs.patience import PATIENCE_S, eventually
from tests.servers.broker_process import BrokerProcess, Start

EXPIRES = "bucketlog_certificate_expires_seconds"


def serve(start: Start, root: Authority, **settings: str) -> BrokerProcess:
    issued = root.issue("broker", days=(-1, 10))
    return start(
        listeners="SSL://127.0.0.1:0",
        ssl_certificate_file=str(issued.certificate),
        ssl_key_file=str(issued.key),
        **settings,
    )


def trusting(ca: Path, **more: str) -> dict[str, str]:
    return {"security.protocol": "SSL", "ssl.ca.location": str(ca)} | {
        name.replace("_", "."): value for name, value in more.items()
    }


def is_served(broker: BrokerProcess, config: dict[str, str]) -> bool:
    client = AdminClient(
        {"bootstrap.servers": broker.bootstrap, "log_level": 0} | config  # type: ignore[arg-type]  # plain texts
    )
    try:
        return bool(client.list_topics(timeout=min(PATIENCE_S, 3)).brokers)
    except KafkaException:
        return False


def test_the_sdk_over_tls(start: Start, tmp_path: Path) -> None:
    root = Authority(tmp_path)
    broker = serve(start, root).wait_until_ready()
    with bucketlog.connect(broker.bootstrap, config=trusting(root.file)) as log:
        log.topics.create("t")
        with log.producer() as producer:
            producer.send(bucketlog.Topic("t"), b"value")
    assert broker.metrics()[EXPIRES] > 0
    stranger = Authority(tmp_path, "stranger")
    assert is_served(broker, trusting(root.file))
    assert not is_served(broker, trusting(stranger.file))
    assert "Traceback" not in broker.log.read_text()


def test_certificates_of_clients(start: Start, tmp_path: Path) -> None:
    root = Authority(tmp_path)
    broker = serve(
        start, root, ssl_client_auth="required", ssl_ca_file=str(root.file)
    ).wait_until_ready()
    own = root.issue("ann", rfc4514("CN=ann"))
    shown = trusting(
        root.file, ssl_certificate_location=str(own.certificate), ssl_key_location=str(own.key)
    )
    assert is_served(broker, shown)
    assert not is_served(broker, trusting(root.file))


def test_a_certificate_is_replaced_while_the_broker_runs(start: Start, tmp_path: Path) -> None:
    root = Authority(tmp_path)
    broker = serve(start, root, ssl_reload_interval_ms="0").wait_until_ready()
    before = broker.metrics()[EXPIRES]
    with bucketlog.connect(broker.bootstrap, config=trusting(root.file)) as log:
        root.issue("broker", days=(-1, 20))
        broker.process.send_signal(signal.SIGHUP)
        eventually(lambda: broker.metrics()[EXPIRES] > before + 86_400)
        assert log.cluster_id()
        root.issue("broker", days=(-9, -2))
        broker.process.send_signal(signal.SIGHUP)
        eventually(lambda: "certificates" in broker.readiness()[1])
        assert "is not valid" in broker.readiness()[1]["certificates"]
        assert is_served(broker, trusting(root.file))


def test_a_certificate_that_does_not_work(start: Start, tmp_path: Path) -> None:
    root = Authority(tmp_path)
    broker = start(
        listeners="SSL://127.0.0.1:0",
        ssl_certificate_file=str(root.issue("broker").certificate),
        ssl_key_file=str(root.issue("other").key),
    )
    code, line = refusal(broker)
    assert code == CONFIGURATION
    assert f"the key in {tmp_path}/other.key is not that of the certificate" in line
