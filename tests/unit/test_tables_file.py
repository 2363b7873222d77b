"""`tables.yaml`: what it may say, and which line a complaint names."""

import re
from pathlib import Path

import pytest

from bucketlog.cli.tables_file import ReadTables, read_tables
from bucketlog.log_format.errors import ConfigurationError
from tests.models.repository import ROOT

HEAD = "bucket: s3://logs\ncatalog: {name: lake}\n"
ORDERS = "tables:\n  - topics: orders\n    into: db.orders\n    schema: id string\n"
ROW = "{topics: a, into: db.a, schema: id int}"
ENVIRONMENT = {"TOKEN": "s3cr3t", "FOLDER": "prod"}


def read(text: str) -> ReadTables:
    return read_tables("t.yaml", text.encode(), ENVIRONMENT)


def test_all_that_it_may_say() -> None:
    wanted = read(
        """
bucket: s3://logs/${FOLDER}
catalog:
  name: lake
  properties: {type: rest, token: "${TOKEN}", odd: "$${TOKEN} costs 5$"}
options: {s3.endpoint_url: http://localhost:9000}
defaults:
  every: 30s
  bad_records: fail
  registry_url: http://registry:8081
  registry_auth: user:${TOKEN}
  maintain: {every: 1h, snapshot_age: 30d}
tables:
  - topics: [orders, refunds]
    into: db.orders
    schema: id string, at timestamp
    bad_records: dead-letter
    dead_letters: db.wrong
    day_from: at
    epoch_unit: [milliseconds, at=seconds]
    epoch_range: 1990-01-01,2050-01-01
    partition_by: day(at), bucket(16, id)
    every: 1m
    max_batch_offsets: 1000
    allow_data_loss: true
    options: {startingTimestamp: 17}
  - topics: bids
    into: db.bids
    value_format: registry
    subject: bids-value
    message: shop.Bid
    partition_by: [day, "bucket(16, id)"]
    maintain: {every: 2h}
"""
    ).wanted
    assert wanted.bucket == "s3://logs/prod"
    assert wanted.catalog.properties == {
        "type": "rest",
        "token": "s3cr3t",
        "odd": "${TOKEN} costs 5$",
    }
    assert wanted.options == {"s3.endpoint_url": "http://localhost:9000"}
    orders, bids = wanted.tables
    assert (orders.topics, bids.topics) == (["orders", "refunds"], ["bids"])
    assert (orders.every, bids.every) == (60, 30)
    assert (orders.bad_records, bids.bad_records) == ("dead-letter", "fail")
    assert orders.maintain is not None
    assert (orders.maintain.every, orders.maintain.snapshot_age) == (3_600, 30 * 86_400)
    assert bids.maintain is not None
    assert (bids.maintain.every, bids.maintain.snapshot_age) == (7_200, 7 * 86_400)
    assert (orders.max_batch_offsets, orders.allow_data_loss) == (1_000, True)
    assert (bids.max_batch_offsets, bids.allow_data_loss) == (None, False)
    assert orders.partition_by == "day(at), bucket(16, id)"
    assert bids.partition_by == "day, bucket(16, id)"
    flags = orders.shape_flags({})
    assert (flags.schema, flags.day_from) == ("id string, at timestamp", "at")
    assert flags.epoch_unit == ["milliseconds", "at=seconds"]
    assert flags.epoch_range == "1990-01-01,2050-01-01"
    flags = bids.shape_flags({"registry_url": "other", "registry_ca_file": "ca.pem"})
    assert (flags.registry_url, flags.registry_auth) == ("http://registry:8081", "user:s3cr3t")
    assert (flags.registry_ca_file, flags.subject) == (Path("ca.pem"), ["bids-value"])
    assert (flags.value_format, flags.message) == ("registry", "shop.Bid")


def test_the_file_of_the_documentation_is_valid() -> None:
    (text,) = re.findall(
        r"^```yaml\n(bucket:.*?)^```", (ROOT / "docs/lake.md").read_text(), re.MULTILINE | re.DOTALL
    )
    environment = {"CATALOG_TOKEN": "a", "REGISTRY_LOGIN": "u:p"}
    found = read_tables("t.yaml", text.encode(), environment)
    tables = found.wanted.tables
    names = ["db.orders", "db.clicks", "db.bids", "db.customers"]
    assert [table.into for table in tables] == names
    assert (tables[-1].changes, tables[-1].key) == ("upsert", ["id"])


def one(keys: str) -> str:
    """A file whose only table has more keys, from line 7 on."""
    return HEAD + ORDERS + "".join(f"    {line}\n" for line in keys.splitlines())


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "empty"),
        ("- a\n", 1, "dictionary"),
        (HEAD, 1, "'tables' is missing"),
        (HEAD + "tables: []\n", 3, "at least 1 item"),
        ("bucket: s3://logs\n" + ORDERS, 1, "'catalog' is missing"),
        ("bucket:\ncatalog: {name: lake}\n" + ORDERS, 1, "bucket: give it a value"),
        ("bucket: s3://l\ncatalog: {name: a.b}\n" + ORDERS, 2, "catalog.name"),
        (HEAD + "table: []\n" + ORDERS, 3, "unknown key 'table': did you mean 'tables'?"),
        ((HEAD + ORDERS).replace("db.orders", "lake.db.orders"), 5, "at the top: write db.orders"),
        (one("partition: day"), 7, "unknown key 'partition': did you mean 'partition_by'?"),
        (one("colour: red"), 7, "unknown key 'colour': there are value_format, registry_url"),
        (one("every: often"), 7, "tables.every: 'often' is not a duration"),
        (one("every: 0s"), 7, "tables.every"),
        (one("every: 10"), 7, "write it as 7d"),
        (one("every: 36501d"), 7, "36501d is too long"),
        (one("maintain: {every: 1h, snapshot_age: 36501d}"), 7, "36501d is too long"),
        (HEAD + f"tables: [{ROW}, {ROW}]\n", 3, "the table db.a is already in line 3"),
        (one("dead_letters: DB.orders"), 7, "DB.orders is the table of the rows as well"),
        (one("bad_records: ignore"), 7, "'dead-letter', 'fail' or 'null'"),
        (one("max_batch_offsets: 0"), 7, "greater than or equal to 1"),
        (one("maintain:\n  snapshot_age: 7d"), 7, "'every' is missing"),
        (one("maintain:\n  every: 1h\n  orphan_age: 3h"), 9, "give at least 1d"),
        (one("maintain: {every: 1h, age: 7d}"), 7, "unknown key 'age'"),
        (one("options: {s3.region: x}"), 4, "give it at the top"),
        (one("bad_records: fail\ndead_letters: db.x"), 4, "has no use"),
        (one("dead_letters: letters"), 7, "database.table is expected"),
        (one("registry_auth: u:${MISSING}"), 7, "the environment has no variable MISSING"),
        (one("registry_auth: u:${TOKEN"), 7, "write ${NAME}"),
        (HEAD + "defaults: {every: soon}\n" + ORDERS, 3, "defaults.every"),
        (HEAD + "defaults: {into: db.t}\n" + ORDERS, 3, "unknown key 'into'"),
        (HEAD + "tables:\n  - topics: a\n    into: db.a\n", 4, "JSON values need the key schema"),
        (HEAD + "tables:\n  - topics: []\n    into: db.a\n", 4, "tables.topics"),
        (HEAD + "tables:\n  - topics: a\n    schema: id int\n", 4, "'into' is missing"),
        (one("") + "  - {topics: a, into: db.ORDERS, schema: id int}\n", 7, "already in line 5"),
        (
            one("dead_letters: db.wrong")
            + "  - {topics: a, into: db.a, schema: id int, dead_letters: db.wrong}\n",
            8,
            "the table db.wrong is already in line 7",
        ),
        (
            one("") + "  - {topics: a, into: db.orders_dead_letters, schema: id int}\n",
            7,
            "the table db.orders_dead_letters is already in line",
        ),
    ],
)
def test_complaints_name_the_line(text: str, line: int, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(text)
    assert caught.value.message.startswith(f"t.yaml, line {line}: "), caught.value.message
    assert said in caught.value.message
    assert caught.value.remedy


def test_two_tables_in_one_line_may_not_have_one_name() -> None:
    table = "{topics: a, into: db.rows, schema: id int}"
    with pytest.raises(ConfigurationError, match=r"the table db\.rows is already in line"):
        read(HEAD + f"tables: [{table}, {table}]\n")


def test_no_complaint_has_a_secret() -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(one("every: ${TOKEN}\nregistry_auth: ${TOKEN}\nregistry_url: '${TOKEN} ${NO}'"))
    shown = f"{caught.value} {caught.value.__cause__} {caught.value.__dict__}"
    assert "s3cr3t" not in shown


def test_a_variable_with_a_line_break_is_refused() -> None:
    """Libraries of HTTP quote a login with a line break in their errors."""
    with pytest.raises(ConfigurationError, match="variable TOKEN has a line break") as caught:
        read_tables("t.yaml", one("registry_auth: ${TOKEN}").encode(), {"TOKEN": "s3cr3t\n"})
    assert "s3cr3t" not in str(caught.value)


def test_errors_of_libraries_are_shown_without_secrets() -> None:
    environment = {"LONG": "s3cr3t/" + "x" * 400, "TOKEN": "s3cr3t", "ONE": "1"}
    keys = "registry_auth: ${TOKEN}\nregistry_url: ${LONG}/${ONE}"
    found = read_tables("t.yaml", one(keys).encode(), environment)
    text = f"1: no URL: {environment['LONG']}, {environment['LONG'][:300]}…, s3cr3t"
    assert found.hidden(text) == "1: no URL: ${LONG}, ${LONG}…, ${TOKEN}"
    error = found.error(0, ConfigurationError("no s3cr3t", remedy="not s3cr3t"))
    assert "s3cr3t" not in f"{error} {error.remedy}"


def test_complaints_of_options_have_the_names_of_keys() -> None:
    found = read(one("epoch_unit: weeks"))
    error = ConfigurationError("--epoch-unit weeks", remedy="give --epoch-range")
    said = found.error(0, error)
    assert said.message == "t.yaml, line 4: table db.orders: epoch_unit weeks"
    assert said.remedy == "give epoch_range"
