"""The limits of a mirror."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSettings:
    """The limits of a mirror.

    Attributes:
        workers: Number of threads. Each has its own partitions and connections.
        fetch_bytes: Most bytes of a Fetch response.
        partition_bytes: Most bytes of a partition in a Fetch response. A larger batch comes alone
            (KIP-74).
        fetch_wait_ms: Milliseconds that brokers of the source wait for new records. A worker that
            fetches from several brokers divides this time among them.
        timeout_s: Seconds that the mirror waits for a response.
        write_timeout_ms: Milliseconds that a broker of the target may take for a batch.
        retry_pause_s: Seconds before a retry.
        sync_s: Seconds between two copies of topics, configs, ACLs and groups' offsets.
    """

    workers: int = 4
    fetch_bytes: int = 16 << 20
    partition_bytes: int = 4 << 20
    fetch_wait_ms: int = 250
    timeout_s: float = 60.0
    write_timeout_ms: int = 30_000
    retry_pause_s: float = 0.5
    sync_s: float = 10.0
