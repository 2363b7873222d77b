"""Prices and assumptions: every number that is not counted, by name, in one place. Pure.

Prices are list prices on demand of AWS in `REGION` as of `PRICES_OF`. A GB has 2^30 bytes, as AWS
bills it; a month has `days_per_month` days.
"""

import tomllib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bucketlog.log_format.errors import ConfigurationError

REGION = "us-east-1"
PRICES_OF = "2025-06"

_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=1)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Part = Annotated[float, Field(gt=0, le=1)]


class Assumptions(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    s3_standard_put_usd_per_1000: _Amount = Field(0.005, description="PUT and LIST")
    s3_standard_get_usd_per_1000: _Amount = Field(0.0004, description="GET and HEAD")
    s3_standard_gb_month_usd: _Amount = Field(0.023, description="the first 50 TB")
    s3_express_put_usd_per_1000: _Amount = Field(0.00113, description="PUT and LIST")
    s3_express_get_usd_per_1000: _Amount = Field(0.00003, description="GET and HEAD")
    s3_express_upload_gb_usd: _Amount = Field(0.0032, description="each byte of a PUT")
    s3_express_retrieval_gb_usd: _Amount = Field(0.0006, description="each byte of a GET")
    s3_express_gb_month_usd: _Amount = Field(0.11, description="in one zone")
    cross_zone_gb_usd: _Amount = Field(0.02, description="0.01 each way between zones")
    gp3_gb_month_usd: _Amount = Field(0.08, description="EBS; its free 125 MB/s must do")
    instance_hour_usd: _Amount = Field(0.1632, description="a broker's: m7g.xlarge")
    redis_hour_usd: _Amount = Field(0.0672, description="bucketlog's: two t4g.medium")

    days_per_month: _Positive = Field(30.0, description="what a month's price is divided by")
    default_retention_days: _Positive = Field(7.0, description="topics without retention.ms")
    unlimited_retention_days: _Positive = Field(
        30.0, description="days that are priced of bytes kept for ever or compacted by key"
    )
    cluster_share: _Share = Field(
        1.0, description="part of instances and Redis that the log pays: less than 1 with tenants"
    )
    peak_to_average: _Positive = Field(3.0, description="instances are bought for a day's peak")
    producer_cross_zone_share: _Share = Field(
        2 / 3, description="of produced bytes, to a broker elsewhere; both systems"
    )
    consumer_cross_zone_share: _Share = Field(
        2 / 3, description="of consumed bytes, from a broker elsewhere; both systems"
    )

    fan_out: _Amount = Field(2.0, description="bytes consumed per byte produced (or --metrics)")
    gets_per_put: _Amount = Field(
        3.0, description="two brokers' reads and compaction's (or --metrics)"
    )
    read_bytes_per_byte: _Amount = Field(
        2.0, description="got from the bucket per byte put there (or --metrics)"
    )
    lists_per_checkpoint: _Amount = Field(4.0, description="LISTs of duties (or --metrics)")

    checkpoint_interval_s: _Positive = Field(
        60.0, description="one checkpoint in each interval with a log segment"
    )
    overlap_days: _Amount = Field(
        1.0, description="log segments are beside the tier for the safety age"
    )
    bucketlog_instance_mb_s: _Positive = Field(50.0, description="10^6 bytes/s produced")
    bucketlog_instances_min: _Count = Field(3, description="one a zone")

    kafka_replication: _Count = Field(3, description="replicas, each in its own zone")
    kafka_disk_utilisation: _Part = Field(0.6, description="the rest is headroom")
    kafka_instance_mb_s: _Positive = Field(50.0, description="10^6 bytes/s produced")
    kafka_instances_min: _Count = Field(3, description="one a zone; controllers on them")


def assumptions(text: str = "", given: Iterable[str] = ()) -> Assumptions:
    """The defaults, changed by `text`, which is TOML, then by `given`, each NAME=VALUE. Raises
    `ConfigurationError`."""
    try:
        values: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(
            f"the file of prices is not TOML: {error}", remedy="write a line NAME = VALUE for each"
        ) from None
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals:
            raise ConfigurationError(f"--set {setting}", remedy="give NAME=VALUE")
        values[name.strip()] = value.strip()
    return _checked(values)


def _checked(values: Mapping[str, Any]) -> Assumptions:
    try:
        return Assumptions.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        unknown = first["type"] == "extra_forbidden"
        raise ConfigurationError(
            f"no price or assumption is named {name!r}" if unknown else f"{name}: {first['msg']}",
            remedy="`bucketlog cost` prints all names and values",
        ) from None
