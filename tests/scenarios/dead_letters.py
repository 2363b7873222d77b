"""Bad records among good ones are produced to a broker, and ingested into an Iceberg table.

At full size, from the repository's root: `make prove WHAT=dead-letters`. All good records must be
in the table once, and all bad ones in the table of dead letters, with their bytes and a reason.
Then the dead letters are converted again, with a schema that has wider types.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeAlias
from uuid import uuid4

import pyarrow as pa
from confluent_kafka import KafkaError, Message, Producer

from bucketlog.log_reader.tables.conversions import TimeRules
from bucketlog.log_reader.tables.reprocessing import Reprocessor, ReprocessReport
from bucketlog.log_reader.tables.rows import LINEAGE, RowShape
from bucketlog.log_reader.tables.schema_text import parse_schema
from bucketlog.log_reader.tables.table_target import TableName
from tests.rigs.patience import PATIENCE_S, Deadline
from tests.scenarios.bad_values import (
    FIXED,
    FIXED_SCHEMA,
    KINDS,
    SCHEMA,
    START,
    Bad,
    Row,
    at_ms,
    bad,
    fixed_row,
    good,
)
from tests.scenarios.lake_session import BUCKET, TABLE, LakeSession, lake_session
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Store, running_cluster

TOPIC = "records"
PARTITIONS = 4
BATCHES = 3
FOUND_MAX = 20
SETTINGS = {
    "flush_interval_ms": "250",
    "checkpoint_interval_ms": "3000",
    "log_message_timestamp_after_max_ms": str((1 << 63) - 1),
}
Place: TypeAlias = tuple[int, int]
"""Partition and offset."""


class Letter(NamedTuple):
    """A row of the table of dead letters."""

    topic: str
    place: Place
    value: bytes | None
    reason: str


@dataclass(frozen=True, slots=True)
class DeadLetterFigures:
    """Figures of the scenario. `reported` counts the dead letters that the runs report, and
    `reprocessed` those that became rows."""

    good: int
    bad: int
    kinds: int
    rows: int
    letters: int
    reported: int
    reprocessed: int
    runs: int
    batches: int
    ingest_seconds: float
    seconds: float
    problems: list[str]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Produced:
    """Good records' numbers and bad records, both by place, and the ends of the partitions."""

    numbers: Mapping[Place, int]
    planted: Mapping[Place, Bad]
    ends: Mapping[int, int]


class Problems:
    """The first problems in full, and the number of all problems."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.count = 0

    def add(self, text: str) -> None:
        self.count += 1
        if self.count <= FOUND_MAX:
            self.found.append(text)

    def told(self) -> list[str]:
        more = self.count - len(self.found)
        return [*self.found, f"and {more} more"] if more else self.found


def letter_problems(planted: Mapping[Place, Bad], letters: Iterable[Letter]) -> list[str]:
    """Compare the dead letters with the bad records. Returns the problems. Pure."""
    problems = Problems()
    seen: Counter[Place] = Counter()
    for letter in letters:
        seen[letter.place] += 1
        expected = planted.get(letter.place)
        if expected is None or letter.topic != TOPIC:
            problems.add(f"{letter.topic} {letter.place} is no bad record: {letter.reason}")
            continue
        if letter.value != expected.value:
            problems.add(f"{letter.place} ({expected.kind}) has other bytes")
        if expected.reason not in letter.reason:
            problems.add(f"{letter.place} ({expected.kind}): {letter.reason!r}")
    for place, record in planted.items():
        if seen[place] != 1:
            problems.add(f"{place} ({record.kind}) is there {seen[place]} times")
    return problems.told()


def row_problems(
    numbers: Mapping[Place, int],
    rows: Iterable[tuple[Place, Row]],
    expected: Callable[[int], Row] = lambda number: good(number).row,
) -> list[str]:
    """Compare the table's rows with the good records. Returns the problems. `expected` makes the
    row of a number. Pure."""
    problems = Problems()
    seen: set[Place] = set()
    for place, row in rows:
        number = numbers.get(place)
        if number is None:
            problems.add(f"{place} is in the table, and is no good record: {row}")
        elif place in seen:
            problems.add(f"{place} is in the table twice")
        elif row != (wanted := expected(number)):
            problems.add(f"{place} has {row}, not {wanted}")
        seen.add(place)
    for place in numbers.keys() - seen:
        problems.add(f"{place} is not in the table")
    return problems.told()


def fixed_problems(
    produced: Produced, letters: Iterable[Letter], rows: Iterable[tuple[Place, Row]]
) -> list[str]:
    """Compare the tables after the schema was fixed. Returns the problems. Pure."""
    fixed = {place: each for place, each in produced.planted.items() if each.kind in FIXED}
    left = {place: each for place, each in produced.planted.items() if place not in fixed}
    by_number = {each.number: fixed_row(each) for each in fixed.values()}
    numbers = {**produced.numbers, **{place: each.number for place, each in fixed.items()}}
    return [
        *letter_problems(left, letters),
        *row_problems(numbers, rows, lambda number: by_number.get(number) or good(number).row),
    ]


def dead_letters(
    folder: Path, store: Store, *, records: int, planted: int, seed: int
) -> DeadLetterFigures:
    """Produce and ingest `records` good records and `planted` bad ones, of all kinds. Nothing is
    left running."""
    began = time.perf_counter()
    with running_cluster(1, store=store, settings=SETTINGS) as cluster:
        if cluster.store is not None:
            cluster.store.make_bucket(BUCKET)
        create_topic(cluster.bootstrap, TOPIC, PARTITIONS)
        produced = _produce(cluster.bootstrap, records, planted, Random(seed))
        with lake_session(folder, cluster.store) as lake:
            ingest_began = time.perf_counter()
            reports = list(_runs(lake, cluster.bucket_url, produced, records + planted))
            ingest_seconds = time.perf_counter() - ingest_began
            letters = list(letters_of(lake))
            problems = letter_problems(produced.planted, letters)
            problems += row_problems(produced.numbers, _rows(lake))
            fixed = _reprocessed(lake)
            problems += fixed_problems(produced, letters_of(lake), _rows(lake))
    rows = sum(report.records for report in reports)
    reported = sum(report.dead_letters for report in reports)
    if (rows, reported) != (records, planted):
        problems.append(f"the runs report {rows} rows and {reported} dead letters")
    return DeadLetterFigures(
        good=records,
        bad=planted,
        kinds=len(KINDS),
        rows=rows,
        letters=len(letters),
        reported=reported,
        reprocessed=fixed.rows,
        runs=len(reports),
        batches=sum(report.batches for report in reports),
        ingest_seconds=round(ingest_seconds, 1),
        seconds=round(time.perf_counter() - began, 1),
        problems=problems,
    )


def _produce(bootstrap: str, records: int, planted: int, chance: Random) -> Produced:
    """Produce the records. Their offsets follow from the order within a partition. The ends are
    compared with the brokers' offsets."""
    total = records + planted
    places = enumerate(chance.sample(range(total), planted))
    where = {at: KINDS[index % len(KINDS)] for index, at in places}
    numbers: dict[Place, int] = {}
    found: dict[Place, Bad] = {}
    ends = dict.fromkeys(range(PARTITIONS), 0)
    settled: dict[int, int] = {}
    failures: list[str] = []

    def note(error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is not None or partition is None or offset is None:
            failures.append(str(error))
        else:
            settled[partition] = max(settled.get(partition, 0), offset + 1)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 50,
            "compression.type": "zstd",
            "log_level": 0,
        }
    )
    start_ms = at_ms(START)
    for at in range(total):
        partition = chance.randrange(PARTITIONS)
        place = (partition, ends[partition])
        ends[partition] += 1
        moment_ms = start_ms + at * 10
        if at in where:
            record = found[place] = bad(where[at], at, chance)
            value, moment_ms = record.value, record.timestamp_ms or moment_ms
        else:
            numbers[place] = at
            value = good(at).value
        deadline = Deadline("room in the producer's queue")
        while True:
            try:
                producer.produce(
                    TOPIC, value, b"k%d" % at, partition, on_delivery=note, timestamp=moment_ms
                )
                break
            except BufferError:
                producer.poll(0.1)
                deadline.check()
        producer.poll(0)
    assert not producer.flush(PATIENCE_S), "records are neither acknowledged nor refused"
    assert not failures, failures[:3]
    assert settled == {at: end for at, end in ends.items() if end}, (settled, ends)
    return Produced(numbers, found, ends)


def _runs(lake: LakeSession, url: str, produced: Produced, total: int) -> Iterator[Any]:
    """Run the ingest until a run has reached the ends of all partitions."""
    deadline = Deadline("the ingest reaches the end of the log")
    ends: dict[int, int] = {}
    while ends != produced.ends:
        deadline.check()
        report = lake.ingest(
            url,
            TOPIC,
            SCHEMA,
            times=TimeRules("milliseconds"),
            max_batch_offsets=total // BATCHES,
        )
        ends = {part.partition: part.end for part in report.partitions}
        yield report


def _reprocessed(lake: LakeSession) -> ReprocessReport:
    """Convert the dead letters again."""
    shape = RowShape(parse_schema(FIXED_SCHEMA), times=TimeRules("milliseconds"))
    name = TableName.parse(lake.table)
    report = Reprocessor(name, lambda: lake.catalog, lambda: uuid4().hex, Random()).run(shape)
    lake.spark.catalog.refreshTable(report.dead_letters)
    return report


def letters_of(lake: LakeSession) -> Iterator[Letter]:
    for row in lake.spark.table(f"{lake.table}_dead_letters").collect():
        value = None if row["value"] is None else bytes(row["value"])
        place = (row["_log_partition"], row["_log_offset"])
        yield Letter(row["_log_topic"], place, value, row["reason"])


def _rows(lake: LakeSession) -> Iterator[tuple[Place, Row]]:
    """Read the table with PyIceberg, one Arrow batch at a time."""
    table = lake.catalog.load_table(TABLE)
    hidden = {*LINEAGE.names, "_log_tombstone", "day", "_ingest_batch"}
    with closing(table.scan().to_arrow_batch_reader()) as batches:
        for batch in batches:
            yield from _placed(batch, hidden)


def _placed(batch: pa.RecordBatch, hidden: set[str]) -> Iterator[tuple[Place, Row]]:
    for row in batch.to_pylist():
        place = (row["_log_partition"], row["_log_offset"])
        yield place, {name: value for name, value in row.items() if name not in hidden}
