"""Sends mutated batches to a broker; Kafka's clients must read all accepted batches.

At full size, from the repository's root: `make prove WHAT=validation`. Each codec has a
separate partition. Every batch has a correct CRC, so that only the records decide.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from kio.schema.errors import ErrorCode

import bucketlog
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.batch import Codec, read_header
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.records import decode_records
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.models.produced_batches import mutated
from tests.rigs.wire_client import WireClient
from tests.scenarios.clients import AioKafka, ConfluentKafka, Consumed, KafkaClient, KafkaPython
from tests.scenarios.round_trip import create_topic
from tests.servers.kafka_tools import KafkaTools

TOPIC = "mutated"
IN_FLIGHT = 64
READERS: Sequence[KafkaClient] = (ConfluentKafka(), AioKafka(), KafkaPython())
ANSWERS = (ErrorCode.none, ErrorCode.invalid_record, ErrorCode.invalid_timestamp)
"""The errors that a broker may answer for a batch with a correct length."""
EXPECTED = {*ANSWERS, ErrorCode.corrupt_message, ErrorCode.unknown_producer_id}
EXPECTED |= {ErrorCode.out_of_order_sequence_number, ErrorCode.invalid_producer_epoch}


@dataclass
class ValidationFigures:
    batches: int = 0
    accepted: int = 0
    records: int = 0
    answers: dict[str, int] = field(default_factory=dict)
    read_by: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """A reader's result for accepted batches that differs from the sent records."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def validation(cluster: EmbeddedCluster, batches: int, *, seed: int) -> ValidationFigures:
    figures = ValidationFigures(batches)
    create_topic(cluster.bootstrap, TOPIC, len(Codec))
    sent: Consumed = {codec: [] for codec in Codec}
    with WireClient(cluster.bootstrap) as client:
        answers: Counter[str] = Counter()
        for codec, data, code in _offer(client, batches, Random(seed)):
            answers[code.name] += 1
            if code is ErrorCode.none:
                rows = decode_records(data, read_header(data))
                sent[codec] += [(row.key, row.value) for row in rows]
                figures.accepted += 1
            elif code not in EXPECTED:
                figures.wrong.append(f"{codec.name}: answered with {code.name}")
    figures.answers = dict(answers)
    figures.records = sum(len(rows) for rows in sent.values())
    for reader in READERS:
        _compare(figures, reader.name, sent, _consumed(reader, cluster.bootstrap, figures.records))
    _compare(figures, "replay", sent, _replayed(cluster))
    _read_by_java(figures, cluster.bootstrap)
    return figures


def _offer(
    client: WireClient, batches: int, random: Random
) -> Iterator[tuple[Codec, bytes, ErrorCode]]:
    """Each batch with its answer; `IN_FLIGHT` batches are sent concurrently."""
    waiting: list[tuple[Codec, bytes]] = []
    for number in range(batches):
        codec = random.choice(list(Codec))
        data = mutated(random, codec)
        rows = [{"index": int(codec), "records": data}]
        topics = [{"name": TOPIC, "partition_data": rows}]
        client.send(ApiKey.PRODUCE, 9, acks=-1, timeout=20_000, topic_data=topics)
        waiting.append((codec, data))
        if len(waiting) == IN_FLIGHT or number == batches - 1:
            for each in waiting:
                answer = client.receive(ApiKey.PRODUCE, 9).responses[0].partition_responses[0]
                yield *each, ErrorCode(answer.error_code)
            waiting.clear()


def _consumed(reader: KafkaClient, bootstrap: str, records: int) -> Consumed | str:
    try:
        return reader.consume(bootstrap, TOPIC, len(Codec), records)
    except (AssertionError, TimeoutError, ValueError, RuntimeError) as error:
        return repr(error)


def _replayed(cluster: EmbeddedCluster) -> Consumed | str:
    found: Consumed = {codec: [] for codec in Codec}
    try:
        for batch in bucketlog.replay(cluster.bucket_url, TOPIC).batches():
            columns = [batch.column(name).to_pylist() for name in ("partition", "key", "value")]
            for partition, key, value in zip(*columns, strict=True):
                found[partition].append((key, value))
    except bucketlog.BucketlogError as error:
        return repr(error)
    return found


def _compare(
    figures: ValidationFigures, reader: str, sent: Consumed, found: Consumed | str
) -> None:
    figures.read_by.append(reader)
    if isinstance(found, str):
        figures.wrong.append(f"{reader}: {found}")
    else:
        figures.wrong += [
            f"{reader}: {Codec(partition).name} gives other records"
            for partition, rows in sent.items()
            if found[partition] != rows
        ]


def _read_by_java(figures: ValidationFigures, bootstrap: str) -> None:
    """Read with Kafka's console consumer, if it is installed; it reports its number of records."""
    try:
        tools = KafkaTools(bootstrap)
    except ConfigurationError:
        return
    done = tools.run(
        *("kafka-console-consumer", "--topic", TOPIC, "--from-beginning", "--timeout-ms", "10000"),
        *("--max-messages", str(figures.records)),
        *("--formatter-property", "print.headers=true"),
    )
    told = f"Processed a total of {figures.records} messages"
    figures.read_by.append(f"Apache Kafka {tools.version}")
    if done.returncode or told not in done.stderr.decode(errors="replace"):
        figures.wrong.append(f"Java: {done.stderr.decode(errors='replace')[-300:]}")
