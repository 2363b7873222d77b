"""Names of spans, attributes and metrics, from OpenTelemetry's semantic conventions.

The names are those of version 1.44.0. Version 1.45.0 renames two of them: `messaging.system` to
`messaging.system.name`, and `messaging.kafka.offset` to `kafka.offset`. The conventions for
messaging are not stable yet. `SCHEMA_URL` tells backends which version the names have.
"""

from typing import Final

SCOPE: Final = "bucketlog"
SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.44.0"

SYSTEM: Final = "messaging.system"
KAFKA: Final = "kafka"
OPERATION_NAME: Final = "messaging.operation.name"
OPERATION_TYPE: Final = "messaging.operation.type"
DESTINATION: Final = "messaging.destination.name"
PARTITION: Final = "messaging.destination.partition.id"
OFFSET: Final = "messaging.kafka.offset"
TOMBSTONE: Final = "messaging.kafka.message.tombstone"
GROUP: Final = "messaging.consumer.group.name"
CLIENT_ID: Final = "messaging.client.id"
MESSAGE_COUNT: Final = "messaging.batch.message_count"
ERROR_TYPE: Final = "error.type"

SENT_MESSAGES: Final = "messaging.client.sent.messages"
CONSUMED_MESSAGES: Final = "messaging.client.consumed.messages"
OPERATION_DURATION: Final = "messaging.client.operation.duration"
PROCESS_DURATION: Final = "messaging.process.duration"
MESSAGES_UNIT: Final = "{message}"
DURATION_UNIT: Final = "s"
DURATION_BOUNDS_S: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25),
    *(0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
)
