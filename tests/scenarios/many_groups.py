"""Thousands of groups with committed offsets: what asking for them takes, and what Redis holds.

At full size, from the repository's root: `make prove WHAT=many-groups`.
"""

import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, cast

from redis import Redis

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import WireClient, decode_response, encode_request
from tests.scenarios.failover import percentile
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster, running_cluster

TOPIC = "many-groups"
PARTITIONS = 10
IN_FLIGHT = 50
FETCHES, LISTS = 2000, 200


@dataclass(frozen=True, slots=True)
class ManyGroupsFigures:
    groups: int
    offsets: int
    committed_s: float
    offset_fetch_p50_ms: float
    offset_fetch_p99_ms: float
    list_groups_p50_ms: float
    list_groups_p99_ms: float
    redis_mib_before: float
    redis_mib: float
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def name_of(number: int) -> str:
    return f"group-{number:05}"


def offset_of(number: int, partition: int) -> int:
    return number * PARTITIONS + partition


def many_groups(groups: int) -> ManyGroupsFigures:
    """Raises `AssertionError`; nothing is left running."""
    began = time.perf_counter()
    with running_cluster(1) as cluster:
        bootstrap = cluster.brokers[0].bootstrap
        create_topic(bootstrap, TOPIC, PARTITIONS)
        before = _redis_mib(cluster)
        with WireClient(bootstrap) as client:
            committing = time.perf_counter()
            _commit_all(client, groups)
            committed_s = time.perf_counter() - committing
            chosen = random.Random(1)
            fetches = _timed(client, FETCHES, lambda: _fetch(chosen.randrange(groups)))
            lists = _timed(client, LISTS, lambda: _list(groups))
        held = _redis_mib(cluster)
    return ManyGroupsFigures(
        groups=groups,
        offsets=groups * PARTITIONS,
        committed_s=round(committed_s, 2),
        offset_fetch_p50_ms=percentile(fetches, 0.5),
        offset_fetch_p99_ms=percentile(fetches, 0.99),
        list_groups_p50_ms=percentile(lists, 0.5),
        list_groups_p99_ms=percentile(lists, 0.99),
        redis_mib_before=before,
        redis_mib=held,
        seconds=round(time.perf_counter() - began, 1),
    )


def _redis_mib(cluster: Cluster) -> float:
    assert cluster.redis_url is not None
    with Redis.from_url(cluster.redis_url) as redis:
        info = cast(dict[str, Any], redis.info("memory"))
    return round(int(info["used_memory"]) / 2**20, 2)


def _commit_all(client: WireClient, groups: int) -> None:
    """As a consumer commits that takes part in no group's membership."""
    for number in range(groups + IN_FLIGHT):
        if number < groups:
            rows = [
                {
                    "partition_index": partition,
                    "committed_offset": offset_of(number, partition),
                    "committed_metadata": "",
                }
                for partition in range(PARTITIONS)
            ]
            client.send(
                ApiKey.OFFSET_COMMIT,
                8,
                group_id=name_of(number),
                generation_id_or_member_epoch=-1,
                member_id="",
                topics=[{"name": TOPIC, "partitions": rows}],
            )
        if number >= IN_FLIGHT:
            answer = client.receive(ApiKey.OFFSET_COMMIT, 8)
            errors = {row.error_code for row in answer.topics[0].partitions}
            assert errors == {0}, f"{name_of(number - IN_FLIGHT)}: {errors}"


Ask = Callable[[], tuple[bytes, Callable[[bytes], None]]]
"""A request, and what looks at its answer."""


def _timed(client: WireClient, count: int, ask: Ask) -> list[float]:
    """Milliseconds of each, until the whole answer is here."""
    times = []
    for _ in range(count):
        request, check = ask()
        began = time.perf_counter()
        client.send_frame(request)
        answer = client.read_frame()
        times.append(round((time.perf_counter() - began) * 1000, 2))
        assert answer is not None
        check(answer)
    return times


def _fetch(number: int) -> tuple[bytes, Callable[[bytes], None]]:
    wanted = {"group_id": name_of(number), "topics": None}
    offsets = {partition: offset_of(number, partition) for partition in range(PARTITIONS)}

    def check(frame: bytes) -> None:
        (group,) = decode_response(ApiKey.OFFSET_FETCH, 8, frame)[1].groups
        found = {row.partition_index: row.committed_offset for row in group.topics[0].partitions}
        assert found == offsets, f"{name_of(number)}: {found}"

    values = {"groups": [wanted], "require_stable": True}
    return encode_request(ApiKey.OFFSET_FETCH, 8, number, values), check


def _list(groups: int) -> tuple[bytes, Callable[[bytes], None]]:
    def check(frame: bytes) -> None:
        listed = decode_response(ApiKey.LIST_GROUPS, 4, frame)[1].groups
        assert {each.group_id for each in listed} == set(map(name_of, range(groups)))

    return encode_request(ApiKey.LIST_GROUPS, 4, 1, {"states_filter": []}), check
