"""Data keys in AWS KMS, on moto's server: created, opened, refused and erased."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from kio.schema.errors import ErrorCode

from bucketlog.log_format.encryption_errors import KeyRefusedError, KeyUnavailableError
from bucketlog.log_format.model import TopicId
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.log_format.wrapped_key import WrappedKey
from bucketlog.tiered_storage.encryption.aws_kms import AwsKms
from bucketlog.tiered_storage.encryption.key_service import KeyAccess, KeyServices, KeyUse
from localstack.servers import free_port

TOPIC, OTHER = TopicId(b"t" * 16), TopicId(b"o" * 16)
USE = KeyUse(TOPIC, b"k" * 16)
REGION = "eu-central-1"


@pytest.fixture
def kms(moto: str) -> Any:
    return boto3.client("kms", region_name=REGION, endpoint_url=moto)


@pytest.fixture
def services(moto: str) -> KeyServices:
    return KeyServices(KeyAccess(kms_region=REGION, kms_endpoint_url=moto))


def wrapped(services: KeyServices, name: str) -> tuple[bytes, WrappedKey]:
    made = services.create(f"aws-kms:{name}", USE)
    return made.data_key, WrappedKey(TOPIC, USE.key_id, f"aws-kms:{name}", made.wrapped, 0)


def names_of(kms: Any) -> Iterator[str]:
    """The names by which one key is used."""
    made = kms.create_key()["KeyMetadata"]
    kms.create_alias(AliasName=f"alias/t{made['KeyId']}", TargetKeyId=made["KeyId"])
    yield made["KeyId"]
    yield made["Arn"]
    yield f"alias/t{made['KeyId']}"


def test_a_data_key_opens_by_every_name(kms: Any, services: KeyServices) -> None:
    for name in names_of(kms):
        data_key, key = wrapped(services, name)
        assert len(data_key) == 32
        assert data_key not in key.wrapped
        assert services.unwrap(key) == data_key


def test_a_data_key_is_of_one_topic(kms: Any, services: KeyServices) -> None:
    _, key = wrapped(services, kms.create_key()["KeyMetadata"]["KeyId"])
    with pytest.raises(KeyRefusedError, match="another key or topic made this data key"):
        services.unwrap(key._replace(topic_id=OTHER))
    with pytest.raises(KeyRefusedError, match="another key or topic"):
        services.unwrap(key._replace(key_id=b"j" * 16))


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("DisabledException", "the key is disabled"),
        ("KMSInvalidStateException", "the key is about to be deleted"),
        ("AccessDeniedException", "its policy or an IAM policy denies the use"),
        ("NotFoundException", "there is no such key"),
        ("ThrottlingException", None),
        ("KMSInternalException", None),
        ("KeyUnavailableException", None),
    ],
)
def test_answers_of_kms(
    services: KeyServices, monkeypatch: pytest.MonkeyPatch, code: str, reason: str | None
) -> None:
    """moto knows neither disabled keys nor policies: these answers are AWS's documented ones."""

    class Client:
        def decrypt(self, **_: Any) -> None:
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, "Decrypt")

    monkeypatch.setattr(AwsKms, "_client", lambda _self, _name: Client())
    key = WrappedKey(TOPIC, USE.key_id, "aws-kms:alias/a", b"w", 0)
    if reason is None:
        with pytest.raises(KeyUnavailableError, match=code):
            services.unwrap(key)
        return
    with pytest.raises(KeyRefusedError, match=rf"'aws-kms:alias/a': {reason}") as told:
        services.unwrap(key)
    assert "kms:Decrypt" in told.value.remedy


def test_an_unknown_key_is_refused(services: KeyServices) -> None:
    with pytest.raises(KeyRefusedError, match="there is no such key"):
        services.create("aws-kms:alias/none", USE)


def test_a_silent_service_is_not_a_refusal() -> None:
    nowhere = KeyAccess(None, REGION, f"http://127.0.0.1:{free_port()}", 500)
    with pytest.raises(KeyUnavailableError, match="does not serve the encryption key") as told:
        KeyServices(nowhere).create("aws-kms:alias/a", USE)
    assert told.value.retriable


def test_without_credentials_the_error_says_so(
    moto: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    services = KeyServices(KeyAccess(kms_region=REGION, kms_endpoint_url=moto))
    with pytest.raises(KeyRefusedError, match="no AWS credentials"):
        services.create("aws-kms:alias/a", USE)


def test_codes_for_clients() -> None:
    refused, silent = KeyRefusedError("x"), KeyUnavailableError("x")
    for family in (ApiFamily.PRODUCE, ApiFamily.READ):
        assert kafka_code(refused, family) is ErrorCode.topic_authorization_failed
        assert kafka_code(silent, family) is ErrorCode.kafka_storage_error
