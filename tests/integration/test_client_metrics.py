"""Metrics that clients send by themselves (KIP-714): Apache Kafka's Java clients and librdkafka."""

import signal
from pathlib import Path

from confluent_kafka import Producer

from tests.rigs.patience import PATIENCE_S, Deadline
from tests.scenarios.round_trip import create_topic
from tests.servers.broker_process import BrokerProcess, Start
from tests.servers.components import Components
from tests.servers.kafka_tools import participating_tools

INTERVAL_MS = "500"
JAVA, C = "org.apache.kafka.producer.", "org.apache.kafka.producer.connection.creation.total"


def sent(broker: BrokerProcess, client_id: str) -> set[str]:
    """The names of the metrics of clients with this id."""
    return {
        name.split('name="')[1].split('"')[0]
        for name in broker.metrics()
        if name.startswith("bucketlog_client_metric{") and f'client_id="{client_id}"' in name
    }


def test_java_and_librdkafka_send_metrics(
    start: Start, components: Components, tmp_path: Path
) -> None:
    broker = start(client_metrics="*", client_metrics_interval_ms=INTERVAL_MS).wait_until_ready()
    create_topic(broker.bootstrap, "t", 1)
    tools = participating_tools(broker.bootstrap, components)
    config = tmp_path / "java.properties"
    config.write_text("client.id=java-app\n")
    with (tmp_path / "java.log").open("wb") as complaints:
        process = tools.start(
            "kafka-verifiable-producer",
            *("--topic", "t", "--throughput", "20", "--command-config", str(config)),
            complaints=complaints,
        )
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "c-app"})
    deadline = Deadline("no metrics of both clients")
    try:
        while True:
            producer.produce("t", b"x")
            producer.poll(0.05)
            java, c = sent(broker, "java-app"), sent(broker, "c-app")
            if C in c and any(name.startswith(JAVA) for name in java):
                break
            assert process.poll() is None, (tmp_path / "java.log").read_text()
            deadline.pause()
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        assert process.stdout is not None
        process.stdout.close()
    assert producer.flush(PATIENCE_S) == 0
    assert broker.metrics()["bucketlog_client_metrics_clients"] >= 1
    log = broker.log.read_text()
    assert "Traceback" not in log


def test_without_a_subscription_clients_send_nothing(start: Start) -> None:
    broker = start(client_metrics_interval_ms=INTERVAL_MS).wait_until_ready()
    create_topic(broker.bootstrap, "t", 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "c-app"})
    asked = 'bucketlog_request_seconds_count{api="GetTelemetrySubscriptions"}'
    deadline = Deadline("the client does not ask")
    while broker.metrics().get(asked, 0) < 3:
        producer.produce("t", b"x")
        producer.poll(0.05)
        deadline.pause()
    assert sent(broker, "c-app") == set()
    assert producer.flush(PATIENCE_S) == 0
