"""A request sees what the requests before it on the same connection have changed."""

from itertools import count

import pytest

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.scenarios.pipelined_pairs import PAIRS, times_seen

TRIES = 10
_numbers = count()


@pytest.mark.parametrize("name", PAIRS)
def test_a_request_sees_the_change_before_it(broker: EmbeddedCluster, name: str) -> None:
    prefix = f"pair-{next(_numbers)}"
    assert times_seen(broker.bootstrap, PAIRS[name], prefix, TRIES) == TRIES
