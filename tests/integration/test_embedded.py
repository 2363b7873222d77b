"""The embedded cluster: start, lock, restart, and that nothing outlives whoever started it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

import bucketlog
from bucketlog.embedded.cluster import ClusterStartError, EmbeddedCluster
from bucketlog.embedded.ports import brokers_named
from bucketlog.log_format.errors import ClusterInUseError, ConfigurationError
from bucketlog.log_format.private_files import check_folder
from tests.rigs.file_modes import exposed
from tests.rigs.patience import PATIENCE_S, Deadline, eventually

pytestmark = pytest.mark.long

if TYPE_CHECKING:
    from tests.servers.components import Components

HOLDER = """
import sys
from bucketlog.embedded.cluster import EmbeddedCluster
with EmbeddedCluster(sys.argv[1]) as cluster:
    print(cluster.bootstrap, *cluster.pids.values(), flush=True)
    sys.stdin.read()
"""


def is_running(pid: int) -> bool:
    """A zombie is not: it has ended, and only waits for its parent to look."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_gone(pids: list[int]) -> list[int]:
    """Those that are still there after `PATIENCE_S`."""
    deadline = Deadline()
    while (left := [pid for pid in pids if is_running(pid)]) and not deadline.is_over:
        psutil.wait_procs([psutil.Process(pid) for pid in left if psutil.pid_exists(pid)], 0.05)
    return left


def wait_until_alone(address: str) -> None:
    """Until the broker there tells clients of no other one any more."""
    host, port = address.split(":")
    eventually(
        lambda: brokers_named(host, int(port), PATIENCE_S) == 1, "the dead are still members"
    )


def flush_text(bootstrap: str, text: str) -> bucketlog.Delivered:
    with bucketlog.connect(bootstrap) as log:
        topic = bucketlog.Topic("kept", value=str)
        log.topics.ensure(topic, partitions=1)
        with log.producer() as producer:
            return producer.send(topic, text).result()


def read_all(bootstrap: str) -> list[tuple[int, str]]:
    with (
        bucketlog.connect(bootstrap) as log,
        log.consumer(bucketlog.Topic("kept", value=str), start="earliest", until="end") as consumer,
    ):
        return [(record.offset, record.value) for record in consumer]


@pytest.fixture
def holder(tmp_path: Path) -> Iterator["Holder"]:
    """Another process that runs a cluster on `tmp_path`."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    bootstrap, *pids = process.stdout.readline().split()
    yield Holder(process, bootstrap, [int(pid) for pid in pids])
    if process.poll() is None:
        process.communicate()
    assert process.stdin is not None
    process.stdin.close()
    process.stdout.close()


class Holder:
    def __init__(self, process: "subprocess.Popen[str]", bootstrap: str, pids: list[int]) -> None:
        self.process = process
        self.bootstrap = bootstrap
        self.pids = pids


def test_start_stop_and_restart_keep_records(
    tmp_path: Path, components: "Components", no_umask: None
) -> None:
    folder = tmp_path / "new" / "data"
    begun = time.perf_counter()
    with EmbeddedCluster(folder) as cluster:
        components.took_part("embedded cluster", f"ready in {time.perf_counter() - begun:.2f} s")
        assert cluster.pids.keys() == {"guard", "valkey", "broker"}
        pids = list(cluster.pids.values())
        assert flush_text(cluster.bootstrap, "one").offset == 0
        assert exposed(folder.parent) == []
    assert wait_gone(pids) == []
    with EmbeddedCluster(folder) as again:
        assert read_all(again.bootstrap) == [(0, "one")]
        assert flush_text(again.bootstrap, "two").offset == 1
        assert read_all(again.bootstrap) == [(0, "one"), (1, "two")]


def test_a_folder_that_all_may_write_to_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(ConfigurationError, match=r"every user .* may write .*chmod o-w"):
        EmbeddedCluster(tmp_path).start()
    assert list(tmp_path.iterdir()) == []
    tmp_path.chmod(0o755)
    with EmbeddedCluster(tmp_path):
        assert [record.getMessage() for record in caplog.records] == [check_folder(tmp_path)]
    assert exposed(tmp_path) == [tmp_path]


def test_nothing_is_left_in_tmp(tmp_path: Path) -> None:
    with EmbeddedCluster(tmp_path) as cluster:
        environment = psutil.Process(cluster.pids["broker"]).environ()
        socket_path = Path(environment["BUCKETLOG_REDIS_URL"].removeprefix("unix://"))
        assert socket_path.is_socket()
    assert not socket_path.parent.exists()


def test_a_second_start_names_the_holder(tmp_path: Path, holder: Holder) -> None:
    with pytest.raises(ClusterInUseError, match=f"process {holder.process.pid}") as caught:
        EmbeddedCluster(tmp_path).start()
    assert "--data" in caught.value.remedy
    assert flush_text(holder.bootstrap, "still there").offset == 0


def test_kill_9_of_the_parent_leaves_no_child(tmp_path: Path, holder: Holder) -> None:
    acknowledged = flush_text(holder.bootstrap, "one")
    holder.process.kill()
    holder.process.wait()
    with EmbeddedCluster(tmp_path) as cluster:  # at once: it waits for the dying ones
        assert wait_gone(holder.pids) == []
        assert read_all(cluster.bootstrap) == [(acknowledged.offset, "one")]


def test_kill_9_of_the_guard_leaves_no_child(tmp_path: Path, holder: Holder) -> None:
    environment = psutil.Process(holder.pids[-1]).environ()
    socket_path = Path(environment["BUCKETLOG_REDIS_URL"].removeprefix("unix://"))
    os.kill(holder.pids[0], signal.SIGKILL)
    assert wait_gone(holder.pids) == []
    assert socket_path.exists()  # nobody was left to remove it: the next start does
    holder.process.communicate()
    with EmbeddedCluster(tmp_path) as again:
        assert read_nothing(again.bootstrap)
    assert not socket_path.parent.exists()


def test_kill_9_of_the_parents_group_leaves_no_child(tmp_path: Path) -> None:
    """As a terminal that closes, or a runner that gives up."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    pids = [int(word) for word in process.stdout.readline().split()[1:]]
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert wait_gone(pids) == []


@pytest.mark.parametrize("child", ["broker", "valkey"])
def test_a_child_that_dies_ends_the_cluster(tmp_path: Path, child: str) -> None:
    cluster = EmbeddedCluster(tmp_path)
    cluster.start()
    pids = list(cluster.pids.values())
    os.kill(cluster.pids[child], signal.SIGKILL)
    with pytest.raises(ClusterStartError, match=rf"the {child} ended \(exit code -9\)"):
        cluster.wait()
    cluster.stop()
    assert wait_gone(pids) == []


def test_several_brokers_go_on_without_one_and_end_with_the_last(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(tmp_path, brokers=2)
    cluster.start()
    assert cluster.pids.keys() == {"guard", "valkey", "broker-0", "broker-1"}
    pids = list(cluster.pids.values())
    assert [member.node_id for member in cluster.members] == [0, 1]
    assert cluster.bootstrap == ",".join(member.address for member in cluster.members)
    addresses = cluster.bootstrap
    assert flush_text(addresses, "one").offset == 0
    os.kill(cluster.pids["broker-0"], signal.SIGKILL)
    wait_until_alone(cluster.members[1].address)
    losses: list[str] = []
    cluster.check(losses.append)
    assert losses == [f"broker 0 at {addresses.split(',')[0]} ended (exit code -9): 1 of 2 left"]
    assert read_all(addresses) == [(0, "one")]
    os.kill(cluster.pids["broker-1"], signal.SIGKILL)
    with pytest.raises(ClusterStartError, match=r"the broker-1 ended \(exit code -9\)"):
        cluster.wait(losses.append)
    assert len(losses) == 1
    cluster.stop()
    assert wait_gone(pids) == []
    with cluster:
        assert cluster.bootstrap == addresses, "clients know them"
        assert read_all(addresses) == [(0, "one")]


def test_ready_means_that_each_broker_names_all(tmp_path: Path) -> None:
    slow = {"heartbeat_interval_ms": "700"}
    with EmbeddedCluster(tmp_path, brokers=3, settings=slow) as cluster:
        named = [brokers_named(one.host, one.port, PATIENCE_S) for one in cluster.members]
    assert named == [3, 3, 3]


def test_one_that_does_not_start_ends_all(tmp_path: Path) -> None:
    settings = {"num_partitions": "many"}
    cluster = EmbeddedCluster(tmp_path, brokers=2, settings=settings)
    with pytest.raises(ConfigurationError, match=r"^BUCKETLOG_NUM_PARTITIONS.*whole number"):
        cluster.start()
    assert not cluster.pids


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(tmp_path, settings={"num_partitions": "many"})
    with pytest.raises(ConfigurationError, match=r"^BUCKETLOG_NUM_PARTITIONS.*whole number"):
        cluster.start()  # Valkey has written to the same log since
    with EmbeddedCluster(tmp_path) as sound:  # the folder is free again
        assert read_nothing(sound.bootstrap)


def test_a_folder_that_cannot_be_one_is_named(tmp_path: Path) -> None:
    there = tmp_path / "taken"
    there.write_bytes(b"")
    with pytest.raises(ConfigurationError, match=r"taken cannot hold .*--data"):
        EmbeddedCluster(there).start()


def read_nothing(bootstrap: str) -> bool:
    with bucketlog.connect(bootstrap) as log:
        return log.topics.list() == []


def test_a_taken_port_is_named(tmp_path: Path, broker: EmbeddedCluster) -> None:
    with pytest.raises(ClusterStartError, match=rf"{broker.port}.*--port"):
        EmbeddedCluster(tmp_path, port=broker.port).start()
