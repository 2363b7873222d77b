"""What the ingesters share: readings, and the database that takes one reading at a time.

The database is a server on a socket: it gets a line of JSON and answers `ok`. It keeps the last
reading of each sensor, so the readings of a sensor must come in order, and may come twice.
"""

import asyncio
import os

from pydantic import BaseModel

ADDRESS = os.environ.get("BUCKETLOG_BOOTSTRAP", "localhost:9092")
DATABASE = os.environ.get("DATABASE", "localhost:7000")
INSTANCE = os.environ.get("INSTANCE", "ingester-1")
"""The name of this instance of the service: it keeps its partitions while it restarts."""


class Reading(BaseModel):
    sensor: str
    number: int
    celsius: float


async def store(reading: Reading) -> None:
    """Returns once the database has the reading. Raises `OSError`."""
    host, _, port = DATABASE.rpartition(":")
    incoming, outgoing = await asyncio.open_connection(host, int(port))
    try:
        outgoing.write(reading.model_dump_json().encode() + b"\n")
        if await incoming.readline() != b"ok\n":
            raise ConnectionError("the database did not store a reading")
    finally:
        outgoing.close()
        await outgoing.wait_closed()
