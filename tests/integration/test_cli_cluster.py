"""`bucketlog cluster init`: the first administrator, before any broker runs and beside brokers."""

from pathlib import Path

import pytest

import bucketlog
from bucketlog import LogError, Security
from tests.integration.test_cli_terminal import ended, terminal
from tests.rigs.shell import Shell
from tests.rigs.users import write_key_file
from tests.servers.broker_process import BrokerProcess, Start
from tests.servers.own_valkey import OwnValkey

pytestmark = pytest.mark.long

SECRET = "a secret, =ü"
OTHER = "another secret"
INIT = ("cluster", "init", "--add-scram", "ann")


@pytest.fixture
def settings(valkey: OwnValkey, tmp_path: Path) -> dict[str, str]:
    """Of the brokers of a cluster that nobody has started yet."""
    return {
        "redis_url": f"unix://{valkey.path}",
        "bucket_url": f"file://{tmp_path}/first",
        "listeners": "IN:SASL_PLAINTEXT://127.0.0.1:0",
        "credentials_key_file": str(write_key_file(tmp_path / "keys")),
        "authorization": "true",
        "super_users": "User:ann",
        "handover_ms": "0",
    }


def shell_with(settings: dict[str, str]) -> Shell:
    shell = Shell("127.0.0.1:1")
    shell.environment |= {f"BUCKETLOG_{name.upper()}": text for name, text in settings.items()}
    return shell


def login(user: str, password: str) -> Security:
    return Security(username=user, password=password, tls=False)


def is_super_user(broker: BrokerProcess, password: str) -> bool:
    where = str(broker.ready["listeners"]["IN"])
    try:
        with bucketlog.connect(where, security=login("ann", password)) as log:
            log.users.list()
    except LogError as error:
        if error.code != "SASL_AUTHENTICATION_FAILED":
            raise
        return False
    return True


def test_before_any_broker_runs(start: Start, settings: dict[str, str]) -> None:
    shell = shell_with(settings)
    done = shell(*INIT, stdin=SECRET.encode())
    told = done.stderr.decode()
    assert (done.returncode, done.stdout) == (0, b""), told
    assert told.startswith("user ann is added to cluster ")
    assert told.count("\n") == 1
    broker = start(**settings).wait_until_ready()
    assert broker.ready["cluster_id"] in told
    assert is_super_user(broker, SECRET)
    assert not is_super_user(broker, OTHER)
    assert SECRET not in broker.log.read_text()


def test_beside_a_broker(start: Start, settings: dict[str, str]) -> None:
    """The broker has the node id that the settings name. It serves on, and knows the user."""
    settings |= {"node_id": "1"}
    broker = start(**settings).wait_until_ready()
    shell = shell_with(settings)
    shell.ok(*INIT, stdin=SECRET.encode())
    assert is_super_user(broker, SECRET)
    complaint = shell.failing(2, *INIT, stdin=OTHER.encode())
    assert "user 'ann' has a SCRAM-SHA-512 password (add --replace" in complaint
    assert is_super_user(broker, SECRET)
    shell.ok(*INIT, "--replace", stdin=OTHER.encode())
    assert is_super_user(broker, OTHER)
    assert not is_super_user(broker, SECRET)
    with bucketlog.connect(
        str(broker.ready["listeners"]["IN"]), security=login("ann", OTHER)
    ) as log:
        log.topics.create("t", partitions=1)
        assert len(log.topics.list()) == 1
    assert broker.terminate() == 0


def test_without_redis(start: Start, settings: dict[str, str]) -> None:
    """The command runs a Valkey for its own moment, as a broker would."""
    del settings["redis_url"]
    shell_with(settings).ok(*INIT, stdin=SECRET.encode())
    broker = start(**settings | {"redis_url": ""}).wait_until_ready()
    assert is_super_user(broker, SECRET)


def test_what_is_wrong_is_one_line(settings: dict[str, str], tmp_path: Path) -> None:
    def without(name: str) -> Shell:
        return shell_with({key: text for key, text in settings.items() if key != name})

    wrong: list[tuple[Shell, tuple[str, ...], str]] = [
        (
            shell_with({"bucket_url": settings["bucket_url"], "redis_url": settings["redis_url"]}),
            INIT,
            "set BUCKETLOG_CREDENTIALS_KEY_FILE",
        ),
        (without("bucket_url"), INIT, "BUCKETLOG_BUCKET_URL"),
        (shell_with(settings), ("cluster", "init"), "--add-scram"),
        (shell_with(settings), (*INIT, "--iterations", "4095"), "use 4096 to 16384"),
    ]
    for shell, arguments, said in wrong:
        complaint = shell.failing(2, *arguments, stdin=SECRET.encode())
        assert said in complaint
        assert SECRET not in complaint
    assert "is not a password" in shell_with(settings).failing(2, *INIT)
    assert not (tmp_path / "first").exists(), "nothing has begun"
    long = shell_with(settings | {"user_bytes_max": "2"})
    assert "BUCKETLOG_USER_BYTES_MAX" in long.failing(1, *INIT, stdin=SECRET.encode())


def test_in_a_terminal(start: Start, settings: dict[str, str]) -> None:
    shell = shell_with(settings | {"super_users": ""})
    with terminal(shell, *INIT) as child:
        for question in ("New password of ann: ", "Again: "):
            child.expect_exact(question)
            child.waitnoecho()
            child.sendline(SECRET)
        code, shown = ended(child)
    assert code == 0, shown
    assert "user ann is added" in shown
    assert "add it to BUCKETLOG_SUPER_USERS" in shown
    assert SECRET not in shown
    with terminal(shell, *INIT) as child:
        child.expect_exact("New password of ann: ")
        child.waitnoecho()
        child.sendintr()
        code, shown = ended(child)
    assert (code, "Traceback" in shown) == (130, False)
    assert is_super_user(start(**settings).wait_until_ready(), SECRET)
