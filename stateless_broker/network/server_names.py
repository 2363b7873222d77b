"""The server name that a TLS client asks for (SNI, RFC 6066), where tenants are chosen by it."""

import ssl
from collections.abc import Callable, Mapping

from bucketlog.stateless_broker.network.connection_owner import Entrance
from bucketlog.stateless_broker.network.tls_context import LoadedTls, load_tls
from bucketlog.stateless_broker.settings.tls import TlsSettings


class NamedTls(ssl.SSLObject):
    """The broker's side of a connection whose client may name a server."""

    server_name = ""


def server_name(tls: ssl.SSLObject) -> str:
    """Return the server name in lower case. Empty if the client named none, or names do not
    count."""
    return tls.server_name if isinstance(tls, NamedTls) else ""


def load_tls_with_names(settings: TlsSettings) -> LoadedTls:
    """Load TLS as `load_tls` does, with a context that notes server names."""
    loaded = load_tls(settings)
    loaded.context.sslobject_class = NamedTls
    loaded.context.sni_callback = _note
    return loaded


def _note(tls: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
    if isinstance(tls, NamedTls) and name is not None:
        tls.server_name = name.lower().rstrip(".")


def by_first_label(entrances: Mapping[str, Entrance]) -> Callable[[str], Entrance | None]:
    """The entrance of the tenant that a server name begins with, as in `acme.kafka.example.com`;
    None if it begins with no tenant."""

    def entrance_of(name: str) -> Entrance | None:
        label, dot, _ = name.partition(".")
        return entrances.get(label) if dot else None

    return entrance_of
