"""The short form of `make prove WHAT=fuzz`."""

import pytest

from tests.fuzz.run import MEMORY_GROWN_MIB_MAX, fuzz, fuzz_cluster

pytestmark = pytest.mark.long

REQUESTS = 4_000


def test_the_broker_survives_the_fuzzer() -> None:
    with fuzz_cluster() as cluster:
        figures = fuzz(cluster, REQUESTS, seed=11)
    assert figures.requests >= REQUESTS
    assert figures.answered > REQUESTS // 2
    assert figures.closed > REQUESTS // 10
    assert figures.memory_grown_mib < MEMORY_GROWN_MIB_MAX, figures
