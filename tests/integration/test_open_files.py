"""A broker whose process may open too few files: it logs this, and recovers."""

import socket
from pathlib import Path

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.patience import PATIENCE_S, eventually
from tests.rigs.wire_client import WireClient
from tests.servers.broker_process import BrokerProcess

LIMIT = 160


def is_served(address: tuple[str, int]) -> bool:
    try:
        with WireClient(f"{address[0]}:{address[1]}") as client:
            client.call(ApiKey.METADATA, 1, topics=[])
    except OSError:
        return False
    return True


def test_too_many_connections_for_the_open_files(redis_url: str, tmp_path: Path) -> None:
    broker = BrokerProcess(
        tmp_path / "log",
        {"OPEN_FILES": str(LIMIT)},
        "tests.servers.few_files_broker",
        bucket_url=f"file://{tmp_path / 'bucket'}",
        redis_url=redis_url,
        open_files_reserved="1",
        http_connections_max="1",
    )
    try:
        check(broker.wait_until_ready())
    finally:
        broker.kill()


def check(broker: BrokerProcess) -> None:
    address = ("127.0.0.1", int(broker.ready["port"]))
    assert f"may open {LIMIT} files" in broker.log.read_text()
    assert f"it accepts {LIMIT - 2}." in broker.log.read_text()
    assert is_served(address)
    clients = [socket.create_connection(address, PATIENCE_S) for _ in range(LIMIT)]
    eventually(lambda: "no file can be opened" in broker.log.read_text())
    for client in clients:
        client.close()
    eventually(lambda: is_served(address))
