"""The services of `examples/`, each on four clients, under kill -9 and SIGTERM."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bucketlog
from bucketlog.embedded.cluster import EmbeddedCluster
from tests.scenarios.example_lines import CLIENTS, SERVICES, line_counts, longer, programs
from tests.scenarios.example_services import Ingester, OrderService, etl
from tests.scenarios.examples import EXAMPLES
from tests.servers.components import Components
from tests.servers.own_postgres import POSTGRES_VERSION, running_postgres

pytestmark = pytest.mark.long


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """One for each program: their topics have fixed names."""
    with EmbeddedCluster(tmp_path / "cluster") as started:
        yield started


@pytest.fixture
def log(cluster: EmbeddedCluster) -> Iterator[bucketlog.Log]:
    with bucketlog.connect(cluster.bootstrap) as connected:
        yield connected


@pytest.mark.parametrize("client", CLIENTS)
def test_order_service(
    client: str, cluster: EmbeddedCluster, log: bucketlog.Log, tmp_path: Path
) -> None:
    OrderService(client, cluster, log, tmp_path).run()


@pytest.mark.parametrize("client", CLIENTS)
def test_ingester(
    client: str, cluster: EmbeddedCluster, log: bucketlog.Log, tmp_path: Path
) -> None:
    Ingester(client, cluster, log, tmp_path).run()


@pytest.mark.parametrize("client", programs("etl"))
def test_etl(
    client: str,
    cluster: EmbeddedCluster,
    log: bucketlog.Log,
    tmp_path: Path,
    components: Components,
) -> None:
    with running_postgres() as postgres:
        etl(client, cluster, log, tmp_path, postgres)
        components.took_part("PostgreSQL", POSTGRES_VERSION)


def test_each_program_is_shorter_than_those_of_other_clients() -> None:
    counts = line_counts()
    assert longer(counts) == []
    twice = {service: dict.fromkeys(found, 1) for service, found in counts.items()}
    assert len(longer(twice)) == sum(len(found) - 1 for found in counts.values())


def test_the_readme_has_the_line_counts() -> None:
    rows = [
        re.findall(r"\[(\d+)\]\((\w+)/with_(\w+)\.py\)", line)
        for line in (EXAMPLES / "README.md").read_text().splitlines()
    ]
    written = {(service, client): int(count) for row in rows for count, service, client in row}
    assert written == {
        (service, client): count
        for service, found in line_counts().items()
        for client, count in found.items()
    }
    assert {service for service, _ in written} == set(SERVICES)
