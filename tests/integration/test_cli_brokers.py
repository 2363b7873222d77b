"""The command line on two brokers, of which one is killed."""

from confluent_kafka.admin import AdminClient

from tests.rigs.shell import Shell
from tests.servers.cluster import running_cluster

LONG = {"session_timeout_ms": "120000"}
"""The dead broker stays a member, and the controller, for as long as the test lasts."""


def test_lines_are_taken_while_the_controller_is_gone() -> None:
    """The survivor still names the dead broker as the controller: nothing waits for that one."""
    with running_cluster(2, settings=LONG) as cluster:
        shell = Shell(cluster.bootstrap)
        shell.ok("topic", "create", "lines", "--partitions", "8")
        metadata = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics()
        dead = metadata.controller_id
        led = {row.leader: number for number, row in metadata.topics["lines"].partitions.items()}
        survivors = str(led[1 - dead])
        cluster.brokers[dead].kill()
        shell.ok("produce", "lines", "--partition", survivors, stdin=b"one\ntwo\n")
        read = ("consume", "lines", "--partition", survivors, "--from", "start", "--until-end")
        assert shell.ok(*read) == b"one\ntwo\n"
