"""What a format with a schema offers to a registry."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, TypeVar

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
T_co = TypeVar("T_co", covariant=True)

SchemaType: TypeAlias = Literal["AVRO", "JSON", "PROTOBUF"]


@dataclass(frozen=True)
class SchemaText:
    """A schema as a registry keeps it. `references` are what it refers to, by name, each after
    those that it refers to itself; `imports` the same as a tree, of what is to be registered."""

    text: str
    type: SchemaType
    references: Mapping[str, str] = field(default_factory=dict)
    imports: tuple[tuple[str, "SchemaText"], ...] = ()


class ValueWriter(Protocol[T_contra]):
    def __call__(self, value: T_contra, /) -> bytes:
        """Raises `InvalidDataError`."""


class ValueReader(Protocol[T_co]):
    def __call__(self, data: bytes, at: int, /) -> T_co:
        """Of `data` from byte `at` on. Raises `InvalidDataError`."""


class SchemaCodec(Protocol[T]):
    """Both ways between values and bytes, by schemas."""

    name: str
    schema_type: SchemaType

    @property
    def declared(self) -> type[T]:
        """The type of the values."""

    @property
    def record_name(self) -> str | None:
        """By which subjects may be named."""

    def own_schema(self) -> SchemaText: ...

    def writer(self, schema: SchemaText, header: bytes) -> ValueWriter[T]:
        """By this schema, every value behind `header`. Raises `InvalidDataError`."""

    def reader(self, schema: SchemaText) -> ValueReader[T]:
        """Of what this schema wrote. Raises `InvalidDataError`."""
