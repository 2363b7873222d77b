"""`bucketlog cost`: its arithmetic against values computed by hand, and a small real log."""

import json
from datetime import date
from pathlib import Path

import pytest

from bucketlog.cli.main import main
from bucketlog.cost.assumptions import Assumptions, assumptions
from bucketlog.cost.load import CLUSTER, Activity, LogSegment, OtherObject, load_of
from bucketlog.cost.of_brokers import figures_in, measured, rates_of
from bucketlog.cost.of_bucket import usage_of
from bucketlog.cost.pricing import GB, PricedDay, Rates, System, price, totals
from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.log_format.records import DecodedRecord
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.file import FileBucket
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.floors import Floor, encode_floor
from bucketlog.tiered_storage.identity import NoLogError
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.written_log import START_MS, WrittenLog
from tests.rigs.written_tier import WrittenTier, batches_in
from tests.unit.test_verify import IDENTITY

DAY = date(2023, 11, 14)
"""Of `START_MS`."""
NEXT_DAY = date(2023, 11, 15)
DAY_MS = 86_400_000
EASY = Assumptions(
    s3_standard_put_usd_per_1000=5,
    s3_standard_get_usd_per_1000=0.5,
    s3_standard_gb_month_usd=0.03,
    s3_express_put_usd_per_1000=1,
    s3_express_get_usd_per_1000=0.25,
    s3_express_upload_gb_usd=0.5,
    s3_express_retrieval_gb_usd=0.125,
    s3_express_gb_month_usd=0.3,
    cross_zone_gb_usd=0.02,
    gp3_gb_month_usd=0.06,
    instance_hour_usd=0.5,
    redis_hour_usd=0.25,
    producer_cross_zone_share=0.5,
    consumer_cross_zone_share=0.25,
    fan_out=4,
    gets_per_put=2,
    read_bytes_per_byte=1.5,
    kafka_disk_utilisation=0.5,
)


def priced(topic: str, activity: Activity, given: Assumptions = EASY) -> PricedDay:
    load = {(DAY, topic): activity}
    (row,) = price(load, {"t": 10.0}, Rates.assumed(given), given)
    return row


def test_a_topics_day() -> None:
    """100 GB produced, 200 GB put by 1,000 PUTs, kept for ten days."""
    row = priced("t", Activity(puts=1000, written_bytes=200 * GB, produced_bytes=100 * GB))
    assert (row.gets, row.read_bytes) == (2000, 300 * GB)
    clients = {"produce across zones": 1.0, "consume across zones": 2.0}
    assert row.usd == {
        System.S3_STANDARD: pytest.approx({"PUT": 5, "GET": 1, "storage": 1.1, **clients}),
        System.S3_EXPRESS: pytest.approx(
            {"PUT": 1, "GET": 0.5, "upload": 100, "retrieval": 37.5, "storage": 11, **clients}
        ),
        System.KAFKA: pytest.approx({"replicate across zones": 4, "storage": 12, **clients}),
    }
    assert row.total(System.KAFKA) == pytest.approx(19)


def test_a_clusters_day() -> None:
    row = priced(CLUSTER, Activity(puts=100, checkpoints=50))
    assert row.usd[System.S3_STANDARD]["LIST"] == pytest.approx(50 * 4 / 1000 * 5)
    assert row.usd[System.S3_EXPRESS]["LIST"] == pytest.approx(50 * 4 / 1000 * 1)
    assert row.usd[System.S3_STANDARD]["instances"] == 3 * 24 * 0.5
    assert row.usd[System.S3_STANDARD]["Redis"] == 6
    assert row.usd[System.KAFKA]["instances"] == 3 * 24 * 0.5
    assert "Redis" not in row.usd[System.KAFKA]


def test_instances_are_bought_for_the_peak() -> None:
    """100 MB/s on average, three times that at the peak: 50 MB/s each, 60 of Kafka's."""
    given = EASY.model_copy(update={"kafka_instance_mb_s": 60.0})
    load = {
        (DAY, "t"): Activity(produced_bytes=100_000_000 * 86_400),
        (DAY, CLUSTER): Activity(),
    }
    topic, cluster = price(load, {}, Rates.assumed(given), given)
    assert (topic.topic, cluster.topic) == ("t", CLUSTER)
    assert cluster.usd[System.S3_EXPRESS]["instances"] == 6 * 24 * 0.5
    assert cluster.usd[System.KAFKA]["instances"] == 5 * 24 * 0.5
    both = totals([topic, cluster])
    assert sum(both[System.KAFKA].values()) == pytest.approx(
        topic.total(System.KAFKA) + cluster.total(System.KAFKA)
    )


def test_a_tenant_pays_its_share_or_what_it_needs() -> None:
    given = EASY.model_copy(update={"cluster_share": 0.1})
    row = priced(CLUSTER, Activity(), given)
    assert row.usd[System.S3_STANDARD]["instances"] == pytest.approx(0.3 * 24 * 0.5)
    assert row.usd[System.S3_STANDARD]["Redis"] == pytest.approx(0.6)
    load = {(DAY, "t"): Activity(produced_bytes=25_000_000 * 86_400), (DAY, CLUSTER): Activity()}
    _, busy = price(load, {}, Rates.assumed(given), given)
    assert busy.usd[System.S3_STANDARD]["instances"] == pytest.approx(1.5 * 24 * 0.5)


def test_figures_of_tenants_are_added() -> None:
    lines = METRICS.replace("{", '{tenant="a",') + METRICS.replace("{", '{tenant="b",')
    assert rates_of(figures_in(lines)) == rates_of(figures_in(METRICS))


def test_the_command_knows_tenants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, size in (("acme", 1000), ("globex", 3000)):
        bucket = FileBucket(tmp_path / "tenants" / name / "0")
        assert bucket.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
        log = WrittenLog(bucket)
        log.create_topic("a")
        log.append("a", 0, [record(size)])
        log.flush()
    file = tmp_path / "tenants.toml"
    file.write_text("[acme]\n[globex]\nshare = 3\n")
    command = ["cost", f"file://{tmp_path}", "--tenants", str(file)]
    assert main([*command, "-o", "json"]) == 0
    acme, globex = json.loads(capsys.readouterr().out)["tenants"]
    assert (acme["tenant"], globex["tenant"]) == ("acme", "globex")
    assert acme["produced_bytes"] < globex["produced_bytes"]
    assert globex["kafka_usd"] == pytest.approx(3 * acme["kafka_usd"], rel=0.01)
    assert main(command) == 0
    assert "globex" in capsys.readouterr().out
    assert main([*command[:-1], str(tmp_path / "none")]) == 2


def test_a_put_is_shared_by_bytes() -> None:
    load = load_of(
        [
            LogSegment(START_MS, 1000, {"a": 300, "b": 600}),
            LogSegment(START_MS + 61_000, 500, {"a": 400}),
            LogSegment(START_MS + 61_001, 100, {}),
            LogSegment(START_MS + DAY_MS, 90, {"b": 80}),
        ],
        [OtherObject(START_MS, 700, "b"), OtherObject(START_MS + DAY_MS, 10, CLUSTER)],
        checkpoint_bytes=50.0,
        checkpoint_interval_s=60,
    )
    found = {
        at: (each.puts, each.written_bytes, each.produced_bytes, each.checkpoints)
        for at, each in load.items()
    }
    assert found == {
        (DAY, "a"): pytest.approx((4 / 3, 1000 / 3 + 500, 700, 0)),
        (DAY, "b"): pytest.approx((5 / 3, 2000 / 3 + 700, 600, 0)),
        (DAY, CLUSTER): (3, 200, 0, 2),
        (NEXT_DAY, "b"): (1, 90, 80, 0),
        (NEXT_DAY, CLUSTER): (2, 60, 0, 1),
    }


def test_names_and_values_are_checked() -> None:
    given = assumptions("fan_out = 3\nkafka_replication = 2", ["fan_out=5"])
    assert (given.fan_out, given.kafka_replication, given.gets_per_put) == (5, 2, 3)
    for text, flags, wrong in (
        ("", ["fan_in=3"], "fan_in"),
        ("", ["fan_out"], "NAME=VALUE"),
        ("", ["fan_out=-1"], "fan_out"),
        ("", ["fan_out=nan"], "fan_out"),
        ("", ["kafka_disk_utilisation=0"], "kafka_disk_utilisation"),
        ("fan_out: 3", [], "not TOML"),
    ):
        with pytest.raises(ConfigurationError, match=wrong):
            assumptions(text, flags)


METRICS = """
# TYPE bucketlog_bucket_requests counter
bucketlog_bucket_requests_total{verb="create"} 200
bucketlog_bucket_requests_total{verb="get"} 90
bucketlog_bucket_requests_total{verb="head"} 10
bucketlog_bucket_requests_total{verb="list"} 50
# TYPE bucketlog_bucket_bytes counter
bucketlog_bucket_bytes_total{direction="in"} 1000
bucketlog_bucket_bytes_total{direction="out"} 250
# TYPE bucketlog_fetched_bytes counter
bucketlog_fetched_bytes_total{from="memory"} 700
bucketlog_fetched_bytes_total{from="bucket"} 500
# TYPE bucketlog_split_bytes counter
bucketlog_split_bytes_total 250
# TYPE bucketlog_merged_bytes counter
bucketlog_merged_bytes_total 150
"""


def test_reads_are_measured_by_brokers() -> None:
    assert rates_of(figures_in(METRICS)) == Rates(2.0, 0.5, 0.25, 0.25, True)
    with pytest.raises(BucketlogError, match="written nothing"):
        rates_of({})
    for url in ("http://127.0.0.1:1", "file:///etc/passwd"):
        with pytest.raises(BucketlogError, match="metrics"):
            measured([url])
    load = {(DAY, CLUSTER): Activity(puts=1000, checkpoints=1)}
    (row,) = price(load, {}, rates_of(figures_in(METRICS)), EASY)
    assert row.usd[System.S3_STANDARD]["LIST"] == pytest.approx(0.25 * 5)


def record(size: int) -> DecodedRecord:
    return DecodedRecord(0, START_MS, None, bytes(size), ())


class Clock:
    now_ms = START_MS

    def __call__(self) -> int:
        return self.now_ms


def test_a_log_with_a_tier() -> None:
    clock = Clock()
    bucket = MemoryBucket(clock)
    log = WrittenLog(bucket)
    log.create_topic("a")
    log.create_topic("b", 2)
    log.append("a", 0, [record(100)])
    log.append("b", 0, [record(300)])
    log.append("b", 1, [record(200)])
    first = log.flush()
    lengths = {part: batch.next_offset and len(batch.data) for part, batch in batches_in(first)}
    a, b = log.partition("a", 0), log.partition("b", 0)
    tier = WrittenTier(log)
    row = tier.split(a, [batch for part, batch in batches_in(first) if part == a], 0)
    second = log.flush()
    usage = usage_of(bucket, EASY)
    whole = sum(lengths.values())
    in_a = usage.load[DAY, "a"]
    assert in_a.produced_bytes == lengths[a]
    assert in_a.puts == pytest.approx(lengths[a] / whole + 1), "its share, and its own object"
    assert in_a.written_bytes == pytest.approx(
        len(first.data) * lengths[a] / whole + row.size_bytes
    )
    in_b = usage.load[DAY, "b"]
    assert in_b.produced_bytes == whole - lengths[a] > lengths[b]
    cluster = usage.load[DAY, CLUSTER]
    assert cluster.puts == 1 + 1 + 1, "a registration, a segment of facts, a checkpoint's interval"
    assert usage.complete_from is None
    assert usage.held["log"] == (len(first.data) + len(second.data), 2)
    with pytest.raises(NoLogError):
        usage_of(MemoryBucket(), EASY)


def test_what_was_deleted_is_said() -> None:
    clock = Clock()
    bucket = MemoryBucket(clock)
    log = WrittenLog(bucket)
    log.create_topic("a")
    first = log.flush()
    for _ in range(2):
        log.append("a", 0, [record(100)])
        log.flush()
    for _ in range(2):
        log.create_topic(f"t{log.ticket}")
        log.flush()
        covering = write_checkpoint(bucket)
        clock.now_ms += DAY_MS
        floor = Floor.of(covering, covering)
        assert bucket.create(keys.floor(covering.ticket), [encode_floor(floor)])
    assert usage_of(bucket, EASY).complete_from is None, "all is still there"
    bucket.delete([first.key])
    assert usage_of(bucket, EASY).complete_from == date(2023, 11, 16)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bucket = FileBucket(tmp_path / "0")
    assert bucket.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    log = WrittenLog(bucket)
    log.create_topic("a")
    log.append("a", 0, [record(1000)])
    log.flush()
    prices = tmp_path / "prices.toml"
    prices.write_text("instance_hour_usd = 0.25\n")
    command = ["cost", f"file://{tmp_path}", "--prices", str(prices), "--set", "redis_hour_usd=1"]
    assert main([*command, "-o", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert {row["topic"] for row in shown["rows"]} == {"a", "(cluster)"}
    assert shown["totals"]["kafka"]["instances"] == pytest.approx(
        3 * 24 * 0.25 * len({row["day"] for row in shown["rows"]})
    )
    assert (
        shown["assumptions"]
        == assumptions("instance_hour_usd = 0.25\nredis_hour_usd = 1").model_dump()
    )
    assert shown["complete_from"] is None
    assert not shown["reads"]["measured"]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in shown["assumptions"])
    assert "reads are assumed" in text
    assert "us-east-1" in text
    assert main(["cost", f"file://{tmp_path}", "--set", "nope=1"]) == 2
    assert main(["cost", f"file://{tmp_path}/empty"]) == 2
