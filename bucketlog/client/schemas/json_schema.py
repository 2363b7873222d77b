"""JSON whose JSON Schema is in a registry: what pydantic says of the type."""

import json
from typing import Generic, TypeVar

from bucketlog.client.formats import JsonFormat
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.schema_registry.codec import SchemaText, SchemaType, ValueReader, ValueWriter

T = TypeVar("T")


class JsonSchema(Generic[T]):
    """Reading takes no notice of the writer's schema: the type checks every value."""

    name = "json"
    schema_type: SchemaType = "JSON"

    def __init__(self, declared: type[T]) -> None:
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError

        self.declared = declared
        try:
            self._plain = JsonFormat(declared)
            schema = TypeAdapter(declared).json_schema(by_alias=True)
        except PydanticUserError as error:
            raise ConfigurationError(
                f"{declared!r} has no JSON Schema: {error.message}", remedy="use a pydantic model"
            ) from error
        self._text = json.dumps(schema, separators=(",", ":"))
        self.record_name: str | None = schema.get("title")

    def own_schema(self) -> SchemaText:
        return SchemaText(self._text, self.schema_type)

    def writer(self, schema: SchemaText, header: bytes) -> ValueWriter[T]:
        encode = self._plain.encode
        return lambda value: header + encode(value)

    def reader(self, schema: SchemaText) -> ValueReader[T]:
        decode = self._plain.decode
        return lambda data, at: decode(data[at:])
