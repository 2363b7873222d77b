"""`bucketlog user` and `log.users`, against a broker with logins: in pipes and in a terminal."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import bucketlog
from bucketlog import ConfigurationError, LogError, Security
from tests.integration.test_cli_terminal import ended, piped, terminal
from tests.rigs.shell import Shell
from tests.rigs.users import write_key_file
from tests.servers.broker_process import BrokerProcess, Start

pytestmark = pytest.mark.long

SECRET = "a secret, =ü"
OTHER = "another secret"


@pytest.fixture
def broker(start: Start, tmp_path: Path) -> BrokerProcess:
    return start(
        listeners="ADMIN:PLAINTEXT://127.0.0.1:0,IN:SASL_PLAINTEXT://127.0.0.1:0",
        credentials_key_file=str(write_key_file(tmp_path / "keys")),
        user_bytes_max="20",
    ).wait_until_ready()


@pytest.fixture
def admin(broker: BrokerProcess) -> Shell:
    return Shell(str(broker.ready["listeners"]["ADMIN"]))


def knows(
    broker: BrokerProcess, user: str, password: str, mechanism: Any = "SCRAM-SHA-512"
) -> bool:
    security = Security(username=user, password=password, mechanism=mechanism, tls=False)
    try:
        bucketlog.connect(str(broker.ready["listeners"]["IN"]), security=security).close()
    except LogError as error:
        if error.code != "SASL_AUTHENTICATION_FAILED":
            raise
        return False
    return True


def listed(shell: Shell) -> list[tuple[str, str, int]]:
    rows = json.loads(shell.ok("user", "list", "-o", "json"))
    return [(row["user"], row["mechanism"], row["iterations"]) for row in rows]


def test_users_in_pipes(broker: BrokerProcess, admin: Shell, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.touch(0o600)
    file.write_text(f"{SECRET}\nnot this line\n")
    assert listed(admin) == []
    done = admin("user", "add", "ann", "--new-password-file", str(file))
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.decode() == "user ann is added, with SCRAM-SHA-512\n"
    assert knows(broker, "ann", SECRET)
    more = ("--credential", "SCRAM-SHA-256", "--iterations", "4096")
    admin.ok("user", "add", "ann", *more, stdin=SECRET.encode())
    assert listed(admin) == [("ann", "SCRAM-SHA-256", 4096), ("ann", "SCRAM-SHA-512", 8192)]
    assert b"USER  MECHANISM      ITERATIONS" in admin.ok("user", "list")

    admin.ok("user", "password", "ann", "--new-password-file", "-", stdin=f"{OTHER}\n".encode())
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        assert knows(broker, "ann", OTHER, mechanism)
        assert not knows(broker, "ann", SECRET, mechanism)

    admin.ok("user", "delete", "ann", "--yes", "--credential", "SCRAM-SHA-256")
    assert listed(admin) == [("ann", "SCRAM-SHA-512", 8192)]
    admin.ok("user", "delete", "ann", "--yes")
    assert not knows(broker, "ann", OTHER)
    assert listed(admin) == []
    text = broker.log.read_text()
    assert SECRET not in text
    assert OTHER not in text


def test_users_administer_themselves_after_a_login(broker: BrokerProcess, admin: Shell) -> None:
    admin.ok("user", "add", "ann", stdin=SECRET.encode())
    inside = Shell(str(broker.ready["listeners"]["IN"]))
    inside.environment |= {
        "BUCKETLOG_USERNAME": "ann",
        "BUCKETLOG_PASSWORD": SECRET,
        "BUCKETLOG_TLS": "0",
    }
    inside.ok("user", "password", "ann", stdin=OTHER.encode())
    assert "refuses the login" in inside.failing(1, "user", "list")
    inside.environment["BUCKETLOG_PASSWORD"] = OTHER
    assert listed(inside) == [("ann", "SCRAM-SHA-512", 8192)]


def test_what_is_wrong_is_one_line(broker: BrokerProcess, admin: Shell) -> None:
    admin.ok("user", "add", "ann", stdin=SECRET.encode())
    wrong = [
        (2, ("add", "ann"), "run `bucketlog user password` to change it"),
        (2, ("password", "bob"), "there is no user 'bob'"),
        (2, ("password", "ann", "--credential", "SCRAM-SHA-256"), "there is no SCRAM-SHA-256"),
        (2, ("delete", "bob", "--yes"), "there is no user 'bob'"),
        (2, ("add", "bob", "--new-password-file", "/none"), "/none: No such file"),
        (1, ("add", "bob", "--iterations", "4095"), "use 4096 to 16384 iterations"),
        (1, ("add", "b" * 21), "BUCKETLOG_USER_BYTES_MAX"),
    ]
    for code, arguments, said in wrong:
        complaint = admin.failing(code, "user", *arguments, stdin=SECRET.encode())
        assert said in complaint
        assert SECRET not in complaint
    assert "is not a password" in admin.failing(2, "user", "add", "bob")
    assert "nobody answered (add --yes)" in admin.failing(2, "user", "delete", "ann")
    assert [user for user, _, _ in listed(admin)] == ["ann"]


def test_a_broker_without_a_key_says_what_to_do(start: Start) -> None:
    keyless = Shell(start().wait_until_ready().bootstrap)
    complaint = keyless.failing(1, "user", "add", "ann", stdin=SECRET.encode())
    assert "set BUCKETLOG_CREDENTIALS_KEY_FILE" in complaint


def test_users_in_a_terminal(broker: BrokerProcess, admin: Shell) -> None:
    with terminal(admin, "user", "add", "ann") as child:
        for question in ("New password of ann: ", "Again: "):
            child.expect_exact(question)
            child.waitnoecho()
            child.sendline(SECRET)
        code, shown = ended(child)
    assert code == 0
    assert "user ann is added" in shown
    assert SECRET not in shown
    assert knows(broker, "ann", SECRET)
    with terminal(admin, "user", "password", "ann") as child:
        child.expect_exact("New password of ann: ")
        child.waitnoecho()
        child.sendline(OTHER)
        child.expect_exact("Again: ")
        child.waitnoecho()
        child.sendline(SECRET)
        code, shown = ended(child)
    assert (code, "the two passwords differ" in shown) == (2, True)
    with terminal(admin, "user", "password", "ann") as child:
        child.expect_exact("New password of ann: ")
        child.waitnoecho()
        child.sendintr()
        code, shown = ended(child)
    assert (code, "Traceback" in shown) == (130, False)
    with terminal(admin, "user", "password", "ann") as child:
        child.expect_exact("New password of ann: ")
        child.waitnoecho()
        child.sendeof()
        code, shown = ended(child)
    assert (code, "nobody answered" in shown) == (2, True)
    assert knows(broker, "ann", SECRET), "nothing has changed"
    with terminal(admin, "user", "list") as child:
        code, shown = ended(child)
    assert (code, "ITERATIONS" in shown) == (0, True)
    for answer, code in (("", 130), ("y", 0)):
        with terminal(admin, "user", "delete", "ann") as child:
            child.expect_exact("Delete user ann (SCRAM-SHA-512)? [y/N]: ")
            child.sendline(answer)
            assert ended(child)[0] == code
    assert listed(admin) == []


def test_a_reader_that_is_gone_is_no_error_of_ours(admin: Shell) -> None:
    for at in range(3):
        admin.ok("user", "add", f"user {at}", stdin=SECRET.encode())
    for reader in ("true", "head -1"):
        done = piped(admin, f"bucketlog user list | {reader}")
        assert done.returncode in (0, 141), done.stderr
        assert done.stderr == b""


def test_the_sdk(broker: BrokerProcess, admin: Shell) -> None:
    with bucketlog.connect(admin.environment["BUCKETLOG_BOOTSTRAP"]) as log:
        log.users.set_password("ann", SECRET, mechanism="SCRAM-SHA-256", iterations=4096)
        assert [(row.user, row.mechanism, row.iterations) for row in log.users.list()] == [
            ("ann", "SCRAM-SHA-256", 4096)
        ]
        with pytest.raises(LogError, match="RESOURCE_NOT_FOUND"):
            log.users.delete("ann")
        for user, password, mechanism in (
            ("", SECRET, "SCRAM-SHA-512"),
            ("ann", "", "SCRAM-SHA-512"),
            ("ann", SECRET, "PLAIN"),
        ):
            with pytest.raises(ConfigurationError) as caught:
                log.users.set_password(
                    user,
                    password,
                    mechanism=mechanism,  # type: ignore[arg-type]  # a wrong one, too
                )
            assert SECRET not in str(caught.value)

    async def use() -> int:
        async with bucketlog.aconnect(admin.environment["BUCKETLOG_BOOTSTRAP"]) as waiting:
            await waiting.users.delete("ann", mechanism="SCRAM-SHA-256")
            return len(await waiting.users.list())

    assert asyncio.run(use()) == 0
