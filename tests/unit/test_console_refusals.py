"""Whom the console refuses: other host names than its own, and readers without the key."""

import os
from pathlib import Path
from uuid import UUID

import pytest

from bucketlog.console.application import application
from bucketlog.console.pages import Console
from bucketlog.console.settings import ConsoleSettings
from bucketlog.log_format.batch import read_header
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.local_server import host_names
from bucketlog.log_format.model import TopicId
from bucketlog.log_format.records import DecodedRecord, encode_batch
from bucketlog.metadata.encryption_facts import DataKeyCreated
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.encryption.batch_seal import BatchSeal
from bucketlog.tiered_storage.encryption.key_service import KeyAccess, KeyServices, KeyUse
from tests.rigs.encryption import write_keys
from tests.rigs.written_log import START_MS, WrittenLog
from tests.unit.test_console_times import answer
from tests.unit.test_verify import IDENTITY

KEY_ID = b"k" * 16


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return write_keys(tmp_path / "keys", "a")


@pytest.fixture
def bucket(key_file: Path) -> MemoryBucket:
    """A topic with one encrypted record."""
    store = MemoryBucket()
    assert store.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    log = WrittenLog(store)
    log.create_topic("secret")
    topic_id = TopicId(log.topics["secret"][0])
    made = KeyServices(KeyAccess(key_file)).create("local:a", KeyUse(topic_id, KEY_ID))
    log.fact(
        DataKeyCreated(
            topic_id=UUID(bytes=topic_id),
            key_id=KEY_ID,
            wrapped_by="local:a",
            wrapped=made.wrapped,
            at_ms=START_MS,
        )
    )
    log.flush()
    key = log.partition("secret", 0)
    plain = encode_batch([DecodedRecord(0, START_MS, b"name", b"hidden value", ())])
    seal = BatchSeal(KEY_ID, made.data_key, token_bytes=os.urandom)
    log.append_batch(key, bytes(seal.seal(key, plain, read_header(plain))))
    log.next_offset[key] = 1
    log.flush()
    return store


def console_of(bucket: MemoryBucket, access: KeyAccess) -> Console:
    return Console(
        bucket, "memory://b", ConsoleSettings(), access, 1, lambda: START_MS, lambda: 0.0
    )


@pytest.mark.parametrize(
    "page",
    [
        "/messages?topic=secret",
        "/record?topic=secret&offset=0",
        "/messages/export?topic=secret",
    ],
)
async def test_without_the_key_the_page_says_how_to_give_it(
    bucket: MemoryBucket, key_file: Path, page: str
) -> None:
    app = application(console_of(bucket, KeyAccess()), hosts=["localhost"])
    status, _, body = await answer(app, page)
    assert status == 403
    assert "no key file is given" in body
    assert "BUCKETLOG_ENCRYPTION_KEY_FILE" in body
    with_key = application(console_of(bucket, KeyAccess(key_file)), hosts=["localhost"])
    status, _, body = await answer(with_key, page)
    assert (status, "hidden value" in body) == (200, True)


async def test_allowed_hosts_are_served(bucket: MemoryBucket) -> None:
    names = host_names("0.0.0.0", ["logs.example", "*.pages.example", "2001:DB8::1"])
    app = application(console_of(bucket, KeyAccess()), hosts=names)
    expected = {
        "localhost:9644": 200,
        "127.0.0.1:9644": 200,
        "[::1]:9644": 200,
        "logs.example": 200,
        "LOGS.example:9644": 200,
        "a.pages.example": 200,
        "[2001:db8::1]:9644": 200,
        "pages.example": 400,
        "evil.example": 400,
        "logs.example.evil.example": 400,
    }
    found = {host: (await answer(app, "/topics", host=host))[0] for host in expected}
    assert found == expected


@pytest.mark.parametrize(
    "name", ["", "http://logs.example", "logs.example:9644", "a*.example", "a b", "logs.example/x"]
)
def test_a_host_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a host name") as caught:
        host_names("127.0.0.1", [name])
    assert "--allowed-host" in caught.value.remedy
