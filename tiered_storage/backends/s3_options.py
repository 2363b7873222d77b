"""Options of an S3 store that a URL cannot contain."""

from collections.abc import Mapping

from pydantic import AliasChoices, Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from bucketlog.log_format.errors import ConfigurationError


class S3Options(BaseSettings):
    """Settings of both S3 backends. Missing settings are taken from AWS's standard environment.

    Credentials are not among them: both SDKs find them the usual way (AWS_ACCESS_KEY_ID, profile,
    web identity, instance role). An endpoint with a user in it is refused, and no error repeats a
    value: somebody's secret may be where it does not belong.
    """

    model_config = SettingsConfigDict(
        env_prefix="BUCKETLOG_S3_",
        env_ignore_empty=True,
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    endpoint_url: str | None = Field(
        default=None,
        validation_alias=AliasChoices("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
        description="of a store that is not AWS's, such as http://127.0.0.1:9000",
    )
    region: str | None = Field(
        default=None,
        validation_alias=AliasChoices("AWS_REGION", "AWS_DEFAULT_REGION"),
        description="of the bucket",
    )
    path_style: bool | None = Field(
        default=None,
        description="host/bucket/key instead of bucket.host/key; None: if an endpoint is given",
    )
    max_connections: int = Field(default=64, ge=1, description="of the one pool a process has")
    in_flight_bytes_max: int = Field(
        default=256 * 1024 * 1024,
        ge=1,
        description="of bodies on their way at once, both ways; what is beyond waits its turn",
    )
    connect_timeout_ms: int = Field(
        default=3_000, ge=1, description="until a new connection is established"
    )
    request_timeout_ms: int = Field(
        default=20_000, ge=1, description="of silence while a request is under way"
    )
    list_page_keys: int = Field(
        default=1_000, ge=1, le=1_000, description="asked for with one request of a listing"
    )

    @field_validator("endpoint_url")
    @classmethod
    def _has_no_user(cls, value: str | None) -> str | None:
        if value is not None and "@" in value:
            raise ConfigurationError(
                "the S3 endpoint_url has a user or a password in it",
                remedy="leave them out: credentials are AWS's usual ones, as AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY",
            )
        return value

    @property
    def uses_path_style(self) -> bool:
        return self.endpoint_url is not None if self.path_style is None else self.path_style


def parse_s3_options(given: Mapping[str, object]) -> S3Options:
    """Parse options. Raises `ConfigurationError`, which names options and no values."""
    try:
        return S3Options.model_validate(dict(given))
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()
        )
        raise ConfigurationError(
            f"bad S3 options: {wrong}", remedy=f"known are {', '.join(S3Options.model_fields)}"
        ) from None
