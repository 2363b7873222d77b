"""The brokers that suites of Kafka clients run against: bucketlog's, or Apache Kafka's.

ACLs can be used; without any, everybody may do everything.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.private_files import make_folder
from localstack.apache_kafka import running_kafka
from tests.rigs.users import write_key_file
from tests.scenarios.client_suites import Outcomes, Suite

COMPACTION_MS = 1_000
"""Tests wait for compaction for some seconds. Kafka looks for work every 15 s by default."""

Brokers = Callable[[Path, Suite], Iterator[str]]


def run_on(brokers: Brokers, suite: Suite) -> Outcomes:
    """Start brokers, run the suite, and stop the brokers. Raises `SuiteError`."""
    with tempfile.TemporaryDirectory(prefix="bucketlog-suite-") as name:
        folder = Path(name)
        written = folder / "suite"
        written.mkdir()
        with contextmanager(brokers)(folder / "broker", suite) as bootstrap:
            return suite.run(bootstrap, written)


def kafka(folder: Path, suite: Suite) -> Iterator[str]:
    """One broker, whatever the suite wants."""
    needs = suite.needs
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "group.initial.rebalance.delay.ms": str(needs.rebalance_delay_ms),
        "group.min.session.timeout.ms": str(needs.session_timeout_ms_min),
        "auto.create.topics.enable": str(needs.creates_topics).lower(),
    }
    with running_kafka(
        folder, port=needs.port, partitions=needs.partitions, properties=properties
    ) as broker:
        yield broker.bootstrap


def bucketlog(folder: Path, suite: Suite) -> Iterator[str]:
    needs = suite.needs
    make_folder(folder)
    settings = {
        "credentials_key_file": str(write_key_file(folder / "credentials.keys")),
        "transactions": "true",
        "node_id": str(needs.node_id),
        "num_partitions": str(needs.partitions),
        "authorization": "true",
        "allow_everyone_if_no_acl_found": "true",
        "group_initial_rebalance_delay_ms": str(needs.rebalance_delay_ms),
        "group_session_timeout_ms_min": str(needs.session_timeout_ms_min),
        "auto_create_topics": str(needs.creates_topics).lower(),
        "compaction_check_interval_ms": str(COMPACTION_MS),
        "compaction_interval_ms": str(COMPACTION_MS),
        "compaction_age_ms_min": "0",
    }
    if needs.advertised_port:
        settings["advertised_port"] = str(needs.advertised_port)
    with EmbeddedCluster(
        folder, host=needs.host, port=needs.port, brokers=needs.brokers, settings=settings
    ) as cluster:
        yield cluster.bootstrap
