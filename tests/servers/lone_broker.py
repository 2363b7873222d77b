"""One broker process on a folder and a Valkey of its own, for proofs that look at one broker."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.rigs.certificate_authority import Authority
from tests.rigs.tokens import AUDIENCE, ISSUER, Provider
from tests.rigs.users import add_user, write_key_file
from tests.servers.broker_process import BrokerProcess
from tests.servers.own_valkey import OwnValkey

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")
OAUTHBEARER = "OAUTHBEARER"
USER, PASSWORD = "ann", "secret"
PATIENT = {
    "view_wait_ms_max": "50000",
    "config_change_ms_max": "50000",
    "authorization_staleness_ms_max": "300000",
    "login_ms_max": "300000",
    "ssl_handshake_ms_max": "300000",
}
"""On a busy machine, a broker answers late. It neither asks its client to try again nor closes the
connection of a slow client."""


@contextmanager
def lone_broker(folder: Path, **settings: str) -> Iterator[BrokerProcess]:
    """Ready. In the end, its log must have no traceback."""
    valkey = OwnValkey(folder)
    valkey.start()
    ours = {"bucket_url": f"file://{folder}/bucket", "redis_url": f"unix://{valkey.path}"}
    broker = BrokerProcess(folder / "broker.log", **(ours | PATIENT | settings))
    try:
        yield broker.wait_until_ready()
        assert "Traceback" not in broker.log.read_text()
    finally:
        broker.kill()
        valkey.stop()


@contextmanager
def login_broker(
    root: Authority, provider: Provider | None = None, **settings: str
) -> Iterator[BrokerProcess]:
    """With listeners of all protocols, and one user who has the same password everywhere. On the
    listener `ADMIN`, everybody is a super user. With a provider, tokens log in, too."""
    issued = root.issue("broker")
    if provider is not None:
        keys = root.folder / "jwks.json"
        keys.write_bytes(provider.document)
        settings |= {
            "sasl_mechanisms": ",".join((*MECHANISMS, OAUTHBEARER)),
            "oauthbearer_jwks_file": str(keys),
            "oauthbearer_issuer": ISSUER,
            "oauthbearer_audiences": AUDIENCE,
        }
    protocols = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
    listeners = ["ADMIN:PLAINTEXT://127.0.0.1:0", *(f"{name}://127.0.0.1:0" for name in protocols)]
    ours = {
        "listeners": ",".join(listeners),
        "ssl_certificate_file": str(issued.certificate),
        "ssl_key_file": str(issued.key),
        "credentials_key_file": str(write_key_file(root.folder / "keys")),
        "sasl_mechanisms": ",".join(MECHANISMS),
        "super_users": "User:ANONYMOUS",
    }
    with lone_broker(root.folder, **(ours | settings)) as broker:
        for mechanism in MECHANISMS[:2]:
            add_user(listener(broker, "ADMIN"), USER, mechanism, PASSWORD)
        yield broker


def listener(broker: BrokerProcess, name: str) -> str:
    return str(broker.ready["listeners"][name])
