"""Serves the console on a socket of this machine, until a signal: of TCP, or in a folder."""

import gc
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from bucketlog.console.application import application
from bucketlog.console.broker_access import BrokerAccess
from bucketlog.console.broker_metrics import BrokerMetrics
from bucketlog.console.lag_sampler import LagSampler
from bucketlog.console.limited_connection import limited_connection
from bucketlog.console.log_checks import LogChecks
from bucketlog.console.pages import Console
from bucketlog.console.registry_processes import registry_values
from bucketlog.console.replay_runs import ReplayLimits, ReplayRuns
from bucketlog.console.settings import ConsoleSettings
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.local_server import (
    LOCAL_NAMES,
    QUIET_SERVER,
    host_names,
    in_address,
    listening_socket,
)
from bucketlog.schema_registry.registry_access import RegistryAccess
from bucketlog.tiered_storage.backends.location import open_patient_bucket
from bucketlog.tiered_storage.encryption.key_service import KeyAccess

CONNECTIONS_MAX = 100
SWITCH_INTERVAL_S = 0.0005
"""The time that a thread waits for the interpreter lock while another thread reads the log.
Python's default of 5 ms delays a page at each system call."""
GRACE_S = 2
GC_THRESHOLDS = (10_000, 10, 1_000)
"""Thresholds of the collector of cyclic garbage. A collection of the oldest generation stops all
threads: for 0.6 s with a log of 100,000 segments, and 14 times during its first reading with
Python's defaults. Views have no cycles."""


def serve_console(
    place: str,
    *,
    host: str,
    port: int,
    allowed_hosts: Sequence[str],
    access: KeyAccess,
    safety_age_ms: int,
    on_ready: Callable[[str], None],
    schema_registry: RegistryAccess | None = None,
    cluster: BrokerAccess | None = None,
    replay_folder: Path | None = None,
    metrics: Sequence[str] = (),
) -> None:
    """Serve pages about the bucket `place` until SIGINT or SIGTERM. Browsers may call by the local
    names, by `host`, and by `allowed_hosts`. `on_ready` gets the address. `schema_registry` has
    the schemas of values. `cluster` connects to brokers, and is closed at the end. Replays write
    below `replay_folder`, and None means no replays. `metrics` are the addresses of the brokers'
    metrics pages. Before the console serves pages, raises `ConfigurationError`, `NoLogError` and
    the bucket's errors."""
    names = host_names(host, allowed_hosts)
    settings = _prepared()
    read = BrokerMetrics(
        metrics,
        refresh_ms=settings.refresh_ms,
        now_ms=_now_ms,
        patience_ms=settings.refresh_wait_ms,
    )
    with (
        closing(open_patient_bucket(place)) as bucket,
        registry_values(schema_registry, settings, time.monotonic) as registry,
        closing(_checks(place, settings)) as checks,
        nullcontext() if cluster is None else closing(cluster),
        _replays(replay_folder, settings) as replays,
    ):
        console = Console(
            bucket,
            place,
            settings,
            access,
            safety_age_ms,
            now_ms=_now_ms,
            now_s=time.monotonic,
            registry=registry,
            checks=checks,
            replays=replays,
            cluster=cluster,
            metrics=read if metrics else None,
        )
        console.look_patiently()
        with closing(listening_socket(host, port)) as listening:
            on_ready(f"http://{in_address(host)}:{listening.getsockname()[1]}/")
            _run(console, application(console, hosts=names), listening)


def serve_read_only(
    place: str,
    *,
    shard: int,
    socket_path: str,
    root: str,
    hosts: Sequence[str],
    access: KeyAccess,
    safety_age_ms: int,
    on_ready: Callable[[], None],
) -> None:
    """Serve pages that change nothing, at the Unix socket `socket_path`, until SIGINT or SIGTERM.

    Links in pages begin with `root`. Browsers may call by the local names and by `hosts`. Raises
    the errors of `serve_console`."""
    names = host_names(LOCAL_NAMES[0], hosts)
    settings = _prepared()
    with closing(open_patient_bucket(place, shard=shard)) as bucket:
        console = Console(
            bucket,
            place,
            settings,
            access,
            safety_age_ms,
            now_ms=_now_ms,
            now_s=time.monotonic,
        )
        console.look_patiently()
        with closing(_bound_in_folder(socket_path)) as listening:
            on_ready()
            app = application(console, hosts=names, is_read_only=True)
            _run(console, app, listening, root=root)


def _prepared() -> ConsoleSettings:
    """Prepare this process to serve. Raises `ConfigurationError`."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(*GC_THRESHOLDS)
    settings = ConsoleSettings()
    give_way(settings.niceness)
    return settings


def _run(console: Console, app: ASGIApp, listening: socket.socket, *, root: str = "") -> None:
    settings = console.settings
    config = uvicorn.Config(
        app,
        http=limited_connection(
            receive_ms_max=settings.request_ms_max, send_ms_max=settings.export_send_ms_max
        ),
        **QUIET_SERVER,
        limit_concurrency=CONNECTIONS_MAX,
        timeout_graceful_shutdown=GRACE_S,
        root_path=root,
    )
    with closing(LagSampler(console)):
        try:
            uvicorn.Server(config).run(sockets=[listening])
        finally:
            console.stop()


def give_way(niceness: int) -> None:
    """Lower the priority of this thread, and of threads and processes that it starts, to
    `niceness` (0 to 19). A lower priority stays."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, max(before, niceness))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _checks(place: str, settings: ConsoleSettings) -> LogChecks:
    limits = (settings.verify_memory_bytes_max, settings.verify_damage_max)
    program = (sys.executable, "-P", "-m", "bucketlog.console.verify_program")
    return LogChecks(
        (*program, place, *map(str, limits)),
        interval_ms=settings.verify_interval_ms,
        now_ms=_now_ms,
    )


@contextmanager
def _replays(folder: Path | None, settings: ConsoleSettings) -> Iterator[ReplayRuns | None]:
    if folder is None:
        yield None
        return
    program = (sys.executable, "-P", "-m", "bucketlog.console.replay_program")
    limits = ReplayLimits(
        settings.replay_threads,
        settings.replay_stored_bytes_max,
        settings.replay_record_bytes_max,
        settings.replay_ms_max,
    )
    command = (*program, str(settings.replay_memory_bytes_max))
    with closing(ReplayRuns(folder, command, limits, now_ms=_now_ms)) as runs:
        yield runs


def _bound_in_folder(path: str) -> socket.socket:
    try:
        Path(path).unlink(missing_ok=True)
        return socket.create_server(path, family=socket.AF_UNIX)
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {path}: {error.strerror or error}",
            remedy="set TMPDIR to a folder with a short name that this user may write to",
        ) from error
