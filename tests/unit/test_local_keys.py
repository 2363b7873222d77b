"""Keys of encrypted topics in a file: read for each use, and bound to a name, a topic and a key."""

import hmac
import os
from hashlib import sha256
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from bucketlog.log_format.encryption_errors import KeyRefusedError
from bucketlog.log_format.model import TopicId
from bucketlog.log_format.wrapped_key import WrappedKey
from bucketlog.tiered_storage.encryption.key_service import KeyAccess, KeyServices, KeyUse
from tests.rigs.encryption import write_keys

TOPIC, OTHER = TopicId(b"t" * 16), TopicId(b"o" * 16)
USE = KeyUse(TOPIC, b"k" * 16)


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return write_keys(tmp_path / "keys", "a", "b")


def wrapped(path: Path, name: str = "a") -> tuple[bytes, WrappedKey]:
    made = KeyServices(KeyAccess(path)).create(f"local:{name}", USE)
    return made.data_key, WrappedKey(TOPIC, USE.key_id, f"local:{name}", made.wrapped, 0)


def test_a_data_key_opens_in_another_process(key_file: Path) -> None:
    data_key, key = wrapped(key_file)
    assert KeyServices(KeyAccess(key_file)).unwrap(key) == data_key
    assert len(data_key) == 32
    assert wrapped(key_file)[0] != data_key


def test_the_bytes_are_those_of_the_format(key_file: Path) -> None:
    """docs/format/segment.md#data-keys"""
    data_key, key = wrapped(key_file)
    secret = bytes.fromhex(key_file.read_text().split()[1])
    cipher = AESGCM(hmac.digest(secret, b"bucketlog data keys 1", sha256))
    about = TOPIC + USE.key_id + b"a"
    assert cipher.decrypt(key.wrapped[:12], key.wrapped[12:], about) == data_key
    assert len(key.wrapped) == 12 + 32 + 16


@pytest.mark.parametrize(
    "change",
    [
        {"topic_id": OTHER},
        {"key_id": b"j" * 16},
        {"wrapped_by": "local:b"},
        {"wrapped": b"short"},
    ],
)
def test_a_wrapped_key_is_of_one_name_topic_and_id(
    key_file: Path, change: dict[str, bytes | str]
) -> None:
    _, key = wrapped(key_file)
    with pytest.raises(KeyRefusedError, match="another key has its name"):
        KeyServices(KeyAccess(key_file)).unwrap(key._replace(**change))  # type: ignore[arg-type]  # any field


def test_the_file_is_read_for_each_use(key_file: Path) -> None:
    services = KeyServices(KeyAccess(key_file))
    data_key, key = wrapped(key_file)
    text = key_file.read_text()
    write_keys(key_file, "b")
    with pytest.raises(KeyRefusedError, match=f"'local:a' is not in {key_file}") as told:
        services.unwrap(key)
    assert "erased" in told.value.remedy
    write_keys(key_file, "a", known=text)
    assert services.unwrap(key) == data_key


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyRefusedError, match="no key file is given"):
        KeyServices(KeyAccess()).create("local:a", USE)
    with pytest.raises(KeyRefusedError, match="cannot be read: No such file"):
        KeyServices(KeyAccess(tmp_path / "none")).create("local:a", USE)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a 1234", "line 1 .* is not a name and a key of 32 bytes"),
        ("# a comment\n\na b " + "ab" * 32, "line 3"),
        (f"a {'ab' * 32}\na {'cd' * 32}", "two keys of name a"),
        (f"a {'ab' * 32}a", "line 1"),
        ("ab" * 32, "line 1"),
    ],
)
def test_a_wrong_file_is_refused_without_quoting_it(
    key_file: Path, text: str, problem: str
) -> None:
    key_file.write_text(text)
    with pytest.raises(KeyRefusedError, match=problem) as told:
        KeyServices(KeyAccess(key_file)).create("local:a", USE)
    assert "ab" * 32 not in str(told.value)


def test_a_file_that_others_may_read_is_refused(key_file: Path) -> None:
    os.chmod(key_file, 0o644)
    with pytest.raises(KeyRefusedError, match="others may use the key file"):
        KeyServices(KeyAccess(key_file)).create("local:a", USE)


def test_an_unknown_place_is_refused() -> None:
    with pytest.raises(KeyRefusedError, match="a place that this version does not know"):
        KeyServices(KeyAccess()).create("vault:a", USE)
