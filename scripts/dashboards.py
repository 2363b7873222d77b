"""Writes infra/observability/dashboards, Grafana dashboards by area, from `dashboard_panels`.

    python -m scripts.dashboards

Tests run each query on a Prometheus that scrapes brokers and a console.
"""

import json
from pathlib import Path
from typing import Any

from scripts.dashboard_panels import DASHBOARDS, Dashboard, Panel

FOLDER = Path(__file__).parents[1] / "infra/observability/dashboards"
WIDTH, HEIGHT, PER_ROW = 8, 8, 3
SCHEMA_VERSION = 39
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
SOURCES = {
    "cluster": 'label_values(up{job=~"bucketlog.*"}, cluster)',
    "broker": 'label_values(bucketlog_ready{cluster=~"$cluster"}, instance)',
    "topic": 'label_values(bucketlog_topic_partitions{cluster=~"$cluster"}, topic)',
    "group": 'label_values(bucketlog_group_lag_seconds{cluster=~"$cluster"}, group)',
}
"""Queries for the values of variables. The value for all also matches metrics without the label."""


def _variable(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": SOURCES[name], "refId": name},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _thresholds(panel: Panel) -> dict[str, Any]:
    """The colours of the value, with a line at the threshold."""
    if panel.bad_below is not None:
        steps = [("red", None), ("green", panel.bad_below)]
    elif panel.bad_from is not None:
        steps = [("green", None), ("red", panel.bad_from)]
    else:
        return {}
    return {
        "thresholds": {
            "mode": "absolute",
            "steps": [{"color": color, "value": value} for color, value in steps],
        },
        "custom": {"thresholdsStyle": {"mode": "dashed"}},
    }


def _panel(panel: Panel, number: int, x: int, y: int) -> dict[str, Any]:
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": DATASOURCE,
        "gridPos": {"h": HEIGHT, "w": WIDTH, "x": x, "y": y},
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0, **_thresholds(panel)},
            "overrides": [],
        },
        "targets": [
            {"refId": chr(ord("A") + at), "expr": query, "legendFormat": legend}
            for at, (legend, query) in enumerate(panel.queries)
        ],
    }


def _row(title: str, number: int, y: int) -> dict[str, Any]:
    return {
        "id": number,
        "type": "row",
        "title": title,
        "collapsed": False,
        "panels": [],
        "gridPos": {"h": 1, "w": 24, "x": 0, "y": y},
    }


def render(dashboard: Dashboard) -> str:
    """The dashboard as Grafana imports it."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in dashboard.rows.items():
        panels.append(_row(title, len(panels) + 1, y))
        y += 1
        for at, panel in enumerate(row):
            x, below = at % PER_ROW * WIDTH, at // PER_ROW * HEIGHT
            panels.append(_panel(panel, len(panels) + 1, x, y + below))
        y += -(-len(row) // PER_ROW) * HEIGHT
    page = {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "tags": ["bucketlog"],
        "links": [
            {"type": "dashboards", "title": "bucketlog", "tags": ["bucketlog"], "keepTime": True}
        ],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus"},
                *map(_variable, dashboard.variables),
            ]
        },
        "panels": panels,
    }
    return json.dumps(page, indent=2) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, dashboard in DASHBOARDS.items():
        (FOLDER / f"{name}.json").write_text(render(dashboard))
