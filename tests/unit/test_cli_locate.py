"""`bucketlog locate`: its bytes are those of the batch."""

import json
from pathlib import Path

import pytest

from bucketlog.cli.main import main
from bucketlog.log_format.batch import read_header, set_max_timestamp
from bucketlog.log_format.records import encode_batch
from bucketlog.terminal import time_text
from bucketlog.tiered_storage.backends.file import FileBucket
from tests.rigs.written_log import WrittenLog, some_records
from tests.rigs.written_tier import Batch, WrittenTier, batches_in

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`t`: three segments, each with a batch of 10 records in both partitions."""
    written = WrittenLog(FileBucket(tmp_path / "bucket" / "0"))
    written.create_topic("t", 2)
    write_batches(written)
    written.bucket.close()
    return tmp_path / "bucket"


def write_batches(written: WrittenLog) -> list[Batch]:
    """Those of partition 1."""
    found: list[Batch] = []
    for number in range(3):
        for partition in range(2):
            written.append("t", partition, some_records(10, tag=str(number), headers=True))
        flushed = batches_in(written.flush())
        found += [batch for part, batch in flushed if part.partition == 1]
    return found


@pytest.fixture
def tiered(tmp_path: Path) -> Path:
    """As `folder`. The batches of partition 1 are in two objects, of which a manifest lists one."""
    written = WrittenLog(FileBucket(tmp_path / "bucket" / "0"))
    written.create_topic("t", 2)
    batches, part = write_batches(written), written.partition("t", 1)
    tier = WrittenTier(written)
    first = tier.split(part, batches[:2], 0)
    written.flush()
    tier.split(part, batches[2:], 20)
    written.flush()
    tier.list_in_manifest(part, [first])
    written.flush()
    written.bucket.close()
    return tmp_path / "bucket"


@pytest.mark.parametrize("offset", [0, 9, 10, 17, 29])
@pytest.mark.parametrize("kind", ["segment", "tier"])
def test_the_bytes_are_those_of_the_batch(
    request: pytest.FixtureRequest, kind: str, offset: int, capsys: Capture
) -> None:
    folder: Path = request.getfixturevalue("folder" if kind == "segment" else "tiered")
    assert main(["locate", str(folder), "t", "1", str(offset), "-o", "jsonl"]) == 0
    row = json.loads(capsys.readouterr().out)
    data = (folder / "0" / row["key"]).read_bytes()
    header = read_header(data[row["first_byte"] : row["last_byte"] + 1])
    assert header.size_bytes == row["last_byte"] + 1 - row["first_byte"]
    assert header.base_offset == row["base_offset"] == offset // 10 * 10
    assert (row["last_offset"], row["records"], row["kind"]) == (
        row["base_offset"] + 9,
        10,
        kind,
    )


def test_a_table(folder: Path, capsys: Capture) -> None:
    assert main(["locate", str(folder), "t", "0", "12"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "base offset     10" in lines
    assert "producer id     -" in lines


def test_a_batch_of_a_hostile_producer(tmp_path: Path, capsys: Capture) -> None:
    """Its time is beyond the calendar."""
    written = WrittenLog(FileBucket(tmp_path / "bucket" / "0"))
    written.create_topic("t", 1)
    batch = bytearray(encode_batch([some_records(1)[0]]))
    header = read_header(batch)
    set_max_timestamp(memoryview(batch), header, 2**62)
    written.append_batch(written.partition("t", 0), bytes(batch))
    written.flush()
    written.bucket.close()
    assert main(["locate", str(tmp_path / "bucket"), "t", "0", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"max timestamp   {2**62} ms" in lines


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        (-(2**63), f"-{2**63} ms"),
        (-1, "1969-12-31T23:59:59.999+00:00"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123+00:00"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999+00:00"),
        (253_402_300_800_000, "253402300800000 ms"),
        (2**63 - 1, f"{2**63 - 1} ms"),
    ],
)
def test_times_in_and_outside_of_the_calendar(at_ms: int, text: str) -> None:
    assert time_text(at_ms) == text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [(("t", "0", "30"), "30"), (("t", "2", "0"), "2"), (("u", "0", "0"), "u")],
)
def test_what_is_not_there(
    folder: Path, arguments: tuple[str, ...], complaint: str, capsys: Capture
) -> None:
    assert main(["locate", str(folder), *arguments]) == 2
    shown = capsys.readouterr()
    assert complaint in shown.err
    assert (shown.out, shown.err.count("\n")) == ("", 1)
