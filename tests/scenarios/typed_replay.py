"""JSON records as a Polars frame with typed columns: by a typed replay, and by confluent-kafka with
pydantic. Each way runs in a process of its own: `python -m tests.scenarios.typed_replay WAY PLACE`.

The program with confluent-kafka makes a frame of every 100,000 records, so that it does not hold
all records as Python objects: 10 million would need more than 10 GiB.
"""

import hashlib
import json
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import polars as pl
from confluent_kafka import Consumer
from pydantic import AwareDatetime, BaseModel

import bucketlog
from bucketlog.embedded.cluster import EmbeddedCluster

PARTITIONS = 4
FRAME_RECORDS = 100_000
START = datetime(2024, 1, 1, tzinfo=UTC)
ROOT = Path(__file__).parents[2]
Way = Literal["replay", "confluent"]


class Order(BaseModel):
    id: str
    amount: float
    count: int
    at: AwareDatetime


ORDERS = bucketlog.Topic("orders", value=Order, key=str)


def measure(folder: Path, records: int, turns: int) -> dict[str, list[dict[str, Any]]]:
    """Write `records` records, and make a frame of them in both ways, by turns. `digest` is of all
    rows."""
    found: dict[str, list[dict[str, Any]]] = {"replay": [], "confluent": []}
    with EmbeddedCluster(folder / "cluster") as cluster:
        with bucketlog.connect(cluster.bootstrap) as log:
            log.topics.create(ORDERS, partitions=PARTITIONS)
            with log.producer(compression="zstd", linger_ms=50) as producer:
                values = (_value(number) for number in range(records))
                producer.send_many(bucketlog.Topic("orders"), values, key=lambda value: value[7:15])
        for _ in range(turns):
            found["replay"].append(_in_a_process("replay", cluster.bucket_url))
            found["confluent"].append(_in_a_process("confluent", cluster.bootstrap))
    return found


def _value(number: int) -> bytes:
    at = (START + timedelta(seconds=number)).isoformat()
    return b'{"id":"%08d","amount":%.2f,"count":%d,"at":"%b"}' % (
        number,
        number % 10_000 / 7,
        number % 9,
        at.encode(),
    )


def _in_a_process(way: Way, place: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.scenarios.typed_replay", way, place]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _consumed(bootstrap: str) -> pl.DataFrame:
    """As a program without bucketlog's SDK does it."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "frames",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe(["orders"])
    rows: list[dict[str, Any]] = []
    frames: list[pl.DataFrame] = []
    ended: set[int | None] = set()
    while len(ended) < PARTITIONS:
        for message in consumer.consume(10_000, 1.0):
            if message.error() is not None:
                ended.add(message.partition())
                continue
            value = Order.model_validate_json(message.value() or b"")
            key = message.key()
            row = {
                "_partition": message.partition(),
                "_offset": message.offset(),
                "_timestamp": message.timestamp()[1],
                "_key": None if key is None else key.decode(),
            }
            rows.append(row | value.model_dump())
        if len(rows) >= FRAME_RECORDS:
            frames.append(pl.DataFrame(rows, infer_schema_length=None))
            rows = []
    consumer.close()
    if rows:
        frames.append(pl.DataFrame(rows, infer_schema_length=None))
    return pl.concat(frames)


def _digest(frame: pl.DataFrame) -> str:
    columns = ["_partition", "_offset", "_key", "id", "amount", "count", "at"]
    ordered = frame.sort("_partition", "_offset").select(
        pl.col(columns[0]).cast(pl.Int32),
        *columns[1:-1],
        pl.col("at").dt.timestamp("us"),
    )
    return hashlib.sha256(ordered.hash_rows(seed=1).to_numpy().tobytes()).hexdigest()


def main() -> None:
    way, place = sys.argv[1:]
    begin, used = time.monotonic(), time.process_time()
    frame = bucketlog.replay(place, ORDERS).to_polars() if way == "replay" else _consumed(place)
    seconds, cpu = time.monotonic() - begin, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    figures = {
        "rows": frame.height,
        "rows_per_s": round(frame.height / seconds),
        "seconds": round(seconds, 2),
        "cpu_s": round(cpu, 2),
        "peak_memory_mib": peak,
        "digest": _digest(frame),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
