"""The data keys of encrypted topics, put together from the settings and the log."""

import secrets
from collections.abc import Callable

from bucketlog.log_format.model import WallClock
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.encryption.topic_keys import (
    DataKeyCommitter,
    EncryptionCounts,
    EncryptionRules,
    TopicKeys,
)
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.tiered_storage.encryption.key_service import KeyAccess, KeyServices


def topic_keys(
    settings: BrokerSettings,
    view: View,
    committer: DataKeyCommitter,
    counts: EncryptionCounts,
    *,
    now_ms: WallClock,
    now_s: Callable[[], float],
) -> TopicKeys:
    """Make the keys of topics. They are read when a topic needs one."""
    access = KeyAccess(
        settings.encryption_key_file,
        settings.encryption_kms_region,
        settings.encryption_kms_endpoint_url,
        settings.encryption_kms_timeout_ms,
    )
    return TopicKeys(
        view=view,
        committer=committer,
        source=KeyServices(access, token_bytes=secrets.token_bytes),
        rules=EncryptionRules(
            data_key_ms=settings.encryption_data_key_ms,
            kept_ms=settings.encryption_data_key_kept_ms,
            refused_ms=settings.encryption_refused_ms,
            wait_ms_max=settings.encryption_wait_ms_max,
            threads=settings.encryption_threads,
        ),
        now_ms=now_ms,
        now_s=now_s,
        token_bytes=secrets.token_bytes,
        counts=counts,
    )
