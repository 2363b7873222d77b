"""Real records for a cluster that is new: what `bucketlog dev --seed` loads.

A topic that is there already stays as it is: nothing is loaded twice.
"""

from typing import NamedTuple

from bucketlog.cli.output import progress
from bucketlog.client.log import connect
from bucketlog.demo.flights import FLIGHTS, flights_path, flights_topic, read_flights

PARTITIONS = 4
DELIVERY_TIMEOUT_S = 30.0


class Seeded(NamedTuple):
    """`is_new`: the records were loaded now."""

    topic: str
    records: int
    is_new: bool


def check_seed() -> None:
    """Raises `ConfigurationError` where the records are not installed."""
    flights_path()


def seed_flights(bootstrap: str, records: int) -> Seeded:
    """The first `records` flights as topic `flights`: JSON values, keys are carriers. Raises
    `LogError`."""
    topic = flights_topic()
    with connect(bootstrap) as log:
        if any(info.name == topic.name for info in log.topics.list()):
            parts = log.topics.describe(topic).partitions
            there = sum(part.latest - part.earliest for part in parts)
            return Seeded(topic.name, there, is_new=False)
        log.topics.create(topic, partitions=PARTITIONS)
        with (
            progress(f"seed {topic.name}", min(records, FLIGHTS)) as bar,
            log.producer(compression="lz4", delivery_timeout_s=DELIVERY_TIMEOUT_S) as producer,
        ):
            loaded = producer.send_many(
                topic, bar.over(read_flights(records)), key=lambda flight: flight.carrier
            )
        return Seeded(topic.name, loaded, is_new=True)
