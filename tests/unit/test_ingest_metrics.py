"""Metrics of ingests: their names, their values, and the page."""

import re
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bucketlog.ingesting.ingest_figures import TableFigures
from bucketlog.ingesting.ingest_metrics import metrics_text, served_metrics
from bucketlog.log_reader.tables.ingest_loop import WrittenBatch
from bucketlog.log_reader.tables.progress import TargetState
from tests.models.repository import ROOT

HOSTILE = 'a"} 1\nbucketlog_ingest_rows_total{table="b'


def read(text: str) -> dict[str, dict[str, float]]:
    return {
        row.name: {each.labels["table"]: each.value for each in family.samples}
        for family in text_string_to_metric_families(text)
        for row in family.samples
    }


def figures_of(name: str) -> TableFigures:
    times = iter([10.0, 20.0, 30.0, 40.0])
    figures = TableFigures(name, wall_s=lambda: next(times, 50.0))
    figures.began()
    figures.advanced(7, WrittenBatch(TargetState(None), 12, 3, 4_000, 1_500))
    return figures


def test_they_say_what_was_done() -> None:
    busy, new = figures_of("lake.db.t"), TableFigures(HOSTILE, wall_s=lambda: 0.0)
    busy.failed()
    found = read(metrics_text([busy, new]).decode())
    assert found["bucketlog_ingest_rows_total"] == {"lake.db.t": 12, HOSTILE: 0}
    assert found["bucketlog_ingest_dead_letters_total"] == {"lake.db.t": 3, HOSTILE: 0}
    assert found["bucketlog_ingest_written_bytes_total"] == {"lake.db.t": 4_000, HOSTILE: 0}
    assert found["bucketlog_ingest_commits_total"] == {"lake.db.t": 1, HOSTILE: 0}
    assert found["bucketlog_ingest_failures_total"] == {"lake.db.t": 1, HOSTILE: 0}
    assert found["bucketlog_ingest_failing"] == {"lake.db.t": 1, HOSTILE: 0}
    assert found["bucketlog_ingest_lag_offsets"] == {"lake.db.t": 7}
    assert found["bucketlog_ingest_freshness_seconds"] == {"lake.db.t": 30, HOSTILE: 0}
    assert found["bucketlog_ingest_last_commit_timestamp_seconds"] == {"lake.db.t": 30}
    assert found["bucketlog_ingest_newest_record_timestamp_seconds"] == {"lake.db.t": 1.5}


def test_the_documentation_has_each_metric() -> None:
    shown = set(read(metrics_text([figures_of("t")]).decode()))
    rows = re.findall(
        r"^\| `(bucketlog_ingest_\w+)`", (ROOT / "docs/lake.md").read_text(), re.MULTILINE
    )
    assert set(rows) == shown
    assert len(rows) == len(shown)


def test_the_page_has_them() -> None:
    figures = figures_of("lake.db.t")
    with served_metrics([figures], host="127.0.0.1", port=0) as address:
        assert address.startswith("http://127.0.0.1:")
        with urlopen(address) as answer:
            assert answer.headers["content-type"].startswith("text/plain")
            found = read(answer.read().decode())
        with pytest.raises(HTTPError) as caught:
            urlopen(address, data=b"x")
        with caught.value as refused:
            assert refused.code == 405
    assert found["bucketlog_ingest_rows_total"] == {"lake.db.t": 12}
