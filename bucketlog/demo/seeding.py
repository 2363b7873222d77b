"""Real records for a cluster that is new: what `bucketlog dev --seed` loads.

A topic that is there already stays as it is: nothing is loaded twice.
"""

from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from bucketlog.client.log import connect
from bucketlog.client.producer import Producer
from bucketlog.demo.flights import FLIGHTS, flights_path, flights_topic, read_flights
from bucketlog.terminal import progress

PARTITIONS = 4
BURST = 5_000
"""Records between two looks at whether the cluster is still there."""
DELIVERY_TIMEOUT_S = 10.0
FLUSH_S = 0.5


class SeedResult(NamedTuple):
    """`is_new`: the records were loaded now."""

    topic: str
    records: int
    is_new: bool


def check_seed() -> None:
    """Raises `ConfigurationError` where the records are not installed."""
    flights_path()


def seed_flights(bootstrap: str, records: int, check: Callable[[], None]) -> SeedResult:
    """The first `records` flights as topic `flights`: JSON values, keys are carriers. `check`
    raises where the cluster has ended. Raises `LogError`."""
    topic = flights_topic()
    with connect(bootstrap) as log:
        if any(info.name == topic.name for info in log.topics.list()):
            parts = log.topics.describe(topic).partitions
            there = sum(part.latest - part.earliest for part in parts)
            return SeedResult(topic.name, there, is_new=False)
        log.topics.create(topic, partitions=PARTITIONS)
        with (
            progress(f"seed {topic.name}", min(records, FLIGHTS)) as bar,
            log.producer(compression="lz4", delivery_timeout_s=DELIVERY_TIMEOUT_S) as producer,
        ):
            loaded, flights = 0, bar.over(read_flights(records))
            while burst := list(islice(flights, BURST)):
                loaded += producer.send_many(topic, burst, key=lambda flight: flight.carrier)
                _settle(producer, check)
        return SeedResult(topic.name, loaded, is_new=True)


def _settle(producer: Producer, check: Callable[[], None]) -> None:
    while True:
        check()
        try:
            producer.flush(FLUSH_S)
        except TimeoutError:
            continue
        return
