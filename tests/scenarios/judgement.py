"""What a cluster's clients were told, held against its log."""

from tests.models.history import History, Log
from tests.models.promises import check
from tests.scenarios.bucket_reading import records_in_bucket
from tests.scenarios.load import read_to_end
from tests.servers.cluster import Cluster


def judge(cluster: Cluster, history: History, *, topic: str, partitions: int) -> Log:
    """The log as it is in the bucket alone, when nothing is in flight any more; every broker shows
    the same. Raises `AssertionError` where a promise is broken."""
    shown = [
        read_to_end(
            broker.bootstrap,
            history,
            topic=topic,
            partitions=partitions,
            reader=f"broker {broker.node_id} in the end",
        )
        for broker in cluster.brokers
        if broker.process is not None
    ]
    bucket = cluster.open_bucket()
    try:
        log = records_in_bucket(bucket, topic)
    finally:
        bucket.close()
    check(history, log)
    counts = {sum(map(len, one.values())) for one in (log, *shown)}
    assert len(counts) == 1, f"the bucket and brokers show different numbers of records: {counts}"
    return log
