"""bucketlog: a leaderless log service that speaks the Kafka protocol and keeps everything in a
bucket.

    with bucketlog.connect("localhost:9092") as log: ...

Importing this costs nothing: each name is loaded when it is first used. `__version__` is loaded
in the same way, by `bucketlog.version`.
"""

from typing import TYPE_CHECKING

__all__ = [
    "Acl",
    "AsyncConsumer",
    "AsyncDelivery",
    "AsyncGroupConsumer",
    "AsyncLog",
    "AsyncProducer",
    "AsyncTransaction",
    "Avro",
    "BucketlogError",
    "ClientCredentials",
    "ClusterInUseError",
    "ClusterStartError",
    "ConcurrentUseError",
    "ConfigurationError",
    "Consumer",
    "CorruptObjectError",
    "DataLossError",
    "DeadLetter",
    "Delivered",
    "Delivery",
    "EmbeddedCluster",
    "Format",
    "GroupConsumer",
    "IncompatibleSchemaError",
    "InvalidDataError",
    "Log",
    "LogError",
    "OpenTelemetry",
    "PartitionConsumer",
    "Producer",
    "Protobuf",
    "Record",
    "Replay",
    "RetryTopics",
    "Retrying",
    "SchemaRegistry",
    "SchemaRegistryError",
    "Security",
    "TokenFile",
    "Topic",
    "TopicPartition",
    "TopicPattern",
    "TopicSource",
    "Transaction",
    "TransactionAbortedError",
    "UnreadableRecordError",
    "aconnect",
    "connect",
    "replay",
]

if TYPE_CHECKING:
    __version__: str

    from bucketlog.client.access_tokens import ClientCredentials as ClientCredentials
    from bucketlog.client.access_tokens import TokenFile as TokenFile
    from bucketlog.client.acl_rules import Acl as Acl
    from bucketlog.client.async_consumer import AsyncConsumer as AsyncConsumer
    from bucketlog.client.async_consumer import AsyncGroupConsumer as AsyncGroupConsumer
    from bucketlog.client.async_log import AsyncLog as AsyncLog
    from bucketlog.client.async_log import aconnect as aconnect
    from bucketlog.client.async_producer import AsyncDelivery as AsyncDelivery
    from bucketlog.client.async_producer import AsyncProducer as AsyncProducer
    from bucketlog.client.async_transaction import AsyncTransaction as AsyncTransaction
    from bucketlog.client.consumer import Consumer as Consumer
    from bucketlog.client.decoding import UnreadableRecordError as UnreadableRecordError
    from bucketlog.client.formats import Format as Format
    from bucketlog.client.group_consumer import GroupConsumer as GroupConsumer
    from bucketlog.client.log import Log as Log
    from bucketlog.client.log import connect as connect
    from bucketlog.client.open_telemetry import OpenTelemetry as OpenTelemetry
    from bucketlog.client.partition_consumer import PartitionConsumer as PartitionConsumer
    from bucketlog.client.poison import DeadLetter as DeadLetter
    from bucketlog.client.processing import Retrying as Retrying
    from bucketlog.client.producer import Delivery as Delivery
    from bucketlog.client.producer import Producer as Producer
    from bucketlog.client.retry_topics import RetryTopics as RetryTopics
    from bucketlog.client.schemas.avro import Avro as Avro
    from bucketlog.client.schemas.protobuf import Protobuf as Protobuf
    from bucketlog.client.schemas.registry import SchemaRegistry as SchemaRegistry
    from bucketlog.client.security import Security as Security
    from bucketlog.client.sending import Delivered as Delivered
    from bucketlog.client.topic import Record as Record
    from bucketlog.client.topic import Topic as Topic
    from bucketlog.client.topic import TopicPartition as TopicPartition
    from bucketlog.client.topic import TopicSource as TopicSource
    from bucketlog.client.topic_pattern import TopicPattern as TopicPattern
    from bucketlog.client.transaction import Transaction as Transaction
    from bucketlog.embedded.cluster import ClusterStartError as ClusterStartError
    from bucketlog.embedded.cluster import EmbeddedCluster as EmbeddedCluster
    from bucketlog.log_format.errors import BucketlogError as BucketlogError
    from bucketlog.log_format.errors import ClusterInUseError as ClusterInUseError
    from bucketlog.log_format.errors import ConcurrentUseError as ConcurrentUseError
    from bucketlog.log_format.errors import ConfigurationError as ConfigurationError
    from bucketlog.log_format.errors import CorruptObjectError as CorruptObjectError
    from bucketlog.log_format.errors import DataLossError as DataLossError
    from bucketlog.log_format.errors import IncompatibleSchemaError as IncompatibleSchemaError
    from bucketlog.log_format.errors import InvalidDataError as InvalidDataError
    from bucketlog.log_format.errors import LogError as LogError
    from bucketlog.log_format.errors import SchemaRegistryError as SchemaRegistryError
    from bucketlog.log_format.errors import TransactionAbortedError as TransactionAbortedError
    from bucketlog.replaying.replay import Replay as Replay
    from bucketlog.replaying.replay import replay as replay

_HOMES = {
    "Acl": "bucketlog.client.acl_rules",
    "AsyncConsumer": "bucketlog.client.async_consumer",
    "AsyncDelivery": "bucketlog.client.async_producer",
    "AsyncGroupConsumer": "bucketlog.client.async_consumer",
    "AsyncLog": "bucketlog.client.async_log",
    "AsyncProducer": "bucketlog.client.async_producer",
    "AsyncTransaction": "bucketlog.client.async_transaction",
    "Avro": "bucketlog.client.schemas.avro",
    "BucketlogError": "bucketlog.log_format.errors",
    "ClusterInUseError": "bucketlog.log_format.errors",
    "ClusterStartError": "bucketlog.embedded.cluster",
    "ConcurrentUseError": "bucketlog.log_format.errors",
    "ConfigurationError": "bucketlog.log_format.errors",
    "Consumer": "bucketlog.client.consumer",
    "CorruptObjectError": "bucketlog.log_format.errors",
    "DataLossError": "bucketlog.log_format.errors",
    "DeadLetter": "bucketlog.client.poison",
    "Delivered": "bucketlog.client.sending",
    "Delivery": "bucketlog.client.producer",
    "EmbeddedCluster": "bucketlog.embedded.cluster",
    "Format": "bucketlog.client.formats",
    "GroupConsumer": "bucketlog.client.group_consumer",
    "IncompatibleSchemaError": "bucketlog.log_format.errors",
    "InvalidDataError": "bucketlog.log_format.errors",
    "Log": "bucketlog.client.log",
    "LogError": "bucketlog.log_format.errors",
    "OpenTelemetry": "bucketlog.client.open_telemetry",
    "PartitionConsumer": "bucketlog.client.partition_consumer",
    "Producer": "bucketlog.client.producer",
    "Protobuf": "bucketlog.client.schemas.protobuf",
    "Record": "bucketlog.client.topic",
    "RetryTopics": "bucketlog.client.retry_topics",
    "Retrying": "bucketlog.client.processing",
    "Replay": "bucketlog.replaying.replay",
    "SchemaRegistry": "bucketlog.client.schemas.registry",
    "SchemaRegistryError": "bucketlog.log_format.errors",
    "Security": "bucketlog.client.security",
    "TokenFile": "bucketlog.client.access_tokens",
    "ClientCredentials": "bucketlog.client.access_tokens",
    "Topic": "bucketlog.client.topic",
    "TopicPartition": "bucketlog.client.topic",
    "TopicSource": "bucketlog.client.topic",
    "TopicPattern": "bucketlog.client.topic_pattern",
    "Transaction": "bucketlog.client.transaction",
    "TransactionAbortedError": "bucketlog.log_format.errors",
    "UnreadableRecordError": "bucketlog.client.decoding",
    "aconnect": "bucketlog.client.async_log",
    "connect": "bucketlog.client.log",
    "replay": "bucketlog.replaying.replay",
}


if not TYPE_CHECKING:  # else a type checker would take any name for an object

    def __getattr__(name: str) -> object:
        value: object
        if name == "__version__":
            from bucketlog.version import package_version

            value = package_version()
        elif name in _HOMES:
            from importlib import import_module

            value = getattr(import_module(_HOMES[name]), name)
        else:
            raise AttributeError(f"module 'bucketlog' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES) | {"__version__"})
