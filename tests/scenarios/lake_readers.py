"""One Iceberg table, read by Spark, PyIceberg, DuckDB and Polars: each row must be equal.

At full size, from the repository's root: `make prove WHAT=lake-readers`. The table has an evolved
schema, an overwritten file, and position deletes. Each reader sorts the rows itself. A digest is
made of the text of all rows. PyIceberg and Spark also read the table through the REST catalog of
`bucketlog table serve`.

DuckDB's extension for Iceberg is not on a package index. Here, DuckDB reads the data files that the
table's metadata names: it finds columns by their field ids, and leaves out the deleted positions.
"""

import hashlib
import os
import re
import struct
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import duckdb
import polars as pl
import pyarrow as pa
from pyiceberg.table import Table
from pyiceberg.types import DecimalType, IcebergType, ListType, StructType

from bucketlog.log_reader.tables.catalog import open_catalog
from tests.rigs.patience import PATIENCE_S
from tests.rigs.shell import COMMAND
from tests.scenarios.bad_values import Row
from tests.scenarios.evolution import Evolving, Fold
from tests.scenarios.lake_session import CATALOG, TABLE, LakeSession, written_lake

RUNS = (0, 2, 6, 9)
"""The version of the schema of each job that writes the table."""
ORDERED = "_log_partition, _log_offset"
DUCKDB_TYPES = {
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "boolean": "BOOLEAN",
    "binary": "BLOB",
    "date": "DATE",
    "timestamptz": "TIMESTAMPTZ",
}


@dataclass(frozen=True, slots=True)
class ReaderFigures:
    """Figures of the scenario. `digests` has the digest of each reader. `delete_files` counts the
    files of deleted positions."""

    rows: int
    snapshots: list[str]
    data_files: int
    delete_files: int
    digests: dict[str, str]
    seconds: float
    problems: list[str]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def text_of(found: Any) -> str:
    """The text of a value, which is the same for equal values of all engines. Floats become their
    bits. Engines return a map as pairs or as structs; both become a list of structs."""
    match found:
        case None:
            return "null"
        case bool():
            return str(found)
        case float():
            return struct.pack(">d", found).hex()
        case Decimal():
            return f"{found:f}"
        case bytes() | bytearray():
            return bytes(found).hex()
        case datetime():
            return (found if found.tzinfo is None else found.astimezone(UTC)).isoformat()
        case dict():
            parts = (f"{name!r}:{text_of(found[name])}" for name in sorted(found))
            return "{" + ",".join(parts) + "}"
        case tuple() if len(found) == 2:
            return text_of({"key": found[0], "value": found[1]})
        case list():
            return "[" + ",".join(map(text_of, found)) + "]"
        case _:
            return repr(found) if isinstance(found, str) else str(found)


def digest_of(rows: Iterable[Row]) -> tuple[int, str]:
    """The number of rows, and the digest of their text in this order."""
    digest, count = hashlib.sha256(), 0
    for row in rows:
        digest.update(text_of(row).encode("utf-8", "surrogatepass") + b"\n")
        count += 1
    return count, digest.hexdigest()[:16]


def digest_problems(expected: tuple[int, str], found: Mapping[str, tuple[int, str]]) -> list[str]:
    """Compare the digest of each reader with the expected one. Pure."""
    return [
        f"{reader}: {rows} rows with the digest {digest}, not {expected[0]} with {expected[1]}"
        for reader, (rows, digest) in found.items()
        if (rows, digest) != expected
    ]


def by_spark(lake: LakeSession) -> list[Row]:
    query = f"SELECT * FROM {lake.table} ORDER BY {ORDERED}"
    rows: list[Row] = lake.spark.sql(query).toArrow().to_pylist()
    return rows


def by_pyiceberg(lake: LakeSession) -> list[Row]:
    return rows_in_order(lake.catalog.load_table(TABLE))


def rows_in_order(found: Table) -> list[Row]:
    table = found.scan().to_arrow()
    order = [(name, "ascending") for name in ORDERED.split(", ")]
    rows: list[Row] = table.sort_by(order).to_pylist()
    return rows


def by_rest_catalog(lake: LakeSession) -> list[Row]:
    """Read by PyIceberg through `bucketlog table serve`."""
    files = {name: text for name, text in lake.catalog.properties.items() if name[:3] == "s3."}
    with served_catalog(lake) as address:
        catalog = open_catalog("served", {**files, "type": "rest", "uri": address})
        return rows_in_order(catalog.load_table(TABLE))


def by_spark_and_rest_catalog(lake: LakeSession) -> list[Row]:
    """Read by Spark through `bucketlog table serve`."""
    at = "spark.sql.catalog.served"
    with served_catalog(lake) as address:
        lake.spark.conf.set(at, "org.apache.iceberg.spark.SparkCatalog")
        lake.spark.conf.set(f"{at}.type", "rest")
        lake.spark.conf.set(f"{at}.uri", address)
        lake.spark.conf.set(f"{at}.io-impl", "org.apache.iceberg.hadoop.HadoopFileIO")
        query = f"SELECT * FROM served.{TABLE} ORDER BY {ORDERED}"
        rows: list[Row] = lake.spark.sql(query).toArrow().to_pylist()
        return rows


@contextmanager
def served_catalog(lake: LakeSession) -> Iterator[str]:
    """Serve the session's catalog in a separate process. Yields the address."""
    flags = [f"--catalog-property={name}={text}" for name, text in lake.catalog.properties.items()]
    process = subprocess.Popen(
        [*COMMAND, "table", "serve", CATALOG, "--port", "0", *flags],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        found = re.search(r"catalog at (http://\S+)", process.stdout.readline())
        assert found is not None, "the catalog does not start"
        yield found[1]
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        if process.stdout is not None:
            process.stdout.close()


def by_polars(lake: LakeSession) -> list[Row]:
    """Read the table with Polars, which reads the files itself. PyIceberg plans."""
    with mock.patch.dict(os.environ, {"POLARS_ICEBERG_PLANNER": "pyiceberg"}):
        frame = pl.scan_iceberg(
            lake.catalog.load_table(TABLE),
            reader_override="native",
            storage_options=_storage_options(),
        )
        found: pa.Table = frame.sort(ORDERED.split(", ")).collect().to_arrow()
    rows: list[Row] = found.to_pylist()
    return rows


def _storage_options() -> dict[str, str] | None:
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3")
    if endpoint is None:
        return None
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")
    options = {name.lower(): os.environ[name] for name in names}
    return {**options, "aws_endpoint_url": endpoint, "aws_allow_http": "true"}


def by_duckdb(lake: LakeSession) -> list[Row]:
    """Read the data files, and the files of deleted positions, that the metadata names."""
    table = lake.catalog.load_table(TABLE)
    tasks = list(table.scan().plan_files())
    local = {task.file.file_path: _local(table, task.file.file_path, lake.folder) for task in tasks}
    deletes = {each.file_path for task in tasks for each in task.delete_files}
    names = ", ".join(f'"{each.name}"' for each in table.schema().fields)
    columns = ", ".join(
        f"{each.field_id}: {{name: '{each.name}', type: '{duckdb_type(each.field_type)}', "
        "default_value: NULL}"
        for each in table.schema().fields
    )
    with duckdb.connect() as database:
        database.execute("CREATE TABLE files (path VARCHAR, local VARCHAR)")
        database.executemany("INSERT INTO files VALUES (?, ?)", list(local.items()))
        database.execute("CREATE TABLE deleted (path VARCHAR, pos BIGINT)")
        for path in sorted(deletes):
            here = _local(table, path, lake.folder)
            database.execute(f"INSERT INTO deleted SELECT file_path, pos FROM '{here}'")
        found = database.sql(
            f"SELECT {names} FROM read_parquet(?, schema = MAP {{{columns}}}, filename = true, "
            "file_row_number = true) AS data JOIN files ON files.local = data.filename "
            "ANTI JOIN deleted ON deleted.path = files.path AND deleted.pos = file_row_number "
            f"ORDER BY {ORDERED}",
            params=[sorted(local.values())],
        )
        rows: list[Row] = found.to_arrow_table().to_pylist()
        return rows


def duckdb_type(kind: IcebergType) -> str:
    match kind:
        case StructType():
            members = (f"{each.name} {duckdb_type(each.field_type)}" for each in kind.fields)
            return f"STRUCT({', '.join(members)})"
        case ListType():
            return f"{duckdb_type(kind.element_type)}[]"
        case DecimalType():
            return f"DECIMAL({kind.precision},{kind.scale})"
        case _:
            return DUCKDB_TYPES[str(kind)]


def _local(table: Table, path: str, folder: Path) -> str:
    """The path of the file, or of a local copy of an object."""
    if path.startswith("file:"):
        return "/" + path.removeprefix("file:").lstrip("/")
    copy = folder / "copies" / path.rpartition("/")[2]
    copy.parent.mkdir(exist_ok=True)
    with table.io.new_input(path).open() as source:
        copy.write_bytes(source.read())
    return str(copy)


READERS: Mapping[str, Callable[[LakeSession], list[Row]]] = {
    "Spark": by_spark,
    "PyIceberg": by_pyiceberg,
    "PyIceberg, REST catalog": by_rest_catalog,
    "Spark, REST catalog": by_spark_and_rest_catalog,
    "DuckDB": by_duckdb,
    "Polars": by_polars,
}


def make_table(evolving: Evolving) -> None:
    """Ingest batches of several versions. Between them, another program updates and deletes."""
    evolving.begin()
    evolving.run(RUNS[0])
    evolving.update()
    sql = evolving.made.lake.sql
    sql("ALTER TABLE {table} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    evolving.run(RUNS[1])
    for remainder, version in zip((3, 5), RUNS[2:], strict=True):
        sql(f"DELETE FROM {{table}} WHERE _log_offset % 7 = {remainder}")
        evolving.fold.rows = {
            place: row for place, row in evolving.fold.rows.items() if place[1] % 7 != remainder
        }
        evolving.run(version)
    evolving.rename()


def lake_readers(folder: Path, *, minio: bool, records: int, seed: int) -> ReaderFigures:
    """Ingest `records` records in the batches of `RUNS`, and read them. Nothing is left running."""
    began = time.perf_counter()
    with written_lake(folder, minio=minio) as made:
        evolving = Evolving(made, records // len(RUNS), Random(seed))
        make_table(evolving)
        table = evolving.table()
        tasks = list(table.scan().plan_files())
        deletes = {each.file_path for task in tasks for each in task.delete_files}
        found = {name: read(made.lake) for name, read in READERS.items()}
    digests = {name: digest_of(rows) for name, rows in found.items()}
    problems = digest_problems(digests["Spark"], digests)
    problems += expected_problems(evolving.fold, found["Spark"])
    kinds = [str(each.summary.operation.value) for each in table.snapshots() if each.summary]
    if not deletes or "overwrite" not in kinds:
        problems.append(f"{len(deletes)} files of deleted positions, snapshots: {kinds}")
    return ReaderFigures(
        rows=digests["Spark"][0],
        snapshots=kinds,
        data_files=len(tasks),
        delete_files=len(deletes),
        digests={name: digest for name, (_, digest) in digests.items()},
        seconds=round(time.perf_counter() - began, 1),
        problems=problems,
    )


def expected_problems(fold: Fold, rows: Iterable[Row]) -> list[str]:
    """Compare the rows of one reader with those that follow from the records. Pure."""
    stage = fold.stage()
    found = digest_of({name: row.get(name) for name in stage.columns} for row in rows)
    expected = digest_of(dict(stage.rows[place]) for place in sorted(stage.rows))
    return digest_problems(expected, {"the rows by the records": found})
