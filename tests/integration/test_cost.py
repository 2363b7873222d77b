"""`bucketlog cost` of a real cluster: what it counts from the bucket is what the broker did."""

import json
from pathlib import Path
from urllib.request import urlopen

import pytest

from bucketlog.cost.of_brokers import figures_in
from bucketlog.embedded.cluster import EmbeddedCluster
from tests.rigs.shell import Shell

pytestmark = pytest.mark.long


def test_what_is_counted_is_what_was_done(tmp_path: Path) -> None:
    with EmbeddedCluster(tmp_path) as cluster:
        shell = Shell(cluster.bootstrap)
        for topic, count in (("few", 10), ("many", 500)):
            shell.ok("topic", "create", topic)
            for _ in range(5):
                shell.ok("produce", topic, stdin=b"a line of text\n" * count)
        for _ in range(2):
            shell.ok("consume", "many", "--from", "start", "--until-end")
        metrics = f"http://{cluster.host}:{cluster.http_port}"
        shown = json.loads(shell.ok("cost", cluster.bucket_url, "--metrics", metrics, "-o", "json"))
        with urlopen(f"{metrics}/metrics") as answer:
            figures = figures_in(answer.read().decode())
    rows = {row["topic"]: row for row in shown["rows"]}
    puts = sum(row["puts"] for row in rows.values())
    creates = figures["bucketlog_bucket_requests_total", "create"]
    assert {"few", "many", "(cluster)"} == rows.keys()
    assert creates - 4 <= puts <= creates, "but for cluster.json and probes; maybe a checkpoint"
    written = sum(row["written_bytes"] for row in rows.values())
    assert written == pytest.approx(figures["bucketlog_bucket_bytes_total", "in"], rel=0.1)
    consumed = figures["bucketlog_fetched_bytes_total", "memory"]
    assert consumed >= 2 * rows["many"]["produced_bytes"] > 40 * rows["few"]["produced_bytes"]
    produced = sum(row["produced_bytes"] for row in rows.values())
    assert shown["reads"]["fan_out"] == pytest.approx(consumed / produced, rel=0.1)
    assert shown["reads"]["measured"]
    assert shown["complete_from"] is None
