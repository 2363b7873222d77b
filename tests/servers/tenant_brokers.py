"""A broker process with two tenants, which are chosen in all ways.

Listeners: `ACME` and `GLOBEX` belong to one tenant each, and are plain text. On `REALMS`, the login
names the tenant. On `NAMES`, TLS's server name does; else the login.
"""

from collections.abc import Sequence
from pathlib import Path

from tests.rigs.certificate_authority import Authority
from tests.rigs.users import write_key_file
from tests.servers.broker_process import BrokerProcess, Start

ACME, GLOBEX = TENANTS = ("acme", "globex")
HOST = "kafka.test"
OWN_LISTENERS = {name: name.upper() for name in TENANTS}

WALKED = {
    "listeners": "ACME:PLAINTEXT://127.0.0.1:0,GLOBEX:PLAINTEXT://127.0.0.1:0",
    "authorization": "true",
    "super_users": "User:ANONYMOUS",
    "transactions": "true",
    "auto_create_topics": "false",
    "config_change_ms_max": "50000",
    "group_initial_rebalance_delay_ms": "0",
}
"""Settings of a broker whose APIs are all walked. Everybody is a super user of the own tenant."""


def tenant_file(folder: Path, **more: str) -> Path:
    """`more` are lines of single tenants, by name."""
    file = folder / "tenants.toml"
    file.write_text(
        "".join(
            f'[{name}]\nlisteners = ["{listener}"]\n{more.get(name, "")}\n'
            for name, listener in OWN_LISTENERS.items()
        )
    )
    return file


def tenant_settings(root: Authority, ports: Sequence[int] = (0, 0, 0, 0)) -> dict[str, str]:
    """Without the file of tenants. All ports are free ones by default."""
    hosts = ("localhost", "127.0.0.1", HOST, *(f"{name}.{HOST}" for name in TENANTS))
    issued = root.issue("broker", hosts=hosts)
    acme, globex, realms, names = ports
    return {
        "listeners": f"ACME:PLAINTEXT://127.0.0.1:{acme},GLOBEX:PLAINTEXT://127.0.0.1:{globex},"
        f"REALMS:SASL_PLAINTEXT://127.0.0.1:{realms},NAMES:SASL_SSL://localhost:{names}",
        "ssl_certificate_file": str(issued.certificate),
        "ssl_key_file": str(issued.key),
        "credentials_key_file": str(write_key_file(root.folder / "keys")),
        "sasl_mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256,PLAIN",
    }


def start_with_tenants(
    start: Start, root: Authority, *, lines: str = "", **settings: str
) -> BrokerProcess:
    """Ready. `lines` are further ones of each tenant in the file."""
    more = dict.fromkeys(TENANTS, lines)
    return start(
        **tenant_settings(root),
        **{"tenants_file": str(tenant_file(root.folder, **more))} | settings,
    ).wait_until_ready()


def address(broker: BrokerProcess, listener: str) -> str:
    return str(broker.ready["listeners"][listener])
