"""Signatures of checkpoints, floors and manifests: sound ones, wrong ones, and the key file."""

import asyncio
import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from bucketlog.log_format.errors import (
    BucketUnavailableError,
    ConfigurationError,
    CorruptObjectError,
    InvalidDataError,
)
from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.bucket import Span, Suffix
from bucketlog.tiered_storage.retry_steps import bucket_backoff
from bucketlog.tiered_storage.retry_sync import RetrySyncBucket
from bucketlog.tiered_storage.segment import body_crc32c
from bucketlog.tiered_storage.signed_bucket import (
    INLINE_BYTES_MAX,
    SignedBucket,
    SignedSyncBucket,
)
from bucketlog.tiered_storage.state_signature import (
    NO_KEYS,
    TRAILER_BYTES,
    StateKeys,
    read_state_keys,
)

ONE, OTHER = bytes(range(32)), bytes(range(32, 64))
KEYS = StateKeys((ONE,))
FLOOR = "floors/00000000000000000001-00000000000000000002"
PARTS: list[Buffer] = [b"some ", memoryview(b"state")]
WHOLE = b"some state"


def signed(state_keys: StateKeys = KEYS, key: str = FLOOR) -> bytes:
    return WHOLE + state_keys.trailer(key, PARTS)


def test_signed_objects_are_opened() -> None:
    stored = signed()
    assert len(stored) == len(WHOLE) + TRAILER_BYTES
    assert KEYS.open(FLOOR, stored) == (WHOLE, True)
    assert NO_KEYS.open(FLOOR, stored) == (WHOLE, False)
    assert NO_KEYS.open(FLOOR, WHOLE) == (WHOLE, False)
    assert NO_KEYS.trailer(FLOOR, PARTS) == b""


def test_the_bytes_are_those_of_the_format() -> None:
    assert signed()[len(WHOLE) :].hex() == (
        "626b746c6f677367000100000cab1c840437bd3f"
        "95aa41f8d048b2e9da9b6d536b951dc00dd8e3c9c7a47e58590b799755cc26b4"
    )


def test_every_byte_and_the_name_count() -> None:
    stored = signed()
    for at in range(len(stored)):
        changed = bytearray(stored)
        changed[at] ^= 1
        with pytest.raises((CorruptObjectError, InvalidDataError)):
            KEYS.open(FLOOR, bytes(changed))
    for other in (f"{FLOOR[:-1]}3", FLOOR.replace("floors", "checkpoints"), FLOOR[:-1]):
        with pytest.raises(CorruptObjectError, match="does not match its bytes and its name"):
            KEYS.open(other, stored)
    for end in range(len(stored)):
        with pytest.raises((CorruptObjectError, InvalidDataError)):
            KEYS.open(FLOOR, stored[:end])


def test_unsigned_objects_are_accepted_only_with_the_setting() -> None:
    lenient = StateKeys((ONE,), unsigned_accepted=True)
    with pytest.raises(CorruptObjectError, match=r"no signature .*UNSIGNED_ACCEPTED"):
        KEYS.open(FLOOR, WHOLE)
    assert lenient.open(FLOOR, WHOLE) == (WHOLE, False)
    foreign = signed(StateKeys((OTHER,)))
    with pytest.raises(CorruptObjectError, match="unknown key"):
        KEYS.open(FLOOR, foreign)
    assert lenient.open(FLOOR, foreign) == (WHOLE, False)
    with pytest.raises(CorruptObjectError, match="does not match"):
        lenient.open(f"{FLOOR[:-1]}3", signed())


def test_keys_are_rotated() -> None:
    both, after = StateKeys((OTHER, ONE)), StateKeys((OTHER,))
    assert both.open(FLOOR, signed()).is_signed
    assert after.open(FLOOR, signed(both)).is_signed
    with pytest.raises(CorruptObjectError, match=r"unknown key .*BUCKETLOG_STATE_KEY_FILE"):
        after.open(FLOOR, signed())


def test_another_version_is_refused() -> None:
    stored = bytearray(signed())
    stored[len(WHOLE) + 9] = 2
    for state_keys in (KEYS, NO_KEYS):
        with pytest.raises(InvalidDataError, match="signature of version 2"):
            state_keys.open(FLOOR, bytes(stored))


@pytest.mark.parametrize("length", [len(WHOLE), INLINE_BYTES_MAX + 1])
def test_a_bucket_signs_and_checks(length: int) -> None:
    """Also asynchronously, with the checksum that the store verifies."""
    memory, parts = MemoryBucket(), [WHOLE[:5], WHOLE[5:] + bytes(length - len(WHOLE))]
    whole = b"".join(parts)

    async def run() -> None:
        bucket = SignedBucket(ThreadedBucket(memory), KEYS)
        for key in (FLOOR, "log/w/0"):
            assert await bucket.create(key, parts, crc32c=body_crc32c(parts))
            body = await bucket.get(key)
            assert (bytes(body.data), body.start, body.object_size_bytes) == (whole, 0, length)
            info = await bucket.head(key)
            assert info is not None
            assert info.size_bytes == length
            for limit in (length, length + 1, length + TRAILER_BYTES + 1):
                body = await bucket.get(key, Span(0, limit))
                assert (bytes(body.data), body.object_size_bytes) == (whole, length)
        assert await bucket.head("floors/x") is None
        memory.create("checkpoints/x", parts)
        with pytest.raises(CorruptObjectError):
            await bucket.get("checkpoints/x")

    asyncio.run(run())
    assert {info.key: info.size_bytes - length for info in memory.list("")} == {
        FLOOR: TRAILER_BYTES,
        "log/w/0": 0,
        "checkpoints/x": 0,
    }
    reader = SignedSyncBucket(memory)
    assert bytes(reader.get(FLOOR).data) == whole
    info = reader.head(FLOOR)
    assert info is not None
    assert info.size_bytes == length


async def test_no_part_is_returned_unchecked() -> None:
    memory = MemoryBucket()
    memory.create(FLOOR, [signed(), b"appended"])
    memory.create("floors/unsigned", [WHOLE])
    bucket = SignedBucket(ThreadedBucket(memory), KEYS)
    for key in (FLOOR, "floors/unsigned"):
        for limit in (1, len(WHOLE), len(WHOLE) + 8, len(WHOLE) + 100):
            with pytest.raises(CorruptObjectError):
                await bucket.get(key, Span(0, limit))
    for part in (Span(1, 2), Suffix(3)):
        with pytest.raises(ValueError, match="from byte 0"):
            await bucket.get(FLOOR, part)
    accepting = SignedBucket(ThreadedBucket(memory), replace(KEYS, unsigned_accepted=True))
    for limit in (1, len(WHOLE), len(WHOLE) + 1):
        body = await accepting.get("floors/unsigned", Span(0, limit))
        assert (bytes(body.data), body.object_size_bytes) == (WHOLE[:limit], len(WHOLE))


def test_a_lost_answer_is_settled_by_what_is_stored() -> None:
    class Deaf(MemoryBucket):
        """The answer of the first create is lost."""

        is_lost = False

        def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
            is_created = super().create(key, parts, crc32c=crc32c)
            if not self.is_lost:
                self.is_lost = True
                raise BucketUnavailableError("lost")
            return is_created

    bucket = RetrySyncBucket(
        SignedSyncBucket(Deaf(), KEYS),
        bucket_backoff(1_000),
        random=Random(1),
        sleep=lambda pause_s: None,
    )
    assert bucket.create(FLOOR, PARTS, crc32c=body_crc32c(PARTS))


def test_an_accepted_object_is_named(caplog: pytest.LogCaptureFixture) -> None:
    memory = MemoryBucket()
    memory.create(FLOOR, PARTS)
    bucket = SignedSyncBucket(memory, StateKeys((ONE,), unsigned_accepted=True))
    with caplog.at_level(logging.INFO):
        assert bytes(bucket.get(FLOOR).data) == WHOLE
    assert caplog.messages == [f"{FLOOR} has no signature that can be checked, and is accepted"]


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "keys"
    path.write_text(f"# since autumn\n{OTHER.hex()}\n\n  {ONE.hex().upper()}\n")
    path.chmod(0o600)
    return path


def test_a_key_file(key_file: Path) -> None:
    found = read_state_keys(key_file)
    assert found == StateKeys((OTHER, ONE))
    assert OTHER.hex() not in repr(found)
    assert str(OTHER) not in repr(found)


@pytest.mark.parametrize("mode", [0o644, 0o602, 0o601, 0o666, 0o620])
def test_a_key_file_that_others_may_use(key_file: Path, mode: int) -> None:
    key_file.chmod(mode)
    with pytest.raises(ConfigurationError, match=r"others may use .*chmod 600"):
        read_state_keys(key_file)


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_key_file_of_its_owner(key_file: Path, mode: int) -> None:
    key_file.chmod(mode)
    assert len(read_state_keys(key_file).secrets) == 2


def test_a_group_may_read_a_key_file_of_root(
    key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an orchestrator mounts the file."""
    key_file.chmod(0o440)
    fstat = os.fstat
    for owner in (0, 1000):
        values = list(fstat(os.open(key_file, os.O_RDONLY))[:10])
        values[4] = owner
        with monkeypatch.context() as patch:
            patch.setattr(os, "fstat", lambda fd, values=values: os.stat_result(values))
            if owner:
                with pytest.raises(ConfigurationError, match="others may use"):
                    read_state_keys(key_file)
            else:
                assert len(read_state_keys(key_file).secrets) == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "has 0 keys"),
        ("# only a comment\n", "has 0 keys"),
        ("00" * 31, "line 1 .* 32 bytes"),
        (f"{'00' * 32}\nsecret-word", "line 2 .* hexadecimal"),
        (f"{'00' * 32}\n" * 17, "has 17 keys; 1 to 16"),
        ("0" * 70_000, "too large"),
    ],
)
def test_a_key_file_without_valid_keys(key_file: Path, text: str, complaint: str) -> None:
    key_file.write_text(text)
    with pytest.raises(ConfigurationError, match=complaint) as caught:
        read_state_keys(key_file)
    assert "secret-word" not in str(caught.value)
    assert "openssl rand -hex 32" in str(caught.value)


def test_a_missing_key_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        read_state_keys(tmp_path / "none")
