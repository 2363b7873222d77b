"""Avro, by the schema of a Python class."""

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, TypeVar, cast

from bucketlog.client.formats import accepted_class, first_line, type_mismatch, type_name
from bucketlog.client.schemas.avro_data import AvroValueEncoder
from bucketlog.client.schemas.avro_exact_values import python_reader, with_exact_values
from bucketlog.client.schemas.avro_kinds import (
    ParsedSchema,
    all_nodes,
    kind_of,
    named_within,
)
from bucketlog.client.schemas.avro_reading import AvroValueDecoder, SchemaResolution
from bucketlog.client.schemas.avro_types import derive
from bucketlog.client.schemas.codec import SchemaText, SchemaType, ValueReader, ValueWriter
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError
from bucketlog.log_format.extras import needed

T = TypeVar("T")

_UNWRITABLE = (TypeError, ValueError, OverflowError, AttributeError, KeyError, RecursionError)
_NO_SCHEMA = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
_NAMED_LEVELS_MAX = 100
_CHECKED = ("__fastavro_parsed", "__named_schemas")
_UNREADABLE = (ValueError, EOFError, IndexError, KeyError, OverflowError, ArithmeticError)


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
        with _within_bounds():
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
        with _within_bounds():
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


def parsed_schema(schema: SchemaText) -> ParsedSchema:
    """As fastavro takes it, with what it refers to. Raises `InvalidDataError`."""
    fastavro = needed("fastavro", "avro")
    from fastavro.schema import SchemaParseException, UnknownType

    known: dict[str, Any] = {}
    try:
        for text in schema.references.values():
            fastavro.parse_schema(_json(text), named_schemas=known)
        return ParsedSchema(fastavro.parse_schema(_json(schema.text), named_schemas=known), known)
    except (SchemaParseException, UnknownType, *_NO_SCHEMA) as error:
        raise InvalidDataError(
            f"no Avro schema: {type(error).__name__}: {error}", remedy="correct the schema"
        ) from error


def _json(text: str) -> Any:
    """Parse the text of a schema, without the marks of schemas that fastavro has checked."""
    return json.loads(
        text, object_hook=lambda node: {key: node[key] for key in node if key not in _CHECKED}
    )


def data_reader(parsed: ParsedSchema, *, with_names: bool = True) -> Callable[[bytes, int], Any]:
    """Reads data of a parsed schema, to its last byte. Raises `InvalidDataError`.

    `with_names`: a record in a union of several comes as (its full name, it).

    A schema that contains itself, or has many levels of names, is read by fastavro's Python, whose
    recursion ends in an error: deep data would overflow the stack of the compiled reader, and end
    the process.
    """
    with _within_bounds():
        schema = with_exact_values(parsed)
        if _is_deep(parsed):
            read = python_reader(schema)
        else:
            read = needed("fastavro", "avro").schemaless_reader
        may_be_endless = _may_be_endless(parsed)
    if may_be_endless:
        raise InvalidDataError(
            "its schema has arrays of items without bytes: a short record could name any number",
            remedy="give the items a field",
        )

    def decode(data: bytes, at: int) -> Any:
        stream = io.BytesIO(data)
        stream.seek(at)
        try:
            datum = read(stream, schema, None, with_names, True)
        except (*_UNREADABLE, RecursionError, TypeError) as error:
            raise InvalidDataError(
                f"no Avro data of its schema: {type(error).__name__}: {error}",
                remedy="read the topic with bytes to see the record",
            ) from error
        if stream.tell() != len(data):
            raise InvalidDataError(
                f"no Avro data of its schema: {len(data) - stream.tell()} bytes are left over",
                remedy="read the topic with bytes to see the record",
            )
        return datum

    return decode


@contextmanager
def _within_bounds() -> Iterator[None]:
    """Raises `InvalidDataError` for a schema of too many levels."""
    try:
        yield
    except RecursionError as error:
        raise InvalidDataError(
            "its Avro schema is nested too deeply", remedy="read the topic with bytes"
        ) from error


def _is_deep(parsed: ParsedSchema) -> bool:
    """Return True if a type contains itself, or if more than `_NAMED_LEVELS_MAX` types with names
    are inside each other."""
    inside = {name: named_within(node, parsed.named) for name, node in parsed.named.items()}
    for _ in range(_NAMED_LEVELS_MAX):
        for name in [name for name, others in inside.items() if not others & inside.keys()]:
            del inside[name]
    return bool(inside)


def _may_be_endless(parsed: ParsedSchema) -> bool:
    named = parsed.named
    empty: dict[str, bool] = {}

    def is_empty(node: Any) -> bool:
        node = named.get(node, node) if isinstance(node, str) else node
        match kind_of(node):
            case "null":
                return True
            case "record":
                name = node["name"]
                if name not in empty:
                    empty[name] = True  # one that contains itself alone
                    empty[name] = all(is_empty(field["type"]) for field in node["fields"])
                return empty[name]
            case "fixed":
                return bool(node["size"] == 0)
        return False

    return any(
        is_empty(one["items"])
        for one in all_nodes(parsed)
        if isinstance(one, dict) and one.get("type") == "array"
    )
