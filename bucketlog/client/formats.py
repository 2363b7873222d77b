"""How a record's key and value become bytes and come back.

Invariant: `decode(encode(x)) == x`; a format never guesses: bytes it cannot read are an
`InvalidDataError`, which the consumer completes with topic, partition and offset.
"""

from dataclasses import is_dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar, cast, runtime_checkable

from bucketlog.log_format.errors import ConfigurationError, InvalidDataError

T = TypeVar("T")


class Format(Protocol[T]):
    """Protocol of a format: how a key or a value becomes bytes, and how it is read again. Used by
    `Topic`.

    Attributes:
        name: Name of the format, for messages.

    Examples:
        >>> class Reversed:
        ...     name = "reversed"
        ...
        ...     def encode(self, value: str) -> bytes:
        ...         return value[::-1].encode()
        ...
        ...     def decode(self, data: bytes) -> str:
        ...         return data.decode()[::-1]
        >>> words = bucketlog.Topic("words", value=Reversed())
    """

    name: str

    def encode(self, value: T) -> bytes:
        """Return the bytes of a value.

        Args:
            value: Value to encode.

        Returns:
            The bytes to store.

        Raises:
            InvalidDataError: If the value does not have the declared type.
        """

    def decode(self, data: bytes) -> T:
        """Return the value of stored bytes.

        Args:
            data: Stored bytes.

        Returns:
            The value.

        Raises:
            InvalidDataError: If the bytes were not written in this format.
        """


@runtime_checkable
class TopicBoundFormat(Protocol):
    """A format that is another one in each topic; the topic binds it when it is declared."""

    def bound(self, topic: str, part: Literal["key", "value"]) -> Any: ...


@runtime_checkable
class BlockingFormat(Protocol):
    """A format that asks a server at times. Whoever must not wait (an event loop) looks first."""

    def encodes_at_once(self) -> bool: ...

    def prepare_to_encode(self) -> None:
        """May wait; then `encode` does not. Raises `BucketlogError`."""

    def decodes_at_once(self, data: bytes) -> bool: ...


class RawFormat:
    """Bytes as they are."""

    name = "raw"

    def encode(self, value: bytes) -> bytes:
        if not isinstance(value, bytes):
            raise InvalidDataError(
                f"a raw topic takes bytes, not {type(value).__name__}",
                remedy="declare the topic with value=str or a pydantic model",
            )
        return value

    def decode(self, data: bytes) -> bytes:
        return data


class TextFormat:
    """UTF-8."""

    name = "text"

    def encode(self, value: str) -> bytes:
        if not isinstance(value, str):
            raise InvalidDataError(
                f"a text topic takes str, not {type(value).__name__}",
                remedy="convert it, or declare the topic with that type",
            )
        return value.encode()

    def decode(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise InvalidDataError(
                f"not UTF-8: {error}", remedy="read the topic with bytes instead of str"
            ) from error


class JsonFormat(Generic[T]):
    """Any type that pydantic can validate, as compact JSON.

    A model is written by its aliases where it has some, so that it reads back. A value that is not
    an instance of the declared type is refused before anything is sent.
    """

    name = "json"

    def __init__(self, declared: type[T]) -> None:
        from pydantic import TypeAdapter

        self.declared = declared
        adapter: TypeAdapter[T] = TypeAdapter(declared)
        self._dump = adapter.serializer.to_json
        self._load = adapter.validator.validate_json
        self._accepts = accepted_class(declared)

    def encode(self, value: T) -> bytes:
        if not isinstance(value, self._accepts):
            raise type_mismatch(value, self.declared)
        try:
            return self._dump(value, by_alias=True, warnings="error")
        except ValueError as error:  # pydantic's serialization errors are ValueErrors
            raise InvalidDataError(
                f"expected {type_name(self.declared)}, got {type(value).__name__}: "
                f"{first_line(error)}",
                remedy="send what the topic was declared with",
            ) from error

    def decode(self, data: bytes) -> T:
        try:
            return cast(T, self._load(data))
        except ValueError as error:
            raise InvalidDataError(
                f"does not decode as {type_name(self.declared)}: {first_line(error)}",
                remedy="read the topic with bytes to see the record",
            ) from error


def accepted_class(declared: Any) -> type:
    """What a value must be an instance of. Needed for models and dataclasses, because pydantic
    writes another one by its own schema without a word; what is not a class is checked by
    pydantic."""
    from pydantic import BaseModel

    if isinstance(declared, type) and (issubclass(declared, BaseModel) or is_dataclass(declared)):
        return declared
    return object


def type_mismatch(value: object, declared: object) -> InvalidDataError:
    return InvalidDataError(
        f"expected {type_name(declared)}, got {type(value).__name__}",
        remedy="send what the topic was declared with",
    )


def type_name(declared: object) -> str:
    return getattr(declared, "__name__", None) or str(declared)


def first_line(error: Exception) -> str:
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "value"
        return f"{where}: {first['msg']}"
    return (str(error).splitlines() or [type(error).__name__])[0]


def format_of(declared: Any) -> Format[Any]:
    """The format for a declared type: bytes raw, str as UTF-8, all else JSON by pydantic.

    An object with `encode` and `decode` is a format itself. Raises `ConfigurationError`.
    """
    if declared is bytes:
        return RawFormat()
    if declared is str:
        return TextFormat()
    if not isinstance(declared, type) and hasattr(declared, "encode"):
        return cast(Format[Any], declared)
    from pydantic.errors import PydanticUserError

    try:
        return JsonFormat(declared)
    except PydanticUserError as error:
        raise ConfigurationError(
            f"{declared!r} is not a type for records: {error.message}",
            remedy="use bytes, str or a pydantic model",
        ) from error
