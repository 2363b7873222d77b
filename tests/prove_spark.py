"""The claims about Spark on the log; targets of `tests.prove`."""

from collections.abc import Callable

from tests.scenarios.cluster import Store
from tests.scenarios.large_logs import LISTED_MAX, PARTITIONS, WRITERS
from tests.scenarios.spark_plan import Planned, plan_many, plan_tiers, read_large, session
from tests.scenarios.streaming import streaming
from tests.shortfall import Figures, ShortfallError

PLAN_S = 5.0
GETS_PER_GIB_MAX = 128
LISTED_AT_ONCE = 1_000
STREAM_S = 600.0


def prove_spark_plan(short: bool) -> Figures:
    """Spark's driver plans 50,000 segments in under 5 s, by as many requests as formats need."""
    if short:
        return _spark_plan(Store.FILE, 1_500, tail=30, large=(2, 1, 32))
    return {
        store: _spark_plan(store, 50_000, tail=500, large=(64, 4, 128), most_s=PLAN_S)
        for store in Store
    }


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
    with session() as spark:
        log = plan_many(spark, store, segments, tail)
        tiers = plan_tiers(spark, store, segments, tail, an_object)
        read = read_large(spark, store, *large)
    figures = {
        "segments": segments,
        "checkpoint": log.with_checkpoint.as_json(),
        "no_checkpoint": log.bare.as_json(),
        "batches": log.batches,
        "pickled_bytes": log.pickled_bytes,
        "tiers": tiers.as_json(),
        "large_batches": read.as_json(),
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
    if read.read.gets_per_gib > GETS_PER_GIB_MAX:
        raise ShortfallError(f"reading took {read.read.gets_per_gib} GETs a GiB", figures)
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


SPARK_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "spark-plan": prove_spark_plan,
    "spark-stream": prove_stream,
}
