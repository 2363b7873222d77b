"""Apache Kafka's verifiable consumer as a member of a group (tests/scenarios/group_members.py).

It commits each batch before it reads the next one, and tells what it does as lines of JSON.
"""

import json
import signal
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.rigs.patience import PATIENCE_S
from tests.scenarios.group_members import HEARTBEAT_MS, SESSION_MS, Ledger
from tests.servers.kafka_tools import KafkaTools

ROUND_ROBIN = "org.apache.kafka.clients.consumer.RoundRobinAssignor"


def java_member(
    bootstrap: str, topic: str, group: str, name: str, ledger: Ledger, stop: threading.Event
) -> None:
    """Raises `ConfigurationError` where Apache Kafka's tools are not installed."""
    options = (
        *("--group-protocol", "classic", "--session-timeout", str(SESSION_MS)),
        *("--assignment-strategy", ROUND_ROBIN),
    )
    config = f"heartbeat.interval.ms={HEARTBEAT_MS}\n"
    _run((bootstrap, topic, group), name, ledger, stop, options, config)


def java_consumer_protocol_member(
    bootstrap: str, topic: str, group: str, name: str, ledger: Ledger, stop: threading.Event
) -> None:
    """As `java_member`, by the consumer protocol (KIP-848)."""
    options = ("--group-protocol", "consumer")
    _run((bootstrap, topic, group), name, ledger, stop, options, "")


def _run(
    where: tuple[str, str, str],
    name: str,
    ledger: Ledger,
    stop: threading.Event,
    options: Sequence[str],
    settings: str,
) -> None:
    bootstrap, topic, group = where
    with TemporaryDirectory(prefix="bucketlog-member-") as folder:
        config = Path(folder) / "consumer.properties"
        config.write_text(f"{settings}client.id={name}\n")
        process = KafkaTools(bootstrap).start(
            "kafka-verifiable-consumer",
            *("--topic", topic, "--group-id", group, *options),
            *("--reset-policy", "earliest", "--verbose", "--command-config", str(config)),
        )

        def end() -> None:
            stop.wait()
            process.send_signal(signal.SIGTERM)

        ending = threading.Thread(target=end, name=f"end of {name}")
        ending.start()
        output = process.stdout
        assert output is not None
        try:
            for line in output:
                if line.startswith("{"):
                    _note(json.loads(line), topic, name, ledger)
            process.wait(PATIENCE_S)
            if not stop.is_set():
                raise AssertionError(f"{name} ended by itself, exit code {process.returncode}")
        finally:
            stop.set()
            ending.join()
            process.kill()
            process.wait(PATIENCE_S)
            output.close()


def _note(event: Mapping[str, Any], topic: str, name: str, ledger: Ledger) -> None:
    at = event["timestamp"] / 1000
    match event["name"]:
        case "partitions_assigned":
            ledger.own(name, _partitions(event, topic), at)
        case "partitions_revoked":
            ledger.disown(name, _partitions(event, topic), at)
        case "record_data":
            ledger.process(name, event["partition"], event["offset"], at)
        case "offsets_committed" if not event["success"]:
            ledger.fail(f"{name} could not commit: {event}")


def _partitions(event: Mapping[str, Any], topic: str) -> list[int]:
    return [each["partition"] for each in event["partitions"] if each["topic"] == topic]
