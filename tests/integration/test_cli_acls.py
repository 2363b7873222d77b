"""`bucketlog acl` and `log.acls`, against brokers with ACLs: in pipes and in a terminal."""

import asyncio
import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import bucketlog
from bucketlog import Acl, ConfigurationError, LogError
from tests.integration.test_cli_terminal import ended, piped, terminal
from tests.rigs.patience import PATIENCE_S, eventually
from tests.rigs.shell import Shell
from tests.servers.broker_process import BrokerProcess, Start

pytestmark = pytest.mark.long

ADD_ANN = ("acl", "add", "--allow-principal", "User:ann", "--topic", "t")
ANN_READS = Acl(principal="User:ann", operation="READ", resource="TOPIC", name="t")
EVE_READS = Acl(
    principal="User:eve",
    operation="READ",
    resource="TOPIC",
    name="t",
    permission="DENY",
    host="10.0.0.7",
)
HEADS = b"RESOURCE  NAME  PATTERN  PRINCIPAL  PERMISSION  OPERATION  HOST"


def serve(start: Start, **more: str) -> BrokerProcess:
    wanted = {"authorization": "true", "super_users": "User:ANONYMOUS", "acls_max": "20"}
    return start(**wanted | more).wait_until_ready()


@pytest.fixture
def admin(start: Start) -> Shell:
    return Shell(serve(start).bootstrap)


def listed(shell: Shell, *filters: str) -> list[str]:
    rows = json.loads(shell.ok("acl", "list", "-o", "json", *filters))
    return [str(Acl(**row)) for row in rows]


@contextmanager
def paused(broker: BrokerProcess) -> Iterator[None]:
    pid = broker.ready["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_rules_in_pipes(admin: Shell) -> None:
    assert listed(admin) == []
    done = admin(*ADD_ANN, "--operation", "read", "--operation", "write")
    assert done.returncode == 0
    assert done.stdout.startswith(HEADS)
    assert done.stderr == b"2 rules are added\n"
    again = admin(*ADD_ANN, "--operation", "Read", "--operation", "alter-configs")
    assert (again.returncode, again.stderr) == (0, b"1 rule is added, 1 rule existed before\n")
    producer = ("--producer", "--topic", "orders-", "--pattern", "prefixed")
    rows = json.loads(
        admin.ok("acl", "add", "--allow-principal", "User:bob", *producer, "-o", "json")
    )
    assert [row["operation"] for row in rows] == ["WRITE", "DESCRIBE", "CREATE"]
    admin.ok("acl", "add", "--deny-principal", "User:*", "--cluster", "--deny-host", "::1")
    everything = [
        "DENY User:* ALL on CLUSTER kafka-cluster from ::1",
        *(f"ALLOW User:bob {name} on TOPIC orders-…" for name in ("CREATE", "DESCRIBE", "WRITE")),
        *(f"ALLOW User:ann {name} on TOPIC t" for name in ("ALTER_CONFIGS", "READ", "WRITE")),
    ]
    assert listed(admin) == everything
    assert listed(admin, "--principal", "User:ann", "--principal", "User:*") == [
        *everything[-3:],
        everything[0],
    ]
    assert listed(admin, "--topic", "orders-1") == []
    assert listed(admin, "--topic", "orders-1", "--pattern", "match") == everything[1:4]
    assert listed(admin, "--permission", "deny", "--host", "::1") == everything[:1]
    assert HEADS[:8] in admin.ok("acl", "list", "--operation", "read")

    planned = admin("acl", "delete", "--principal", "User:ann", "--dry-run", "-o", "jsonl")
    assert planned.stdout.count(b"\n") == 3
    assert planned.stderr == b"3 rules would be deleted\n"
    planned = admin(*ADD_ANN, "--operation", "delete", "--dry-run")
    assert planned.stderr == b"1 rule would be added\n"
    assert listed(admin) == everything
    admin.ok("acl", "delete", "--principal", "User:ann", "--operation", "read", "--yes")
    assert "ALLOW User:ann READ on TOPIC t" not in listed(admin)
    admin.ok("acl", "delete", "--all", "--yes")
    assert listed(admin) == []


def test_what_is_wrong_is_one_line(admin: Shell) -> None:
    admin.ok(*ADD_ANN)
    wrong = [
        (2, ("add",), "give --allow-principal and --topic"),
        (2, ("add", "--allow-principal", "ann", "--topic", "t"), "write User:ann"),
        (2, ("delete", "--yes"), "name a principal or a resource"),
        (2, ("delete", "--all", "--topic", "t"), "--all with other flags"),
        (2, ("delete", "--topic", "u", "--yes"), "run `bucketlog acl list` to see all"),
        (2, ("wait", "--deleted"), "name the rules"),
        (2, ("list", "--pattern", "some"), "'some' is not one of"),
        (1, ("add", "--allow-principal", "User:ann", "--topic", "t" * 1025), "NAME_BYTES_MAX"),
        (
            1,
            ("add", "--allow-principal", "User:ann", *(f"--topic={n}" for n in range(20))),
            "BUCKETLOG_ACLS_MAX",
        ),
    ]
    for code, arguments, said in wrong:
        assert said in admin.failing(code, "acl", *arguments)
    assert listed(admin) == ["ALLOW User:ann ALL on TOPIC t"]
    unanswered = admin("acl", "delete", "--topic", "t")
    assert unanswered.returncode == 2
    assert b"nobody answered (add --yes)" in unanswered.stderr


def test_rights_are_needed(start: Start) -> None:
    others = Shell(serve(start, super_users="").bootstrap)
    for arguments in (("acl", "list"), ADD_ANN, ("acl", "wait")):
        complaint = others.failing(1, *arguments)
        assert "CLUSTER_AUTHORIZATION_FAILED" in complaint
        assert "use a super user" in complaint


def test_brokers_without_authorization_say_what_to_do(start: Start) -> None:
    admin = Shell(serve(start, authorization="false").bootstrap)
    for arguments in (("acl", "list"), ADD_ANN, ("acl", "wait")):
        assert "set BUCKETLOG_AUTHORIZATION=true" in admin.failing(1, *arguments)


def test_rules_in_a_terminal(admin: Shell) -> None:
    with terminal(admin, *ADD_ANN) as child:
        code, shown = ended(child)
    assert (code, "1 rule is added" in shown) == (0, True)
    with terminal(admin, "acl", "list") as child:
        code, shown = ended(child)
    assert (code, HEADS[:8].decode() in shown) == (0, True)
    for answer, code in (("", 130), ("y", 0)):
        with terminal(admin, "acl", "delete", "--topic", "t") as child:
            child.expect_exact("User:ann")
            child.expect_exact("Delete 1 rule? [y/N]: ")
            child.sendline(answer)
            assert ended(child)[0] == code
    with terminal(admin, "acl", "wait") as child:
        code, shown = ended(child)
    assert (code, "1 broker has the same rules" in shown) == (0, True)
    assert listed(admin) == []


def test_a_reader_that_is_gone_is_no_error_of_ours(admin: Shell) -> None:
    admin.ok(*ADD_ANN, "--operation", "read", "--operation", "write")
    for reader in ("true", "head -1"):
        for verb in ("list", "delete --all --dry-run"):
            done = piped(admin, f"bucketlog acl {verb} | {reader}")
            assert done.returncode in (0, 141), done.stderr
            assert b"Traceback" not in done.stderr


def test_untrusted_names_cannot_steer_a_terminal(admin: Shell) -> None:
    with bucketlog.connect(admin.environment["BUCKETLOG_BOOTSTRAP"]) as log:
        log.acls.create(
            [Acl(principal="User:\x1b[2J", operation="READ", resource="TOPIC", name="\x9bt")]
        )
    assert b"\x1b" not in admin.ok("acl", "list")
    assert b"\\x1b[2J" in admin.ok("acl", "list")


def has_created(log: bucketlog.Log, acl: Acl) -> bool:
    try:
        log.acls.create([acl])
    except LogError as error:
        if not error.retriable:
            raise
        return False
    return True


def test_wait_names_the_broker_that_does_not_answer(start: Start) -> None:
    long = {"session_timeout_ms": "600000", "lifeline_grace_ms": "0"}
    first, second = serve(start, **long), serve(start, **long)
    admin = Shell(first.bootstrap)
    admin.ok("acl", "wait")
    with bucketlog.connect(first.bootstrap, timeout_s=3) as log:

        def failure() -> LogError:
            with pytest.raises(LogError) as caught:
                log.acls.wait(created=[ANN_READS], timeout_s=0.1)
            return caught.value

        with paused(second):
            eventually(lambda: has_created(log, ANN_READS), "the first broker takes no rule")
            eventually(lambda: second.bootstrap in failure().message, "it is not named")
            assert failure().code == "REQUEST_TIMED_OUT"
            assert failure().retriable
            counts: list[int] = []
            waiting = threading.Thread(
                target=lambda: counts.append(
                    log.acls.wait(created=[ANN_READS], timeout_s=PATIENCE_S)
                )
            )
            waiting.start()
            waiting.join(1)
            assert waiting.is_alive(), "it waits for the second broker"
        waiting.join(PATIENCE_S)
        assert counts == [2]
    flags = ("--allow-principal", "User:ann", "--operation", "read", "--topic", "t")
    assert admin("acl", "wait", *flags).stderr == b"2 brokers have 1 rule\n"
    short = ("--timeout-seconds", "0.1")
    complaint = admin.failing(1, "acl", "wait", *flags, "--deleted", *short)
    assert "has ALLOW User:ann READ on TOPIC t" in complaint
    admin.ok("acl", "delete", "--topic", "t", "--yes")
    complaint = admin.failing(1, "acl", "wait", *flags, *short)
    assert "does not have ALLOW User:ann READ on TOPIC t" in complaint
    assert admin("acl", "wait", *flags, "--deleted").stderr == b"2 brokers have none of 1 rule\n"


def test_wait_finds_a_broker_that_enforces_nothing(start: Start) -> None:
    first = serve(start)
    second = serve(start, authorization="false")
    admin = Shell(first.bootstrap)

    def knows_both() -> bool:
        complaint = admin("acl", "wait").stderr.decode()
        return second.bootstrap in complaint and "BUCKETLOG_AUTHORIZATION=true" in complaint

    eventually(knows_both, "the broker without authorization is not named")


def test_the_sdk(admin: Shell) -> None:
    with bucketlog.connect(admin.environment["BUCKETLOG_BOOTSTRAP"]) as log:
        two_phase = Acl(
            principal="User:ann",
            operation="TWO_PHASE_COMMIT",
            resource="TRANSACTIONAL_ID",
            name="id",
            pattern="PREFIXED",
        )
        tokens = Acl(
            principal="User:ann", operation="CREATE_TOKENS", resource="USER", name="User:bob"
        )
        wanted = [ANN_READS, EVE_READS, two_phase, tokens]
        log.acls.create(wanted)
        log.acls.create(wanted)
        log.acls.create([])
        assert set(log.acls.list()) == set(wanted)
        assert log.acls.list(resource="TRANSACTIONAL_ID", name="id-1", pattern="MATCH") == [
            two_phase
        ]
        assert log.acls.list(permission="DENY") == [EVE_READS]
        assert log.acls.wait(created=wanted) == 1
        gone = Acl(principal="User:x", operation="READ", resource="GROUP", name="g")
        assert log.acls.delete([tokens, gone]) == (tokens,)
        assert log.acls.delete([]) == ()
        assert log.acls.wait(created=[ANN_READS], deleted=[tokens, gone]) == 1
        for wrong in (
            lambda: log.acls.list(name="t"),
            lambda: log.acls.list(operation="reed"),  # type: ignore[arg-type]  # a wrong one
            lambda: log.acls.create([Acl(principal="ann", operation="ALL", resource="CLUSTER")]),
            lambda: log.acls.wait(created=[gone], deleted=[gone]),
        ):
            with pytest.raises(ConfigurationError):
                wrong()

    async def use() -> int:
        async with bucketlog.aconnect(admin.environment["BUCKETLOG_BOOTSTRAP"]) as waiting:
            await waiting.acls.delete(await waiting.acls.list())
            return await waiting.acls.wait(deleted=wanted)

    assert asyncio.run(use()) == 1
