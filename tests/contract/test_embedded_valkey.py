"""The Valkey that a broker starts: a real one, with the least permissions, that ends with its
broker."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import psutil
import pytest
from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, RedisError, ResponseError

from bucketlog.log_format.errors import (
    ConfigurationError,
    SequencerUnavailableError,
)
from bucketlog.metadata.sequencer import valkey_process
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.endpoint import Endpoint
from bucketlog.metadata.sequencer.redis_url import connect_endpoint
from bucketlog.metadata.sequencer.valkey_process import (
    COMMANDS,
    ValkeyProcess,
    ValkeySettings,
    configuration,
    start_valkey,
)
from tests.rigs.patience import eventually
from tests.servers.cluster import free_port

MEMORY_BYTES = 64 << 20
LOCAL = ValkeySettings("127.0.0.1", "127.0.0.1", 0, MEMORY_BYTES)
DOCS = Path(__file__).parents[2] / "docs" / "redis.md"
REFUSED = (
    *("CONFIG GET *", "CONFIG SET maxmemory 0", "DEBUG SLEEP 0", "FLUSHALL", "FLUSHDB", "SHUTDOWN"),
    *("REPLICAOF NO ONE", "SWAPDB 0 1", "ACL LIST", "CLIENT LIST", "MONITOR", "KEYS *", "SAVE"),
    *("MODULE LIST", "FUNCTION LIST", "SCRIPT FLUSH", "MIGRATE h 1 k 0 1", "GET bucketlog:x"),
    *("HSET other:x a b", "SUBSCRIBE other", "PSUBSCRIBE *"),
)
STARTS_ONE = """
import asyncio, sys
from bucketlog.metadata.sequencer.valkey_process import ValkeySettings, start_valkey

async def main():
    server = await start_valkey(ValkeySettings("127.0.0.1", "127.0.0.1", 0, 64 << 20))
    print(server.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture
async def server() -> AsyncIterator[ValkeyProcess]:
    started = await start_valkey(LOCAL)
    yield started
    await started.stop()


def client_of(endpoint: Endpoint) -> Redis:
    return connect_endpoint(endpoint, timeout_ms=5000, connect_timeout_ms=5000)


async def test_the_sequencer_works_there(server: ValkeyProcess) -> None:
    sequencer = Sequencer(client_of(server.endpoint), cluster_id=uuid4().hex)
    identity = await sequencer.check_server()
    assert identity.role == "master"
    assert await sequencer.active_epoch() is None
    await sequencer.close()


async def test_its_memory_is_bounded_and_nothing_is_evicted(server: ValkeyProcess) -> None:
    client = client_of(server.endpoint)
    memory = await client.info("memory")
    assert (memory["maxmemory"], memory["maxmemory_policy"]) == (MEMORY_BYTES, "noeviction")
    persistence = await client.info("persistence")
    assert persistence["aof_enabled"] == 0
    await client.aclose()


async def test_its_user_may_do_nothing_else(server: ValkeyProcess) -> None:
    client = client_of(server.endpoint)
    for command in REFUSED:
        with pytest.raises(ResponseError, match=r"permission|not allowed"):
            await cast(Any, client).execute_command(*command.split())
    for script in ("return redis.call('FLUSHALL')", "return redis.call('HSET', 'other:x', 1, 2)"):
        with pytest.raises(ResponseError, match=r"permission|can't access"):
            await client.eval(script, 0)
    await client.aclose()


@pytest.mark.parametrize(
    "login", [None, ("default", ""), ("default", "x"), ("bucketlog", "0" * 64)]
)
async def test_nobody_else_may_do_anything(
    server: ValkeyProcess, login: tuple[str, str] | None
) -> None:
    username, password = login or (None, None)
    endpoint = server.endpoint
    client = Redis(
        host=endpoint.host, port=endpoint.port, username=username, password=password, protocol=2
    )
    with pytest.raises((AuthenticationError, RedisError), match=r"(?i)auth|wrongpass|invalid"):
        await client.info("server")
    await client.aclose()


async def test_the_password_is_where_nobody_looks(server: ValkeyProcess) -> None:
    password = server.endpoint.password
    assert re.fullmatch(r"[0-9a-f]{64}", password)
    process = psutil.Process(server.pid)
    assert password not in " ".join(process.cmdline())
    assert password not in " ".join(process.environ().values())
    assert password not in configuration(LOCAL, 1, password)
    assert password not in repr(client_of(server.endpoint))
    other = await start_valkey(LOCAL)
    assert other.endpoint.password != password
    await other.stop()


async def test_a_wrong_password_is_an_error_without_a_password(server: ValkeyProcess) -> None:
    wrong = replace(server.endpoint, password="f" * 64)
    sequencer = Sequencer(client_of(wrong), cluster_id="x")
    with pytest.raises(ConfigurationError, match="refused the login") as caught:
        await sequencer.check_server()
    assert "f" * 64 not in str(caught.value)
    await sequencer.close()


def test_its_user_has_the_documented_permissions() -> None:
    documented = set(DOCS.read_text().partition("## Permissions")[2].split("```")[1].split())
    elsewhere = {"+cluster|slots", "+select", "~bucketlog:*", "&bucketlog:*"}
    assert set(COMMANDS.split()) == documented - elsewhere


# Start and end -----------------------------------------------------------------------------------


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_its_broker(signum: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", STARTS_ONE], stdout=subprocess.PIPE) as broker:
        assert broker.stdout is not None
        valkey = psutil.Process(int(broker.stdout.readline()))
        assert valkey.is_running()
        broker.send_signal(signum)
        broker.wait()
    eventually(lambda: not valkey.is_running() or valkey.status() == psutil.STATUS_ZOMBIE)


async def test_stop_leaves_no_process() -> None:
    server = await start_valkey(LOCAL)
    assert psutil.pid_exists(server.pid)
    await server.stop()
    assert not server.is_running
    assert not psutil.pid_exists(server.pid)


async def test_a_port_that_is_taken_is_an_error_that_names_the_setting() -> None:
    first = await start_valkey(replace(LOCAL, port=free_port()))
    with pytest.raises(SequencerUnavailableError, match=r"BUCKETLOG_EMBEDDED_REDIS_PORT") as caught:
        await start_valkey(replace(LOCAL, port=first.endpoint.port))
    assert "Address already in use" in str(caught.value)
    await first.stop()


async def test_a_free_port_that_is_taken_meanwhile_is_replaced() -> None:
    first = await start_valkey(LOCAL)
    ports = iter([first.endpoint.port, first.endpoint.port, free_port()])
    second = await start_valkey(LOCAL, new_port=lambda _: next(ports))
    assert second.is_running
    assert second.endpoint.port != first.endpoint.port
    await first.stop()
    await second.stop()


async def test_an_address_of_another_machine_is_an_error_that_names_the_setting() -> None:
    with pytest.raises(SequencerUnavailableError, match="BUCKETLOG_EMBEDDED_REDIS_HOST"):
        await start_valkey(replace(LOCAL, bind="192.0.2.1"))


async def test_without_a_server_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(valkey_process, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(ConfigurationError, match=r"bucketlog\[broker\]"):
        await start_valkey(LOCAL)
