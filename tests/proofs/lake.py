"""The claims about the ingest into a lake; targets of `tests.proofs`."""

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.proofs.benchmarks import checked_benchmark
from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.dead_letters import dead_letters
from tests.scenarios.evolution import evolution
from tests.scenarios.freshness import freshness
from tests.scenarios.lake_readers import lake_readers
from tests.scenarios.lake_tables import lake_tables
from tests.scenarios.small_segments import small_segments
from tests.servers.cluster import Store

PLANTED = 1_000
GOOD_SHORT, GOOD_FULL = 20_000, 1_000_000
EVOLVED_SHORT, EVOLVED_FULL = 1_000, 200_000
READ_SHORT, READ_FULL = 1_000, 400_000
FRESH_S_P99_MAX = 15.0
TABLES_FULL_S, TABLES_FULL_RECORDS = 600, 6_250_000
"""Four fifths of these records are in the skewed topic."""
SMALL_SHORT = {"segments": 500, "partitions": 100}
SMALL_FULL = {"segments": 50_000, "partitions": 1_000}
BUSY_LEAST = 0.75
"""The least share of the cores that runs while tasks run."""
COST_SHORT = ("--records", "20000", "--warm-records", "1000")
COST_FULL = ("--records", "5000000", "--min-less-cpu", "4")


def prove_tables(short: bool) -> Figures:
    """Tables of flights, changes and skewed records equal the log, whatever is killed.

    Flights are JSON, Avro and Protobuf. Deleted rows stay deleted. A Spark stream and an
    incremental read return each record once.
    """
    with TemporaryDirectory(prefix="bucketlog-lake-") as folder:
        if short:
            found = lake_tables(Path(folder), seconds=20, records=5_000, pause_s=(1, 4), seed=8)
        else:
            found = lake_tables(
                Path(folder),
                seconds=TABLES_FULL_S,
                records=TABLES_FULL_RECORDS,
                pause_s=(3, 9),
                seed=8,
            )
    return _without_problems(found.as_json(), found.problems)


def prove_dead_letters(short: bool) -> Figures:
    """Bad records become dead letters, and good records become rows of an Iceberg table.

    Each dead letter has the record's bytes and a reason. Each good record is in the table once.
    After a fix of the schema, the dead letters that fit are rows, and no longer dead letters.
    """
    store, records = (Store.FILE, GOOD_SHORT) if short else (Store.MINIO, GOOD_FULL)
    with TemporaryDirectory(prefix="bucketlog-lake-") as folder:
        found = dead_letters(Path(folder), store, records=records, planted=PLANTED, seed=5)
    return _without_problems(found.as_json(), found.problems)


def prove_evolution(short: bool) -> Figures:
    """Jobs of ten versions of a schema ingest a topic with records of all versions.

    The table, each snapshot and an old reader have the rows that follow from the records.
    """
    with TemporaryDirectory(prefix="bucketlog-lake-") as folder:
        records = EVOLVED_SHORT if short else EVOLVED_FULL
        found = evolution(Path(folder), minio=not short, records=records, seed=6)
    return _without_problems(found.as_json(), found.problems)


def prove_lake_readers(short: bool) -> Figures:
    """Spark, PyIceberg, DuckDB and Polars read the same rows of an Iceberg table.

    Spark and PyIceberg also read through the REST catalog of `bucketlog table serve`. The table has
    deletes, an overwrite and an evolved schema.
    """
    with TemporaryDirectory(prefix="bucketlog-lake-") as folder:
        records = READ_SHORT if short else READ_FULL
        found = lake_readers(Path(folder), minio=not short, records=records, seed=7)
    return _without_problems(found.as_json(), found.problems)


def prove_small_segments(short: bool) -> Figures:
    """Ingests of a log of many small, well compressed segments use all cores.

    Both engines add each record once. The figures are tasks, times and memory.
    """
    with TemporaryDirectory(prefix="bucketlog-lake-") as folder:
        given = SMALL_SHORT if short else SMALL_FULL
        found = small_segments(Path(folder), minio=not short, **given)
    least = 0.0 if short else BUSY_LEAST * (os.cpu_count() or 1)
    problems = [
        f"{name}: {engine.rows} rows of {found.records} records, {engine.wanted} cores wanted"
        for name, engine in found.engines.items()
        if engine.rows != found.records or engine.wanted < least
    ]
    return _without_problems(found.as_json(), problems)


def prove_freshness(short: bool) -> Figures:
    """`bucketlog table run --follow` ingests records while they are produced.

    The time from a record's acknowledgement until a reader has its row is below 15 s (p99), and
    each record is in the table once. The ingest takes at most a quarter of the CPU time of Spark
    with its Kafka source.
    """
    if short:
        found = freshness(Store.FILE, bytes_per_s=200_000, seconds=8, every="1s")
    else:
        found = freshness(Store.MINIO, bytes_per_s=5_000_000, seconds=120, every="5s")
    figures = found.as_json()
    if not short and found.fresh_s_p99 >= FRESH_S_P99_MAX:
        raise ShortfallError(f"p99 is {found.fresh_s_p99} s, not below {FRESH_S_P99_MAX}", figures)
    _without_problems(figures, found.problems)
    beside = COST_SHORT if short else COST_FULL
    return {**figures, "beside_spark": checked_benchmark("table_ingest", *beside)}


def _without_problems(figures: Figures, problems: list[str]) -> Figures:
    if problems:
        raise ShortfallError("; ".join(problems[:5]), figures)
    return figures


LAKE_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "tables": prove_tables,
    "dead-letters": prove_dead_letters,
    "evolution": prove_evolution,
    "lake-readers": prove_lake_readers,
    "freshness": prove_freshness,
    "small-segments": prove_small_segments,
}
