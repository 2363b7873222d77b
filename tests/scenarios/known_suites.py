"""The client tests that are run, and where they come from.

Package registries have the tests of franz-go, librdkafka and kafka-python, but not those of
aiokafka, confluent-kafka-python and kafkajs. These come from checkouts that the user names.
"""

from pathlib import Path

from tests.scenarios.client_suites import (
    KAFKA_VERSION,
    GoSuite,
    JestSuite,
    LibrdkafkaSuite,
    PytestSuite,
    Suite,
)

CHECKOUTS = "CLIENT_CHECKOUTS"
"""An environment variable with the path of a folder. It has checkouts of the repositories below,
each under the repository's name."""
FROM_CHECKOUTS = {
    "aiokafka": "v0.14.0",
    "confluent-kafka-python": "v2.15.0",
    "kafkajs": "v2.2.4, after `npm install`",
}
ASYNCIO = ("-o", "asyncio_default_fixture_loop_scope=function")
"""The default; some versions of pytest-asyncio warn if it is not set."""
LIBRDKAFKA_TESTS = ("0061", "0086", "0090", "0094", "0098", "0103", "0129", "0137")
"""The tests with real brokers that use transactions or idempotence."""
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
RACES = {
    "Producer emits the request timeout event": "the test fails if a broker answers within 1 ms",
}
"""Tests whose outcome depends on chance on both brokers, and why. They prove nothing."""


def left_out(checkouts: Path | None) -> dict[str, str]:
    """The reason why tests are not run, by repository."""
    return {
        name: f"no package has its tests: {CHECKOUTS} may name a folder with {name} ({at})"
        for name, at in FROM_CHECKOUTS.items()
        if checkouts is None or not (checkouts / name).is_dir()
    }


def suites(installed: Path, checkouts: Path | None) -> list[Suite]:
    """The suites to run. `installed`: the folder that `scripts/client_suites.sh` filled."""
    python = installed / "venv" / "bin" / "python"
    found: list[Suite] = [
        PytestSuite(
            "kafka-python",
            installed / "kafka-python",
            parts=("test", "pyproject.toml"),
            tests=("test/integration/test_producer_integration.py",),
            python=python,
            package="test",
            partitions=4,
            # as in its own configuration, but a test that hangs ends without the others
            arguments=("--timeout=120", "--timeout-method=signal"),
            address_variable="KAFKA_URI",
            scheme="kafka://",
            variables={"KAFKA_VERSION": KAFKA_VERSION, "KAFKA_ROOT": "."},
        ),
        LibrdkafkaSuite(
            "librdkafka", installed / "librdkafka" / "tests" / "test-runner", LIBRDKAFKA_TESTS
        ),
        GoSuite(
            "franz-go",
            installed / "kgo.test",
            "^(TestTxnEtl|TestGroupETL)$",
            {"KGO_TEST_RECORDS": "100000", "KGO_LOG_LEVEL": "none"},
        ),
    ]
    missing = left_out(checkouts)
    if checkouts is None:
        return found
    if "aiokafka" not in missing:
        image = f"--docker-image=kafka:{KAFKA_VERSION}"
        found.append(
            PytestSuite(
                "aiokafka",
                checkouts / "aiokafka",
                parts=("tests", "pyproject.toml"),
                tests=(
                    "tests/test_transactional_producer.py",
                    "tests/test_transactional_consumer.py",
                ),
                python=python,
                partitions=2,
                arguments=(image, "--no-pull", "--timeout=300", *ASYNCIO),
            )
        )
    if "confluent-kafka-python" not in missing:
        found.append(
            PytestSuite(
                "confluent-kafka-python",
                checkouts / "confluent-kafka-python",
                parts=("tests", "tox.ini", "pyproject.toml"),
                tests=("tests/integration/producer/test_transactions.py",),
                python=python,
                arguments=("--timeout=600",),
                address_variable="BROKERS",
            )
        )
    if "kafkajs" not in missing:
        found.append(JestSuite("kafkajs", checkouts / "kafkajs", KAFKAJS_TESTS))
    return found
