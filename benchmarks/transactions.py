"""Transactions: throughput and commit latency, compared with Apache Kafka.

The bucket is a folder with fsync, or MinIO. With --kafka-fsync, Kafka fsyncs each batch:

    python -m benchmarks.transactions --beside-kafka --kafka-fsync
    python -m benchmarks.transactions --beside-kafka --store minio

The result is one JSON line on standard output. A transaction has one record of --record-bytes in
each of its partitions. `commit` is the time of EndTxn, after all records are acknowledged. `whole`
is the time from begin_transaction to the end of commit_transaction, including the registration of
partitions. For `crowd`, --producers producers run in threads. Each of their transactions has one
record in one partition. The servers take turns within a run, so their figures can be compared. The
client is librdkafka, with transactions of version 1.
"""

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from confluent_kafka import KafkaException, Producer

from benchmarks.under_test import add_arguments, broker_under_test, create_topic, report
from localstack.apache_kafka import running_kafka

PARTITIONS = (1, 10, 100, 1000)
WARM_UPS = 3
API_S = 60.0


class Turn(NamedTuple):
    whole_ms: float
    commit_ms: float


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--partitions", type=int, nargs="+", default=list(PARTITIONS))
    parser.add_argument("--record-bytes", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=8.0, help="length of each measurement")
    parser.add_argument("--producers", type=int, default=16, help="producers of the crowd")
    parser.add_argument("--beside-kafka", action="store_true", help="measure Apache Kafka, too")
    parser.add_argument("--kafka-fsync", action="store_true", help="Kafka fsyncs each batch")
    add_arguments(parser)
    return parser.parse_args(arguments)


def producer_of(bootstrap: str, transactional_id: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "linger.ms": 0,
            "log_level": 2,
        }
    )
    producer.init_transactions(API_S)
    return producer


def transaction(producer: Producer, topic: str, partitions: range, value: bytes) -> Turn:
    began = time.perf_counter()
    producer.begin_transaction()
    for partition in partitions:
        producer.produce(topic, value, partition=partition)
    producer.flush(API_S)
    written = time.perf_counter()
    _completed(producer)
    ended = time.perf_counter()
    return Turn((ended - began) * 1000, (ended - written) * 1000)


def _completed(producer: Producer) -> None:
    while True:
        try:
            producer.commit_transaction(API_S)
            return
        except KafkaException as error:
            if not error.args[0].retriable():
                raise


def measured(producer: Producer, topic: str, partitions: int, value: bytes, s: float) -> list[Turn]:
    for _ in range(WARM_UPS):
        transaction(producer, topic, range(partitions), value)
    turns: list[Turn] = []
    deadline = time.perf_counter() + s
    while time.perf_counter() < deadline or len(turns) < 2:
        turns.append(transaction(producer, topic, range(partitions), value))
    return turns


def crowd(bootstrap: str, topic: str, producers: int, value: bytes, s: float) -> list[Turn]:
    """Each producer writes to its own partition."""
    made = [producer_of(bootstrap, f"crowd-{number}") for number in range(producers)]

    def run(number: int) -> list[Turn]:
        only, turns = range(number, number + 1), list[Turn]()
        transaction(made[number], topic, only, value)
        deadline = time.perf_counter() + s
        while time.perf_counter() < deadline:
            turns.append(transaction(made[number], topic, only, value))
        return turns

    with ThreadPoolExecutor(producers) as threads:
        return [turn for turns in threads.map(run, range(producers)) for turn in turns]


def summary(turns: list[Turn], seconds: float) -> dict[str, float]:
    figures: dict[str, float] = {"per_s": round(len(turns) / seconds, 1)}
    for name in Turn._fields:
        cuts = quantiles((getattr(turn, name) for turn in turns), n=100, method="inclusive")
        figures[f"{name}_p50"] = round(cuts[49], 2)
        figures[f"{name}_p99"] = round(cuts[98], 2)
    return figures


def main(arguments: list[str] | None = None) -> int:
    args = parse(sys.argv[1:] if arguments is None else arguments)
    args.setting.append("transactions=true")
    value = b"x" * args.record_bytes
    figures: dict[str, Any] = {}
    with ExitStack() as closing:
        servers = {"bucketlog": closing.enter_context(broker_under_test(args)).bootstrap}
        if args.beside_kafka:
            folder = Path(closing.enter_context(TemporaryDirectory(prefix="bucketlog-bench-")))
            kafka = running_kafka(folder / "kafka", fsync=args.kafka_fsync)
            servers["kafka"] = closing.enter_context(kafka).bootstrap
        for partitions in args.partitions:
            for server, bootstrap in servers.items():
                topic = f"of-{partitions}"
                create_topic(bootstrap, topic, partitions)
                producer = producer_of(bootstrap, topic)
                turns = measured(producer, topic, partitions, value, args.seconds)
                elapsed_s = sum(turn.whole_ms for turn in turns) / 1000
                figures[f"{server}_{partitions}"] = summary(turns, elapsed_s)
                print(topic, server, figures[f"{server}_{partitions}"], file=sys.stderr)
        for server, bootstrap in servers.items():
            create_topic(bootstrap, "crowd", args.producers)
            turns = crowd(bootstrap, "crowd", args.producers, value, args.seconds)
            figures[f"{server}_crowd"] = summary(turns, args.seconds)
            print("crowd", server, figures[f"{server}_crowd"], file=sys.stderr)
    return report("transactions", figures, [])


if __name__ == "__main__":
    sys.exit(main())
