"""Planted damage fails the reading of a log with all that must be said; without a Spark."""

from contextlib import closing
from pathlib import Path

import pytest

from bucketlog.log_reader.fetch import read_pieces
from bucketlog.log_reader.options import parse_options
from bucketlog.log_reader.planning import planned_tasks
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from tests.scenarios.spark_damage import TOPIC, Damage, Lost, damages, unsaid


def read_all(url: str, tasks: int) -> int:
    options = parse_options({"path": url, "subscribe": TOPIC, "minPartitions": str(tasks)})
    with closing(open_sync_bucket(url)) as bucket:
        return sum(
            batch.num_rows
            for pieces in planned_tasks(bucket, options)
            for batch in read_pieces(
                bucket,
                pieces,
                ["offset", "value"],
                max_decompressed_bytes=options.max_decompressed_bytes,
            )
        )


@pytest.mark.parametrize("seed", range(4))
def test_topic_partition_offsets_and_key_are_said(tmp_path: Path, seed: int) -> None:
    found = damages(read_all, 3, tmp_path, seed)
    assert {kind: problems for kind, problems in found.items() if problems} == {}


SAID = "object 'log/a/1' is damaged: topic 'orders' partition 1 offsets 20 to 39"


@pytest.mark.parametrize(
    ("text", "lost", "missing"),
    [
        (SAID, Lost(1, 20, 39), []),
        (SAID.replace("log/a/1", "log/a/2"), Lost(1, 20, 39), ["no key"]),
        (SAID, Lost(0, 20, 39), ["no Lost"]),
        (SAID, Lost(1, 40, 59), ["no Lost"]),
        (SAID.replace("offsets 20 to 39", "offsets from 20 on"), Lost(1, 40, 59), []),
        (SAID.replace("offsets 20 to 39", "offsets from 41 on"), Lost(1, 40, 59), ["no Lost"]),
    ],
)
def test_what_is_not_said_is_seen(text: str, lost: Lost, missing: list[str]) -> None:
    problems = unsaid(text, Damage("log/a/1", None, [lost]))
    assert [
        problem[: len(word)] for problem, word in zip(problems, missing, strict=True)
    ] == missing
