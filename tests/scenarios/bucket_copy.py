"""A cluster is killed under load, its bucket copied elsewhere, and a new one started on the copy.

At full size, from the repository's root: `make prove WHAT=copy`. All brokers and Redis are killed
with kill -9 in the middle of everything; the new cluster has another, empty Redis. Two clusters
without clients, one on the original and one on the copy, must then say the same, and all that
clients were told. In the end brokers on the old addresses serve the copy, and the same clients go
on there: idempotent producers with their sequences, groups with their offsets.
"""

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bucketlog.inspect.doctor.digest import LogDigest, differences
from bucketlog.inspect.doctor.of_bucket import digest_of_bucket
from bucketlog.inspect.doctor.of_cluster import digest_of_cluster
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from tests.models.history import History
from tests.rigs.patience import eventually, let_pass
from tests.scenarios.fact_clients import Committing, TopicChanger
from tests.scenarios.judgement import judge
from tests.scenarios.load import Load
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import (
    BUCKET,
    Cluster,
    ClusterBroker,
    Store,
    free_port,
    running_cluster,
)
from tests.servers.sequencing import start_valkey

TOPIC = "copy"
PARTITIONS = 6
PRODUCERS = 2
GROUPS = 4
BROKERS = 3
COPY = f"{BUCKET}-copy"


@dataclass(frozen=True, slots=True)
class CopyFigures:
    store: str
    acknowledged_before: int
    acknowledged: int
    in_log: int
    topics: int
    groups: int
    deleted_topics: int
    objects: int
    digest: str
    down_s: float
    """From the kill until the brokers of the copy were ready on the old addresses."""
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def bucket_copy(store: Store, *, load_s: float) -> CopyFigures:
    """Raises `AssertionError` where anything is missing; nothing is left running."""
    began = time.perf_counter()
    settings = {"checkpoint_interval_ms": "3000"}
    if store is Store.MINIO:
        settings["flush_interval_ms"] = "50"
    with (
        running_cluster(BROKERS, store=store, settings=settings) as cluster,
        ExitStack() as closing,
    ):
        create_topic(cluster.brokers[0].bootstrap, TOPIC, PARTITIONS)
        history, clients = History(), _clients(cluster)
        loads = [
            Load(f"p{at}", cluster.bootstrap, history, topic=TOPIC, partitions=PARTITIONS)
            for at in range(PRODUCERS)
        ]
        for thread in (*loads, *clients.all):
            thread.start()
            closing.callback(thread.stop if isinstance(thread, Load) else thread.stopping.set)
        for load in loads:
            load.wait_for(PARTITIONS * 100)
        let_pass(load_s)
        killed_at = time.monotonic()
        _kill(cluster)
        before = len(history.acknowledged)
        told = [(one.acknowledged, one.asked) for one in clients.groups]
        assert all(acknowledged for acknowledged, _ in told), "some group has committed nothing"
        copy_url = _copy(cluster, store)
        log = _compared(cluster, copy_url, settings)
        found = clients.topics.told.complaints(log)
        for one, (acknowledged, asked) in zip(clients.groups, told, strict=True):
            found += one.complaints(log, acknowledged, asked + 1)
        assert not found, "\n".join(found[:10])
        moved = _served_from(cluster, copy_url, closing)
        down_s = time.monotonic() - killed_at
        for load in loads:
            load.wait_for(PARTITIONS * 100)
        clients.wait_for_more(told)
        for thread in (*loads, *clients.all):
            thread.stop()
        failures = [text for load in loads for text in load.failures]
        assert not failures, "\n".join(failures[:10])
        stored = judge(moved, history, topic=TOPIC, partitions=PARTITIONS)
        _check_the_end(moved, clients)
        objects = _count(copy_url)
    return CopyFigures(
        store=store,
        acknowledged_before=before,
        acknowledged=len(history.acknowledged),
        in_log=sum(len(rows) for rows in stored.values()),
        topics=len(log.topics),
        groups=len(log.groups),
        deleted_topics=len(clients.topics.told.gone),
        objects=objects,
        digest=log.digest,
        down_s=round(down_s, 1),
        seconds=round(time.perf_counter() - began, 1),
    )


@dataclass(frozen=True, slots=True)
class _Clients:
    topics: TopicChanger
    groups: Sequence[Committing]

    @property
    def all(self) -> list[TopicChanger | Committing]:
        return [self.topics, *self.groups]

    def wait_for_more(self, told: Sequence[tuple[int, int]]) -> None:
        """Each group has committed again."""
        eventually(
            lambda: all(
                one.acknowledged > asked for one, (_, asked) in zip(self.groups, told, strict=True)
            ),
            "groups do not commit again",
        )


def _clients(cluster: Cluster) -> _Clients:
    groups = [Committing(f"g{at}", cluster.bootstrap, TOPIC, at) for at in range(GROUPS)]
    return _Clients(TopicChanger(cluster.bootstrap), groups)


def _kill(cluster: Cluster) -> None:
    """kill -9 of everything, at once."""
    cluster.valkey.kill()
    for broker in cluster.brokers:
        broker.running.process.kill()
    for broker in cluster.brokers:
        broker.kill()


def _copy(cluster: Cluster, store: Store) -> str:
    """By the means of the store: nothing of ours takes part."""
    if store is Store.FILE:
        shutil.copytree(cluster.folder / "bucket", cluster.folder / COPY)
        return f"file://{cluster.folder}/{COPY}"
    assert cluster.store is not None
    cluster.store.make_bucket(COPY)
    with cluster.store.client() as client:
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
            for found in page.get("Contents", []):
                key = found["Key"]
                client.copy_object(Bucket=COPY, Key=key, CopySource={"Bucket": BUCKET, "Key": key})
    return f"s3://{COPY}"


def _compared(cluster: Cluster, copy_url: str, settings: dict[str, str]) -> LogDigest:
    """What the original and the copy say, each by a broker and a Redis of its own, is the same."""
    with (
        _one_broker(cluster, "original", cluster.bucket_url, settings) as original,
        _one_broker(cluster, "copied", copy_url, settings) as copied,
    ):
        ours, theirs = digest_of_cluster(original), digest_of_cluster(copied)
    found = list(differences(ours, theirs))
    bucket = open_sync_bucket(copy_url)
    try:
        alone = digest_of_bucket(bucket)
    finally:
        bucket.close()
    found += [f"without brokers: {line}" for line in differences(theirs, alone)]
    assert not found, "\n".join(found[:10])
    assert alone.withheld == 0
    return theirs


@contextmanager
def _one_broker(
    cluster: Cluster, name: str, bucket_url: str, settings: dict[str, str]
) -> Iterator[str]:
    broker = _broker(cluster.brokers[0], cluster.folder / f"{name}.log", free_port())
    path = cluster.folder / f"{name}.sock"
    broker.settings |= settings | {"bucket_url": bucket_url, "redis_url": f"unix://{path}"}
    with start_valkey(path):
        broker.start()
        try:
            yield broker.bootstrap
        finally:
            broker.end()


def _broker(like: ClusterBroker, log: Path, port: int) -> ClusterBroker:
    settings = like.settings | {"port": str(port)}
    return ClusterBroker(like.node_id, log, settings, like.store)


def _served_from(cluster: Cluster, copy_url: str, closing: ExitStack) -> Cluster:
    """The copy's brokers at the old addresses, with one more empty Redis."""
    path = cluster.folder / "after.sock"
    closing.enter_context(start_valkey(path))
    for broker in cluster.brokers:
        broker.settings |= {"bucket_url": copy_url, "redis_url": f"unix://{path}"}
    for broker in cluster.brokers:
        closing.callback(broker.end)
    for broker in cluster.brokers:
        broker.begin()
    for broker in cluster.brokers:
        broker.running.wait_until_ready()
    cluster.wait_until_all_are_members()
    return replace(cluster, bucket_url=copy_url)


def _check_the_end(cluster: Cluster, clients: _Clients) -> None:
    """What they were told since is so, too; brokers and the bucket alone agree."""
    log = digest_of_cluster(cluster.bootstrap)
    bucket = cluster.open_bucket()
    try:
        found = list(differences(log, digest_of_bucket(bucket)))
    finally:
        bucket.close()
    found += clients.topics.told.complaints(log)
    for one in clients.groups:
        found += one.complaints(log, one.acknowledged, one.asked)
    assert not found, "\n".join(found[:10])


def _count(url: str) -> int:
    bucket = open_sync_bucket(url)
    try:
        return sum(1 for _ in bucket.list(""))
    finally:
        bucket.close()
