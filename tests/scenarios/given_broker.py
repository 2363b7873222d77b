"""A pytest plugin that gives the tests of Python clients a running broker.

`GIVEN_BROKER` is its address. aiokafka's tests have fixtures that start a broker in a container;
here, these fixtures return the running broker. The tests of kafka-python and confluent-kafka-python
have modules that start brokers (kafka-python's source distribution does not contain its module).
Modules that start no broker replace them.
"""

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

HOST, PORT = os.environ["GIVEN_BROKER"].rsplit(":", 1)
NOTHING = SimpleNamespace()
GIVEN: dict[str, object] = {
    "docker": NOTHING,
    "kafka_image": NOTHING,
    "ssl_folder": Path("no-certificates"),
    "acl_manager": NOTHING,
    "kerberos_utils": NOTHING,
    "kafka_config": NOTHING,
    "kafka_server": SimpleNamespace(
        host=HOST,
        port=int(PORT),
        ssl_port=0,
        sasl_plain_port=0,
        sasl_ssl_port=0,
        hosts=[f"{HOST}:{PORT}"],
    ),
}
"""The values of aiokafka's fixtures, by name."""


class ExternalService:
    """kafka-python's tests use this class for a broker that they did not start."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port

    def open(self) -> None: ...

    def close(self) -> None: ...


MODULES: dict[str, dict[str, object]] = {
    "test.service": {"ExternalService": ExternalService, "SpawnedService": None},
    "trivup": {},
    "trivup.clusters": {},
    "trivup.clusters.KafkaCluster": {"KafkaCluster": None},
}
for _name, _content in MODULES.items():  # before a conftest imports them
    sys.modules[_name] = ModuleType(_name)
    sys.modules[_name].__dict__.update(_content)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> object | None:
    if fixturedef.argname not in GIVEN:
        return None
    value = GIVEN[fixturedef.argname]
    fixturedef.cached_result = (value, fixturedef.cache_key(request), None)
    return value
