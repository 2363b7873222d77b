"""How the bucket of a replay is reached, as the options of the source."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bucketlog.tiered_storage.backends.location import S3Options


def as_s3_options(s3: "S3Options | Mapping[str, Any] | None") -> "S3Options | None":
    if s3 is None or not isinstance(s3, Mapping):
        return s3
    from bucketlog.tiered_storage.backends.location import parse_s3_options

    return parse_s3_options(s3)


def source_options(s3: "S3Options | Mapping[str, Any] | None") -> dict[str, str]:
    given = as_s3_options(s3)
    if given is None:
        return {}
    return {
        f"s3.{name}": str(value)
        for name, value in given.model_dump(exclude_unset=True).items()
        if value is not None
    }
