"""One broker with many tenants that do nothing: its memory, its calls to Redis, its requests to the
bucket."""

import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from redis import Redis as SyncRedis

from tests.rigs.patience import let_pass
from tests.rigs.users import write_key_file
from tests.servers.broker_process import BrokerProcess
from tests.servers.lone_broker import lone_broker
from tests.servers.own_valkey import SOCKET

MIB = 1 << 20
SETTLED_S = 3.0
OF_SCRIPTS = frozenset({"exists", "hdel", "hgetall", "hlen", "hmget", "hset", "info", "zrange"})
"""Commands that idle brokers run inside scripts only."""


@dataclass(frozen=True, slots=True)
class IdleFigures:
    """Per second, except for memory and numbers."""

    tenants: int
    start_s: float
    memory_mib: float
    redis_memory_mib: float
    redis_connections: int
    redis_calls_per_s: float
    bucket_requests_per_s: float
    broker_cpu_percent: float


@dataclass(frozen=True, slots=True)
class _Counts:
    at_s: float
    redis_calls: float
    bucket_requests: float
    cpu_s: float


def idle_tenants(count: int, seconds: float) -> IdleFigures:
    """`count` 0: a broker without tenants, to compare with."""
    with TemporaryDirectory(prefix="bucketlog-tenants-") as there:
        folder = Path(there)
        settings = {"credentials_key_file": str(write_key_file(folder / "keys"))}
        if count:
            file = folder / "tenants.toml"
            file.write_text("".join(f"[tenant-{number}]\n" for number in range(count)))
            settings |= {
                "tenants_file": str(file),
                "listeners": "IN:SASL_PLAINTEXT://127.0.0.1:0",
                "start_timeout_ms": "300000",
            }
        began_s = time.perf_counter()
        with (
            lone_broker(folder, **settings) as broker,
            SyncRedis(unix_socket_path=str(folder / SOCKET)) as redis,
        ):
            start_s = time.perf_counter() - began_s
            let_pass(SETTLED_S)
            first = _counts(broker, redis)
            let_pass(seconds)
            last = _counts(broker, redis)
            took_s = last.at_s - first.at_s
            process = psutil.Process(broker.process.pid)
            return IdleFigures(
                tenants=count,
                start_s=round(start_s, 1),
                memory_mib=round(process.memory_info().rss / MIB, 1),
                redis_memory_mib=round(float(_info(redis, "memory", "used_memory")) / MIB, 1),
                redis_connections=int(_info(redis, "clients", "connected_clients")) - 1,
                redis_calls_per_s=round((last.redis_calls - first.redis_calls) / took_s, 1),
                bucket_requests_per_s=round(
                    (last.bucket_requests - first.bucket_requests) / took_s, 2
                ),
                broker_cpu_percent=round(100 * (last.cpu_s - first.cpu_s) / took_s, 1),
            )


def _info(redis: "SyncRedis", section: str, name: str) -> str:
    found: dict[str, str] = dict(redis.info(section))
    return found[name]


def _counts(broker: BrokerProcess, redis: "SyncRedis") -> _Counts:
    metrics, times = broker.metrics(), psutil.Process(broker.process.pid).cpu_times()
    stats: dict[str, dict[str, float]] = dict(redis.info("commandstats"))
    calls = {name.removeprefix("cmdstat_"): row["calls"] for name, row in stats.items()}
    return _Counts(
        at_s=time.perf_counter(),
        redis_calls=sum(
            number for name, number in calls.items() if name.split("|")[0] not in OF_SCRIPTS
        ),
        bucket_requests=sum(
            value
            for name, value in metrics.items()
            if name.startswith("bucketlog_bucket_requests_total")
        ),
        cpu_s=times.user + times.system,
    )
