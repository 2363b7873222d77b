"""One connection and fresh topics on the shared broker."""

import re
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from bucketlog.embedded import EmbeddedCluster
from tests.wire_client import WireClient

MakeTopic = Callable[..., str]
_numbers = count()


@pytest.fixture
def client(broker: EmbeddedCluster) -> Iterator[WireClient]:
    with WireClient(broker.bootstrap) as connection:
        yield connection


@pytest.fixture
def make_topic(client: WireClient, request: pytest.FixtureRequest) -> MakeTopic:
    """make_topic(partitions=1, **configs) creates a topic of its own and returns its name."""

    def make(partitions: int = 1, **configs: str) -> str:
        name = re.sub("[^a-z0-9_]+", "-", f"t{next(_numbers)}-{request.node.name}")
        topic: dict[str, Any] = {
            "name": name,
            "num_partitions": partitions,
            "replication_factor": 1,
            "configs": [
                {"name": key.replace("_", "."), "value": text} for key, text in configs.items()
            ],
        }
        answer = client.call("create_topics", 5, topics=[topic])
        assert answer.topics[0].error_code == 0, answer
        return name

    return make
