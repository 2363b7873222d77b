"""One connection and fresh topics on the shared broker; a rig for faults on a Valkey of its own."""

import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient

import bucketlog
from bucketlog import Log
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.broker_rig import Rig, create_topic
from tests.rigs.rights import TwoBrokers, two_brokers
from tests.rigs.several_brokers import Brokers
from tests.rigs.shell import Shell
from tests.rigs.wire_client import WireClient
from tests.servers.broker_process import BrokerProcess, Start
from tests.servers.components import Components
from tests.servers.own_valkey import OwnValkey
from tests.servers.schema_registry import Registry

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.rigs.telemetry import TelemetryRecorder

MakeTopic = Callable[..., str]
_numbers = count()


@pytest.fixture(scope="module")
def browser(components: Components) -> "Iterator[Browser]":
    """A real Chromium. Only tests that use it import Playwright."""
    from tests.servers.browser import chromium, chromium_program

    with chromium(chromium_program(components)) as found:
        yield found


@pytest.fixture
def client(broker: EmbeddedCluster) -> Iterator[WireClient]:
    with WireClient(broker.bootstrap) as connection:
        yield connection


@pytest.fixture
def other(broker: EmbeddedCluster) -> Iterator[WireClient]:
    """A second connection."""
    with WireClient(broker.bootstrap) as connection:
        yield connection


@pytest.fixture
def log(broker: EmbeddedCluster) -> Iterator[Log]:
    with bucketlog.connect(broker.bootstrap) as connected:
        yield connected


@pytest.fixture
def recorded() -> "TelemetryRecorder":
    """Receiver of the spans and metrics of `traced`."""
    from tests.rigs.telemetry import TelemetryRecorder

    return TelemetryRecorder()


@pytest.fixture
def traced(log: Log, recorded: "TelemetryRecorder") -> Iterator[Log]:
    """A connection whose spans are recorded."""
    from tests.rigs.telemetry import CLIENT_ID

    with bucketlog.connect(
        log.bootstrap, client_id=CLIENT_ID, telemetry=recorded.option
    ) as connected:
        yield connected


@pytest.fixture
def theirs(schema_registry: Registry) -> Iterator[SchemaRegistryClient]:
    """confluent-kafka's own client."""
    with SchemaRegistryClient({"url": schema_registry.url}) as client:
        yield client


@pytest.fixture
def name(log: Log) -> str:
    """Of a topic of one partition."""
    fresh = f"fresh-{next(_numbers)}"
    log.topics.create(fresh)
    return fresh


@pytest.fixture
def shell(broker: EmbeddedCluster) -> Shell:
    return Shell(broker.bootstrap)


@pytest.fixture
def make_topic(client: WireClient, request: pytest.FixtureRequest) -> MakeTopic:
    """make_topic(partitions=1, **configs) creates a topic of its own and returns its name."""

    def make(partitions: int = 1, **configs: str) -> str:
        name = re.sub("[^a-z0-9_]+", "-", f"t{next(_numbers)}-{request.node.name}")
        topic: dict[str, Any] = {
            "name": name,
            "num_partitions": partitions,
            "replication_factor": 1,
            "configs": [
                {"name": key.replace("_", "."), "value": text} for key, text in configs.items()
            ],
        }
        answer = client.call(ApiKey.CREATE_TOPICS, 5, topics=[topic])
        assert answer.topics[0].error_code == 0, answer
        return name

    return make


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[OwnValkey]:
    """A server of the test's own."""
    server = OwnValkey(tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def rig(valkey: OwnValkey) -> AsyncIterator[Rig]:
    """With topic `t` of 4 partitions."""
    async with AsyncExitStack() as stack:
        rig = Rig(valkey.path)
        stack.push_async_callback(rig.stop)
        await rig.start()
        await create_topic(rig, "t", 4)
        yield rig


@pytest.fixture
async def brokers(valkey: OwnValkey) -> AsyncIterator[Brokers]:
    async with AsyncExitStack() as stack:
        yield Brokers(valkey, stack)


@pytest.fixture
def start(tmp_path: Path, redis_url: str) -> Iterator[Start]:
    """start(**settings) on a folder and the Valkey of this run, unless settings say otherwise."""
    started: list[BrokerProcess] = []

    def begin(**settings: str) -> BrokerProcess:
        ours = {"bucket_url": f"file://{tmp_path}/bucket", "redis_url": redis_url} | settings
        given = {name: text for name, text in ours.items() if text}
        started.append(BrokerProcess(tmp_path / f"broker-{len(started)}.log", **given))
        return started[-1]

    yield begin
    for broker in started:
        broker.kill()


@pytest.fixture
def rights(start: Start) -> Iterator[TwoBrokers]:
    with two_brokers(start) as brokers:
        yield brokers
