"""Key-encryption keys in AWS KMS.

Each wrapped data key has the topic's id and the key's id as its encryption context, so that a key
policy can grant kms:Decrypt for single topics. Brokers need kms:GenerateDataKey and kms:Decrypt,
readers kms:Decrypt. Source: AWS KMS API Reference (GenerateDataKey, Decrypt).
"""

import re
import threading
from typing import Any

from bucketlog.log_format.encryption_errors import KeyRefusedError, KeyUnavailableError
from bucketlog.log_format.extras import needed
from bucketlog.tiered_storage.encryption.key_service import CreatedKey, KeyAccess, KeyUse

_ARN = re.compile(r"arn:[a-z-]+:kms:([a-z0-9-]+):[0-9]*:(key|alias)/.+")
_REFUSED = {
    "AccessDeniedException": "its policy or an IAM policy denies the use",
    "NotFoundException": "there is no such key",
    "DisabledException": "the key is disabled",
    "KMSInvalidStateException": "the key is about to be deleted, or not ready",
    "InvalidKeyUsageException": "the key is not for encryption",
    "InvalidCiphertextException": "another key or topic made this data key",
    "IncorrectKeyException": "another key made this data key",
    "ValidationException": "KMS does not accept the name of the key",
    "InvalidArnException": "KMS does not accept the name of the key",
    "UnrecognizedClientException": "AWS does not know the credentials",
    "InvalidSignatureException": "AWS does not accept the credentials",
}
"""KMS's answers that asking again will not change. Everything else may pass."""
_REMEDY = (
    "give this process the right kms:Decrypt (brokers also kms:GenerateDataKey) for the key, or "
    "cancel its deletion; once KMS has deleted the key, the records that it protects are erased"
)


class AwsKms:
    """Credentials are those of AWS's usual chain. Threads may share it."""

    def __init__(self, access: KeyAccess) -> None:
        self._access = access
        self._clients: dict[str | None, Any] = {}
        self._lock = threading.Lock()

    def create(self, name: str, use: KeyUse) -> CreatedKey:
        """Create a data key. Raises `KeyRefusedError`, `KeyUnavailableError`."""
        answer = self._call(
            name,
            "generate_data_key",
            KeyId=name,
            KeySpec="AES_256",
            EncryptionContext=_context(use),
        )
        return CreatedKey(answer["Plaintext"], answer["CiphertextBlob"])

    def unwrap(self, name: str, wrapped: bytes, use: KeyUse) -> bytes:
        """Unwrap a data key. Raises `KeyRefusedError`, `KeyUnavailableError`."""
        key = {} if "alias/" in name else {"KeyId": name}  # an alias may name another key by now
        answer = self._call(
            name, "decrypt", CiphertextBlob=wrapped, EncryptionContext=_context(use), **key
        )
        data_key: bytes = answer["Plaintext"]
        return data_key

    def _call(self, name: str, operation: str, **arguments: Any) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

        try:
            return getattr(self._client(name), operation)(**arguments)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            reason = _REFUSED.get(code)
            if reason is None:
                raise _unavailable(name, code or str(error)) from error
            raise KeyRefusedError(
                f"AWS KMS refuses the encryption key 'aws-kms:{name}': {reason} ({code})",
                remedy=_REMEDY,
            ) from error
        except NoCredentialsError as error:
            raise KeyRefusedError(
                f"there are no AWS credentials to use the encryption key 'aws-kms:{name}'",
                remedy=_REMEDY,
            ) from error
        except BotoCoreError as error:
            raise _unavailable(name, str(error)) from error

    def _client(self, name: str) -> Any:
        arn = _ARN.fullmatch(name)
        region = arn[1] if arn is not None else self._access.kms_region
        with self._lock:
            client = self._clients.get(region)
            if client is None:
                client = self._clients[region] = self._made(region)
            return client

    def _made(self, region: str | None) -> Any:
        boto3 = needed("boto3", "replay")
        from botocore.config import Config

        timeout_s = self._access.kms_timeout_ms / 1000
        config = Config(
            connect_timeout=timeout_s,
            read_timeout=timeout_s,
            retries={"mode": "standard", "max_attempts": 2},
        )
        return boto3.session.Session().client(
            "kms",
            region_name=region,
            endpoint_url=self._access.kms_endpoint_url,
            config=config,
        )


def _context(use: KeyUse) -> dict[str, str]:
    return {"bucketlog-topic": use.topic_id.hex(), "bucketlog-key": use.key_id.hex()}


def _unavailable(name: str, reason: str) -> KeyUnavailableError:
    return KeyUnavailableError(
        f"AWS KMS does not serve the encryption key 'aws-kms:{name}': {reason}",
        remedy="check the connection to KMS (region, endpoint, network) and the quotas of KMS",
    )
