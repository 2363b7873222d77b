"""Names that are given to librdkafka, which ends a name at a NUL."""

from bucketlog.log_format.errors import ConfigurationError


def whole_name(name: str, kind: str) -> str:
    """Return the name. `kind` is topic or group. Raises `ConfigurationError` for a NUL: librdkafka
    would use the part before the NUL, and so another topic or group."""
    if "\0" in name:
        raise ConfigurationError(
            f"the {kind} name {name[:249]!r} has a NUL", remedy="give a name without it"
        )
    return name
