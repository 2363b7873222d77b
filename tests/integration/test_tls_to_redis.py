"""Brokers reach Redis by TLS alone: the system's Redis, with certificates on both sides."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import ormsgpack
import pytest
from kio.schema.errors import ErrorCode
from redis import Redis

from bucketlog.log_format.errors import ConfigurationError, SequencerUnavailableError
from bucketlog.metadata.sequencer.redis_keys import key_prefix
from bucketlog.metadata.sequencer.redis_server import ScriptRunner
from bucketlog.metadata.sequencer.redis_url import connect_redis
from tests.infra.programs import installed
from tests.integration.test_broker_process import CONFIGURATION, START_FAILED, refusal
from tests.rigs.broker_rig import Rig, produce, until
from tests.rigs.brokers_on_redis import LOOKS_WHEN_IT_MUST, are_in, brokers
from tests.rigs.certificate_authority import Authority, KeyPair, rfc4514
from tests.rigs.patience import Deadline
from tests.rigs.takeover import Load
from tests.servers.broker_process import Start
from tests.servers.components import Components
from tests.servers.redis_servers import (
    RedisTls,
    Server,
    lone_redis,
    redis_cluster,
    with_sentinels,
)

pytestmark = pytest.mark.long

DOCS = Path(__file__).parents[2] / "docs" / "redis.md"
PASSWORD = "se:cr@t/"
CLIENT = rfc4514("CN=broker")


@pytest.fixture
def tls(tmp_path: Path, components: Components) -> RedisTls:
    program = installed("redis-tls", components)
    authority = Authority(tmp_path)
    return RedisTls(
        program, authority, authority.issue("server"), authority.issue("client", CLIENT)
    )


@pytest.fixture
def redis(tmp_path: Path, tls: RedisTls, components: Components) -> Iterator[Server]:
    """Its user `broker` may do what docs/redis.md says, and no more."""
    with lone_redis(tmp_path / "redis", tls) as server:
        components.took_part("Redis with TLS", str(server.info("server")["redis_version"]))
        section = DOCS.read_text().partition("## Permissions")[2]
        given = section.split("```")[1].split()
        server.ask("ACL", "SETUSER", "broker", "on", f">{PASSWORD}", "-@all", *given)
        yield server


def url_of(server: Server, query: str, *, scheme: str = "rediss", password: str = PASSWORD) -> str:
    return f"{scheme}://broker:{quote(password, safe='')}@127.0.0.1:{server.port}{query}"


def lifelines(redis: Server, rig: Rig) -> int:
    """How many brokers have a lifeline that a heartbeat has seen."""
    with redis.client() as client:
        rows = cast(list[bytes], client.hvals(f"{key_prefix(rig.cluster_id, 0)}brokers"))
    return sum(bool(ormsgpack.unpackb(row)["lifeline"]) for row in rows)


async def test_brokers_on_a_redis_with_tls_alone(redis: Server, tls: RedisTls) -> None:
    async with brokers(url_of(redis, tls.query())) as rigs:
        async with Load(rigs) as load:
            await load.more(30)
        await load.check()


async def test_a_dead_broker_is_missed_by_its_lifeline(redis: Server, tls: RedisTls) -> None:
    async with brokers(url_of(redis, tls.query()), session_timeout_ms=1_000_000) as rigs:
        await until(lambda: lifelines(redis, rigs[0]) == 2)
        await rigs[1].lose_connections()
        await until(lambda: len(rigs[0].membership.members) == 1)


async def test_sentinels_and_their_servers(tmp_path: Path, tls: RedisTls) -> None:
    with with_sentinels(tmp_path / "redis", tls=tls) as redis:
        url = redis.url("rediss+sentinel", query=tls.query())
        async with brokers(url, **LOOKS_WHEN_IT_MUST) as rigs:
            async with Load(rigs) as load:
                await load.more(20)
                redis.servers[0].kill()
                await until(lambda: are_in(rigs, rigs[0].epoch) and rigs[0].epoch > 1)
                await load.more(20)
            await load.check()


async def test_a_redis_cluster(tmp_path: Path, tls: RedisTls) -> None:
    with redis_cluster(tmp_path / "redis", tls=tls) as redis:
        url = redis.url("rediss+cluster", query=tls.query())
        async with brokers(url, **LOOKS_WHEN_IT_MUST) as rigs:
            number = redis.number_of(key_prefix(rigs[0].cluster_id, 0))
            async with Load(rigs) as load:
                await load.more(20)
                redis.replicas[number].ask("CLUSTER", "FAILOVER")
                await until(lambda: are_in(rigs, 2))
                await load.more(20)
            await load.check()


def kill_connections(admin: Redis) -> int:
    """All of the brokers' user; returns how many there were."""
    return int(cast(Any, admin).execute_command("CLIENT", "KILL", "USER", "broker"))


# Files that change -------------------------------------------------------------------------------


@dataclass
class Caller:
    """Has one connection to the server, with a certificate of its own, and opens the connection
    again when it was lost. `admin` has another one, which stays open."""

    runner: ScriptRunner
    own: KeyPair
    admin: Redis

    def lose_connection(self) -> None:
        assert kill_connections(self.admin) == 1

    async def connect(self) -> None:
        """Calls fail until the lost connection is noticed."""
        deadline = Deadline("Redis does not answer")
        while True:
            try:
                await self.runner.identity()
            except SequencerUnavailableError:
                await deadline.pause_async()
            else:
                return


@pytest.fixture
async def caller(redis: Server, tls: RedisTls) -> AsyncIterator[Caller]:
    own = tls.authority.issue("own", CLIENT)
    query = tls.query(ssl_certfile=own.certificate, ssl_keyfile=own.key)
    client = connect_redis(url_of(redis, query), timeout_ms=10_000, max_connections=1)
    runner = ScriptRunner(client, cluster_id="c", shard=0)
    with redis.client() as admin:
        admin.ping()
        await runner.identity()
        yield Caller(runner, own, admin)
    await runner.close()


async def test_new_connections_use_renewed_files(
    redis: Server, tls: RedisTls, caller: Caller, tmp_path: Path
) -> None:
    following = Authority(tmp_path, "following")
    following.issue("own", CLIENT)
    caller.admin.config_set("tls-ca-cert-file", str(following.file))
    caller.lose_connection()
    await caller.connect()
    tls.authority.issue("own", CLIENT)
    caller.lose_connection()
    with pytest.raises(ConfigurationError, match="Redis refused the broker's certificate"):
        await caller.connect()


async def test_files_that_do_not_work_change_nothing(
    caller: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    caller.own.certificate.write_bytes(b"the first half")
    for _ in range(2):
        caller.lose_connection()
        await caller.connect()
    lines = [record.message for record in caplog.records if "stay in use" in record.message]
    assert len(lines) == 1
    assert "ssl_certfile" in lines[0]


# What does not work ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wrong:
    """Options of the URL, as files of the test's folder, and what the broker says of them."""

    words: str
    ca: str = "root.pem"
    certificate: str = "client.pem"
    key: str = "client.key"
    password: str = PASSWORD


WRONG = {
    "authority": Wrong("certificate of Redis was not accepted: self-signed", ca="other.pem"),
    "authority file": Wrong("cannot read ssl_ca_certs", ca="nowhere.pem"),
    "no authority": Wrong("ssl_ca_certs does not work: no certificate", ca="client.key"),
    "key": Wrong("ssl_certfile and ssl_keyfile do not work: key values", key="server.key"),
    "certificate": Wrong(
        "Redis refused the broker's certificate", certificate="foreign.pem", key="foreign.key"
    ),
    "password": Wrong("Redis refused the login", password="wrong"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_setting_ends_the_broker(
    start: Start, redis: Server, tls: RedisTls, tmp_path: Path, wrong: Wrong
) -> None:
    Authority(tmp_path, "other").issue("foreign", CLIENT)
    query = tls.query(
        ssl_ca_certs=tmp_path / wrong.ca,
        ssl_certfile=tmp_path / wrong.certificate,
        ssl_keyfile=tmp_path / wrong.key,
    )
    code, line = refusal(start(redis_url=url_of(redis, query, password=wrong.password)))
    assert code == CONFIGURATION
    assert wrong.words in line
    assert wrong.password not in line


def test_the_name_in_the_certificate_counts(start: Start, tls: RedisTls, tmp_path: Path) -> None:
    elsewhere = replace(tls, server=tls.authority.issue("elsewhere", hosts=("redis.example",)))
    with lone_redis(tmp_path / "redis", elsewhere, {"ssl_check_hostname": False}) as redis:
        url = f"rediss://127.0.0.1:{redis.port}{tls.query()}"
        code, line = refusal(start(redis_url=url))
        assert code == CONFIGURATION
        assert "IP address mismatch" in line
        start(redis_url=f"{url}&ssl_check_hostname=false").wait_until_ready()


def test_a_certificate_that_redis_asks_for(start: Start, redis: Server, tls: RedisTls) -> None:
    url = url_of(redis, f"?ssl_ca_certs={tls.authority.file}")
    code, line = refusal(start(redis_url=url))
    assert code == CONFIGURATION
    assert "Redis refused the broker's certificate: " in line


def test_a_url_without_tls(start: Start, redis: Server) -> None:
    url = url_of(redis, "", scheme="redis")
    code, line = refusal(start(redis_url=url, start_timeout_ms="0"))
    assert code == START_FAILED
    assert "Redis closed the connection" in line
    assert "use rediss://" in line


def test_tls_to_a_port_without_it(start: Start, tls: RedisTls, tmp_path: Path) -> None:
    with lone_redis(tmp_path / "plain") as server:
        url = f"rediss://127.0.0.1:{server.port}{tls.query()}"
        code, line = refusal(start(redis_url=url, start_timeout_ms="0", redis_timeout_ms="500"))
    assert code == START_FAILED
    assert "that this port expects TLS" in line


async def test_a_running_broker_waits_for_a_good_certificate(
    redis: Server, tls: RedisTls, tmp_path: Path
) -> None:
    foreign = Authority(tmp_path, "other").issue("foreign")

    def present(admin: Redis, issued: KeyPair) -> None:
        files = str(issued.certificate), "tls-key-file", str(issued.key)
        admin.config_set("tls-cert-file", *files)
        kill_connections(admin)

    async with brokers(url_of(redis, tls.query()), 1) as rigs:
        (rig,) = rigs
        rig.sequencer.note_start_complete()
        with redis.client() as admin:
            admin.ping()
            present(admin, foreign)
            await until(
                lambda: any("was not accepted" in one for one in rig.health.report().values())
            )
            present(admin, tls.server)
        await until(lambda: rig.health.ready)
        assert await produce(rig, b"kept") == (ErrorCode.none, 0)
