"""Values of configs: valid, invalid and borderline, for a comparison with Apache Kafka."""

from collections.abc import Iterator, Mapping

from bucketlog.metadata.config_definitions import (
    INT_MAX,
    LONG_MAX,
    ConfigDefinition,
    ConfigType,
    Range,
)

_BOUND = {ConfigType.INT: INT_MAX, ConfigType.LONG: LONG_MAX}
_INTEGERS = (
    *("", "abc", "1.5", " 7 ", "+7", "007", "1_000", "0x10", "1e3", "\u0667", "-", "true"),
    *("\t9\n", "-1", "-2", "0", "1", "2000000", "+", "1 2", "--1"),
)
_BOOLEANS = ("true", "false", "TRUE", " True ", "yes", "1", "", "truefalse")
_DOUBLES = (
    *("0", "1", "0.5", "1e-3", "9.99e-4", "1.0000000000000000001", "1.01", "-0.0", "-0.1", "NaN"),
    *("nan", "Infinity", "-Infinity", "+Infinity", "infinity", "0x1p-1", "0x.8p0", "0x1p9999999"),
    *("0x1", "0.5d", "0.5f", "0.5D", "0.5dd", " .5 ", "1.", ".5", ".", "0_1", "abc", "", "1e"),
    *("+0.5", "1e400", "1e-400", "12345678.9", "1234567.8", "-1e-10", "1e10", "0.1234567890123456"),
)
_LISTS: Mapping[str, tuple[str, ...]] = {
    "cleanup.policy": (
        *("delete", "compact", "compact,delete", " compact , delete ", "delete,delete", ","),
        *("compact,,delete", "", "delete,forget", "Delete", "compact,compact,delete", "delete,"),
        *("delete;compact", "[delete]", " ", "forget,,x"),
    ),
    **{
        f"{side}.replication.throttled.replicas": (
            *(
                "*",
                "0:1",
                "0:1,1:2",
                "none",
                "0:a",
                "0",
                "0:1,*",
                "*,*",
                "",
                " 0:1 , 1:1 ",
                "0:1:2",
            ),
            *("a:b", "-1:1", "0:1,0:1", "0:1,", ",0:1", ",", "0:1,,", "*,", "1 : 1", "\u0661:1"),
        )
        for side in ("leader", "follower")
    },
}
_STRINGS: Mapping[str, tuple[str, ...]] = {
    "compression.type": (
        *("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer", "none", "GZIP", " gzip "),
        *("", "gzip,zstd"),
    ),
    "message.timestamp.type": (
        *("CreateTime", "LogAppendTime", "logappendtime", " LogAppendTime ", ""),
    ),
}


def values_of(config: ConfigDefinition) -> Iterator[str]:
    """Without repetitions."""
    match config.config_type:
        case ConfigType.BOOLEAN:
            yield from _BOOLEANS
        case ConfigType.DOUBLE:
            yield from _DOUBLES
        case ConfigType.LIST:
            yield from _LISTS[config.name]
        case ConfigType.STRING:
            yield from _STRINGS[config.name]
        case _:
            yield from dict.fromkeys([*_INTEGERS, *map(str, _borders(config))])


def _borders(config: ConfigDefinition) -> Iterator[int]:
    bound = _BOUND[config.config_type]
    yield from (bound, bound + 1, -bound - 1, -bound - 2)
    if isinstance(config.check, Range):
        yield from (config.check.low, config.check.low - 1)
        if config.check.high is not None:
            yield from (config.check.high, config.check.high + 1)
    elif config.name == "compression.gzip.level":
        yield from (9, 10)
