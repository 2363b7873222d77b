"""The read-only REST catalog: PyIceberg's client reads it, and nothing changes the catalog."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from starlette.testclient import TestClient

from bucketlog.ingesting.catalog_application import NAMES_MAX, catalog_application

TABLE = "/v1/namespaces/db/tables/orders"
ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse"
    found = SqlCatalog("lake", uri=uri, warehouse=warehouse)
    found.create_namespace("db", {"owner": "ann"})
    found.create_namespace("empty")
    found.create_table("db.orders", ROWS.schema).append(ROWS)
    found.load_table("db.orders").append(ROWS)
    yield found
    found.close()


@pytest.fixture
def client(catalog: Catalog) -> TestClient:
    return TestClient(catalog_application(catalog, hosts=["testserver"]))


def test_a_table_is_its_metadata(client: TestClient, catalog: Catalog) -> None:
    table = catalog.load_table("db.orders")
    answer = client.get(TABLE).json()
    assert answer["metadata-location"] == table.metadata_location
    assert answer["metadata"] == json.loads(table.metadata.model_dump_json())
    assert answer["config"] == {}
    assert "sqlite" not in json.dumps(answer)


def test_snapshots_of_references_alone(client: TestClient) -> None:
    every, named = (
        client.get(f"{TABLE}?snapshots={which}").json()["metadata"] for which in ("all", "refs")
    )
    assert len(every["snapshots"]) == 2
    assert [each["snapshot-id"] for each in named["snapshots"]] == [every["current-snapshot-id"]]


def test_names_are_listed(client: TestClient) -> None:
    assert client.get("/v1/namespaces").json()["namespaces"] == [["db"], ["empty"]]
    found = client.get("/v1/namespaces/db").json()
    assert (found["namespace"], found["properties"]["owner"]) == (["db"], "ann")
    tables = client.get("/v1/namespaces/db/tables").json()
    assert tables["identifiers"] == [{"namespace": ["db"], "name": "orders"}]
    assert client.get("/v1/namespaces/empty/tables").json()["identifiers"] == []


def test_names_come_in_pages(client: TestClient) -> None:
    first = client.get("/v1/namespaces?pageToken=&pageSize=1").json()
    assert first == {"namespaces": [["db"]], "next-page-token": "1"}
    second = client.get("/v1/namespaces?pageToken=1&pageSize=1").json()
    assert second == {"namespaces": [["empty"]], "next-page-token": None}
    for wrong in ("pageToken=x&pageSize=-1", f"pageToken={'9' * 50}", "pageToken=²"):
        assert client.get(f"/v1/namespaces?{wrong}").status_code == 200


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/namespaces/none", "NoSuchNamespaceException"),
        ("/v1/namespaces/none/tables", "NoSuchNamespaceException"),
        ("/v1/namespaces/none/tables/orders", "NoSuchTableException"),
        ("/v1/namespaces/db/tables/none", "NoSuchTableException"),
        ("/v1/namespaces/db%1Fdeep/tables/none", "NoSuchTableException"),
    ],
)
def test_unknown_names_have_the_errors_of_the_specification(
    client: TestClient, path: str, kind: str
) -> None:
    answer = client.get(path)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["type"]) == (404, 404, kind)
    if not path.endswith("tables"):
        assert client.head(path).status_code == 404


@pytest.mark.parametrize("name", ["%1F", "db%1F", "%20", "db%1F%1Fdeep"])
def test_empty_levels_of_a_namespace_are_refused(client: TestClient, name: str) -> None:
    for path in (f"namespaces/{name}", f"namespaces/{name}/tables", f"namespaces?parent={name}"):
        answer = client.get(f"/v1/{path}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, 400), path


def test_names_that_exist(client: TestClient) -> None:
    assert client.head(TABLE).status_code == 204
    assert client.head("/v1/namespaces/db").status_code == 204
    assert client.post(f"{TABLE}/metrics", content=b"x" * 100).status_code == 204


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/namespaces"),
        ("DELETE", "/v1/namespaces/db"),
        ("POST", "/v1/namespaces/db/properties"),
        ("POST", "/v1/namespaces/db/tables"),
        ("POST", TABLE),
        ("DELETE", TABLE),
        ("POST", "/v1/tables/rename"),
        ("POST", "/v1/transactions/commit"),
    ],
)
def test_changes_are_refused(client: TestClient, catalog: Catalog, method: str, path: str) -> None:
    before = catalog.load_table("db.orders").metadata_location
    answer = client.request(method, path, json={"namespace": ["new"], "updates": []})
    assert answer.status_code == 406
    assert answer.json()["error"]["type"] == "UnsupportedOperationException"
    assert catalog.load_table("db.orders").metadata_location == before
    assert sorted(catalog.list_namespaces()) == [("db",), ("empty",)]


def test_other_host_names_are_refused(catalog: Catalog) -> None:
    client = TestClient(catalog_application(catalog, hosts=["localhost"]))
    assert client.get("/v1/config").status_code == 400


def test_a_failure_of_the_catalog_shows_no_secret(
    client: TestClient, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> Any:
        raise OSError("password=secret")

    monkeypatch.setattr(catalog, "load_table", failing)
    answer = client.get(TABLE)
    assert answer.status_code == 503
    message = answer.json()["error"]["message"]
    assert message.startswith("the catalog does not answer: OSError (")
    assert "secret" not in message


def test_a_listing_is_bounded(
    client: TestClient, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(f"n{number}",) for number in range(NAMES_MAX + 5)]
    monkeypatch.setattr(catalog, "list_namespaces", lambda *_: rows)
    assert len(client.get("/v1/namespaces").json()["namespaces"]) == NAMES_MAX
