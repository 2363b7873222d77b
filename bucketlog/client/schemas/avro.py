"""Avro, by the schema of a Python class."""

import io
import json
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar, cast

from bucketlog.client.formats import accepted_class, first_line, type_mismatch, type_name
from bucketlog.client.schemas.avro_data import AvroValueEncoder
from bucketlog.client.schemas.avro_reading import AvroValueDecoder, SchemaResolution
from bucketlog.client.schemas.avro_types import derive
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError
from bucketlog.log_format.extras import needed
from bucketlog.schema_registry.avro_parsing import data_reader, parsed_schema, within_bounds
from bucketlog.schema_registry.codec import SchemaText, SchemaType, ValueReader, ValueWriter

T = TypeVar("T")

_UNWRITABLE = (TypeError, ValueError, OverflowError, AttributeError, KeyError, RecursionError)


class Avro(Generic[T]):
    r"""Format of Avro data without a header: producers and consumers must know the schema.

    Args:
        declared: Class of the values: a pydantic model, a dataclass, or another type that pydantic
            knows.
        name: Full name of the outermost record, as in "com.shop.Order"; None means the name of the
            class.
        aliases: Earlier full names of this record.
        schema: Schema, as text or as parsed JSON, which must have the fields of the class; None
            means that the schema is derived from the class.

    Raises:
        ConfigurationError: If the class has no Avro schema, or does not fit the given one.

    Examples:
        >>> bills = bucketlog.Topic("bills", value=bucketlog.Avro(Order, name="com.shop.Order"))
        >>> bills.value_format.encode(Order(id="1", amount=9.5))
        b'\x021\x00\x00\x00\x00\x00\x00#@'
    """

    name = "avro"
    schema_type: SchemaType = "AVRO"

    def __init__(
        self,
        declared: type[T],
        *,
        name: str | None = None,
        aliases: Iterable[str] = (),
        schema: str | Mapping[str, Any] | None = None,
    ) -> None:
        from pydantic import TypeAdapter

        self._fastavro = needed("fastavro", "avro")
        self.declared = declared
        self._derived = derive(declared, name, aliases)
        self._accepts = accepted_class(declared)
        self._validate = TypeAdapter(declared).validator.validate_python
        if schema is None:
            self.schema = json.dumps(self._derived.schema, separators=(",", ":"))
        else:
            self.schema = schema if isinstance(schema, str) else json.dumps(schema)
        own = SchemaText(self.schema, self.schema_type)
        try:
            self._write = self.writer(own, b"")
            self._read: ValueReader[T] | None = self.reader(own)
        except InvalidDataError as error:
            raise ConfigurationError(
                f"{type_name(declared)} and its schema: {error.message}", remedy=error.remedy
            ) from error

    @property
    def record_name(self) -> str | None:
        """Full name of the outermost record; None for a schema whose outermost type has no name."""
        schema = parsed_schema(self.own_schema()).schema
        return schema["name"] if isinstance(schema, dict) and "name" in schema else None

    def own_schema(self) -> SchemaText:
        """Return the schema of the class.

        Returns:
            The text and the type of the schema.

        Raises:
            ConfigurationError: If the class has no Avro schema, when the format is made.
        """
        return SchemaText(self.schema, self.schema_type)

    def encode(self, value: T) -> bytes:
        """Return the Avro data of a value.

        Args:
            value: Value of the declared class.

        Returns:
            The bytes to store.

        Raises:
            InvalidDataError: If the value does not have the declared class, or does not fit the
                schema.
        """
        return self._write(value)

    def decode(self, data: bytes) -> T:
        """Return the value of Avro data.

        Args:
            data: Stored bytes.

        Returns:
            A value of the declared class.

        Raises:
            InvalidDataError: If the bytes are not data of the schema.
        """
        assert self._read is not None
        return self._read(data, 0)

    def writer(self, schema: SchemaText, header: bytes) -> ValueWriter[T]:
        """Return a function that encodes values by a schema of a registry.

        Args:
            schema: Schema to write.
            header: Bytes to put before the data of each value.

        Returns:
            A function from a value to bytes.

        Raises:
            InvalidDataError: If the schema is not valid.
        """
        parsed = parsed_schema(schema)
        whole = parsed.schema
        with within_bounds():
            convert = AvroValueEncoder(parsed, self._derived.names).root(self.declared)
        write, accepts, declared = self._fastavro.schemaless_writer, self._accepts, self.declared

        def encode(value: T) -> bytes:
            if not isinstance(value, accepts):
                raise type_mismatch(value, declared)
            out = io.BytesIO()
            out.write(header)
            try:
                write(out, whole, value if convert is None else convert(value))
            except _UNWRITABLE as error:
                raise InvalidDataError(
                    f"a {type(value).__name__} does not fit its Avro schema: {error}",
                    remedy="send what the topic was declared with",
                ) from error
            return out.getvalue()

        return encode

    def reader(self, schema: SchemaText) -> ValueReader[T]:
        """Return a function that decodes what a schema of a registry has written.

        Args:
            schema: Schema with which the data was written.

        Returns:
            A function from bytes, and the position of the data in them, to a value.

        Raises:
            InvalidDataError: If the class cannot take data of this schema.
        """
        parsed = parsed_schema(schema)
        with within_bounds():
            SchemaResolution(parsed, self._derived).check()
            convert = AvroValueDecoder(parsed, self._derived.names).root()
        read = data_reader(parsed)
        validate, declared = self._validate, self.declared

        def decode(data: bytes, at: int) -> T:
            datum = read(data, at)
            try:
                made = validate(datum if convert is None else convert(datum), strict=False)
            except (ValueError, RecursionError) as error:
                raise InvalidDataError(
                    f"does not decode as {type_name(declared)}: {first_line(error)}",
                    remedy="read the topic with bytes to see the record",
                ) from error
            return cast(T, made)

        return decode
