"""Histories as lines of JSON: nothing that the judge needs is lost on the way."""

import json
from array import array
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.good_histories import good_history
from tests.models.history import Acknowledged, History, Log, Place, Read, Seen, Sent
from tests.models.packed_rows import Names, PackedRows
from tests.models.promises import Rule, broken_promises, check
from tests.models.recorded_history import FaultSpan, decode, lines_of
from tests.rigs.recorder import Recorder
from tests.rigs.traced_memory import TracedMemory

BYTES_A_RECORD = 2000
"""Measured: 1,400. Each record of this history has six lines, among them a commit."""


@given(seed=st.integers(0, 1 << 32), records=st.integers(30, 200))
def test_a_good_history_stays_good(seed: int, records: int) -> None:
    history, log = good_history(seed, records)
    found = decode(lines_of(history, log))
    check(found.history, found.log)
    assert {partition: list(rows) for partition, rows in found.log.items()} == log
    assert found.history.invoked == history.invoked


def test_polls_without_a_gap_are_one_read() -> None:
    a, b, c, d = (Sent("p", number) for number in range(4))
    reads = [
        Read("r", 0, 0, [(0, a), (1, b)], 1),
        Read("r", 0, 2, [(2, c)], 2),
        Read("r", 0, 3, [(5, d)], 3),  # offsets 3 and 4 are left out
        Read("r", 0, 0, [(0, a)], 4, to_end=True),
    ]
    found = decode(lines_of(History(reads=reads), {})).history.reads
    assert [(read.first, list(read.rows), read.began, read.to_end) for read in found] == [
        (0, [(0, a), (1, b), (2, c)], 1, False),
        (3, [(5, d)], 3, False),
        (0, [(0, a)], 4, True),
    ]


@pytest.mark.parametrize(
    ("offsets", "kept"), [([1, 2, 3], [3]), ([1, 5, 2, 6], [5, 2, 6]), ([4, 4], [4])]
)
def test_offsets_that_rise_are_left_out(offsets: list[int], kept: list[int]) -> None:
    history = History(positions=[Seen("c", 0, offset) for offset in offsets])
    found = decode(lines_of(history, {})).history.positions
    assert [row.offset for row in found] == kept


def test_what_a_recorder_writes(tmp_path: Path) -> None:
    ticks = count(1)
    path = tmp_path / "history.jsonl"
    log: Log = {0: [(0, Sent("p", 0)), (3, Sent("p", 1))]}
    with Recorder(path, lambda: float(next(ticks))) as recorder:
        history = recorder.history
        history.invoke(Sent("p", 0), 0.5)
        history.acknowledged.append(Acknowledged(Sent("p", 0), Place(0, 0), 0.7))
        recorder.fault_begins("kill", 2)
        recorder.fault_ended("kill", 2)
        recorder.sealed(0.9)
        history.high_watermarks += [Seen("w", 0, 4), Seen("w", 0, 4)]
        history.reads.append(Read("r", 0, 0, log[0], 0.8))
        recorder.log(log)
    assert history.acknowledged == []
    found = decode(path.read_text().splitlines())
    assert found.faults == [FaultSpan("kill", 2, 1, 2)]
    assert found.history.invoked == {"p": array("d", [0.5])}
    assert found.history.seals == [0.9]
    assert found.polls == {("r", 0): [(4, 4)]}
    assert [broken.rule for broken in broken_promises(found.history, found.log)] == [
        Rule.NEVER_SENT,  # the producer sent one record
    ]


def test_an_empty_log_is_not_an_unknown_one(tmp_path: Path) -> None:
    with Recorder(tmp_path / "history.jsonl", lambda: 0.0) as recorder:
        recorder.log({0: [], 1: []})
    found = decode((tmp_path / "history.jsonl").read_text().splitlines())
    assert {partition: list(rows) for partition, rows in found.log.items()} == {0: [], 1: []}
    assert decode([]).log == {}


def test_packed_rows_are_rows() -> None:
    rows = [(0, Sent("a", 7)), (1, Sent("b", 1 << 39)), (9, Sent("a", 0))]
    packed = PackedRows(Names())
    for row in rows:
        packed.append(*row)
    assert list(packed) == rows
    assert packed[1:] == rows[1:]
    assert packed[-1] == rows[-1]


def test_an_unknown_operation_is_an_error() -> None:
    with pytest.raises(ValueError, match="teleport"):
        decode([json.dumps({"f": "teleport"})])


def test_the_memory_of_a_record_is_bounded(traced_memory: TracedMemory) -> None:
    """So that 10 minutes at 3,000 records a second take less than 4 GB."""
    records = 5_000
    history, log = good_history(3, records)
    lines = list(lines_of(history, log))
    del history, log
    with traced_memory.below(records * BYTES_A_RECORD):
        found = decode(lines)
        check(found.history, found.log)
