"""Chooses the tenant of a connection: by its listener, by TLS's server name, or by its login.

Invariants: the tenant is known before a handler sees a request, other than ApiVersions and those of
the login. A connection never changes its tenant. What the connection holds from then on counts for
the tenant.
"""

from typing import TYPE_CHECKING

from bucketlog.stateless_broker.authentication.login import Login
from bucketlog.stateless_broker.network.connection_owner import Entrance
from bucketlog.stateless_broker.network.memory_budget import payer

if TYPE_CHECKING:
    from bucketlog.stateless_broker.network.connection import Connection


def choose_by_server_name(connection: "Connection", server_name: str) -> str | None:
    """Choose the tenant after the handshake of TLS. Returns the reason to refuse the connection;
    None: it may continue."""
    entrance = connection.entrance
    if entrance.by_server_name is None:
        return None
    found = entrance.by_server_name(server_name)
    if found is not None:
        if found.login_rules is not None:
            connection.login = Login(found.login_rules)
        return _enter(connection, found)
    if entrance.login_rules is None:
        return "no tenant has the server name of its client (docs/tenants.md)"
    return None


def choose_by_realm(connection: "Connection", tenant: str) -> str | None:
    """Choose the tenant after a login. Returns the reason to refuse the connection; None: it may
    continue."""
    if not tenant or connection.service.tenant:
        return None
    return _enter(connection, connection.entrance.by_realm[tenant])


def _enter(connection: "Connection", entrance: Entrance) -> str | None:
    assert entrance.service is not None, "an entrance of a tenant has its service"
    connection.service = entrance.service
    connection.payer = payer(entrance.service.tenant, connection.host)
    connection.incoming.pay_as(connection.payer)
    return connection.owner.placed(connection)
