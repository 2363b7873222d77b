"""`bucketlog.replay` on logs in a folder: what was written comes back in every shape."""

import io
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import BaseModel

import bucketlog
from bucketlog.client.lines import json_line
from bucketlog.log_format.batch import Codec
from bucketlog.log_format.errors import ConfigurationError, CorruptObjectError, InvalidDataError
from bucketlog.log_format.records import DecodedRecord, Header
from bucketlog.tiered_storage.backends.file import FileBucket
from tests.rigs.transactional_log import TOPIC, TransactionalLog
from tests.rigs.written_log import START_MS, WrittenLog, some_records


@dataclass
class Stored:
    folder: Path
    log: WrittenLog
    records: dict[int, list[DecodedRecord]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"file://{self.folder}"


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Stored]:
    """`orders`: two partitions, five segments."""
    bucket = FileBucket(tmp_path / "bucket" / "0")
    found = Stored(tmp_path / "bucket", WrittenLog(bucket))
    found.log.create_topic("orders", 2)
    for number in range(5):
        for partition in range(2):
            batch = some_records(20, tag=f"{partition}/{number}", headers=True)
            batch = [record._replace(timestamp=START_MS + number * 60_000) for record in batch]
            written = found.log.append("orders", partition, batch, codec=Codec.ZSTD)
            found.records.setdefault(partition, []).extend(written)
        found.log.flush()
    yield found
    bucket.close()


def as_written(records: Iterator[bucketlog.Record[bytes, bytes]]) -> dict[int, list[DecodedRecord]]:
    found: dict[int, list[DecodedRecord]] = {}
    for record in records:
        found.setdefault(record.partition, []).append(
            DecodedRecord(
                record.offset,
                record.timestamp_ms,
                record.key,
                None if record.is_tombstone else record.value,
                tuple(Header(*pair) for pair in record.headers),
            )
        )
    return found


@pytest.mark.parametrize("threads", [1, 3])
def test_records_are_what_was_written_in_the_order_of_offsets(stored: Stored, threads: int) -> None:
    replay = bucketlog.replay(stored.url, "orders", threads=threads)
    assert as_written(iter(replay)) == stored.records
    assert replay.plan.records == 200


def test_tables(stored: Stored) -> None:
    table = bucketlog.replay(stored.url, "orders").to_arrow()
    assert table.num_rows == 200
    assert table.schema.names == [
        *("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
    ]
    first = table.slice(0, 1).to_pylist()[0]
    assert (first["key"], first["value"]) == (b"0/0-key-0", b"0/0-value-0")
    assert first["timestamp"] == datetime.fromtimestamp(START_MS / 1000, UTC)
    frame = bucketlog.replay(stored.url, "orders", columns=["offset", "value"]).to_pandas()
    assert list(frame.columns) == ["offset", "value"]
    assert len(frame) == 200
    columns = ["partition", "offset"]
    wide = bucketlog.replay(stored.url, "orders", columns=columns, partitions=[1]).to_polars()
    assert wide.rows() == [(1, at) for at in range(100)]


def test_a_range_without_a_record_is_a_table_without_a_row(stored: Stored) -> None:
    table = bucketlog.replay(stored.url, "orders", offsets={0: (7, 7)}).to_arrow()
    assert table.num_rows == 0
    assert table.schema.field("timestamp").type == pa.timestamp("us", tz="UTC")


def test_since_and_until_are_held_against_timestamps(stored: Stored) -> None:
    third = datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(minutes=2)
    replay = bucketlog.replay(stored.url, "orders", since=third, until=third + timedelta(seconds=1))
    assert [record.offset for record in replay if record.partition == 1] == list(range(40, 60))
    back = bucketlog.replay(
        stored.url, "orders", since="1m", clock=lambda: START_MS + 4 * 60_000, partitions=[0]
    )
    assert [record.offset for record in back] == list(range(60, 100))
    nothing = bucketlog.replay(stored.url, "orders", since=third + timedelta(days=1))
    assert list(nothing) == []


def test_offsets_cut_batches(stored: Stored) -> None:
    replay = bucketlog.replay(stored.url, "orders", offsets={0: (15, 45), 1: 95})
    assert [(record.partition, record.offset) for record in replay] == [
        *((0, at) for at in range(15, 45)),
        *((1, at) for at in range(95, 100)),
    ]
    assert replay.plan.records is None


def test_what_is_replayed_is_decided_once(stored: Stored) -> None:
    replay = bucketlog.replay(stored.url, "orders")
    assert replay.plan.records == 200
    stored.log.append("orders", 0, some_records(3))
    stored.log.flush()
    assert replay.to_arrow().num_rows == 200
    assert bucketlog.replay(stored.url, "orders").to_arrow().num_rows == 203


class Order(BaseModel):
    number: int


def test_typed_records(stored: Stored) -> None:
    stored.log.create_topic("typed")
    values = [b'{"number": 1}', None, b'{"number": 2}', b"broken"]
    stored.log.append("typed", 0, [DecodedRecord(0, START_MS, b"k", value) for value in values])
    stored.log.flush()
    topic = bucketlog.Topic("typed", value=Order, key=str)
    records = bucketlog.replay(stored.url, topic).records()
    assert next(records).value.number == 1
    assert next(records).is_tombstone
    assert next(records).key == "k"
    with pytest.raises(InvalidDataError, match=r"the record at typed\[0\]@3"):
        next(records)


def test_lines_are_those_that_produce_takes(stored: Stored, tmp_path: Path) -> None:
    stored.log.append(
        "orders",
        0,
        [DecodedRecord(0, START_MS, b"\xff", "Zürich".encode(), (Header("h", b"\xfe"),))],
    )
    stored.log.flush()
    target = tmp_path / "orders.jsonl"
    replay = bucketlog.replay(stored.url, "orders")
    assert replay.to_jsonl(target) == 201
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    assert [(row["partition"], row["offset"]) for row in rows if row["partition"] == 0] == [
        (0, at) for at in range(101)
    ]
    line = json_line(target.read_bytes().splitlines()[-1])
    assert line == (b"\xff", "Zürich".encode(), [("h", b"\xfe")], START_MS)
    with pytest.raises(ConfigurationError, match="is there already"):
        replay.to_jsonl(target)
    assert replay.to_jsonl(target, overwrite=True) == 201
    memory = io.BytesIO()
    assert replay.to_jsonl(memory) == 201
    assert memory.getvalue() == target.read_bytes()


def damage(stored: Stored) -> None:
    path = sorted((stored.folder / "0" / "log").rglob("*"))[-1]
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)


def test_damage_ends_it_after_what_stands_before_it(stored: Stored, tmp_path: Path) -> None:
    damage(stored)
    found: list[int] = []
    offsets = (one.offset for one in bucketlog.replay(stored.url, "orders") if not one.partition)
    with pytest.raises(CorruptObjectError, match="topic 'orders' partition 0 offsets 80 to 99"):
        found.extend(offsets)
    assert found == list(range(80))
    target = tmp_path / "orders.jsonl"
    with pytest.raises(CorruptObjectError):
        bucketlog.replay(stored.url, "orders").to_jsonl(target)
    assert list(tmp_path.glob("orders.jsonl*")) == []
    lake = tmp_path / "lake"
    with pytest.raises(CorruptObjectError):
        bucketlog.replay(stored.url, "orders").to_parquet(lake)
    assert [path for path in lake.rglob("*") if path.is_file()] == []


def test_parquet_of_the_local_engine(stored: Stored, tmp_path: Path) -> None:
    report = bucketlog.replay(stored.url, "orders").to_parquet(
        tmp_path / "lake", partition_by=["partition", "day"]
    )
    assert (report.records, report.files) == (200, 2)
    assert [(part.first_offset, part.last_offset) for part in report.partitions] == [(0, 99)] * 2
    files = sorted((tmp_path / "lake").rglob("*.parquet"))
    assert [str(path.parent.relative_to(tmp_path)) for path in files] == [
        "lake/partition=0/day=2023-11-14",
        "lake/partition=1/day=2023-11-14",
    ]
    table = pq.ParquetFile(files[1]).read()
    assert table.column("offset").to_pylist() == list(range(100))
    assert table.column("value").to_pylist() == [record.value for record in stored.records[1]]


def test_batches_may_be_left_early(stored: Stored) -> None:
    batches = bucketlog.replay(stored.url, "orders").batches()
    assert next(batches).num_rows > 0
    batches.close()


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"columns": ["price"]}, "no column 'price'"),
        ({"columns": []}, "no column is asked for"),
        ({"threads": 0}, "threads 0"),
        ({"since": "yesterday"}, "since 'yesterday'"),
        ({"s3": {"endpoint": "x"}}, "bad S3 options"),
        ({"s3": {"region": "eu"}}, "s3 options for a file path"),
        ({"isolation": "serializable"}, "isolation.level"),
    ],
)
def test_bad_wishes_are_refused_before_anything_is_read(
    tmp_path: Path, wanted: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        bucketlog.replay(f"file://{tmp_path}", "orders", **wanted)


def test_a_topic_that_is_not_there(stored: Stored) -> None:
    with pytest.raises(ConfigurationError, match="no topic 'nowhere'"):
        list(bucketlog.replay(stored.url, "nowhere"))


@pytest.mark.parametrize(("module", "shape"), [("polars", "to_polars"), ("pandas", "to_pandas")])
def test_what_is_not_installed_is_named_with_its_extra(
    stored: Stored, monkeypatch: pytest.MonkeyPatch, module: str, shape: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigurationError, match=rf"pip install 'bucketlog\[{module}\]'"):
        getattr(bucketlog.replay(stored.url, "orders"), shape)()


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_transactions(
    tmp_path: Path, isolation: Literal["read_committed", "read_uncommitted"]
) -> None:
    planted = TransactionalLog(FileBucket(tmp_path / "bucket" / "0"), seed=2)
    found: dict[int, list[tuple[int, bytes]]] = {}
    read = bucketlog.replay(f"file://{tmp_path}/bucket", TOPIC, isolation=isolation)
    for row in read.to_arrow().to_pylist():
        found.setdefault(row["partition"], []).append((row["offset"], row["value"]))
    assert found == planted.expected(committed_only=isolation == "read_committed")
