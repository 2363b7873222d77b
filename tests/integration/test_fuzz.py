"""The short form of `make prove WHAT=frames`."""

from pathlib import Path

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.models.frames import KINDS, Corpus, frames
from tests.scenarios.fuzz import SETTINGS, fuzz

COUNT = 1_500
MEMORY_LIMIT_MIB = 20


def test_the_broker_outlives_bad_frames(tmp_path: Path) -> None:
    with EmbeddedCluster(tmp_path, settings=SETTINGS) as cluster:
        figures = fuzz(cluster, COUNT, seed=11)
    assert figures.served + figures.closed == COUNT
    assert figures.served > COUNT // 20, "the valid ones at least"
    assert figures.closed > COUNT // 5
    assert figures.good_requests > 50
    assert figures.memory_grown_mib < MEMORY_LIMIT_MIB, figures


def test_frames_follow_from_the_seed() -> None:
    corpus = Corpus(
        {ApiKey.PRODUCE: (3, 12), ApiKey.FETCH: (4, 16), ApiKey.METADATA: (0, 12)}, "topic"
    )
    first = list(frames(corpus, 200, 5))
    assert first == list(frames(corpus, 200, 5))
    assert first != list(frames(corpus, 200, 6))
    assert {frame.kind for frame in first} == set(KINDS)
