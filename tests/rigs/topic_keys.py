"""The data keys of a log without a broker."""

import os
import time
from typing import Any, cast

from bucketlog.metadata.view import View
from bucketlog.stateless_broker.encryption.topic_keys import (
    DataKeyCommitter,
    EncryptionCounts,
    EncryptionRules,
    KeySource,
    TopicKeys,
)
from bucketlog.tiered_storage.encryption.key_service import KeyAccess, KeyServices

RULES = EncryptionRules(
    data_key_ms=86_400_000, kept_ms=300_000, refused_ms=5_000, wait_ms_max=60_000, threads=1
)


def topic_keys(
    view: View,
    *,
    source: KeySource | None = None,
    committer: DataKeyCommitter | None = None,
    rules: EncryptionRules = RULES,
) -> TopicKeys:
    """Without `source` and `committer`: of a log that no one encrypts."""
    nothing = cast(Any, None)
    return TopicKeys(
        view=view,
        committer=committer or nothing,
        source=source or KeyServices(KeyAccess()),
        rules=rules,
        now_ms=lambda: 0,
        now_s=time.monotonic,
        token_bytes=os.urandom,
        counts=EncryptionCounts(),
    )
