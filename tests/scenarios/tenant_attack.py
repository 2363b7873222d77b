"""Two tenants of two brokers, both under load. One is attacked by its own clients, with the rows of
`tests.scenarios.attack`; the latencies of the other are measured before and meanwhile.

At full size: `make prove WHAT=tenants`.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.rigs.patience import let_pass
from tests.scenarios.attack import ATTACK_S, BYSTANDER, SHORT_S, Arena, Brokers, Row
from tests.scenarios.bystander import Bystander, Latencies, percentile
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster, running_cluster

ROUNDS = 3
WARM_S = 5.0
"""The first requests of a broker are slower."""
PAUSE_S = 1.0
"""Between the end of an attack and the next measurement without one."""
LISTENERS = "ATTACKED:PLAINTEXT://127.0.0.1:{port},OTHER:PLAINTEXT://127.0.0.1:0"
TENANTS = """\
[attacked]
listeners = ["ATTACKED"]
cluster_partitions_max = 50000
coordinated_groups_bytes_max = 268435456
groups_max = 100000
offsets_max = 2000000
partition_changes_per_s = 5000
producers_max = 1000000

[other]
listeners = ["OTHER"]
"""
"""The attacked tenant may use as much as a broker without tenants: the rows need that."""


@contextmanager
def two_tenants(settings: Mapping[str, str]) -> Iterator[Cluster]:
    """Two brokers. Their usual listener is that of the attacked tenant."""
    with TemporaryDirectory(prefix="bucketlog-tenants-") as folder:
        file = Path(folder) / "tenants.toml"
        file.write_text(TENANTS)
        ours = {"tenants_file": str(file), "listeners": LISTENERS}
        with running_cluster(2, settings=ours | dict(settings)) as cluster:
            yield cluster


def others(cluster: Cluster) -> list[str]:
    """Where the other tenant's clients reach the brokers."""
    return [str(broker.running.ready["listeners"]["OTHER"]) for broker in cluster.brokers]


@dataclass(frozen=True, slots=True)
class TenantLatencies:
    """Of the tenant that is not attacked, in milliseconds, and its failed requests."""

    before_ms: Sequence[float]
    attacked_ms: Sequence[float]
    failures: Sequence[str]

    @property
    def before_p99_ms(self) -> float:
        return percentile(list(self.before_ms), 0.99)

    @property
    def attacked_p99_ms(self) -> float:
        return percentile(list(self.attacked_ms), 0.99)

    @property
    def factor(self) -> float:
        return round(self.attacked_p99_ms / max(self.before_p99_ms, 0.1), 2)


@dataclass(frozen=True, slots=True)
class AttackedRow:
    produce: TenantLatencies
    api_versions: TenantLatencies
    bad_lines: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        return {
            "produce_p99_ms": [self.produce.before_p99_ms, self.produce.attacked_p99_ms],
            "api_versions_p99_ms": [
                self.api_versions.before_p99_ms,
                self.api_versions.attacked_p99_ms,
            ],
            "failures": len(self.produce.failures),
            "bad_lines": list(self.bad_lines),
        }


def attack_one_tenant(row: Row, *, short: bool = False) -> AttackedRow:
    """Both tenants have a steady load, before the attacks and meanwhile. The bucket is a folder: a
    slower one would hide what an attack costs. Attacks and pauses take turns, because other work on
    the machine also slows requests."""
    attack_s, idle_s, rounds = (SHORT_S, SHORT_S, 1) if short else (ATTACK_S, ATTACK_S, ROUNDS)
    before, during = Latencies([], [], []), Latencies([], [], [])
    with two_tenants(row.settings) as cluster:
        attacked, other = [each.bootstrap for each in cluster.brokers], others(cluster)
        for bootstrap in (attacked[0], other[0]):
            create_topic(bootstrap, BYSTANDER, 1)
        arena, brokers = Arena(cluster, attack_s, idle_s), Brokers(cluster)
        made = row.prepare(arena)
        arena.leave()
        with Bystander(attacked, BYSTANDER), Bystander(other, BYSTANDER) as bystander:
            let_pass(0 if short else WARM_S)
            for _ in range(rounds):
                let_pass(PAUSE_S)
                bystander.phase()
                let_pass(idle_s)
                before = _both(before, bystander.phase())
                began = time.perf_counter()
                try:
                    row.attack(arena, made)
                    let_pass(began + attack_s - time.perf_counter())
                    during = _both(during, bystander.phase())
                finally:
                    arena.leave()
        return AttackedRow(
            TenantLatencies(before.produce_ms, during.produce_ms, during.failures),
            TenantLatencies(before.api_versions_ms, during.api_versions_ms, during.failures),
            brokers.bad_lines(),
        )


def _both(one: Latencies, other: Latencies) -> Latencies:
    return Latencies(
        [*one.produce_ms, *other.produce_ms],
        [*one.api_versions_ms, *other.api_versions_ms],
        [*one.failures, *other.failures],
    )


def pooled(rows: Sequence[TenantLatencies]) -> TenantLatencies:
    """The latencies of all rows together."""
    return TenantLatencies(
        [ms for row in rows for ms in row.before_ms],
        [ms for row in rows for ms in row.attacked_ms],
        [text for row in rows for text in row.failures],
    )
