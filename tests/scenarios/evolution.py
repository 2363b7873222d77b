"""Ten versions of a schema in one topic, ingested into one Iceberg table by jobs of each version.

At full size, from the repository's root: `make prove WHAT=evolution`. `Fold` computes the expected
table from the records, without the code of the ingest.
"""

import json
import math
import struct
import time
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeAlias

from pyiceberg.table import Table

from bucketlog.log_format.records import DecodedRecord
from tests.rigs.written_log import START_MS
from tests.scenarios.bad_values import Bad, Row
from tests.scenarios.dead_letters import (
    TOPIC,
    Place,
    letter_problems,
    letters_of,
    row_problems,
)
from tests.scenarios.lake_session import TABLE, WrittenLake, written_lake

PARTITIONS = 2
LETTERS = "the value does not fit the version"
Version: TypeAlias = Mapping[str, str]
"""The type of each field, as DDL."""

_FIRST = {
    "id": "int",
    "amount": "float",
    "note": "string",
    "flag": "boolean",
    "price": "decimal(8,2)",
}
_WITH_CITY = {**_FIRST, "city": "string"}
_LONG_ID = {**_WITH_CITY, "id": "bigint"}
_REORDERED = {name: _LONG_ID[name] for name in ("city", "price", "note", "id", "amount", "flag")}
_DOUBLE_AMOUNT = {**_REORDERED, "amount": "double"}
_WITHOUT_NOTE = {name: kind for name, kind in _DOUBLE_AMOUNT.items() if name != "note"}
_WITH_PLACE = {**_WITHOUT_NOTE, "place": "struct<lat: float>"}
_WIDER_PLACE = {**_WITH_PLACE, "place": "struct<code: int, lat: double>"}
_WIDER_PRICE = {
    **{name: kind for name, kind in _WIDER_PLACE.items() if name != "flag"},
    "price": "decimal(12,2)",
}
_LAST = {"tags": "array<int>", "note": "string", **_WIDER_PRICE}
VERSIONS: tuple[Version, ...] = (
    _FIRST,
    _WITH_CITY,
    _LONG_ID,
    _REORDERED,
    _DOUBLE_AMOUNT,
    _WITHOUT_NOTE,
    _WITH_PLACE,
    _WIDER_PLACE,
    _WIDER_PRICE,
    _LAST,
)
ORDER = (0, 2, 1, 4, 3, 6, 5, 9, 7, 8)
"""The version of each run. Some versions are older than the version of the run before."""
MADE = "CREATE TABLE {table} (id int NOT NULL, note string NOT NULL, theirs string) USING iceberg"
"""Another program makes the table. The first run makes two required columns optional."""

WIDTHS: Mapping[str, tuple[str, ...]] = {
    "id": ("int", "bigint"),
    "amount": ("float", "double"),
    "price": ("decimal(8,2)", "decimal(12,2)"),
}
ICEBERG = {"bigint": "long", "decimal(8,2)": "decimal(8, 2)", "decimal(12,2)": "decimal(12, 2)"}


class UnfitError(Exception):
    """A value does not fit the type of its field."""


def record(number: int, version: int, chance: Random) -> dict[str, Any]:
    """A record of a writer of the version; fields are missing or null now and then."""
    wide = version >= 4
    made: dict[str, Any] = {
        "id": number + (chance.choice((0, 1 << 40)) if version >= 2 else 0),
        "amount": chance.choice((Decimal(number).scaleb(-1), Decimal("1e200") if wide else 7)),
        "note": f"note {number} é",
        "flag": number % 3 == 0,
        "price": Decimal(number % 1000).scaleb(-2) + (10**8 if version >= 8 else 0),
        "city": f"c{number % 10}",
        "place": {"lat": Decimal(number).scaleb(-1), "code": number % 90},
        "tags": [number % 5, None],
    }
    kept = {name: made[name] for name in VERSIONS[version]}
    for name in list(kept):
        if chance.random() < 0.1:
            kept[name] = None
        elif chance.random() < 0.1:
            del kept[name]
    return kept


def as_json(found: Any) -> str:
    """The JSON text of a value. Decimals keep their digits."""
    match found:
        case dict():
            return "{" + ", ".join(f'"{key}": {as_json(one)}' for key, one in found.items()) + "}"
        case list():
            return "[" + ", ".join(map(as_json, found)) + "]"
        case Decimal():
            return str(found)
        case _:
            return json.dumps(found, ensure_ascii=False)


def typed(kind: str, found: Any) -> Any:
    """The value in a column of the type. Raises `UnfitError`."""
    if found is None:
        return None
    match kind:
        case "int" | "bigint":
            bound = 1 << (31 if kind == "int" else 63)
            if not -bound <= found < bound:
                raise UnfitError
            return found
        case "float":
            try:
                return struct.unpack("<f", struct.pack("<f", float(found)))[0]
            except OverflowError as error:
                raise UnfitError from error
        case "double":
            if math.isinf(float(found)):
                raise UnfitError
            return float(found)
        case "decimal(8,2)" | "decimal(12,2)":
            if abs(found) >= 10 ** (6 if kind == "decimal(8,2)" else 10):
                raise UnfitError
            return Decimal(found).quantize(Decimal("0.01"))
        case "struct<lat: float>":
            return {"lat": typed("float", found.get("lat"))}
        case "struct<code: int, lat: double>":
            return {
                "lat": typed("double", found.get("lat")),
                "code": typed("int", found.get("code")),
            }
        case _:
            return found


class Stage(NamedTuple):
    """The expected table at a snapshot. `types` has the types of the columns in `WIDTHS`."""

    columns: tuple[str, ...]
    types: Mapping[str, str]
    rows: Mapping[Place, Row]


@dataclass
class Fold:
    """The table and its dead letters, as they follow from the records and the runs."""

    columns: list[str] = field(default_factory=lambda: ["id", "note", "theirs"])
    types: dict[str, str] = field(default_factory=dict)
    members: set[str] = field(default_factory=set)
    rows: dict[Place, Row] = field(default_factory=dict)
    letters: dict[Place, Bad] = field(default_factory=dict)

    def ingest(self, version: Version, records: Mapping[Place, dict[str, Any]]) -> None:
        for name, kind in version.items():
            if name not in self.columns:
                self.columns.append(name)
            if name in WIDTHS:
                self.types[name] = max(kind, self.types.get(name, kind), key=WIDTHS[name].index)
            if name == "place":
                self.members |= {"lat", "code"} if "code" in kind else {"lat"}
        for place, one in records.items():
            try:
                self.rows[place] = {
                    name: typed(kind, one.get(name)) for name, kind in version.items()
                }
            except UnfitError:
                self.letters[place] = Bad(LETTERS, as_json(one).encode(), ": ")

    def rename(self, before: str, after: str) -> None:
        self.columns[self.columns.index(before)] = after
        for row in self.rows.values():
            if before in row:
                row[after] = row.pop(before)

    def stage(self) -> Stage:
        rows = {place: self._whole(row) for place, row in self.rows.items()}
        return Stage(tuple(self.columns), dict(self.types), rows)

    def _whole(self, row: Row) -> Row:
        """The row with every column, and every member of a struct."""
        whole = {name: deepcopy(row.get(name)) for name in self.columns}
        place = whole.get("place")
        if place is not None:
            whole["place"] = {name: place.get(name) for name in self.members}
        return whole


class Moment(NamedTuple):
    """A snapshot, and the stage that its readers must see."""

    snapshot_id: int
    stage: Stage


@dataclass
class Evolving:
    """The table of the ingest, and the fold of the same records. `many` is the number of records of
    each run."""

    made: WrittenLake
    many: int
    chance: Random
    fold: Fold = field(default_factory=Fold)
    moments: list[Moment] = field(default_factory=list)
    records: int = 0

    def begin(self) -> None:
        self.made.lake.catalog.create_namespace("db")
        self.made.log.create_topic(TOPIC, PARTITIONS)
        self.made.lake.sql(MADE)

    def run(self, version: int) -> None:
        """Write records of all versions, and ingest them by a job of this version."""
        placed: dict[Place, dict[str, Any]] = {}
        log = self.made.log
        for partition in range(PARTITIONS):
            numbers = range(self.records, self.records + self.many // PARTITIONS)
            self.records += len(numbers)
            found = [
                record(at, self.chance.randrange(len(VERSIONS)), self.chance) for at in numbers
            ]
            values = [
                DecodedRecord(0, START_MS + at, b"k", as_json(one).encode())
                for at, one in zip(numbers, found, strict=True)
            ]
            for at, one in zip(log.append(TOPIC, partition, values), found, strict=True):
                placed[partition, at.offset] = one
        log.flush()
        schema = ", ".join(f"{name} {kind}" for name, kind in VERSIONS[version].items())
        self.made.lake.ingest(self.made.url, TOPIC, schema)
        self.fold.ingest(VERSIONS[version], placed)
        self.note()

    def update(self) -> None:
        """Fill a column that the jobs do not know, as another program. Spark rewrites files."""
        self.made.lake.sql(
            "UPDATE {table} SET theirs = concat('t', _log_offset) WHERE _log_partition = 0"
        )
        for (partition, offset), row in self.fold.rows.items():
            if partition == 0:
                row["theirs"] = f"t{offset}"
        self.note()

    def rename(self) -> None:
        self.made.lake.sql("ALTER TABLE {table} RENAME COLUMN theirs TO ours")
        self.fold.rename("theirs", "ours")

    def table(self) -> Table:
        return self.made.lake.catalog.load_table(TABLE)

    def note(self) -> None:
        current = self.table().current_snapshot()
        assert current is not None
        self.moments.append(Moment(current.snapshot_id, self.fold.stage()))


def stage_problems(stage: Stage, rows: Iterable[Row], types: Mapping[str, str]) -> list[str]:
    """Compare the rows and types that a reader saw with the stage. Returns the problems. `types`
    has the types of the reader's columns, as Iceberg names them. Pure."""
    places = list(stage.rows)
    numbers = {place: at for at, place in enumerate(places)}
    found = (
        (
            (row["_log_partition"], row["_log_offset"]),
            {name: row.get(name) for name in stage.columns},
        )
        for row in rows
    )
    problems = row_problems(numbers, found, lambda at: dict(stage.rows[places[at]]))
    for name, kind in stage.types.items():
        wanted = ICEBERG.get(kind, kind)
        if types.get(name) != wanted:
            problems.append(f"column {name} is {types.get(name)}, not {wanted}")
    ours = {name for name in types if not name.startswith("_") and name != "day"}
    if ours != set(stage.columns):
        problems.append(f"the columns are {sorted(ours)}, not {sorted(stage.columns)}")
    return problems


@dataclass(frozen=True, slots=True)
class EvolutionFigures:
    versions: int
    records: int
    rows: int
    letters: int
    snapshots: int
    seconds: float
    problems: list[str]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def evolution(folder: Path, *, minio: bool, records: int, seed: int) -> EvolutionFigures:
    """Write and ingest `records` records in ten runs. Nothing is left running."""
    began = time.perf_counter()
    with written_lake(folder, minio=minio) as made:
        evolving = Evolving(made, records // len(ORDER), Random(seed))
        evolving.begin()
        evolving.run(ORDER[0])
        old = evolving.table()
        for at, version in enumerate(ORDER[1:]):
            evolving.run(version)
            if at == 2:
                evolving.update()
            elif at == 5:
                evolving.rename()
        problems = _read_problems(evolving, old)
        letters = list(letters_of(made.lake))
        problems += letter_problems(evolving.fold.letters, letters)
    return EvolutionFigures(
        versions=len(VERSIONS),
        records=evolving.records,
        rows=len(evolving.fold.rows),
        letters=len(letters),
        snapshots=len(evolving.moments),
        seconds=round(time.perf_counter() - began, 1),
        problems=problems,
    )


def _read_problems(evolving: Evolving, old: Table) -> list[str]:
    """Compare all readers with their stages. `old` is the table that was loaded after the first
    run."""
    new, spark = evolving.table(), evolving.made.lake.spark
    name = evolving.made.lake.table
    current = evolving.moments[-1]
    found = [
        ("old reader", evolving.moments[0], _scanned(old), _types(old)),
        ("new reader", current, _scanned(new), _types(new)),
        ("Spark", current, spark.table(name).toArrow().to_pylist(), _types(new)),
    ]
    for moment in evolving.moments:
        at = moment.snapshot_id
        rows = spark.sql(f"SELECT * FROM {name} VERSION AS OF {at}").toArrow().to_pylist()
        found.append((f"snapshot {at}", moment, _scanned(new, at), _types(new, at)))
        found.append((f"snapshot {at} by Spark", moment, rows, _types(new, at)))
    return [
        f"{reader}: {problem}"
        for reader, moment, rows, types in found
        for problem in stage_problems(moment.stage, rows, types)
    ]


def _scanned(table: Table, snapshot_id: int | None = None) -> list[Row]:
    rows: list[Row] = table.scan(snapshot_id=snapshot_id).to_arrow().to_pylist()
    return rows


def _types(table: Table, snapshot_id: int | None = None) -> dict[str, str]:
    fields = table.scan(snapshot_id=snapshot_id).projection().fields
    return {each.name: str(each.field_type) for each in fields}
