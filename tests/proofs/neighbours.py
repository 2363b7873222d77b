"""The claim about other clients: bucketlog installs beside them, and works with both ends of its
range of confluent-kafka. A target of `tests.proofs`.

The wheel is installed into empty environments: one for each neighbour, one with the oldest
confluent-kafka that pyproject.toml allows, and one with the newest. In each, pip finds no conflict,
the typed program of `wheel` sends and reads its records, and the neighbour reads them, too.
"""

import json
import re
import subprocess
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.proofs.newcomer import clean_environment
from tests.proofs.shortfall import Figures, ShortfallError
from tests.proofs.wheel import PROGRAM, ROOT, built_wheel, installed, output_of

SHORT_RECORDS, FULL_RECORDS = 200, 10_000
QUIX = """
import sys
from quixstreams import Application

app = Application(broker_address=sys.argv[1], consumer_group="quix", auto_offset_reset="earliest",
                  loglevel=None)
lines = app.dataframe(app.topic("lines", key_deserializer="str", value_deserializer="json"))
seen = []
lines = lines.update(lambda line: seen.append(line["number"]))
app.run(count=int(sys.argv[2]), timeout=120)
print(len(set(seen)))
"""
AIOKAFKA = """
import asyncio, json, sys
from aiokafka import AIOKafkaConsumer

async def main():
    options = {"bootstrap_servers": sys.argv[1], "auto_offset_reset": "earliest"}
    consumer = AIOKafkaConsumer("lines", **options)
    numbers = set()
    async with consumer:
        while len(numbers) < int(sys.argv[2]):
            numbers.add(json.loads((await consumer.getone()).value)["number"])
    print(len(numbers))

asyncio.run(main())
"""
FASTSTREAM = """
import asyncio, sys
from faststream import FastStream
from faststream.kafka import KafkaBroker
from pydantic import BaseModel

class Line(BaseModel):
    number: int

broker = KafkaBroker(sys.argv[1])
app = FastStream(broker, logger=None)
numbers = set()

@broker.subscriber("lines", group_id="faststream", auto_offset_reset="earliest")
async def read(line: Line):
    numbers.add(line.number)
    if len(numbers) == int(sys.argv[2]):
        app.exit()

asyncio.run(app.run())
print(len(numbers))
"""
CONFLUENT = """
import json, sys
from confluent_kafka import Consumer

consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "plain",
                     "auto.offset.reset": "earliest"})
consumer.subscribe(["lines"])
numbers = set()
while len(numbers) < int(sys.argv[2]):
    for message in consumer.consume(1000, 1.0):
        numbers.add(json.loads(message.value())["number"])
consumer.close()
print(len(numbers))
"""
FEATURES = """
import asyncio, sys
import bucketlog

address = sys.argv[1]
lines, copies = bucketlog.Topic("lines"), bucketlog.Topic("copies")
options = {"start": "earliest", "until": "end"}
counts = []
with bucketlog.connect(address) as log:
    log.topics.ensure(copies, partitions=1)
    with log.producer() as producer:
        producer.send_many(copies, [b"x"] * 1000)
    with log.consumer(lines, group="ours", auto_commit="ack", **options) as consumer:
        counts.append(consumer.process(lambda record: record.value, concurrency=4))
    with log.consumer(lines, group="copy", auto_commit=False, **options) as consumer:
        copy = lambda record, transaction: transaction.send(copies, record.value)
        counts.append(log.transform(consumer, copy, transactional_id="copy"))
    with log.consumer(copies, **options) as consumer:
        counts.append(sum(1 for record in consumer) - 1000)

async def main():
    async with bucketlog.aconnect(address) as log, log.producer() as producer:
        await producer.send_many(copies, [b"y"] * 10)
        async with log.consumer(lines, **options) as consumer:
            counts.append(sum([1 async for record in consumer]))

asyncio.run(main())
print(min(counts), max(counts))
"""
NEIGHBOURS: dict[str, tuple[tuple[str, ...], str]] = {
    "quixstreams": (("quixstreams",), QUIX),
    "aiokafka": (("aiokafka",), AIOKAFKA),
    "faststream": (("faststream[kafka]",), FASTSTREAM),
}


def prove_neighbours(short: bool) -> Figures:
    """bucketlog installs beside Quix Streams, FastStream and aiokafka, and works with both ends of
    its range of confluent-kafka. The short form has one environment: Quix Streams with the oldest
    confluent-kafka."""
    oldest = oldest_confluent_kafka((ROOT / "pyproject.toml").read_text())
    count = SHORT_RECORDS if short else FULL_RECORDS
    with_oldest = (f"confluent-kafka=={oldest}", "quixstreams")
    environments: dict[str, tuple[tuple[str, ...], str]] = {
        f"confluent-kafka {oldest} and quixstreams": (with_oldest, QUIX)
    }
    if not short:
        environments |= {"newest confluent-kafka": ((), CONFLUENT), **NEIGHBOURS}
    figures: Figures = {"records": count}
    with tempfile.TemporaryDirectory(prefix="bucketlog-neighbours-") as name:
        folder = Path(name)
        wheel = built_wheel(folder / "dist")
        for number, (what, (packages, program)) in enumerate(environments.items()):
            python = installed(
                wheel, folder / f"venv-{number}", clean_environment(folder, short), *packages
            )
            figures[what] = checked(python, program, folder / f"data-{number}", count)
    return figures


def oldest_confluent_kafka(project: str) -> str:
    """The lowest version that the SDK's requirement allows."""
    (needed,) = (
        text
        for text in tomllib.loads(project)["project"]["dependencies"]
        if text.startswith("confluent-kafka")
    )
    found = re.search(r">=([\d.]+)", needed)
    assert found is not None, needed
    version = found[1]
    return version if version.count(".") == 2 else f"{version}.0"


def checked(python: Path, program: str, data: Path, count: int) -> dict[str, object]:
    """The versions of an environment that works. Raises `ShortfallError`."""
    found = subprocess.run(
        [python, "-m", "pip", "check"], capture_output=True, text=True, check=False
    )
    if found.returncode:
        raise ShortfallError(f"pip check: {found.stdout}", {})
    versions = json.loads(output_of(python, "-c", VERSIONS))
    with EmbeddedCluster(data, settings={"transactions": "true"}) as cluster:
        arguments = (cluster.bootstrap, str(count))
        ours = json.loads(output_of(python, "-c", PROGRAM, *arguments))
        features = output_of(python, "-c", FEATURES, *arguments).split()
        theirs = output_of(python, "-c", program, *arguments).split()[-1]
    figures = {"versions": versions, "features": features, "read": theirs, **ours}
    if not ours["equal"] or features != [str(count)] * 2 or theirs != str(count):
        raise ShortfallError("what was read differs from what was written", figures)
    return figures


VERSIONS = """
import json
from importlib.metadata import PackageNotFoundError, version

def found(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return None

names = ("confluent-kafka", "aiokafka", "faststream", "quixstreams")
print(json.dumps({name: found(name) for name in names if found(name)}))
"""

NEIGHBOUR_TARGETS: dict[str, Callable[[bool], Figures]] = {"neighbours": prove_neighbours}
