"""The limits of a mirror."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSettings:
    """`workers`: threads, each with its partitions and connections. `fetch_bytes` bounds the answer
    of a source broker, `partition_bytes` a partition's part of it (one larger batch is answered
    alone, KIP-74). `timeout_s` bounds each wait for an answer, `write_timeout_ms` is how long a
    broker of the target may take for a batch. `sync_s`: pause between two looks at topics, configs,
    ACLs and groups."""

    workers: int = 4
    fetch_bytes: int = 16 << 20
    partition_bytes: int = 4 << 20
    fetch_wait_ms: int = 250
    timeout_s: float = 60.0
    write_timeout_ms: int = 30_000
    retry_pause_s: float = 0.5
    sync_s: float = 10.0
