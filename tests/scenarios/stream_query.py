"""A streaming query in a process of its own: `orders` of a log into Parquet, until it is ended.

    python -m tests.scenarios.stream_query s3://bucket topic lake/ checkpoint/ [available-now]

Spark's file sink notes the files of each micro-batch in `_spark_metadata`: whoever reads by it sees
each micro-batch once, however often the query was killed.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from tests.models.history import Log, Sent
from tests.scenarios.load import sent_of

TRIGGER = "1 second"
NOTES_ARE_KEPT = "spark.sql.streaming.fileSink.log.compactInterval"


def run(url: str, topic: str, target: str, checkpoint: str, available_now: bool) -> None:
    from bucketlog.spark_jobs.session import local_session

    spark = local_session(config={"spark.log.level": "ERROR", NOTES_ARE_KEPT: "1000000"})
    try:
        frame = (
            spark.readStream.format("bucketlog")
            .options(subscribe=topic, startingOffsets="earliest")
            .load(url)
            .select("partition", "offset", "value")
        )
        writer = frame.writeStream.format("parquet").option("checkpointLocation", checkpoint)
        trigger = {"availableNow": True} if available_now else {"processingTime": TRIGGER}
        writer.trigger(**trigger).start(target).awaitTermination()
    finally:
        spark.stop()


def batches_in(target: Path) -> Iterator[list[Path]]:
    """The files of each micro-batch that was committed, in order."""
    noted = target / "_spark_metadata"
    if not noted.is_dir():
        return
    files: dict[int, list[Path]] = {}
    for path in noted.iterdir():
        if path.name.isdigit():
            notes = map(json.loads, path.read_text().splitlines()[1:])
            files[int(path.name)] = [Path(note["path"].removeprefix("file://")) for note in notes]
    for number in sorted(files):
        yield sorted(files[number])


def rows_in(target: Path) -> tuple[Log, list[str]]:
    """What is in the sink, and what is wrong with its order: the offsets of a partition ascend in
    each file and from one micro-batch to the next."""
    rows: dict[int, list[tuple[int, Sent]]] = {}
    complaints: list[str] = []
    reached: dict[int, int] = {}
    for number, files in enumerate(batches_in(target)):
        mine: dict[int, list[int]] = {}
        for path in files:
            table = pq.read_table(path)
            last: dict[int, int] = {}
            for partition, offset, value in zip(
                *(table.column(name).to_pylist() for name in ("partition", "offset", "value")),
                strict=True,
            ):
                if offset <= last.get(partition, -1):
                    complaints.append(f"{path.name}: {partition}/{offset} after {last[partition]}")
                last[partition] = offset
                mine.setdefault(partition, []).append(offset)
                rows.setdefault(partition, []).append((offset, sent_of(value)))
        for partition, offsets in mine.items():
            if min(offsets) <= reached.get(partition, -1):
                complaints.append(
                    f"batch {number} begins at {partition}/{min(offsets)}, "
                    f"though {reached[partition]} was read"
                )
            reached[partition] = max(offsets)
    return rows, complaints


def differences(sink: Log, log: Log) -> list[str]:
    """Each record of the log is in the sink once, and nothing else."""
    found: list[str] = []
    for partition in sorted({*sink, *log}):
        there = Counter(sink.get(partition, []))
        wanted = Counter(log.get(partition, []))
        found += [f"{partition}/{row}: {n} times too often" for row, n in (there - wanted).items()]
        found += [f"{partition}/{row} is missing" for row in wanted - there]
    return found


if __name__ == "__main__":
    url, topic, target, checkpoint, *more = sys.argv[1:]
    run(url, topic, target, checkpoint, available_now=more == ["available-now"])
