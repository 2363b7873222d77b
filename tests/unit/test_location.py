"""From urls to buckets."""

from pathlib import Path
from traceback import format_exception

import pytest
from pydantic import ValidationError

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.tiered_storage.backends.location import (
    Location,
    S3Options,
    open_bucket,
    open_sync_bucket,
    parse_location,
    parse_s3_options,
)


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("s3://flights", Location("s3", "flights", "")),
        ("s3://flights/", Location("s3", "flights", "")),
        ("s3://flights/log/one/", Location("s3", "flights", "log/one")),
        ("S3://flights/log", Location("s3", "flights", "log")),
        ("file:///var/log%20data/", Location("file", "", "/var/log data")),
        ("file://localhost/var", Location("file", "", "/var")),
        ("/var/data", Location("file", "", "/var/data")),
        ("memory://test", Location("memory", "test", "")),
    ],
)
def test_what_urls_mean(url: str, location: Location) -> None:
    assert parse_location(url) == location


def test_a_relative_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_location("data/log") == Location("file", "", f"{tmp_path}/data/log")


@pytest.mark.parametrize(
    "url",
    [
        *("", "\0", "://x", "gs://bucket", "http://127.0.0.1/bucket", "memory://"),
        *("s3://", "s3:///prefix", "s3://b/a//b", "s3://b/../c", "s3://b/p?x=1", "s3://b/ä"),
        *("s3://key:secret@b/p", "file://", "file:///", "file://host/dir", "file:///a?b"),
    ],
)
def test_bad_urls(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_location(url)
    assert caught.value.remedy


async def test_shards_are_apart(tmp_path: Path) -> None:
    for url in (f"file://{tmp_path}/data", "memory://shards-are-apart"):
        one, other = open_sync_bucket(url, shard=0), open_sync_bucket(url, shard=1)
        assert one.create("k", [b"one"])
        assert other.create("k", [b"other"])
        again = await open_bucket(url, shard=1)
        assert (await again.get("k")).data == b"other"
        for bucket in (one, other):
            bucket.close()
        await again.close()
    assert (tmp_path / "data/1/k").read_bytes() == b"other"


def test_no_such_shard() -> None:
    with pytest.raises(ConfigurationError, match="from 0"):
        open_sync_bucket("memory://x", shard=-1)


@pytest.mark.parametrize(
    "given",
    [
        {"endpoint_url": "http://user:hidden@host"},
        {"endpoint_url": "http://user:hid/hidden@host:9000/"},
        {"endpoint_url": "user:hidden@host"},
        {"secret_access_key": "hidden"},
        {"max_connections": "hidden"},
    ],
)
def test_no_error_repeats_a_secret(given: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(given))) as told:
        parse_s3_options(given)
    assert "hidden" not in "".join(format_exception(told.value))
    if "endpoint_url" not in given:
        with pytest.raises(ValidationError) as raw:
            S3Options.model_validate(given)
        assert "hidden" not in str(raw.value)
    else:
        monkeypatch.setenv("AWS_ENDPOINT_URL", given["endpoint_url"])
        with pytest.raises(ConfigurationError, match="has a user"):
            S3Options()


def test_s3_options_honour_the_standard_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    assert S3Options().endpoint_url is None
    assert not S3Options().uses_path_style
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://any")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("MAX_CONNECTIONS", "1")
    options = S3Options()
    assert (options.endpoint_url, options.region) == ("http://any", "eu-central-1")
    assert options.uses_path_style
    assert options.max_connections > 1, "other programs' variables mean nothing here"
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://s3")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("BUCKETLOG_S3_MAX_CONNECTIONS", "7")
    options = S3Options(path_style=False)
    assert (options.endpoint_url, options.region) == ("http://s3", "eu-west-1")
    assert options.max_connections == 7
    assert not options.uses_path_style
    assert S3Options(endpoint_url="http://given", region="x").endpoint_url == "http://given"
