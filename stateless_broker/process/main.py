"""The process of one broker, configured by `BUCKETLOG_*`: `python -m bucketlog.stateless_broker`.

It prints one line of JSON when it is ready; logs go to standard error. On SIGTERM or SIGINT it
stops accepting, flushes and leaves; a second signal ends it at once. On SIGHUP it reloads the
certificates of SSL listeners. Exit codes are in `stateless_broker.process.start_up`.
"""

import asyncio
import dataclasses
import json
import logging
import os
import signal
import sys

import uvloop

from bucketlog.stateless_broker.assembly.tenant_plan import load_tenants
from bucketlog.stateless_broker.process.allocator import keep_buffers_on_one_heap
from bucketlog.stateless_broker.process.broker import Broker
from bucketlog.stateless_broker.process.collector import collect_seldom
from bucketlog.stateless_broker.process.open_files import (
    raise_open_files_limit,
    within_open_files,
)
from bucketlog.stateless_broker.process.start_up import exit_code, load_settings
from bucketlog.stateless_broker.process.thread_switching import switch_threads_soon
from bucketlog.stateless_broker.settings.broker import BrokerSettings

logger = logging.getLogger("bucketlog.stateless_broker")


async def serve(settings: BrokerSettings) -> None:
    """Run a broker until a signal; raises `BucketlogError` if it cannot start."""
    stopping = asyncio.Event()

    def stop(signum: signal.Signals) -> None:
        if stopping.is_set():
            logger.warning("%s again: unacknowledged records are abandoned", signum.name)
            os._exit(128 + signum)  # as by kill -9, after which nothing that was acknowledged lacks
        logger.info("%s: stopping", signum.name)
        stopping.set()

    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop, signum)
    broker = Broker(settings)
    if any(spec.is_tls for spec in settings.listener_specs):
        loop.add_signal_handler(signal.SIGHUP, broker.reload_certificates)
    try:
        starting = asyncio.create_task(broker.start())
        interrupted = asyncio.create_task(stopping.wait())
        await asyncio.wait({starting, interrupted}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.wait({starting})
            return
        ready = starting.result()
        told = {"event": "ready", "pid": os.getpid(), **dataclasses.asdict(ready)}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
        await interrupted
    finally:
        await broker.stop()


def run() -> int:
    keep_buffers_on_one_heap()
    collect_seldom()
    switch_threads_soon()

    def serve_until_stopped() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            settings = load_settings()
            settings = within_open_files(
                settings, raise_open_files_limit(), tenants=len(load_tenants(settings))
            )
            runner.run(serve(settings))

    return exit_code(serve_until_stopped)
