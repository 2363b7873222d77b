"""The schema registry: Confluent's REST API, through confluent-kafka's client.

Invariants: answers are cached, failures are not, and the cache is bounded. If the registry is out
of reach, the error is a `SchemaRegistryError`, never an error of the record.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from bucketlog.client.schemas.registered import RegistryFormat
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.extras import needed
from bucketlog.schema_registry.codec import SchemaText
from bucketlog.schema_registry.newest_entries import keep_newest
from bucketlog.schema_registry.registered_schema import id_in
from bucketlog.schema_registry.registered_schemas import RegisteredSchemas
from bucketlog.schema_registry.registry_connection import (
    ANSWER_BYTES_MAX,
    TIMEOUT_S,
    RegistryConnection,
)

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
    from google.protobuf.message import Message

T = TypeVar("T")
M = TypeVar("M", bound="Message")

Naming: TypeAlias = Literal["topic", "record", "topic-record"]
"""A subject is <topic>-value (or -key), the record's full name, or <topic>-<full name>."""

IDS_MAX = 1000
"""Largest number of cached ids."""


class SchemaRegistry:
    """Schema registry, and formats whose schemas it has. Several threads may use one.

    A format writes values with the schema of its class, which it registers if necessary. Making a
    `SchemaRegistry` sends no request.

    Args:
        url: Addresses of the registry, comma-separated; None means BUCKETLOG_SCHEMA_REGISTRY_URL of
            the environment.
        auth: User and password; None means BUCKETLOG_SCHEMA_REGISTRY_AUTH of the environment
            (`user:password`), or no login.
        ca_file: File with the certificates of the authorities that the client trusts, in PEM; None
            means the file of BUCKETLOG_SCHEMA_REGISTRY_CA_FILE, or the system's authorities.
        timeout_s: Longest time that a request waits for its answer, in seconds. A request that
            fails temporarily is sent up to three times. Default: 10.
        answer_bytes_max: Largest size of an answer, and of the schemas that a schema refers to, in
            bytes. Default: 16 MiB.
        naming: How subjects are named: "topic" as `orders-value`, "record" as `com.shop.Order`,
            "topic-record" as `orders-com.shop.Order`.
        auto_register: Whether formats register the schema of a class that the registry does not
            have.
        use_latest: Whether values are written with the latest schema of the subject instead of the
            schema of the class.
        config: Further settings of confluent-kafka's client, such as client certificates, OAuth and
            proxies; None means no further settings.

    Raises:
        ConfigurationError: If an option is not valid, or if no address is known.

    Examples:
        >>> registry = bucketlog.SchemaRegistry("http://localhost:8081")
        >>> bucketlog.Topic("orders", value=registry.avro(Order), key=str)
        Topic('orders', value=..., key=text)
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        auth: tuple[str, str] | None = None,
        ca_file: str | None = None,
        timeout_s: float = TIMEOUT_S,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
        naming: Naming = "topic",
        auto_register: bool = True,
        use_latest: bool = False,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        if naming not in ("topic", "record", "topic-record"):
            raise ConfigurationError(
                f"{naming!r} names no subjects",
                remedy='naming is "topic", "record", "topic-record"',
            )
        self.naming: Naming = naming
        self.auto_register = auto_register
        self.use_latest = use_latest
        self._connection = RegistryConnection(
            url,
            auth=auth,
            ca_file=ca_file,
            timeout_s=timeout_s,
            answer_bytes_max=answer_bytes_max,
            config=config,
        )
        self.url = self._connection.url
        self._schemas = RegisteredSchemas(self._connection)
        self._ids: dict[tuple[str, str], int] = {}
        """Ids of registered schemas, by subject and text."""

    def avro(
        self,
        declared: type[T],
        *,
        name: str | None = None,
        aliases: Iterable[str] = (),
        schema: str | Mapping[str, Any] | None = None,
    ) -> RegistryFormat[T]:
        """Return a format of Avro data whose schema is in the registry.

        Args:
            declared: Class of the values: a pydantic model, a dataclass, or another type that
                pydantic knows.
            name: Full name of the outermost record, as in "com.shop.Order"; None means the name of
                the class.
            aliases: Earlier full names of this record.
            schema: Schema, as text or as parsed JSON, which must have the fields of the class; None
                means that the schema is derived from the class.

        Returns:
            A format for `Topic`.

        Raises:
            ConfigurationError: If the class has no Avro schema, or does not fit the given one.
        """
        from bucketlog.client.schemas.avro import Avro

        return RegistryFormat(self, Avro(declared, name=name, aliases=aliases, schema=schema))

    def json(self, declared: type[T]) -> RegistryFormat[T]:
        """Return a format of JSON whose JSON Schema, as pydantic derives it, is in the registry.

        Args:
            declared: Class of the values: a pydantic model, a dataclass, or another type that
                pydantic knows.

        Returns:
            A format for `Topic`.

        Raises:
            ConfigurationError: If pydantic has no JSON Schema of the class.
        """
        from bucketlog.client.schemas.json_schema import JsonSchema

        return RegistryFormat(self, JsonSchema(declared))

    def protobuf(self, declared: type[M]) -> RegistryFormat[M]:
        """Return a format of Protobuf data whose schema, with the schemas that it imports, is in
        the registry.

        Args:
            declared: Message class that `protoc` has generated, such as `order_pb2.Order`.

        Returns:
            A format for `Topic`.

        Raises:
            ConfigurationError: If `declared` is not a generated message class.
        """
        from bucketlog.client.schemas.protobuf import Protobuf

        return RegistryFormat(self, Protobuf(declared))

    def schema(self, schema_id: int) -> SchemaText:
        """Return the schema of an id.

        Args:
            schema_id: Id of the schema in the registry.

        Returns:
            The text, the type and the references of the schema.

        Raises:
            InvalidDataError: If the registry has no schema of this id.
            SchemaRegistryError: If the registry does not answer.
        """
        return self._schemas.schema(schema_id)

    def register(self, subject: str, schema: SchemaText) -> int:
        """Return the id of a schema, and register the schema if `auto_register` allows it.

        Args:
            subject: Name of the subject.
            schema: Text, type and references of the schema.

        Returns:
            The id of the schema.

        Raises:
            IncompatibleSchemaError: If the schema is not compatible with earlier ones of the
                subject.
            SchemaRegistryError: If the registry does not answer, or does not have the schema and
                `auto_register` is False.
        """

        def ask(client: "SchemaRegistryClient") -> int:
            made = self._with_imports(client, schema)
            if self.auto_register:
                return id_in(client.register_schema(subject, made))
            return id_in(client.lookup_schema(subject, made).schema_id)

        found = self._ids.get((subject, schema.text))
        if found is None:
            found = self._ask(f"registering the schema of subject {subject!r}", ask)
            keep_newest(self._ids, (subject, schema.text), found, count_max=IDS_MAX)
        return found

    def latest(self, subject: str) -> tuple[int, SchemaText]:
        """Return the latest schema of a subject.

        Args:
            subject: Name of the subject.

        Returns:
            The id of the schema, and its text, type and references.

        Raises:
            SchemaRegistryError: If the registry does not have the subject, or does not answer.
        """

        def ask(client: "SchemaRegistryClient") -> tuple[int, SchemaText]:
            schema_id = id_in(client.get_latest_version(subject).schema_id)
            return schema_id, self._schemas.fetch(client, schema_id)

        return self._ask(f"asking for the latest schema of subject {subject!r}", ask)

    def _ask(self, what: str, ask: "Callable[[SchemaRegistryClient], T]") -> T:
        register = (
            "leave out use_latest" if self.auto_register else "auto_register=True registers it"
        )
        return self._connection.ask(what, ask, missing=f"register it first; {register}")

    def _with_imports(self, client: "SchemaRegistryClient", schema: SchemaText) -> "Schema":
        registry = needed("confluent_kafka.schema_registry", "registry")
        references = []
        for name, inner in schema.imports:
            made = self._with_imports(client, inner)
            if self.auto_register:
                client.register_schema(name, made)
            version = client.lookup_schema(name, made).version
            references.append(registry.SchemaReference(name, name, version))
        whole: Schema = registry.Schema(schema.text, schema.type, references)
        return whole
