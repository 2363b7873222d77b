"""Users of a broker with logins: the file of keys, and credentials by confluent-kafka's admin."""

from collections.abc import Mapping
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.rigs.patience import PATIENCE_S

PASSWORD = "a password, not SASLprep'd: ü=,"
KEY = "ab" * 32
ITERATIONS = 4096
_NUMBERS = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}


def write_key_file(path: Path, *keys: str) -> Path:
    """The keys in hexadecimal; `KEY` if there are none."""
    path.touch(0o600)
    path.write_text("\n".join(keys or (KEY,)))
    return path


def add_user(
    bootstrap: str,
    user: str,
    mechanism: str,
    password: str = PASSWORD,
    config: Mapping[str, str] | None = None,
) -> None:
    """`config`: how the administrator logs in."""
    info = ScramCredentialInfo(_NUMBERS[mechanism], ITERATIONS)
    change = UserScramCredentialUpsertion(user, info, password=password.encode())
    client = AdminClient({"bootstrap.servers": bootstrap, **(config or {})})
    for future in client.alter_user_scram_credentials([change]).values():
        future.result(PATIENCE_S)
