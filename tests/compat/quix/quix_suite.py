"""Quix Streams: applications with state, windows and transactions.

The published package is a wheel without tests. These cover what its documentation promises for
Kafka topics. They run in the environment of Quix Streams (`scripts/client_suites.sh`).
"""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from quixstreams import Application

BOOTSTRAP = os.environ["GIVEN_BROKER"]
WAIT_S = 60.0
"""A bound for failures: applications end after their number of records."""
GUARANTEES = ("at-least-once", "exactly-once")


@pytest.fixture
def name() -> str:
    return f"quix-{uuid.uuid4()}"


@pytest.fixture(params=GUARANTEES)
def guarantee(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def application(name: str, state: Path, guarantee: str = "at-least-once") -> Application:
    return Application(
        broker_address=BOOTSTRAP,
        consumer_group=name,
        auto_offset_reset="earliest",
        processing_guarantee=guarantee,
        state_dir=str(state),
        loglevel="WARNING",
        consumer_extra_config={"session.timeout.ms": 6000},
    )


def produce(app: Application, topic: Any, rows: list[tuple[str, int]]) -> None:
    with app.get_producer() as producer:
        for key, value in rows:
            message = topic.serialize(key=key, value=value)
            producer.produce(topic=topic.name, key=message.key, value=message.value)


def outputs(app: Application, topic: Any, count: int) -> list[tuple[str, Any]]:
    """The first records of a topic, committed ones only."""

    def rows() -> Iterator[tuple[str, Any]]:
        with app.get_consumer(auto_commit_enable=False) as consumer:
            consumer.subscribe([topic.name])
            while True:
                message = consumer.poll(timeout=WAIT_S)
                assert message is not None, "no further record"
                assert message.error() is None
                row = topic.deserialize(message)
                yield row.key.decode(), row.value

    found = rows()
    return [next(found) for _ in range(count)]


def test_records_are_filtered_and_transformed(name: str, guarantee: str, tmp_path: Path) -> None:
    app = application(name, tmp_path, guarantee)
    source, sink = app.topic(f"{name}-in", value_deserializer="json"), app.topic(f"{name}-out")
    produce(app, source, [("a", 1), ("b", 2), ("a", 3)])
    frame = app.dataframe(source)
    frame = frame[frame.apply(lambda value: value != 2)].apply(lambda value: value * 10)
    frame.to_topic(sink)
    app.run(count=3, timeout=WAIT_S)
    reader = application(f"{name}-reader", tmp_path / "reader")
    assert outputs(reader, sink, 2) == [("a", 10), ("a", 30)]


def count_words(app: Application, name: str) -> tuple[Any, Any]:
    source, sink = app.topic(f"{name}-in"), app.topic(f"{name}-out")

    def counted(_value: Any, state: Any) -> int:
        total = int(state.get("total", 0)) + 1
        state.set("total", total)
        return total

    app.dataframe(source).apply(counted, stateful=True).to_topic(sink)
    return source, sink


def test_state_is_restored_from_the_changelog(name: str, guarantee: str, tmp_path: Path) -> None:
    for run in ("first", "second"):  # each on an empty disk
        app = application(name, tmp_path / run, guarantee)
        source, sink = count_words(app, name)
        produce(app, source, [("a", 1), ("b", 1), ("a", 1)])
        app.run(count=3, timeout=WAIT_S)
    reader = application(f"{name}-reader", tmp_path / "reader")
    found = outputs(reader, sink, 6)
    assert [value for key, value in found if key == "a"] == [1, 2, 3, 4]
    assert [value for key, value in found if key == "b"] == [1, 2]


def test_a_tumbling_window(name: str, tmp_path: Path) -> None:
    app = application(name, tmp_path)
    source, sink = app.topic(f"{name}-in"), app.topic(f"{name}-out")
    with app.get_producer() as producer:
        for at_ms, value in ((0, 1), (500, 2), (1500, 4)):
            message = source.serialize(key="k", value=value)
            producer.produce(source.name, message.value, message.key, timestamp=1_000_000 + at_ms)
    app.dataframe(source).tumbling_window(1000).sum().current().to_topic(sink)
    app.run(count=3, timeout=WAIT_S)
    reader = application(f"{name}-reader", tmp_path / "reader")
    assert [value["value"] for _key, value in outputs(reader, sink, 3)] == [1, 3, 4]


def test_records_are_repartitioned_by_another_key(name: str, tmp_path: Path) -> None:
    app = application(name, tmp_path)
    source, sink = app.topic(f"{name}-in"), app.topic(f"{name}-out")
    produce(app, source, [("a", 1), ("b", 2), ("c", 1)])
    frame = app.dataframe(source).group_by(lambda value: f"n{value}", name="number")
    frame.to_topic(sink)
    app.run(count=6, timeout=WAIT_S)  # each record passes twice
    reader = application(f"{name}-reader", tmp_path / "reader")
    assert sorted(outputs(reader, sink, 3)) == [("n1", 1), ("n1", 1), ("n2", 2)]
