"""The errors of encrypted topics. Each names the key and the remedy.

They distinguish three cases, in which clients must act differently: without the right to a key, a
retry is useless; a key service that does not answer may answer later; and a batch that was changed
or moved can never be decrypted.
"""

from bucketlog.log_format.errors import BucketlogError, InvalidDataError


class KeyRefusedError(InvalidDataError):
    """The key-encryption key is unknown here, deleted or disabled, or its service denies its use:
    records that it protects cannot be read or written here."""

    code = "ENCRYPTION_KEY_REFUSED"


class KeyUnavailableError(BucketlogError):
    """The key service does not answer."""

    code = "ENCRYPTION_KEY_UNAVAILABLE"
    retriable = True


class BrokenSealError(InvalidDataError):
    """A batch was changed, or moved to another topic or partition, after its encryption."""

    code = "BROKEN_SEAL"


class SealedRecordsError(InvalidDataError):
    """The records are encrypted, and whoever decodes them has not decrypted them."""

    code = "SEALED_RECORDS"
