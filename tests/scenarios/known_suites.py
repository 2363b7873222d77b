"""The suites of Kafka clients that are run, and where they come from.

Package registries have the tests of confluent-kafka-go, franz-go, kafka-go, kafka-python,
librdkafka and Sarama, and the program kaf. The tests of aiokafka, confluent-kafka-python, kafkajs
and topicctl come from checkouts that the user names. The programs kafka_exporter, kcl and KMinion
are built from checkouts, too.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tests.scenarios.client_suites import (
    KAFKA_VERSION,
    BrokerNeeds,
    JestSuite,
    LibrdkafkaSuite,
    PytestSuite,
    Suite,
    SuiteError,
)
from tests.scenarios.go_suites import GoSuite, SaramaSuite

ROOT = Path(__file__).parents[2]
INSTALL = ROOT / "scripts" / "client_suites.sh"
PINS = ROOT / "scripts" / "client_suites" / "pins.txt"
CHECKOUTS = "CLIENT_CHECKOUTS"
"""An environment variable with the path of a folder. It has checkouts of the repositories below,
each under the name of its suite."""
FROM_CHECKOUTS = {
    "aiokafka": "v0.14.0",
    "confluent-kafka-python": "v2.15.0",
    "kafka-exporter": "v1.9.0",
    "kafkajs": "v2.2.4, after `npm install`",
    "kcl": "v0.18.0",
    "kminion": "v2.3.5",
    "topicctl": "v2.0.2",
}
GO_TOOLS = ROOT / "tests" / "compat" / "go_tools"
CHECKED_OUT_PROGRAMS = ("kafka-exporter", "kcl", "kminion")
ASYNCIO = ("-o", "asyncio_default_fixture_loop_scope=function")
"""The default; some versions of pytest-asyncio warn if it is not set."""
LIBRDKAFKA_WITHOUT_CREATION = "librdkafka-without-creation"
KAFKA_GO_PANICS = (
    "consumer_group_commits_on_close",
    "verify_offset_committed",
    "verify_offset_committed_when_using_interval_committer",
)
"""Subtests that call a nil function of their own, which ends the program."""
SARAMA_TESTS = "|".join(
    (
        "TestFunc",
        "TestAsyncProducerRemoteBrokerClosed",
        "TestConsumerFetchFollowerFailover",
        "TestConsumerGroupDeadlock",
        "TestConsumerHighWaterMarkOffset",
        "TestConsumerPartialBatchRecovery",
        "TestInterceptors",
        "TestJava",
        "TestReadOnlyAndAllCommittedMessages",
        "TestVersionMatrix",
    )
)
"""A regular expression for the names of the tests that need brokers."""
PORTS = {
    "bytewax": ("bytewax_suite.py",),
    "faststream": ("faststream_suite.py",),
    "faust": ("faust_suite.py", "word_count.py"),
    "quix": ("quix_suite.py",),
}
"""Tests in `tests/compat`, with their files."""
KAFKAJS_TESTS = (
    "src/producer/index.spec.js",
    "src/producer/__tests__/concurrentTransaction.spec.js",
    "src/broker/__tests__/addPartitionsToTxn.spec.js",
    "src/broker/__tests__/addOffsetsToTxn.spec.js",
    "src/broker/__tests__/endTxn.spec.js",
    "src/broker/__tests__/initProducerId.spec.js",
    "src/broker/__tests__/txnOffsetCommit.spec.js",
    "src/consumer/__tests__/consumeMessages.spec.js",
    "src/consumer/__tests__/controlBatches.spec.js",
)


@dataclass(frozen=True, slots=True)
class KnownSuite:
    name: str
    origin: str
    """Where the tests come from, for the page on compatibility."""
    make: Callable[[Path], Suite]
    """The suite, from the folder that `scripts/client_suites.sh` filled."""
    short: Callable[[Path], Suite] | None = None
    """The part that CI runs; its installation and the tests take less than a minute."""
    checkout: Path | None = None
    client_version: str = ""
    """The client's version, if it is not that of the package."""
    package: str = ""
    """The suite whose installation this one uses; default: its own."""
    also: tuple[str, ...] = ()
    """Names of further pins that the suite installs, such as a proxy."""

    @property
    def version(self) -> str:
        return self.client_version or pins()[self.package or self.name].rpartition("@")[
            2
        ].removeprefix("v")


def pins() -> dict[str, str]:
    """The package and version of each suite, by the suite's name."""
    lines = PINS.read_text().splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    return {name: source for name, _kind, source, *_ in rows}


def install(name: str) -> Path:
    """Install the suite, unless it is installed, and return its folder. Raises `SuiteError`."""
    done = subprocess.run([INSTALL, name], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SuiteError(f"the suite {name} is not installed", remedy="see the messages above")
    return Path(done.stdout.strip())


def kafka_python(installed: Path) -> PytestSuite:
    return PytestSuite(
        "kafka-python",
        installed / "source",
        parts=("test", "pyproject.toml"),
        tests=("test/integration",),
        python=installed / "venv" / "bin" / "python",
        package="test",
        needs=BrokerNeeds(partitions=4, session_timeout_ms_min=1_000),
        # as in its own configuration, but a test that hangs ends without the others
        arguments=("--timeout=120", "--timeout-method=signal"),
        address_variable="KAFKA_URI",
        scheme="kafka://",
        variables={"KAFKA_VERSION": KAFKA_VERSION, "KAFKA_ROOT": "."},
    )


def kafka_python_producer(installed: Path) -> PytestSuite:
    return replace(
        kafka_python(installed), tests=("test/integration/test_producer_integration.py",)
    )


def port_suite(installed: Path, *, name: str, parts: tuple[str, ...]) -> PytestSuite:
    """Tests of ours, for a client whose package has none that use a broker."""
    return PytestSuite(
        name,
        ROOT / "tests" / "compat" / name,
        parts=parts,
        tests=(f"{name}_suite.py",),
        python=installed / "venv" / "bin" / "python",
        needs=BrokerNeeds(partitions=2),
        arguments=("--timeout=300", *ASYNCIO, "-o", "asyncio_mode=auto"),
    )


def librdkafka(installed: Path) -> LibrdkafkaSuite:
    return LibrdkafkaSuite("librdkafka", installed / "source", BrokerNeeds(partitions=4))


def librdkafka_without_creation(installed: Path) -> LibrdkafkaSuite:
    return LibrdkafkaSuite(
        LIBRDKAFKA_WITHOUT_CREATION,
        installed / "source",
        BrokerNeeds(partitions=4, creates_topics=False),
        tests=("0045", "0107", "0111"),
        scenario="noautocreate",
    )


def franz_go(installed: Path) -> GoSuite:
    return GoSuite(
        "franz-go",
        installed,
        "KGO_SEEDS",
        package="pkg/kgo",
        variables={"KGO_TEST_RF": "1", "KGO_TEST_RECORDS": "20000", "KGO_LOG_LEVEL": "none"},
    )


def kafka_go(installed: Path) -> GoSuite:
    return GoSuite(
        "kafka-go",
        installed,
        omitted=tuple(f"TestReaderConsumerGroup/{test}" for test in KAFKA_GO_PANICS),
        # the delay is Kafka's default: tests create topics meanwhile
        needs=BrokerNeeds(port=9092, host="localhost", rebalance_delay_ms=3_000),
        variables={"KAFKA_VERSION": KAFKA_VERSION},
    )


def confluent_kafka_go(installed: Path) -> GoSuite:
    return GoSuite(
        "confluent-kafka-go",
        installed,
        pattern="TestIntegration",
        package="kafka",
        files={"testconf.json": json.dumps({"Brokers": "$GIVEN_BROKER"})},
        needs=BrokerNeeds(partitions=4),
    )


def sarama(installed: Path) -> SaramaSuite:
    tests = GoSuite("sarama", installed, pattern=SARAMA_TESTS)
    return SaramaSuite("sarama", tests, proxy=install("toxiproxy") / "program")


def topicctl(installed: Path) -> GoSuite:
    return GoSuite(
        "topicctl",
        installed,
        "KAFKA_TOPICS_TEST_KAFKA_ADDR",
        one_address=True,
        pattern="TestBrokerClient",
        package="pkg/admin",
        variables={
            "KAFKA_TOPICS_TEST_BROKER_ADMIN": "true",
            "KAFKA_TOPICS_TEST_BROKER_ADMIN_SECURITY": "true",
        },
        needs=BrokerNeeds(brokers=6),
    )


def go_program(installed: Path, *, name: str) -> PytestSuite:
    """Our tests of a program. `installed`: the folder with the program."""
    return PytestSuite(
        name,
        GO_TOOLS,
        parts=("conftest.py", module_of(name)),
        tests=(module_of(name),),
        python=Path(sys.executable),
        variables={"PROGRAM": str(installed / "program")},
        imports=(ROOT,),
    )


def module_of(program: str) -> str:
    return f"{program.replace('-', '_')}_suite.py"


def aiokafka(installed: Path, *, tree: Path) -> PytestSuite:
    return PytestSuite(
        "aiokafka",
        tree,
        parts=("tests", "pyproject.toml"),
        tests=("tests",),
        python=installed / "venv" / "bin" / "python",
        needs=BrokerNeeds(partitions=2, node_id=0),
        arguments=(
            f"--docker-image=kafka:{KAFKA_VERSION}",
            "--no-pull",
            "--timeout=300",
            *ASYNCIO,
            "-W",
            "ignore::pytest.PytestRemovedIn10Warning",
        ),
    )


def confluent_kafka_python(installed: Path, *, tree: Path) -> PytestSuite:
    return PytestSuite(
        "confluent-kafka-python",
        tree,
        parts=("tests", "tox.ini", "pyproject.toml"),
        tests=(
            "tests/integration/admin",
            "tests/integration/consumer",
            "tests/integration/producer",
        ),
        python=installed / "venv" / "bin" / "python",
        arguments=("--timeout=600",),
        address_variable="BROKERS",
    )


def kafkajs(_installed: Path, *, tree: Path) -> JestSuite:
    return JestSuite("kafkajs", tree, KAFKAJS_TESTS, BrokerNeeds(port=9092))


def known_suites(checkouts: Path | None) -> tuple[KnownSuite, ...]:
    """All suites. `checkouts`: the folder that `CLIENT_CHECKOUTS` names."""
    return (*from_packages(), *(from_checkouts(checkouts) if checkouts else ()))


def from_packages() -> tuple[KnownSuite, ...]:
    return (
        KnownSuite(
            "kafka-python",
            "its integration tests, from its source distribution",
            kafka_python,
            short=kafka_python_producer,
        ),
        KnownSuite(
            "librdkafka",
            "its tests with brokers, quick forms; a Node.js package has its sources",
            librdkafka,
            client_version="2.15.1",
        ),
        KnownSuite(
            LIBRDKAFKA_WITHOUT_CREATION,
            "those of its tests for brokers that do not create topics automatically",
            librdkafka_without_creation,
            client_version="2.15.1",
            package="librdkafka",
        ),
        KnownSuite("franz-go", "the tests of `kgo`, from its Go module", franz_go),
        KnownSuite("kafka-go", "its tests, from its Go module", kafka_go),
        KnownSuite(
            "confluent-kafka-go", "its integration tests, from its Go module", confluent_kafka_go
        ),
        KnownSuite(
            "sarama", "its functional tests, from its Go module", sarama, also=("toxiproxy",)
        ),
        KnownSuite(
            "kaf",
            f"[ours](../tests/compat/go_tools/{module_of('kaf')}), with its Go module's program",
            partial(go_program, name="kaf"),
        ),
        *(
            KnownSuite(
                name,
                f"[ours](../tests/compat/{name}/{name}_suite.py)",
                partial(port_suite, name=name, parts=parts),
            )
            for name, parts in PORTS.items()
        ),
    )


def from_checkouts(checkouts: Path) -> tuple[KnownSuite, ...]:
    return (
        KnownSuite(
            "aiokafka",
            "its tests, from a checkout",
            partial(aiokafka, tree=checkouts / "aiokafka"),
            checkout=checkouts / "aiokafka",
        ),
        KnownSuite(
            "confluent-kafka-python",
            "its integration tests of clients, from a checkout",
            partial(confluent_kafka_python, tree=checkouts / "confluent-kafka-python"),
            checkout=checkouts / "confluent-kafka-python",
        ),
        KnownSuite(
            "kafkajs",
            "its tests of producers and transactions, from a checkout",
            partial(kafkajs, tree=checkouts / "kafkajs"),
            checkout=checkouts / "kafkajs",
        ),
        KnownSuite(
            "topicctl",
            "its tests of `BrokerClient`, from a checkout",
            topicctl,
            checkout=checkouts / "topicctl",
        ),
        *(
            KnownSuite(
                name,
                f"[ours](../tests/compat/go_tools/{module_of(name)}), with a checkout's program",
                partial(go_program, name=name),
                checkout=checkouts / name,
            )
            for name in CHECKED_OUT_PROGRAMS
        ),
    )


def left_out(checkouts: Path | None) -> dict[str, str]:
    """The reason why a suite is not run, by the suite's name."""
    return {
        name: f"no package has its tests: {CHECKOUTS} may name a folder with {name} ({at})"
        for name, at in FROM_CHECKOUTS.items()
        if checkouts is None or not (checkouts / name).is_dir()
    }
