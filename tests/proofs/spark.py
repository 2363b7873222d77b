"""The claims about Spark on the log; targets of `tests.proofs`."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.proofs.benchmarks import checked_benchmark
from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.ingest import ingest_killed
from tests.scenarios.large_logs import LISTED_MAX, PARTITIONS, WRITERS
from tests.scenarios.replayed import replayed
from tests.scenarios.spark_damage import by_spark, damages
from tests.scenarios.spark_plan import Planned, plan_many, plan_tiers, read_large, session, urls
from tests.scenarios.streaming import streaming
from tests.servers.cluster import Store

PLAN_S = 5.0
GETS_PER_GIB_MAX = 128
LISTED_AT_ONCE = 1_000
STREAM_S = 600.0


def prove_spark_plan(short: bool) -> Figures:
    """Spark's driver plans 50,000 segments in under 5 s, by as many requests as formats need."""
    if short:
        return _spark_plan(Store.FILE, 1_500, tail=30, large=(2, 1, 32))
    return _spark_plan(Store.FILE, 50_000, tail=500, large=(64, 4, 128), most_s=PLAN_S)


def _spark_plan(
    store: Store,
    segments: int,
    *,
    tail: int,
    large: tuple[int, int, int],
    most_s: float | None = None,
) -> Figures:
    """`most_s` None: times of a small log say nothing of a large one's."""
    an_object = segments // 50
    with urls(store) as places, session() as spark:
        first = read_large(spark, next(places), *large)  # Spark's own start is in its seconds
        log = plan_many(spark, next(places), segments, tail)
        tiers = plan_tiers(spark, next(places), segments, tail, an_object)
    figures = {
        "segments": segments,
        "checkpoint": log.with_checkpoint.as_json(),
        "no_checkpoint": log.bare.as_json(),
        "batches": log.batches,
        "pickled_bytes": log.pickled_bytes,
        "tiers": tiers.as_json(),
        "large_batches_first": first.as_json(),
    }
    objects = (segments - tail) // 2 // an_object * 3 // 4
    manifests = PARTITIONS * -(-objects // LISTED_MAX)
    started = 2 * (1 + 1 + WRITERS) + 2
    expected = {
        "checkpoint": (log.with_checkpoint, 1 + tail + 1, started),
        "no_checkpoint": (log.bare, segments, 2 * (-(-segments // LISTED_AT_ONCE) + 1) + 2),
        "tiers": (tiers, 1 + tail + 2 + manifests, started),
    }
    for name, (planned, gets, lists) in expected.items():
        _check_requests(name, planned, gets, lists, figures)
    if first.read.gets_per_gib > GETS_PER_GIB_MAX:
        raise ShortfallError(f"reading took {first.read.gets_per_gib} GETs a GiB", figures)
    slowest = max(log.with_checkpoint.seconds, tiers.seconds)
    if most_s is not None and slowest >= most_s:
        raise ShortfallError(f"planned in {slowest} s, less than {most_s} wanted", figures)
    return figures


def _check_requests(name: str, planned: Planned, gets: int, lists: int, figures: Figures) -> None:
    if (planned.gets, planned.lists) != (gets, lists):
        raise ShortfallError(
            f"{name}: {planned.gets} GETs and {planned.lists} lists, {gets} and {lists} are needed",
            figures,
        )


def prove_stream(short: bool) -> Figures:
    """A streaming query while brokers, Redis and the query itself are killed and emptied."""
    if short:
        return streaming(Store.FILE, 0, query_kills=1).as_json()
    return streaming(Store.MINIO, STREAM_S, query_kills=10).as_json()


def prove_spark_damage(short: bool) -> Figures:
    """Planted damage fails a query, which says topic, partition, offsets and key; all kinds."""
    of_each = 1 if short else 10
    with TemporaryDirectory(prefix="bucketlog-damage-") as folder, session() as spark:
        found = damages(by_spark(spark), of_each, Path(folder), seed=1)
    figures: Figures = {"kinds": len(found), "of_each": of_each, "seed": 1}
    figures["problems"] = sum(map(len, found.values()))
    unsaid = [f"{kind}: {problems[0]}" for kind, problems in found.items() if problems]
    if unsaid:
        raise ShortfallError("; ".join(unsaid[:5]), figures)
    return figures


def prove_ingest(short: bool) -> Figures:
    """Iceberg and Parquet hold each record once, however often the ingest was killed."""
    if short:
        figures = ingest_killed(1, 2_000, max_batch_offsets=300, objects_before_kill=(12, 30))
    else:
        figures = ingest_killed(5, 10_000, max_batch_offsets=1_000, objects_before_kill=(1, 50))
    told = figures.as_json()
    for words, counts in (("twice", figures.twice), ("missing", figures.missing)):
        for kind, count in counts.items():
            if count:
                raise ShortfallError(f"{count} records are {words} in {kind}", told)
    return told


def prove_spark_replay(short: bool) -> Figures:
    """By Spark's Kafka source from our brokers and from Apache Kafka, and straight from the bucket:
    the same answers, the last several times as fast."""
    size = ("--records", "500000", "--warm-records", "100000", "--partitions", "4")
    kind = ("--codecs", "none", "--queries", "count,aggregate")
    small = (*size, *kind, "--repetitions", "1", "--tuned", "")
    few = ("--min-count", "1")
    limits = ("--min-count", "2.5", "--min-aggregate", "2.5", "--min-parquet", "1.5")
    more = ("--min-replay", "4", "--min-decoded", "4000000")
    return checked_benchmark("spark_replay", *((*small, *few) if short else (*limits, *more)))


def prove_replay(short: bool) -> Figures:
    """What is replayed as records, lines, Parquet and into a topic is what consumers get."""
    records = 20_000 if short else 1_000_000
    with TemporaryDirectory(prefix="bucketlog-replay-") as folder:
        found = replayed(Path(folder), records, seed=1)
    measure = found["consumed"]
    counts = {shape: sum(part.records for part in parts.values()) for shape, parts in found.items()}
    figures: Figures = {"records": counts, "seed": 1}
    for shape, parts in found.items():
        if counts[shape] != records or parts != measure:
            raise ShortfallError(f"{shape}: {parts}, not {measure}", figures)
    return figures


SPARK_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "spark-plan": prove_spark_plan,
    "spark-stream": prove_stream,
    "spark-damage": prove_spark_damage,
    "spark-replay": prove_spark_replay,
    "ingest": prove_ingest,
    "replay": prove_replay,
}
