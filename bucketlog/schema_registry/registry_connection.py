"""The connection to a schema registry: confluent-kafka's client, and the limits of its answers.

Invariants: each failure is a `BucketlogError`. One request is under way at a time. An answer has at
most `answer_bytes_max` bytes, and arrives within the timeout of a request. The client caches no
answer between calls.
"""

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.extras import needed
from bucketlog.schema_registry.registry_errors import is_absent, public, registry_error

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

T = TypeVar("T")
Method: TypeAlias = Literal["get", "post", "put", "delete"]

URL_VARIABLE = "BUCKETLOG_SCHEMA_REGISTRY_URL"
AUTH_VARIABLE = "BUCKETLOG_SCHEMA_REGISTRY_AUTH"
CA_VARIABLE = "BUCKETLOG_SCHEMA_REGISTRY_CA_FILE"
TIMEOUT_S = 10.0
ANSWER_BYTES_MAX = 16 * 1024 * 1024
_RETRIES = 2
_RETRY_WAIT_MS = 200
_NOT_THEIR_API = (OSError, ValueError, AttributeError, TypeError, KeyError, RecursionError)
"""Errors of the client for an answer that does not come from a registry."""
_UNENCODED = "identity"


def _is_http(url: str) -> bool:
    """Return whether the URL has the scheme http or https, a host, and no invalid port."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port or the brackets of an IPv6 address are invalid
        return False


class RegistryConnection:
    """A registry's addresses, its login and the limits of its answers. Opening sends no request.

    Several threads may use a connection. The parameters are those of `SchemaRegistry`. Raises
    `ConfigurationError`.
    """

    def __init__(
        self,
        url: str | None,
        *,
        auth: tuple[str, str] | None = None,
        ca_file: str | None = None,
        timeout_s: float = TIMEOUT_S,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        url = url or os.environ.get(URL_VARIABLE)
        if not url:
            raise ConfigurationError(
                "no URL of a schema registry",
                remedy=f"SchemaRegistry('http://localhost:8081'), or set {URL_VARIABLE}",
            )
        if not all(_is_http(one.strip()) for one in url.split(",")):
            raise ConfigurationError(
                f"{public(url)!r} is not a URL of a schema registry",
                remedy="as in http://localhost:8081",
            )
        if answer_bytes_max < 1:
            raise ConfigurationError(
                f"answer_bytes_max is {answer_bytes_max}", remedy="give at least 1"
            )
        user_info = ":".join(auth) if auth else os.environ.get(AUTH_VARIABLE)
        ca_file = ca_file or os.environ.get(CA_VARIABLE)
        self.url = url
        self.answer_bytes_max = answer_bytes_max
        self._config: dict[str, Any] = {
            "url": url,
            "timeout": timeout_s,
            "max.retries": _RETRIES,
            "retries.wait.ms": _RETRY_WAIT_MS,
            **({"basic.auth.user.info": user_info} if user_info else {}),
            **({"ssl.ca.location": ca_file} if ca_file else {}),
            **(config or {}),
        }
        self._client: SchemaRegistryClient | None = None
        self._lock = threading.Lock()
        needed("confluent_kafka.schema_registry", "registry")

    def ask(self, what: str, ask: "Callable[[SchemaRegistryClient], T]", *, missing: str) -> T:
        """Return the result of `ask`. `what`: the action, for errors. `missing`: the remedy if the
        registry does not have what was asked for. Raises `BucketlogError`."""
        registry = needed("confluent_kafka.schema_registry", "registry")
        with self._lock:
            if self._client is None:
                self._client = self._open(registry)
            try:
                return ask(self._client)
            except (*_NOT_THEIR_API, _httpx().HTTPError, registry.SchemaRegistryError) as error:
                raise registry_error(error, what, self.url, missing=missing) from error
            finally:
                clear_caches(self._client)

    def request(
        self,
        what: str,
        method: Method,
        path: str,
        read: Callable[[Any], T],
        *,
        missing: str,
        body: Mapping[str, Any] | None = None,
    ) -> T:
        """Send one request of the registry's API, and return the answer as `read` converts it.

        `read` raises `ValueError` for an answer of another shape. Raises `BucketlogError`.
        """

        def ask(client: "SchemaRegistryClient") -> T:
            return read(_sent(client, method, path, body))

        return self.ask(what, ask, missing=missing)

    def find(
        self,
        what: str,
        method: Method,
        path: str,
        read: Callable[[Any], T],
        *,
        body: Mapping[str, Any] | None = None,
    ) -> T | None:
        """Like `request`, but return None if the registry does not have what was asked for."""
        registry = needed("confluent_kafka.schema_registry", "registry")

        def ask(client: "SchemaRegistryClient") -> T | None:
            try:
                return read(_sent(client, method, path, body))
            except registry.SchemaRegistryError as error:
                if is_absent(error):
                    return None
                raise

        return self.ask(what, ask, missing="")

    def _open(self, registry: Any) -> "SchemaRegistryClient":
        try:
            made: SchemaRegistryClient = registry.SchemaRegistryClient(self._config)
            weakref.finalize(self, made.close)
            session = made._rest_client.session
            session.headers["accept-encoding"] = _UNENCODED
            limit = _limit(
                _httpx(), bytes_max=self.answer_bytes_max, seconds_max=self._config["timeout"]
            )
            session.event_hooks = {"response": [limit]}
        except (ValueError, TypeError, OSError) as error:
            raise ConfigurationError(
                f"the schema registry's settings are wrong: {error}", remedy="correct the settings"
            ) from error
        return made


def clear_caches(client: Any) -> None:
    """Clear the client's caches of answers."""
    client.clear_caches()


def _sent(
    client: "SchemaRegistryClient", method: Method, path: str, body: Mapping[str, Any] | None
) -> Any:
    send = getattr(client._rest_client, method)
    return send(path) if body is None else send(path, dict(body))


def _httpx() -> Any:
    """Return httpx2 with confluent-kafka since 2.16, httpx with earlier versions."""
    return needed("confluent_kafka.schema_registry._sync.schema_registry_client", "registry").httpx


def _limit(httpx: Any, *, bytes_max: int, seconds_max: float) -> Callable[[Any], None]:
    """Return a hook of httpx that limits the body of a response."""

    class LimitedStream(httpx.SyncByteStream):  # type: ignore[misc]  # httpx2 or httpx
        def __init__(self, stream: Any) -> None:
            self._stream = stream
            self._until_s = time.monotonic() + seconds_max

        def __iter__(self) -> Iterator[bytes]:
            size = 0
            for piece in self._stream:
                size += len(piece)
                if size > bytes_max:
                    raise ValueError(f"the answer has more than {bytes_max:,} bytes")
                if time.monotonic() > self._until_s:
                    raise TimeoutError(f"the answer took longer than {seconds_max:g} s")
                yield piece

        def close(self) -> None:
            self._stream.close()

    def limit(response: Any) -> None:
        encoding = response.headers.get("content-encoding", _UNENCODED)
        if encoding.lower() != _UNENCODED:  # decoded bytes have no limit
            raise ValueError("the answer is encoded, although the request forbids it")
        response.stream = LimitedStream(response.stream)

    return limit
