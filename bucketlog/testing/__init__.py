"""A pytest plugin: a real cluster for tests, started when the first of them asks for it.

    pytest_plugins = ["bucketlog.testing"]      # in the conftest.py of the project's root

Switched on by that line alone (or by `-p bucketlog.testing`), not by being installed: who uses the
SDK in production, or a service's other tests, pays nothing. Loading it imports nothing heavy.

Under pytest-xdist all workers share one cluster, which costs 1 to 2 s and 100 MB once. It belongs
to the process that runs the workers: that one outlives them all, so no worker has to be the last
one, and a worker that crashes takes nothing with it. Tests stay apart by their topics, whose names
no other test has, in any run. However pytest ends, its cluster does (`bucketlog.embedded.guard`).

PYTEST_DONT_REWRITE: there is no assertion here, and a conftest.py may import the types first.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from bucketlog.log_format.errors import BucketlogError
from bucketlog.testing.assertions import assert_published
from bucketlog.testing.cluster import Cluster, PluginSettings, add_options, error_text, running
from bucketlog.testing.faults import broker_paused, redis_paused, stop_broker
from bucketlog.testing.records import ConsumerFactory, RecordReader
from bucketlog.testing.topics import TopicFactory, random_suffix

if TYPE_CHECKING:
    from bucketlog.client.log import Log
    from bucketlog.client.producer import Producer
    from bucketlog.testing.sharing import SharedCluster

__all__ = [
    "Cluster",
    "ConsumerFactory",
    "RecordReader",
    "TopicFactory",
    "assert_published",
    "broker_paused",
    "redis_paused",
    "stop_broker",
]

_SETTINGS = pytest.StashKey[PluginSettings]()
_SHARED: "pytest.StashKey[SharedCluster]" = pytest.StashKey()
_WORKER_KEY = "bucketlog_cluster"


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SETTINGS] = PluginSettings.of(config)


def pytest_report_header(config: pytest.Config) -> list[str]:
    address = config.stash[_SETTINGS].bootstrap
    return [f"bucketlog: the cluster at {address}"] if address else []


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """pytest-xdist is about to start a worker: tell it whom to ask for the cluster."""
    config: pytest.Config = node.config
    settings = config.stash[_SETTINGS]
    if settings.bootstrap:
        return
    if _SHARED not in config.stash:
        from bucketlog.testing.sharing import SharedCluster

        config.stash[_SHARED] = SharedCluster(
            lambda folder: running(settings.data_dir or folder, keep=bool(settings.data_dir))
        )
    node.workerinput[_WORKER_KEY] = config.stash[_SHARED].address


def pytest_sessionfinish(session: pytest.Session) -> None:
    """After pytest-xdist has ended its workers, and before pytest clears its folder."""
    _stop(session.config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Where there was no session to finish."""
    _stop(config)


def _stop(config: pytest.Config) -> None:
    shared = config.stash.get(_SHARED, None)
    if shared is not None:
        del config.stash[_SHARED]
        shared.stop()


@pytest.fixture(scope="session")
def bucketlog_cluster(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Cluster of this run: `bootstrap` for clients, and `bucket_url` for `bucketlog.replay`."""
    settings = pytestconfig.stash[_SETTINGS]
    address = getattr(pytestconfig, "workerinput", {}).get(_WORKER_KEY)
    with ExitStack() as stack:
        try:
            if settings.bootstrap:
                cluster = settings.external()
            elif address:
                from bucketlog.testing.sharing import ask

                cluster = ask(address, tmp_path_factory.getbasetemp().parent / "bucketlog")
            else:
                folder = settings.data_dir or tmp_path_factory.getbasetemp() / "bucketlog"
                cluster = stack.enter_context(running(folder, keep=bool(settings.data_dir)))
        except BucketlogError as error:
            pytest.fail(error_text(error), pytrace=False)
        yield cluster


@pytest.fixture(scope="session")
def bucketlog_bootstrap(bucketlog_cluster: Cluster) -> str:
    """Address of the cluster, for clients of any kind."""
    return bucketlog_cluster.bootstrap


@pytest.fixture(scope="session")
def bucketlog_log(bucketlog_bootstrap: str, pytestconfig: pytest.Config) -> "Iterator[Log]":
    """Connection to the cluster, for all tests of the run."""
    from bucketlog.client.log import connect

    timeout_s = pytestconfig.stash[_SETTINGS].timeout_s
    with connect(bucketlog_bootstrap, timeout_s=timeout_s) as log:
        yield log


@pytest.fixture
def bucketlog_topic_factory(
    bucketlog_log: "Log", request: pytest.FixtureRequest
) -> Iterator[TopicFactory]:
    """Maker of topics for this test: `bucketlog_topic_factory(value=Order, key=str, partitions=3)`,
    or `bucketlog_topic_factory.like(orders)`."""
    settings = request.config.stash[_SETTINGS]
    factory = TopicFactory(
        bucketlog_log, request.node.name, random_suffix(), partitions=settings.partitions
    )
    yield factory
    if settings.bootstrap:  # somebody else's cluster: leave nothing there
        factory.delete_all()


@pytest.fixture
def bucketlog_topic(bucketlog_topic_factory: TopicFactory) -> str:
    """Name of a new topic, which no other test has."""
    return bucketlog_topic_factory().name


@pytest.fixture(scope="session")
def _bucketlog_producer(bucketlog_log: "Log") -> "Iterator[Producer]":
    """One for all: an idempotent producer's first record takes librdkafka half a second."""
    with bucketlog_log.producer() as producer:
        yield producer


@pytest.fixture
def bucketlog_producer(_bucketlog_producer: "Producer") -> "Iterator[Producer]":
    """Producer that is flushed after the test. The test fails if a record was not delivered.

    Other tests use the same producer: leave it open.
    """
    yield _bucketlog_producer
    _bucketlog_producer.flush()


@pytest.fixture
def bucketlog_consumer(bucketlog_log: "Log") -> Iterator[ConsumerFactory]:
    """Maker of consumers that begin at the earliest record and are closed after the test:
    `bucketlog_consumer(orders)`, with the options of `Log.consumer`."""
    with ExitStack() as stack:
        yield ConsumerFactory(bucketlog_log, stack)


@pytest.fixture(scope="session")
def bucketlog_records(bucketlog_log: "Log") -> RecordReader:
    """Reader of all records that a topic has now: `[record.value for record in
    bucketlog_records(orders)]`."""
    return RecordReader(bucketlog_log)
