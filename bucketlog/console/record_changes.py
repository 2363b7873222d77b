"""The change that produces a record."""

import base64
import binascii
import json
import shlex
from urllib.parse import urlencode

from bucketlog.client.lines import content_row
from bucketlog.client.topic import Topic
from bucketlog.console.changes import (
    ChangePlan,
    ChangeScene,
    FieldKind,
    FormField,
    LogChange,
    PlanRow,
    assignments,
    optional_number,
    required_name,
)
from bucketlog.console.figures_text import shortened, size_text
from bucketlog.console.topic_changes import TOPIC
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.printable import printable_json

CHOSEN = "(chosen by the key)"
NOTHING = "(none)"
SHOWN_CHARS = 200
FORMS = ("text", "base64", "null")
PARTITION = FormField(
    "partition",
    "Partition",
    FieldKind.NUMBER,
    "Empty: the partition of the key, or a random partition.",
)
KEY = FormField("key", "Key", hint="Empty: the record has no key.")
VALUE_FORM = FormField(
    "form",
    "Form of the value",
    FieldKind.CHOICE,
    "The form null makes a tombstone, which deletes the key from a compacted topic.",
    FORMS,
)
VALUE = FormField("value", "Value", FieldKind.LINES)
HEADERS = FormField("headers", "Headers", FieldKind.LINES, "One NAME=VALUE on each line.")


def produce_record(scene: ChangeScene) -> ChangePlan:
    values, log = scene.values, scene.log
    name, key = required_name(values, TOPIC), values.text(KEY.name) or None
    value, headers = _value(scene), assignments(values, HEADERS)
    partitions = log.topics.partition_count(name)
    partition = optional_number(values, PARTITION, most=partitions - 1)

    def apply() -> str:
        # The producer gives up before the page does: closing it waits as long.
        with log.producer(linger_ms=0, delivery_timeout_s=log.timeout_s) as producer:
            sent = producer.send(
                Topic(name),
                value,
                key=None if key is None else key.encode(),
                headers=headers,
                partition=partition,
            ).result()
        return f"The record has offset {sent.offset} in partition {sent.partition} of {name}."

    return ChangePlan(
        title=f"Produce a record to the topic {name}",
        button="Produce the record",
        rows=[
            PlanRow("partition", "", CHOSEN if partition is None else str(partition)),
            PlanRow("key", "", NOTHING if key is None else shortened(key, SHOWN_CHARS)),
            PlanRow("value", "", "null: a tombstone" if value is None else _described(value)),
            *(PlanRow(f"header {header}", "", text) for header, text in headers.items()),
        ],
        command=_command(scene, name, key, value, headers, partition),
        apply=apply,
        page=f"messages?{urlencode({'topic': name} | _where(partition))}",
    )


def _where(partition: int | None) -> dict[str, str]:
    return {} if partition is None else {"partition": str(partition)}


def _value(scene: ChangeScene) -> bytes | None:
    form, text = scene.values.choice(VALUE_FORM.name, FORMS), scene.values.text(VALUE.name)
    if form == "null":
        if text:
            raise ConfigurationError(
                "the form is null, and there is a value",
                remedy="empty the value, or change the form",
            )
        return None
    if form == "base64":
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except (ValueError, binascii.Error) as error:
            raise ConfigurationError(
                f"the value is not base64: {error}", remedy="use the form text for plain text"
            ) from error
    return text.replace("\r\n", "\n").encode()  # browsers send each end of a line as CR LF


def _described(value: bytes) -> str:
    text = value.decode(errors="replace")
    return f"{size_text(len(value))}: {shortened(text, SHOWN_CHARS)}" if value else "empty"


def _command(
    scene: ChangeScene,
    name: str,
    key: str | None,
    value: bytes | None,
    headers: dict[str, str],
    partition: int | None,
) -> str:
    """The record as a line that `bucketlog produce --jsonl` reads."""
    content = content_row(
        None if key is None else key.encode(),
        value,
        ((header, text.encode()) for header, text in headers.items()),
    )
    words = [] if partition is None else ["--partition", str(partition)]
    produce = scene.command("produce", "--jsonl", *words, name=name)
    return f"printf '%s\\n' {shlex.quote(printable_json(json.dumps(content)))} | {produce}"


RECORD_CHANGES = (
    LogChange(
        "produce",
        "Produce a record",
        (TOPIC, PARTITION, KEY, VALUE_FORM, VALUE, HEADERS),
        produce_record,
    ),
)
