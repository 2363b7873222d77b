"""The demo's comparison: what it must notice."""

from typing import Any

import pytest

from bucketlog.client.topic import Record
from bucketlog.demo.flights import FLIGHTS, Flight, flights_topic, read_flights
from bucketlog.demo.tally import Tally, checksum_of

ENCODE = flights_topic().value_format.encode


@pytest.fixture
def flights() -> list[Flight]:
    return list(read_flights(50))


def records(flights: list[Flight]) -> list[Record[str, Flight]]:
    return [Record("flights", 0, at, -1, row.carrier, row) for at, row in enumerate(flights)]


def expecting(flights: list[Flight]) -> Tally:
    tally = Tally()
    assert list(tally.expecting(flights, ENCODE)) == flights
    return tally


def test_missing_values_become_none() -> None:
    new_year = list(read_flights(842))
    assert {(flight.month, flight.day) for flight in new_year} == {(1, 1)}
    cancelled = [flight for flight in new_year if flight.dep_time is None]
    assert len(cancelled) == 4
    assert all(flight.air_time is None and flight.arr_delay is None for flight in cancelled)


def test_all_right(flights: list[Flight]) -> None:
    tally = expecting(flights)
    tally.compare(records(flights))
    replayed = {
        carrier: (len(mine.rows), mine.checksum) for carrier, mine in tally.carriers.items()
    }
    assert tally.compare_replay(replayed) == 50
    assert (tally.produced, tally.consumed, tally.mismatches) == (50, 50, [])


def test_the_checksum_is_sparks(flights: list[Flight]) -> None:
    assert checksum_of(b"abc") == 0x900150983CD24FB
    tally = expecting(flights)
    assert sum(mine.checksum for mine in tally.carriers.values()) == sum(
        checksum_of(ENCODE(flight)) for flight in flights
    )


def changed(record: Record[str, Flight], **fields: Any) -> Record[str, Flight]:
    given: dict[str, Any] = {
        "partition": 0,
        "offset": record.offset,
        "key": record.key,
        "value": record.value,
    }
    given |= fields
    return Record("flights", given["partition"], given["offset"], -1, given["key"], given["value"])


@pytest.mark.parametrize("fault", ["value", "order", "offset", "partition", "stranger", "twice"])
def test_a_fault_is_noticed(flights: list[Flight], fault: str) -> None:
    tally = expecting(flights)
    back = records(flights)
    match fault:
        case "value":
            back[7] = changed(back[7], value=back[7].value.model_copy(update={"distance": 1}))
        case "order":
            same = [at for at, record in enumerate(back) if record.key == "UA"][:2]
            first, second = (back[at] for at in same)
            back[same[0]] = changed(first, value=second.value)
            back[same[1]] = changed(second, value=first.value)
        case "offset":
            back[7] = changed(back[7], offset=6)
        case "partition":
            last = max(at for at, record in enumerate(back) if record.key == "UA")
            back[last] = changed(back[last], partition=1)
        case "stranger":
            back[7] = changed(back[7], key="XX")
        case "twice":
            back.append(changed(back[-1], offset=50))
    tally.compare(back)
    assert tally.mismatches


def test_a_replay_that_differs_is_noticed(flights: list[Flight]) -> None:
    tally = expecting(flights)
    right = {carrier: (len(mine.rows), mine.checksum) for carrier, mine in tally.carriers.items()}
    carrier = next(iter(right))
    count, checksum = right[carrier]
    for wrong in (
        right | {carrier: (count, checksum + 1)},
        right | {carrier: (count + 1, checksum)},
        right | {"XX": (1, 1)},
        {name: value for name, value in right.items() if name != carrier},
    ):
        tally.mismatches.clear()
        tally.compare_replay(wrong)
        assert len(tally.mismatches) == 1


def test_the_number_of_flights_is_the_sources() -> None:
    assert FLIGHTS == 336_776
