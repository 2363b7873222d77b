"""A Redis fails over to a replica that lags, its old primary is still there for one broker; then it
fails back; then an activation comes twice.

At full size, from the repository's root: `make prove WHAT=split`. Three brokers reach Redis through
ways of their own, under all kinds of clients.

1. The replica gets nothing of two seconds of writes, then it is promoted. Two brokers are sent to
   it; the third stays with the old primary.
2. The third is sent to the new primary, too.
3. The old primary becomes the new one's replica, is resynchronised, falls behind by two seconds of
   writes and is promoted again: the same run_id as in the beginning, another replid. All brokers
   are sent back to it.
4. It is wiped, and what a broker sent to activate its next epoch is sent again after another wipe.
"""

import json
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass

import ormsgpack

from bucketlog.tiered_storage import keys
from tests.proofs.shortfall import Figures
from tests.rigs.patience import let_pass
from tests.scenarios.crowd import Crowd, crowd
from tests.servers.cluster import Cluster, Store, running_cluster
from tests.servers.valkey_pair import ValkeyPair, commands
from tests.servers.way import ANY_PORT, Way

BROKERS = 3
LEFT_BEHIND = 0
FIRST, SECOND = 0, 1
SETTINGS = {
    "checkpoint_interval_ms": "2000",
    "flush_interval_ms": "0",
    "group_initial_rebalance_delay_ms": "0",
}
ANSWER_TIMEOUT_S = 10.0
POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class SplitFigures:
    store: str
    lag_s: float
    lag_bytes: dict[str, int]
    """That the replica lacked when it was promoted: at the failover, at the failback."""
    left_behind_s: float
    works_again_s: dict[str, float]
    """By step, until the last of the brokers concerned acknowledged again."""
    epochs: int
    acknowledged: int
    in_log: int
    commits: int
    broken_promises: int
    seconds: float

    def as_json(self) -> Figures:
        return asdict(self)


def split(store: Store, *, lag_s: float, left_behind_s: float, java: bool) -> SplitFigures:
    """Raises `AssertionError` where a promise is broken; nothing is left running."""
    began = time.perf_counter()
    works_again: dict[str, float] = {}
    with ExitStack() as closing:
        pair = closing.enter_context(ValkeyPair().running())
        pair.replicate(FIRST)
        ways = [closing.enter_context(Way(pair.address(FIRST), ANY_PORT)) for _ in range(BROKERS)]
        cluster = closing.enter_context(
            running_cluster(
                BROKERS, store=store, settings=SETTINGS, redis_ports=[way.port for way in ways]
            )
        )
        with crowd(cluster, java=java) as clients:
            clients.wait_for_progress()
            lag = {"failover": _fail_over(pair, ways, clients, lag_s, works_again)}
            let_pass(left_behind_s)
            at = time.monotonic()
            ways[LEFT_BEHIND].lead_to(pair.address(SECOND))
            works_again["left behind, sent to the new one"] = _again(clients, at)
            clients.wait_for_progress()
            lag["failback"] = _fail_back(pair, ways, clients, lag_s, works_again)
            clients.wait_for_progress()
            works_again["activated twice"] = _activate_twice(pair, ways, cluster, clients)
            clients.wait_for_progress()
            complaints = clients.end()
        assert not complaints, "\n".join(complaints[:10])
        log = clients.judge()
        epochs = highest_epoch(cluster)
    return SplitFigures(
        store=store,
        lag_s=lag_s,
        lag_bytes=lag,
        left_behind_s=left_behind_s,
        works_again_s={step: round(seconds, 2) for step, seconds in works_again.items()},
        epochs=epochs,
        acknowledged=len(clients.history.acknowledged),
        in_log=sum(map(len, log.values())),
        commits=len(clients.history.commits),
        broken_promises=0,
        seconds=round(time.perf_counter() - began, 1),
    )


def _again(clients: Crowd, since: float, brokers: Sequence[int] = range(BROKERS)) -> float:
    names = {f"probe-{number}" for number in brokers}
    return max(probe.works_again(since) - since for probe in clients.probes if probe.name in names)


def _fail_over(
    pair: ValkeyPair,
    ways: Sequence[Way],
    clients: Crowd,
    lag_s: float,
    works_again: dict[str, float],
) -> int:
    """All but one broker follow; the bytes that the new primary lacks."""
    lag = pair.fall_behind(FIRST, lag_s)
    assert lag > 0, "nothing was written meanwhile"
    at = time.monotonic()
    pair.promote(SECOND)
    for number, way in enumerate(ways):
        if number != LEFT_BEHIND:
            way.lead_to(pair.address(SECOND))
    followers = [number for number in range(BROKERS) if number != LEFT_BEHIND]
    works_again["failover"] = _again(clients, at, followers)
    return lag


def _fail_back(
    pair: ValkeyPair,
    ways: Sequence[Way],
    clients: Crowd,
    lag_s: float,
    works_again: dict[str, float],
) -> int:
    run_id, replid = pair.run_id(FIRST), pair.replication(FIRST)["master_replid"]
    pair.replicate(SECOND)
    clients.wait_for_progress()
    lag = pair.fall_behind(SECOND, lag_s)
    assert lag > 0, "nothing was written meanwhile"
    at = time.monotonic()
    pair.promote(FIRST)
    assert pair.run_id(FIRST) == run_id
    assert pair.replication(FIRST)["master_replid"] != replid
    for way in ways:
        way.lead_to(pair.address(FIRST))
    works_again["failback"] = _again(clients, at)
    pair.replicate(FIRST)
    return lag


def _activate_twice(
    pair: ValkeyPair, ways: Sequence[Way], cluster: Cluster, clients: Crowd
) -> float:
    """Seconds until producing worked after the second wipe."""
    before = highest_epoch(cluster)
    for way in ways:
        way.recording = True
    wiped = time.monotonic()
    with pair.client(FIRST) as redis:
        redis.flushall()
    _again(clients, wiped)
    epoch = highest_epoch(cluster)
    assert epoch > before, "the wipe was not noticed"
    sent = _activation(ways, cluster, epoch)
    for way in ways:
        way.recording = False
    at = time.monotonic()
    answer = _flush_and_send(pair.address(FIRST), sent)
    assert answer[0] == "refused", f"an activation that came twice: {answer}"
    seconds = _again(clients, at)
    assert highest_epoch(cluster) > epoch, "the second wipe was not noticed"
    return seconds


def _activation(ways: Sequence[Way], cluster: Cluster, epoch: int) -> list[bytes]:
    """What was sent to stage the state of this epoch and to activate it, in its order."""
    bucket = cluster.open_bucket()
    try:
        claim = json.loads(bytes(bucket.get(keys.epoch_claim(epoch)).data))
    finally:
        bucket.close()
    staged = b"staged:" + str(claim["nonce"]).encode()
    found = [
        command
        for way in ways
        for sent in way.recorded
        for command in commands(bytes(sent))
        if staged in command and b"UNLINK" not in command
    ]
    stages = [command for command in found if b"HSET" in command]
    (activate,) = [command for command in found if b"EVAL" in command]
    return [*stages, activate]


def _flush_and_send(server: tuple[str, int], sent: Sequence[bytes]) -> list[object]:
    """At once, so that nobody comes between; the answer to the last."""
    flush = b"*1\r\n$8\r\nFLUSHALL\r\n"
    with socket.create_connection(server, timeout=ANSWER_TIMEOUT_S) as connection:
        connection.sendall(flush + b"".join(sent))
        answers = connection.makefile("rb")
        for _ in sent:  # to FLUSHALL and to the stages
            line = answers.readline()
            assert line[:1] in b"+:", line
        head = answers.readline()
        assert head[:1] == b"$", head
        found: list[object] = ormsgpack.unpackb(answers.read(int(head[1:])))
        return found


def highest_epoch(cluster: Cluster) -> int:
    bucket = cluster.open_bucket()
    try:
        return max(keys.parse_epoch_claim(info.key) for info in bucket.list(keys.EPOCHS))
    finally:
        bucket.close()
