"""What the loaders share: sales, and the two databases that they are loaded into.

A row's primary key is the place of its record. To load a record again therefore changes nothing.
"""

import os
from collections.abc import Iterable
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import urlsplit

import duckdb
import pg8000.dbapi
import polars
from pydantic import BaseModel

ADDRESS = os.environ.get("BUCKETLOG_BOOTSTRAP", "localhost:9092")
BUCKET = os.environ.get("BUCKET", "bucketlog-data/bucket")
DUCKDB_FILE = os.environ.get("DUCKDB_FILE", "sales.duckdb")
POSTGRES_URL = os.environ.get("POSTGRES_URL", "postgresql://postgres@localhost:5432/postgres")

CREATE = """
CREATE TABLE IF NOT EXISTS sales (
    kafka_partition INTEGER, kafka_offset BIGINT, product TEXT, cents BIGINT,
    PRIMARY KEY (kafka_partition, kafka_offset))
"""
INSERT = "INSERT INTO sales VALUES ({}, {}, {}, {}) ON CONFLICT DO NOTHING"
TOTALS = "SELECT product, CAST(sum(cents) AS BIGINT) FROM sales GROUP BY product ORDER BY product"


class Sale(BaseModel):
    product: str
    cents: int


class Row(NamedTuple):
    partition: int
    offset: int
    product: str
    cents: int


class Warehouse:
    """A database. `name` is also the group that loads it."""

    def __init__(self, name: str) -> None:
        self.name = name
        if name == "duckdb":
            self._connection = self._cursor = duckdb.connect(DUCKDB_FILE)
            self._insert = INSERT.format(*"????")
        else:
            url = urlsplit(POSTGRES_URL)
            self._connection = pg8000.dbapi.connect(
                url.username, host=url.hostname, port=url.port, database=url.path.strip("/")
            )
            self._connection.autocommit = True
            self._cursor = self._connection.cursor()
            self._insert = INSERT.format(*["%s"] * 4)
        self._cursor.execute(CREATE)

    def upsert(self, rows: Iterable[Row]) -> None:
        """Returns once the rows are committed, all or none."""
        self._cursor.execute("BEGIN")
        self._cursor.executemany(self._insert, list(rows))
        self._cursor.execute("COMMIT")

    def totals(self) -> list[tuple[str, int]]:
        """Cents by product."""
        self._cursor.execute(TOTALS)
        return [(product, cents) for product, cents in self._cursor.fetchall()]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._connection.close()


def frame_totals(frame: polars.DataFrame) -> list[tuple[str, int]]:
    """Cents by product."""
    return frame.group_by("product").agg(polars.col("cents").sum()).sort("product").rows()
