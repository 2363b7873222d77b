"""bucketlog: a leaderless log service that speaks the Kafka protocol and keeps everything in a
bucket.

    with bucketlog.connect("localhost:9092") as log: ...

Importing this costs nothing: each name is loaded when it is first used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bucketlog.client.async_consumer import AsyncConsumer as AsyncConsumer
    from bucketlog.client.async_consumer import AsyncGroupConsumer as AsyncGroupConsumer
    from bucketlog.client.async_log import AsyncLog as AsyncLog
    from bucketlog.client.async_log import aconnect as aconnect
    from bucketlog.client.async_producer import AsyncDelivery as AsyncDelivery
    from bucketlog.client.async_producer import AsyncProducer as AsyncProducer
    from bucketlog.client.consumer import Consumer as Consumer
    from bucketlog.client.decoding import UnreadableRecordError as UnreadableRecordError
    from bucketlog.client.formats import Format as Format
    from bucketlog.client.group_consumer import GroupConsumer as GroupConsumer
    from bucketlog.client.log import Log as Log
    from bucketlog.client.log import connect as connect
    from bucketlog.client.partition_consumer import PartitionConsumer as PartitionConsumer
    from bucketlog.client.poison import DeadLetter as DeadLetter
    from bucketlog.client.producer import Delivery as Delivery
    from bucketlog.client.producer import Producer as Producer
    from bucketlog.client.schemas.avro import Avro as Avro
    from bucketlog.client.schemas.protobuf import Protobuf as Protobuf
    from bucketlog.client.schemas.registry import SchemaRegistry as SchemaRegistry
    from bucketlog.client.sending import Delivered as Delivered
    from bucketlog.client.topic import Record as Record
    from bucketlog.client.topic import Topic as Topic
    from bucketlog.embedded import ClusterStartError as ClusterStartError
    from bucketlog.embedded import EmbeddedCluster as EmbeddedCluster
    from bucketlog.errors import BucketlogError as BucketlogError
    from bucketlog.errors import ClusterInUseError as ClusterInUseError
    from bucketlog.errors import ConfigurationError as ConfigurationError
    from bucketlog.errors import CorruptObjectError as CorruptObjectError
    from bucketlog.errors import DataLossError as DataLossError
    from bucketlog.errors import IncompatibleSchemaError as IncompatibleSchemaError
    from bucketlog.errors import InvalidDataError as InvalidDataError
    from bucketlog.errors import LogError as LogError
    from bucketlog.errors import SchemaRegistryError as SchemaRegistryError
    from bucketlog.replaying.replay import Replay as Replay
    from bucketlog.replaying.replay import replay as replay

_HOMES = {
    "AsyncConsumer": "bucketlog.client.async_consumer",
    "AsyncDelivery": "bucketlog.client.async_producer",
    "AsyncGroupConsumer": "bucketlog.client.async_consumer",
    "AsyncLog": "bucketlog.client.async_log",
    "AsyncProducer": "bucketlog.client.async_producer",
    "Avro": "bucketlog.client.schemas.avro",
    "BucketlogError": "bucketlog.errors",
    "ClusterInUseError": "bucketlog.errors",
    "ClusterStartError": "bucketlog.embedded",
    "ConfigurationError": "bucketlog.errors",
    "Consumer": "bucketlog.client.consumer",
    "CorruptObjectError": "bucketlog.errors",
    "DataLossError": "bucketlog.errors",
    "DeadLetter": "bucketlog.client.poison",
    "Delivered": "bucketlog.client.sending",
    "Delivery": "bucketlog.client.producer",
    "EmbeddedCluster": "bucketlog.embedded",
    "Format": "bucketlog.client.formats",
    "GroupConsumer": "bucketlog.client.group_consumer",
    "IncompatibleSchemaError": "bucketlog.errors",
    "InvalidDataError": "bucketlog.errors",
    "Log": "bucketlog.client.log",
    "LogError": "bucketlog.errors",
    "PartitionConsumer": "bucketlog.client.partition_consumer",
    "Producer": "bucketlog.client.producer",
    "Protobuf": "bucketlog.client.schemas.protobuf",
    "Record": "bucketlog.client.topic",
    "Replay": "bucketlog.replaying.replay",
    "SchemaRegistry": "bucketlog.client.schemas.registry",
    "SchemaRegistryError": "bucketlog.errors",
    "Topic": "bucketlog.client.topic",
    "UnreadableRecordError": "bucketlog.client.decoding",
    "aconnect": "bucketlog.client.async_log",
    "connect": "bucketlog.client.log",
    "replay": "bucketlog.replaying.replay",
}


if not TYPE_CHECKING:  # else a type checker would take any name for an object

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'bucketlog' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(home), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES))
