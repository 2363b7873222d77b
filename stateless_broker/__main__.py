"""`python -m stateless_broker`: one broker, configured by `BUCKETLOG_*`.

Prints one line of JSON when it is ready; logs go to standard error. SIGTERM and SIGINT: stop
accepting, flush, leave. Exit codes: 0 stopped, 1 could not start, 2 configuration.
"""

import asyncio
import dataclasses
import json
import logging
import os
import signal
import sys

import uvloop
from pydantic import ValidationError

from bucketlog.errors import BucketlogError, ConfigurationError
from stateless_broker.allocator import keep_buffers_on_one_heap
from stateless_broker.broker import Broker
from stateless_broker.settings import BrokerSettings

logger = logging.getLogger("stateless_broker")


def load_settings() -> BrokerSettings:
    """Raises `ConfigurationError` that names the variable."""
    try:
        return BrokerSettings()
    except ValidationError as error:
        first = error.errors()[0]
        names = [f"BUCKETLOG_{part}".upper() for part in first["loc"]]
        raise ConfigurationError(
            ": ".join([*names, first["msg"].removeprefix("Value error, ")]),
            remedy="set it in the environment; see docs/configuration.md",
        ) from error


async def serve(settings: BrokerSettings) -> None:
    """Run a broker until a signal; raises `BucketlogError` if it cannot start."""
    stopping = asyncio.Event()

    def stop(signum: signal.Signals) -> None:
        logger.info("%s: stopping", signum.name)
        stopping.set()

    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop, signum)
    broker = Broker(settings)
    try:
        starting = asyncio.create_task(broker.start())
        interrupted = asyncio.create_task(stopping.wait())
        await asyncio.wait({starting, interrupted}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.wait({starting})
            return
        ready = starting.result()
        sys.stdout.write(json.dumps({"event": "ready", **dataclasses.asdict(ready)}) + "\n")
        sys.stdout.flush()
        await interrupted
    finally:
        await broker.stop()


def start_logging() -> None:
    """Raises `ConfigurationError` for a level that is none."""
    level = os.environ.get("BUCKETLOG_LOG_LEVEL", "INFO").upper()
    if level not in logging.getLevelNamesMapping():
        raise ConfigurationError(
            f"BUCKETLOG_LOG_LEVEL: {level!r} is no level", remedy="use DEBUG, INFO, WARNING, ERROR"
        )
    logging.basicConfig(
        level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def run() -> int:
    keep_buffers_on_one_heap()
    try:
        start_logging()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(load_settings()))
    except ConfigurationError as error:
        sys.stderr.write(f"bucketlog broker: {error}\n")
        return 2
    except BucketlogError as error:
        sys.stderr.write(f"bucketlog broker: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run())
