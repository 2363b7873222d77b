"""Apache Kafka's own command-line tools, as `scripts/install.sh kafka-tools` installs them.

A tool is a Java class that runs in a JVM of its own, about a second each: ask little of many.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from localstack.kafka_jars import installed_jars, java_program
from tests.rigs.patience import PATIENCE_S
from tests.servers.components import Components

CLASSES: Mapping[str, str] = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-verifiable-share-consumer": "org.apache.kafka.tools.VerifiableShareConsumer",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "transactional-message-copier": "org.apache.kafka.tools.TransactionalMessageCopier",
}
OTHER_ADDRESS_OPTIONS = {"transactional-message-copier": "--broker-list"}
APPLICATIONS: Mapping[str, str] = {
    "connect-distributed": "org.apache.kafka.connect.cli.ConnectDistributed",
    "mirror-maker": "org.apache.kafka.connect.mirror.MirrorMaker",
    "word-count": "org.apache.kafka.streams.examples.wordcount.WordCountDemo",
}
QUICK_START = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)


class ToolFailedError(BucketlogError):
    code = "TOOL_FAILED"


class KafkaTools:
    """Every run names the broker at `bootstrap`. Raises `ConfigurationError` where there is no Java
    or the tools are not installed."""

    def __init__(self, bootstrap: str, *java_options: str) -> None:
        self._bootstrap = bootstrap
        self._jars = installed_jars()
        options = (*QUICK_START, *java_options)
        self._java_command = (java_program(), *options, "-cp", f"{self._jars}/*")

    @property
    def version(self) -> str:
        (jar,) = self._jars.glob("kafka-clients-*.jar")
        return jar.stem.removeprefix("kafka-clients-")

    def run(
        self, tool: str, *arguments: str, stdin: bytes = b""
    ) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            self.command(tool, *arguments),
            input=stdin,
            capture_output=True,
            timeout=PATIENCE_S,
            env=_environment(),
            check=False,
        )

    def start(
        self,
        tool: str,
        *arguments: str,
        complaints: IO[bytes] | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> "subprocess.Popen[str]":
        """One that goes on until it is told to end; what it says comes by lines, and what it
        complains of goes to `complaints`, else to standard error."""
        return subprocess.Popen(
            self.command(tool, *arguments),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            env=_environment(),
        )

    def start_application(self, name: str, config: Path, said: IO[bytes]) -> subprocess.Popen[str]:
        """One of `APPLICATIONS`, which reads all it is told from the properties in `config`."""
        return subprocess.Popen(
            [*self._java_command, APPLICATIONS[name], str(config)],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            text=True,
            env=_environment(),
        )

    def command(self, tool: str, *arguments: str) -> list[str]:
        """For owners of processes that need more than `run` and `start`."""
        where = (OTHER_ADDRESS_OPTIONS.get(tool, "--bootstrap-server"), self._bootstrap)
        return [*self._java_command, CLASSES[tool], *where, *arguments]

    def lines(self, tool: str, *arguments: str, stdin: bytes = b"") -> list[str]:
        """What it printed, without empty lines; raises `ToolFailedError` with all it said, also
        where it ended well and yet complained."""
        done = self.run(tool, *arguments, stdin=stdin)
        complaint = done.stderr.decode()
        if done.returncode or " ERROR " in complaint or " WARN " in complaint:
            raise ToolFailedError(
                f"{tool} {' '.join(arguments)}: exit code {done.returncode}\n"
                f"{done.stdout.decode()}\n{complaint}"
            )
        return [line for line in done.stdout.decode().splitlines() if line]


def _environment() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C.UTF-8"}


def participating_tools(bootstrap: str, components: Components) -> KafkaTools:
    """The tools, noted as a component that took part in the tests. Skips or fails the test if they
    are not installed."""
    try:
        tools = KafkaTools(bootstrap)
    except ConfigurationError as error:
        components.missing("Apache Kafka's tools", error.remedy)
        raise
    components.took_part("Apache Kafka's tools", tools.version)
    return tools
