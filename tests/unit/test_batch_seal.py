"""Sealed batches: opened by the description of their format, and refused after any change."""

import os
import random

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from bucketlog.log_format.batch import (
    CRC_START,
    HEADER_LENGTH,
    SEALED,
    Codec,
    InvalidBatchError,
    check_produced,
    crc_holds,
    read_header,
    stamp_base_offset,
)
from bucketlog.log_format.encryption_errors import (
    BrokenSealError,
    KeyRefusedError,
    SealedRecordsError,
)
from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.log_format.records import decode_records
from bucketlog.log_format.rewriting import empty_batch, with_payload
from bucketlog.log_format.wrapped_key import WrappedKey
from bucketlog.tiered_storage.encryption.batch_seal import SEAL_BYTES, BatchSeal, sealed_by
from bucketlog.tiered_storage.encryption.opened_keys import OpenedKeys, TopicSeals
from tests.rigs.wire_client import build_batch

TOPIC, OTHER = TopicId(b"t" * 16), TopicId(b"o" * 16)
HERE = TopicIdPartition(TOPIC, 3)
KEY_ID, DATA_KEY = b"k" * 16, bytes(range(32))


def seal(key_id: bytes = KEY_ID, data_key: bytes = DATA_KEY) -> BatchSeal:
    return BatchSeal(key_id, data_key, token_bytes=os.urandom)


def sealed(codec: Codec = Codec.NONE) -> tuple[bytes, bytearray]:
    """A batch, and the same batch sealed."""
    plain = build_batch([(b"key", b"value %d" % number) for number in range(50)], codec=codec)
    return plain, seal().seal(HERE, plain, read_header(plain))


@pytest.mark.parametrize("codec", Codec)
def test_what_was_sealed_opens(codec: Codec) -> None:
    plain, stored = sealed(codec)
    header = read_header(stored)
    assert header.is_sealed
    assert crc_holds(stored, header)
    assert len(stored) == len(plain) + SEAL_BYTES == header.size_bytes
    assert sealed_by(stored, header) == KEY_ID
    opened = seal().open(HERE, stored, header)
    assert opened.joined() == plain
    assert opened.header._replace(crc=0) == read_header(plain)._replace(crc=0)
    assert plain[HEADER_LENGTH:] not in bytes(stored)


def test_the_bytes_are_those_of_the_format() -> None:
    """docs/format/segment.md#encrypted-batches"""
    plain, stored = sealed()
    at = HEADER_LENGTH
    version, key_id, nonce = stored[at], stored[at + 1 : at + 17], stored[at + 17 : at + 29]
    assert (version, bytes(key_id)) == (1, KEY_ID)
    covered = bytes(stored[CRC_START:HEADER_LENGTH])
    about = b"bucketlog batch 1" + TOPIC + (3).to_bytes(4, "big") + KEY_ID + covered
    opened = AESGCM(DATA_KEY).decrypt(bytes(nonce), bytes(stored[at + 29 :]), about)
    assert opened == plain[HEADER_LENGTH:]


def test_the_base_offset_is_given_after_the_seal() -> None:
    plain, stored = sealed()
    stamp_base_offset(memoryview(stored), 1234)
    opened = seal().open(HERE, stored, read_header(stored))
    assert opened.header.base_offset == 1234
    assert opened.joined()[CRC_START:] == plain[CRC_START:]


def resealed_crc(stored: bytearray) -> bytearray:
    """With a CRC that holds: whoever changes a batch on purpose computes it anew."""
    header = read_header(stored)
    return with_payload(header, stored[HEADER_LENGTH:])


@pytest.mark.parametrize("seed", range(40))
def test_a_flipped_bit_breaks_the_seal(seed: int) -> None:
    _, stored = sealed()
    choice = random.Random(seed)
    at = choice.choice(
        [choice.randrange(CRC_START, HEADER_LENGTH), choice.randrange(HEADER_LENGTH, len(stored))]
    )
    if at == HEADER_LENGTH or at in range(HEADER_LENGTH + 1, HEADER_LENGTH + 17):
        at += 30  # the version and the key id are looked at before the seal
    stored[at] ^= 1 << choice.randrange(8)
    changed = resealed_crc(stored)
    with pytest.raises(BrokenSealError, match="was changed"):
        seal().open(HERE, changed, read_header(changed))


@pytest.mark.parametrize("where", [TopicIdPartition(OTHER, 3), TopicIdPartition(TOPIC, 4)])
def test_a_moved_batch_does_not_open(where: TopicIdPartition) -> None:
    _, stored = sealed()
    with pytest.raises(BrokenSealError, match="moved there"):
        seal().open(where, stored, read_header(stored))


def test_a_batch_under_another_key_id_does_not_open() -> None:
    _, stored = sealed()
    with pytest.raises(BrokenSealError):
        seal(key_id=b"j" * 16).open(HERE, stored, read_header(stored))
    with pytest.raises(BrokenSealError):
        seal(data_key=bytes(32)).open(HERE, stored, read_header(stored))


def test_a_short_or_newer_seal_is_refused() -> None:
    plain, stored = sealed()
    marked = read_header(plain)._replace(attributes=SEALED)
    short = with_payload(marked, bytes(SEAL_BYTES - 1))
    with pytest.raises(BrokenSealError, match="cut short"):
        sealed_by(short, read_header(short))
    stored[HEADER_LENGTH] = 2
    with pytest.raises(BrokenSealError, match="version 2"):
        sealed_by(stored, read_header(stored))


def test_nobody_takes_a_sealed_batch_for_records() -> None:
    _, stored = sealed()
    with pytest.raises(SealedRecordsError, match="are encrypted"):
        decode_records(stored, read_header(stored))
    with pytest.raises(InvalidBatchError, match="attribute bit 14"):
        check_produced(read_header(stored), max_records=100)
    assert not read_header(empty_batch(read_header(stored))).is_sealed


class Service:
    """Counts the calls. `error` is raised, if there is one."""

    def __init__(self) -> None:
        self.calls = 0
        self.error: KeyRefusedError | None = None

    def unwrap(self, key: WrappedKey) -> bytes:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return DATA_KEY


def test_a_key_is_unwrapped_once_and_forgotten_after_a_while() -> None:
    service, now = Service(), [0.0]
    opened = OpenedKeys(service.unwrap, now_s=lambda: now[0], kept_s=10, refused_s=2)
    key = WrappedKey(TOPIC, KEY_ID, "local:a", b"w", 0)
    assert opened.cached(key) is None
    assert opened.seal_of(key) is opened.seal_of(key)
    assert service.calls == 1
    now[0] = 10.0
    service.error = KeyRefusedError("the key is gone", remedy="none")
    for _ in range(2):
        with pytest.raises(KeyRefusedError, match="gone"):
            opened.seal_of(key)
        with pytest.raises(KeyRefusedError, match="gone"):
            opened.cached(key)
    assert service.calls == 2
    now[0], service.error = 12.0, None
    assert opened.seal_of(key).key_id == KEY_ID


def test_a_topic_opens_only_by_its_keys() -> None:
    service = Service()
    opened = OpenedKeys(service.unwrap, now_s=lambda: 0.0)
    key = WrappedKey(TOPIC, KEY_ID, "local:a", b"w", 0)
    plain, stored = sealed()
    header = read_header(stored)
    assert TopicSeals(opened, "orders", {KEY_ID: key}).open(HERE, stored, header).joined() == plain
    with pytest.raises(BrokenSealError, match="which the topic does not have"):
        TopicSeals(opened, "orders", {}).open(HERE, stored, header)
    service.error = KeyRefusedError("the encryption key 'local:a' is not here", remedy="add it")
    fresh = OpenedKeys(service.unwrap, now_s=lambda: 0.0)
    with pytest.raises(KeyRefusedError, match=r"topic 'orders' cannot .* 'local:a' .*\(add it\)"):
        TopicSeals(fresh, "orders", {KEY_ID: key}).open(HERE, stored, header)
