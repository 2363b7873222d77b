"""The demo, small: its group reads every record once, and its report says who read what."""

import json

import pytest

from bucketlog.cli.main import main

pytestmark = pytest.mark.long

FLIGHTS = 3000


@pytest.mark.parametrize("partitions", [4, 2])
def test_the_group_reads_every_flight_once(
    partitions: int, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["demo", "--flights", str(FLIGHTS), "--no-spark", "-p", str(partitions)]
    assert main(arguments) == 0
    shown, told = capsys.readouterr()
    assert told.splitlines() == [
        f"demo: {step}" for step in ("start", "join", "produce", "consume")
    ]
    table = [row.split() for row in shown.partition("\n\n")[0].splitlines()]
    assert len({len(row[-1]) for row in table[1:]}) == 1, "checksums are padded with zeros"
    figures = json.loads(shown.splitlines()[-1])
    assert (figures["produced"], figures["consumed"], figures["mismatches"]) == (
        FLIGHTS,
        FLIGHTS,
        0,
    )
    assert sum(figures["members"]) == FLIGHTS
    assert sum(records > 0 for records in figures["members"]) == min(3, partitions)
    assert "MEMBER  PARTITIONS  RECORDS" in shown
