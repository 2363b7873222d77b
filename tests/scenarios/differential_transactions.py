"""Random steps of producers with ids, and of transactions, from a seed. Pure."""

from random import Random
from typing import Any

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.scenarios.differential_model import PLAIN, Batch, OwnedBy, Step

ID = "@x0"
GROUP = "@g0"


def _producer(random: Random, epoch_name: str = "producer_epoch") -> dict[str, Any]:
    """Sometimes an epoch that was never given."""
    epoch = OwnedBy(ID, 1)
    return {
        "producer_id": OwnedBy(ID, 0),
        epoch_name: random.choice((epoch, epoch, epoch, epoch, epoch, 7)),
    }


def init(random: Random) -> Step:
    has_pair = random.random() < 0.3
    values = {
        "transactional_id": random.choice((ID, ID, None, "")),
        "transaction_timeout": random.choice((60_000, 60_000, 0, -1, 1 << 30)),
        "producer_id": OwnedBy(ID, 0) if has_pair else -1,
        "producer_epoch": OwnedBy(ID, 1) if has_pair else -1,
    }
    return Step(ApiKey.INIT_PRODUCER_ID, random.choice((3, 4)), values)


def produce(random: Random) -> Step:
    batch = Batch((f"t{random.randint(0, 9)}",), True, ID, random.choice((0, 0, 0, 1, 2, 5)))
    return _producing(random, batch, ID)


def produce_idempotently(random: Random) -> Step:
    batch = Batch(("i",), True, PLAIN, random.choice((0, 0, 1, 1, 2, 5)), is_transactional=False)
    return _producing(random, batch, None)


def _producing(random: Random, batch: Batch, owner: str | None) -> Step:
    rows = [{"index": random.choice((0, 0, 1)), "records": batch}]
    values = {
        "transactional_id": owner,
        "acks": -1,
        "timeout": 30_000,
        "topic_data": [{"name": "@t0", "partition_data": rows}],
    }
    return Step(ApiKey.PRODUCE, random.randint(3, 12), values)


def add_partitions(random: Random, topic: str, partition: int) -> Step:
    rows = [{"name": topic, "partitions": [partition]}]
    values = {
        "v3_and_below_transactional_id": ID,
        "v3_and_below_producer_id": OwnedBy(ID, 0),
        "v3_and_below_producer_epoch": OwnedBy(ID, 1),
        "v3_and_below_topics": rows,
    }
    return Step(ApiKey.ADD_PARTITIONS_TO_TXN, 3, values)


def add_offsets(random: Random) -> Step:
    values = {"transactional_id": ID, "group_id": GROUP} | _producer(random)
    return Step(ApiKey.ADD_OFFSETS_TO_TXN, random.choice((2, 3)), values)


def commit_offsets(random: Random) -> Step:
    row = {
        "partition_index": random.choice((0, 0, 9)),
        "committed_offset": random.choice((1, 4)),
        "committed_leader_epoch": -1,
        "committed_metadata": "",
    }
    values = {
        "transactional_id": ID,
        "group_id": GROUP,
        **_producer(random),
        "generation_id": random.choice((-1, -1, -1, 5)),
        "member_id": random.choice(("", "", "", "nobody")),
        "group_instance_id": None,
        "topics": [{"name": "@t0", "partitions": [row]}],
    }
    return Step(ApiKey.TXN_OFFSET_COMMIT, 3, values)


def end(random: Random) -> Step:
    values = {"transactional_id": ID, "committed": random.random() < 0.5} | _producer(random)
    return Step(ApiKey.END_TXN, random.choice((2, 3)), values)


def describe_transactions(random: Random) -> Step:
    wanted = [random.choice((ID, ID, "@missing", ""))]
    return Step(ApiKey.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": wanted})


def list_transactions(random: Random) -> Step:
    values = {
        "state_filters": random.choice(([], ["Ongoing"], ["Empty", "CompleteCommit"], ["Never"])),
        "producer_id_filters": [OwnedBy(ID, 0)],
        "duration_filter": -1,
    }
    return Step(ApiKey.LIST_TRANSACTIONS, 1, values)


def describe_producers(random: Random, topic: str, partition: int) -> Step:
    rows = [{"name": topic, "partition_indexes": [partition]}]
    return Step(ApiKey.DESCRIBE_PRODUCERS, 0, {"topics": rows})
