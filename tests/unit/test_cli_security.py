"""The flags of TLS and logins: each command that connects has them, and what they come to."""

import inspect
import os
from pathlib import Path

import pytest
import typer

from bucketlog.cli.config import flags_of
from bucketlog.cli.main import app, main
from bucketlog.cli.security import _FLAGS, given_security, secured
from bucketlog.client.access_tokens import ClientCredentials, TokenFile
from bucketlog.client.security import Security
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.stateless_broker.process.start_up import unknown
from tests.rigs.certificate_authority import Authority

SECRET = "a secret, =ü"
FLAGS = {
    *("--tls", "--ca-file", "--client-certificate-file", "--client-key-file"),
    *("--client-key-password-file", "--verify-hostname", "--username", "--password"),
    *("--password-file", "--mechanism", "--token-file", "--token-url", "--token-client-id"),
    *("--token-client-secret-file", "--token-scope", "--token-ca-file", "--client-config"),
}
WITHOUT = {"config show", "demo"}
"""It shows the address; its cluster is one of its own."""
NOBODY = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in list(os.environ):
        if name.startswith("BUCKETLOG_"):
            monkeypatch.delenv(name)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Security | None]:
    """The security of each connection that a command opens; none of them opens."""
    found: list[Security | None] = []

    def connect(bootstrap: str, *, security: Security | None, config: object) -> None:
        found.append(security)
        raise ConfigurationError("seen")

    monkeypatch.setattr("bucketlog.client.log.connect", connect)
    return found


def secret_file(folder: Path, text: str = f"{SECRET}\n", mode: int = 0o600) -> Path:
    file = folder / "password"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_every_command_that_connects_has_them() -> None:
    by_command: dict[str, set[str]] = {}
    for flag in flags_of(typer.main.get_command(app)):
        by_command.setdefault(flag.command, set()).add(flag.name)
    connecting = {name for name, flags in by_command.items() if "--bootstrap" in flags} | {"doctor"}
    assert len(connecting) > 15
    assert [name for name in sorted(connecting - WITHOUT) if not by_command[name] >= FLAGS] == []
    variables = {f"BUCKETLOG_{name.removeprefix('--').replace('-', '_').upper()}" for name in FLAGS}
    assert unknown(variables) == [], "a broker that has them in its environment does not complain"


def test_what_nobody_gives_is_plain_text(seen: list[Security | None]) -> None:
    assert main(["topic", "list"]) == 2
    assert seen == [None]


def test_flags_and_variables(
    seen: list[Security | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Authority(tmp_path)
    own = root.issue("ann")
    monkeypatch.setenv("BUCKETLOG_USERNAME", "ann")
    monkeypatch.setenv("BUCKETLOG_PASSWORD", SECRET)
    monkeypatch.setenv("BUCKETLOG_CLIENT_CERTIFICATE_FILE", str(own.certificate))
    monkeypatch.setenv("BUCKETLOG_CLIENT_KEY_FILE", str(own.key))
    assert main(["topic", "list", "--ca-file", str(root.file), "--mechanism", "PLAIN"]) == 2
    assert seen == [
        Security(
            ca_file=root.file,
            certificate_file=own.certificate,
            key_file=own.key,
            username="ann",
            password=SECRET,
            mechanism="PLAIN",
        )
    ]


@pytest.mark.parametrize(
    ("flags", "protocol"),
    [
        (["--tls"], "SSL"),
        (["--username", "ann"], "SASL_SSL"),
        (["--username", "ann", "--no-tls"], "SASL_PLAINTEXT"),
    ],
)
def test_the_protocol(
    seen: list[Security | None], tmp_path: Path, flags: list[str], protocol: str
) -> None:
    if "--username" in flags:
        flags = [*flags, "--password-file", str(secret_file(tmp_path))]
    assert main(["bench", "consume", "t", *flags]) == 2
    assert seen[0] is not None
    assert seen[0].protocol == protocol
    assert seen[0].verify_hostname
    assert seen[0].password == (SECRET if "--username" in flags else None)


def test_a_profile_holds_a_login(
    seen: list[Security | None], capsys: pytest.CaptureFixture[str]
) -> None:
    for setting, value in (("username", "ann"), ("password", SECRET), ("verify_hostname", "false")):
        assert main(["--profile", "there", "config", "set", setting, value]) == 0
    assert main(["config", "use", "there"]) == 0
    assert main(["topic", "list"]) == 2
    assert seen == [Security(username="ann", password=SECRET, verify_hostname=False)]
    assert main(["config", "show", "--all"]) == 0
    shown = capsys.readouterr()
    assert SECRET not in shown.out + shown.err
    assert "********" in shown.out


def test_the_path_of_a_password_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "set", "password_file", "/run/secrets/ann"]) == 0
    assert main(["config", "show"]) == 0
    assert "/run/secrets/ann" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "text", "said"),
    [
        (["--username", "ann"], None, "give --password-file FILE, or set BUCKETLOG_PASSWORD"),
        (["--password", SECRET], None, "add --username"),
        (["--password-file"], f"{SECRET}\n", "add --username"),
        (["--username", "ann", "--password-file"], "\n", "its first line is not a password"),
        (["--username", "ann", "--password", SECRET, "--password-file"], "x", "leave one out"),
        (["--username", "ann", "--password-file", "/none"], None, "--password-file /none: No such"),
        (["--no-tls", "--ca-file", __file__], None, "neither TLS nor a login"),
        (["--tls", "--client-key-file", __file__], None, "a key without its certificate"),
    ],
)
def test_what_is_wrong_is_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    flags: list[str],
    text: str | None,
    said: str,
) -> None:
    if text is not None:
        flags = [*flags, str(secret_file(tmp_path, text))]
    assert main(["topic", "list", *flags]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert SECRET not in told


def test_a_readable_password_is_told(
    seen: list[Security | None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = secret_file(tmp_path, mode=0o644)
    assert main(["topic", "list", "--username", "ann", "--password-file", str(file)]) == 2
    assert f"run chmod 600 {file}" in capsys.readouterr().err


def test_flags_end_with_their_command() -> None:
    @secured
    def command(given: int = 0) -> Security | None:
        return given_security()

    assert {"given", *_FLAGS} == set(inspect.signature(command).parameters)
    found = command(tls=True)  # type: ignore[call-arg]  # a flag that `secured` has added
    assert found == Security()
    assert given_security() is None


def test_a_token_from_a_file(seen: list[Security | None], tmp_path: Path) -> None:
    file = tmp_path / "token"
    assert main(["topic", "list", "--token-file", str(file), "--ca-file", os.devnull]) == 2
    (found,) = seen
    assert found is not None
    assert found.token == TokenFile(file)
    assert (found.mechanism, found.protocol) == ("OAUTHBEARER", "SASL_SSL")


def test_tokens_from_a_provider(
    seen: list[Security | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUCKETLOG_TOKEN_URL", "https://login.example/token")
    monkeypatch.setenv("BUCKETLOG_TOKEN_CLIENT_SECRET_FILE", str(secret_file(tmp_path)))
    assert main(["topic", "list", "--token-client-id", "app", "--token-scope", "kafka"]) == 2
    (found,) = seen
    assert found is not None
    assert found.token == ClientCredentials(
        token_url="https://login.example/token",
        client_id="app",
        client_secret=SECRET,
        scope="kafka",
    )
    assert SECRET not in repr(found.token)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--token-file", "f", "--token-url", "https://x/"], "leave one out"),
        (["--token-url", "https://x/"], "without a client"),
        (["--token-client-id", "app"], "flags of a token client without a token URL"),
        (
            ["--token-scope", "s", "--token-file", "f"],
            "flags of a token client without a token URL",
        ),
        (["--token-file", "f", "--username", "ann", "--password", "x"], "leave one out"),
        (["--token-file", "f", "--mechanism", "PLAIN"], "leave one out"),
        (["--token-file", "f", "--no-tls"], "use TLS"),
        (["--tls", "--mechanism", "OAUTHBEARER"], "OAUTHBEARER without a token"),
    ],
)
def test_tokens_that_do_not_fit(
    flags: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["topic", "list", *flags]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
