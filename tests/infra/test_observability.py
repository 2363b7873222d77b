"""Dashboard and alerts: as their script writes them, sound, and of metrics that are there."""

import re
from pathlib import Path

import pytest

from scripts.dashboard_panels import DASHBOARDS, Panel
from scripts.dashboards import FOLDER, SOURCES, render
from tests.infra.programs import installed, run
from tests.scenarios.observed import (
    OBSERVABILITY,
    WITHOUT_DATA,
    alert_queries,
    dashboard_queries,
    observed,
)
from tests.servers.components import Components

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def prometheus(components: Components) -> Path:
    program = installed("prometheus", components)
    components.took_part("Prometheus", run([program, "--version"], program.parent).stdout[:40])
    return program


def test_the_dashboards_are_what_the_script_writes() -> None:
    written = {path.stem: path.read_text() for path in FOLDER.glob("*.json")}
    made = {name: render(dashboard) for name, dashboard in DASHBOARDS.items()}
    assert written == made, "run: python -m scripts.dashboards"


def test_each_panel_has_a_description_and_a_name_of_its_own() -> None:
    panels: list[Panel] = [
        panel
        for dashboard in DASHBOARDS.values()
        for row in dashboard.rows.values()
        for panel in row
    ]
    assert all(panel.about.endswith(".") for panel in panels)
    titles = [panel.title for panel in panels]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_queries_use_the_variables(name: str) -> None:
    dashboard = DASHBOARDS[name]
    queries = [
        query for row in dashboard.rows.values() for panel in row for _, query in panel.queries
    ]
    used = {found for query in queries for found in re.findall(r"=~\"\$(\w+)\"", query)}
    assert used == {*dashboard.variables}
    assert used <= SOURCES.keys()
    assert all('cluster=~"$cluster"' in query for query in queries)


def test_alerts_are_sound_and_fire_when_they_should(prometheus: Path) -> None:
    promtool = prometheus.with_name("promtool")
    for arguments in (
        ["check", "config", "prometheus.yaml"],
        ["test", "rules", "alerts.test.yaml"],
    ):
        done = run([promtool, *arguments], OBSERVABILITY)
        assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_is_tested_firing_and_at_rest() -> None:
    tested = (OBSERVABILITY / "alerts.test.yaml").read_text()
    for alert in alert_queries():
        assert re.search(rf"alertname: {alert}}}", tested), f"{alert} at rest"
        assert re.search(rf"alertname: {alert}\n\s+exp_alerts:", tested), f"{alert} firing"


def test_each_query_gives_data(prometheus: Path, tmp_path: Path) -> None:
    found = observed(prometheus, tmp_path, seconds=6)
    assert found.keys() == {*dashboard_queries(), *alert_queries()}
    assert [name for name, values in found.items() if not values] == [*WITHOUT_DATA]
    assert found["Ready brokers: Ready brokers"] == [2.0]
    assert found["Produced: Produced"][0] > 0
    assert found["Fetched: Fetched"][0] > 0
