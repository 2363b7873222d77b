"""Arguments and flags of `bucketlog bench`."""

from typing import Annotated, Literal

import typer

DEFAULT_SECONDS = 10.0

Name = Annotated[str, typer.Argument(metavar="TOPIC")]
Records = Annotated[int | None, typer.Option("--records", "-n", min=1, help="Number of records.")]
Seconds = Annotated[
    float | None,
    typer.Option(
        "--seconds",
        "-s",
        min=0.1,
        max=1e7,
        help=f"Number of seconds after which to stop; default: {DEFAULT_SECONDS:g}.",
    ),
]

RecordBytes = Annotated[int, typer.Option(min=1, max=10**9, help="Size of each value, in bytes.")]
Rate = Annotated[
    str,
    typer.Option(
        metavar="RATE",
        help="Records per second, or bytes as 10MB/s; latency counts from the time at which a "
        "record is due. 0: no limit.",
    ),
]
Producers = Annotated[int, typer.Option(min=1, help="Number of producers, used round-robin.")]
Codec = Annotated[
    Literal["none", "gzip", "snappy", "lz4", "zstd"], typer.Option(help="Codec of the batches.")
]
Keys = Annotated[int, typer.Option(min=0, help="Number of different keys; 0: records have no key.")]
BatchBytes = Annotated[int, typer.Option(min=1, help="Bytes of a batch that is sent at once.")]
LingerMs = Annotated[
    float, typer.Option(min=0, help="Longest wait of a batch for records, in milliseconds.")
]
Acks = Annotated[
    Literal["all", "1", "0"],
    typer.Option(help="Acknowledgements that producers wait for; all also makes them idempotent."),
]
WarmUp = Annotated[
    float, typer.Option(min=0, max=1e7, help="Seconds of load before the measurement.")
]
TimeoutSeconds = Annotated[
    float, typer.Option(min=1, help="Seconds after which an unacknowledged record has failed.")
]
Create = Annotated[bool, typer.Option("--create", help="Create the topic if there is none.")]
Partitions = Annotated[
    int | None,
    typer.Option(
        "--partitions", "-p", min=1, help="Number of partitions of a topic that is created."
    ),
]
Delete = Annotated[
    bool, typer.Option("--delete", help="Delete the topic at the end, if it was created.")
]
