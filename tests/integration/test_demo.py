"""The demo, small: its group reads every record once, and its report says who read what."""

import json

import pytest

from bucketlog.cli.main import main

FLIGHTS = 3000


@pytest.mark.parametrize("partitions", [4, 2])
def test_the_group_reads_every_flight_once(
    partitions: int, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["demo", "--flights", str(FLIGHTS), "--no-spark", "-p", str(partitions)]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    figures = json.loads(shown.splitlines()[-1])
    assert (figures["produced"], figures["consumed"], figures["mismatches"]) == (
        FLIGHTS,
        FLIGHTS,
        0,
    )
    assert sum(figures["members"]) == FLIGHTS
    assert sum(records > 0 for records in figures["members"]) == min(3, partitions)
    assert "MEMBER  PARTITIONS  RECORDS" in shown
