"""Brokers at work that a real Prometheus scrapes, and what its queries give.

The queries are those of the dashboards and of the alerts in `infra/observability`; a comparison at
an alert's end is left out, because a healthy cluster gives nothing for it.
"""

import json
import re
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

import bucketlog
from bucketlog import Topic
from bucketlog.embedded.cluster import EmbeddedCluster
from localstack.servers import free_port
from scripts.dashboard_panels import RATE
from tests.rigs.patience import Deadline, let_pass
from tests.servers.browser import console_process

ROOT = Path(__file__).parents[2]
OBSERVABILITY = ROOT / "infra/observability"
DASHBOARDS = OBSERVABILITY / "dashboards"
BROKERS = 2
SCRAPE_S = 1
CONSOLE_SCRAPE_S = 4
"""A scrape that takes longer fails. The console may read the log meanwhile."""
TOPIC = Topic("observed")
RECORDS, RECORD_BYTES = 200, 1000
_VARIABLE = re.compile(r"\$(cluster|broker|topic|group)\b")
_COMPARISON = re.compile(r"\s*(<|>|==|!=)=?\s*[\d.]+(?=\s+and\s|\s*$)")
WITHOUT_DATA = ("BucketlogCertificateExpires",)
"""Queries that give nothing: the observed brokers have no SSL listener."""


def dashboard_queries() -> dict[str, str]:
    """By title and legend, as Grafana would send them with all values of the variables."""
    pages = [json.loads(path.read_text()) for path in sorted(DASHBOARDS.glob("*.json"))]
    return {
        f"{panel['title']}: {target['legendFormat']}": _VARIABLE.sub(
            ".*", target["expr"].replace(RATE, "1m")
        )
        for page in pages
        for panel in page["panels"]
        for target in panel.get("targets", ())
    }


def alert_queries() -> dict[str, str]:
    """By alert, without what makes it one."""
    groups = yaml.safe_load((OBSERVABILITY / "alerts.yaml").read_text())["groups"]
    return {
        rule["alert"]: _COMPARISON.sub("", rule["expr"]).replace("[5m]", "[10s]")
        for group in groups
        for rule in group["rules"]
    }


class Prometheus:
    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, path: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=30) as answer:
            return json.loads(answer.read())["data"]

    def values(self, query: str) -> list[float]:
        """Of each series that the query gives now."""
        return [float(row["value"][1]) for row in self.ask("query", query=query)["result"]]


@contextmanager
def prometheus(
    program: Path, folder: Path, brokers: Sequence[str], console: str
) -> Iterator[Prometheus]:
    """A Prometheus that scrapes the brokers every second, and the console every 4 s. It has the
    rules of `alerts.yaml`."""
    config = yaml.safe_load((OBSERVABILITY / "prometheus.yaml").read_text())
    config["global"] = {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": f"{SCRAPE_S}s"}
    config["rule_files"] = [str(OBSERVABILITY / "alerts.yaml")]
    for job, targets in zip(config["scrape_configs"], (brokers, [console]), strict=True):
        job["static_configs"][0]["targets"] = list(targets)
    config["scrape_configs"][1]["scrape_interval"] = f"{CONSOLE_SCRAPE_S}s"
    path = folder / "prometheus.yaml"
    path.write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                *(program, f"--config.file={path}", f"--storage.tsdb.path={folder / 'tsdb'}"),
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        found = Prometheus(f"http://{address}")
        _wait_until_scraped(found, len(brokers) + 1, process, folder / "prometheus.log")
        yield found
    finally:
        process.terminate()
        process.wait()


def _wait_until_scraped(
    found: Prometheus, targets: int, process: "subprocess.Popen[bytes]", log: Path
) -> None:
    deadline = Deadline(log.read_text)
    while True:
        try:
            if sum(found.values("up")) == targets:
                return
        except OSError:
            pass
        assert process.poll() is None, log.read_text()
        deadline.pause()


def observed(program: Path, folder: Path, *, seconds: float) -> dict[str, list[float]]:
    """What each query gives after so many seconds of work; empty where nothing came."""
    with EmbeddedCluster(
        folder / "data", brokers=BROKERS, settings={"checkpoint_interval_ms": "1000"}
    ) as cluster:
        targets = [f"{each.http_host}:{each.http_port}" for each in cluster.members]
        with (
            console_process(
                cluster.bucket_url,
                log_file=folder / "console.log",
                settings={
                    "refresh_wait_ms": "250",
                    "niceness": "0",
                    "metrics_cost": "1",
                    "cost_age_ms": "1000",
                },
            ) as address,
            prometheus(program, folder, targets, urllib.parse.urlsplit(address).netloc) as found,
            bucketlog.connect(cluster.bootstrap) as log,
        ):
            log.topics.create(TOPIC, partitions=4)
            log.groups.reset("observer", TOPIC, to="earliest")
            work = Deadline(bound_s=seconds)
            while not (work.is_over and _is_scraped_twice(found)):
                _work(log)
            queries = {**dashboard_queries(), **alert_queries()}
            return {name: found.values(query) for name, query in queries.items()}


def _is_scraped_twice(found: Prometheus) -> bool:
    """Whether two scrapes of the console had the topic: a rate needs two values."""
    return found.values("max(count_over_time(bucketlog_topic_offsets[1m]))") >= [2.0]


def _work(log: bucketlog.Log) -> None:
    with log.producer() as producer:
        producer.send_many(TOPIC, (b"x" * RECORD_BYTES for _ in range(RECORDS)))
    with log.consumer(TOPIC, start="earliest", until="end") as consumer:
        for _ in consumer.batches(RECORDS):
            pass
    try:
        log.topics.create(TOPIC)  # an error, for those who count them
    except bucketlog.LogError:
        let_pass(0.2)
