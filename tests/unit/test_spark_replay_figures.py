"""What `benchmarks.spark_replay` makes of what its Spark processes say."""

from typing import Any
from xml.etree import ElementTree

from benchmarks.spark_chart import render
from benchmarks.spark_replay import (
    BROKERS,
    KAFKA,
    KAFKA_TUNED,
    OURS,
    differences,
    figures_of,
    parse,
    shortfalls,
)

RECORDS = 1000


def session(**more: float) -> dict[str, Any]:
    """Each query took so many seconds, three times, the slowest of them by far."""
    names = {name.replace("_", " ").replace(" ", ", ", 1): s for name, s in more.items()}
    return {
        "checksum": "the same",
        "queries": {
            name: [{"seconds": s * much, "cpu_s": 2 * s * much} for much in (0.9, 1.0, 5.0)]
            for name, s in names.items()
        },
        "answers": {
            name: {"key000": RECORDS} if name.startswith("aggregate") else RECORDS for name in names
        },
    }


def sessions() -> dict[str, dict[str, Any]]:
    return {
        BROKERS: session(count_all_columns=12, aggregate_all_columns=10, parquet_all_columns=30),
        KAFKA: session(count_all_columns=10, aggregate_all_columns=12, parquet_all_columns=20),
        KAFKA_TUNED: session(count_all_columns=5, aggregate_all_columns=6, parquet_all_columns=15),
        OURS: session(
            count_all_columns=4,
            count_pruned=2,
            aggregate_all_columns=4,
            aggregate_pruned=2.5,
            parquet_all_columns=10,
            replay_all_columns=5,
        ),
    }


def test_ratios_are_of_medians_to_the_faster_of_the_two_defaults() -> None:
    figures = figures_of(sessions(), RECORDS)
    assert figures["times_faster"] == {
        "count, all columns": 2.5,
        "count, pruned": 5.0,
        "aggregate, all columns": 2.5,
        "aggregate, pruned": 4.0,
        "parquet, all columns": 2.0,
        "replay, all columns": 4.0,
    }
    assert figures["times_faster_than_tuned"]["replay, all columns"] == 3.0
    assert figures[OURS]["count, pruned"] == {"seconds": 2, "records_per_s": 500, "cpu_s": 4}


def test_what_falls_short_is_told() -> None:
    figures = {
        "codecs": {"none": figures_of(sessions(), RECORDS)},
        "decoded_records_per_cpu_s": {"none": 5_000_000},
    }
    holds = ["--min-count", "2.5", "--min-aggregate", "2.5", "--min-replay", "4"]
    assert shortfalls(parse([*holds, "--min-decoded", "5000000"]), figures) == []
    found = shortfalls(parse(["--min-parquet", "2.1", "--min-decoded", "6000000"]), figures)
    assert [text.split(":")[0] for text in found] == ["none, parquet, all columns", "none"]


def test_answers_that_differ_are_told() -> None:
    assert differences("none", sessions(), RECORDS) == []
    for name, answer in (
        ("count, all columns", RECORDS - 1),
        ("aggregate, all columns", {"key000": RECORDS - 1, "key001": 1}),
        ("replay, all columns", RECORDS + 1),
    ):
        wrong = sessions()
        wrong[OURS]["answers"][name] = answer
        assert differences("none", wrong, RECORDS), name
    wrong = sessions()
    wrong[KAFKA]["checksum"] = "another"
    assert differences("none", wrong, RECORDS)


def test_the_picture_has_a_bar_for_each_figure() -> None:
    codecs = {"none": figures_of(sessions(), RECORDS)}
    figures = {"records": RECORDS, "value_bytes": 100, "codecs": codecs}
    picture = ElementTree.fromstring(render(figures, "none"))
    bars = [each for each in picture if each.tag.endswith("rect")]
    assert len(bars) == 1 + sum(len(codecs["none"][way]) for way in sessions())
