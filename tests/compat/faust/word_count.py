"""The Faust application of `faust_suite.py`: counts words in a table, and prints all new counts.

Environment: `GIVEN_BROKER`, `APP_NAME`, `APP_GUARANTEE`.
"""

import json
import os
import sys

import faust

NAME = os.environ["APP_NAME"]

app = faust.App(
    NAME,
    broker=f"kafka://{os.environ['GIVEN_BROKER']}",
    store="memory://",
    topic_partitions=2,
    topic_replication_factor=1,
    processing_guarantee=os.environ["APP_GUARANTEE"],
    broker_session_timeout=6.0,
    broker_heartbeat_interval=1.0,
)
words = app.topic(f"{NAME}-words", key_type=str, value_type=str, partitions=2)
results = app.topic(f"{NAME}-results", key_type=str, value_type=int, internal=True, partitions=2)
counts = app.Table("counts", default=int, partitions=2)


@app.agent(words)
async def count(stream: faust.Stream[str]) -> None:
    async for word in stream:
        counts[word] += 1
        await results.send(key=word, value=counts[word])


@app.agent(results)
async def show(stream: faust.Stream[int]) -> None:
    async for word, number in stream.items():
        assert sys.__stdout__ is not None  # Faust redirects sys.stdout to its log
        sys.__stdout__.write(json.dumps([word, number]) + "\n")
        sys.__stdout__.flush()
