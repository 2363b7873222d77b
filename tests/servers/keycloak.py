"""Keycloak, a provider of OpenID Connect, as `scripts/install.sh keycloak` installs it.

Each process runs in a copy of the installed folder, because Keycloak writes into its own folder
when it starts. It has one realm, with a client for each kind of token that tests want.
"""

import json
import os
import shutil
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import jwt
import psutil

from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from localstack.kafka_jars import java_program
from tests.rigs.certificate_authority import KeyPair
from tests.rigs.patience import PATIENCE_S, Deadline
from tests.servers.cluster import free_port

INSTALL = "scripts/install.sh keycloak"
ROOT = Path(__file__).parents[2]
REALM, AUDIENCE, SECRET, ADMIN = "tests", "kafka", "a secret", "admin"
CLIENT, SHORT, STRANGER = "ann", "short", "stranger"
"""Clients of the realm: one with usual tokens, one with tokens of `SHORT_S`, and one whose tokens
are for another audience."""
SHORT_S = 12
START_S = 4 * PATIENCE_S
"""Keycloak builds itself at its first start, which takes a minute on two idle cores."""
_JAVA = "-Xmx512m -XX:TieredStopAtLevel=1"


class KeycloakStartError(BucketlogError):
    code = "KEYCLOAK_START"


def installed_keycloak() -> Path:
    """Waits for an installation that is under way. Raises `ConfigurationError`."""
    done = subprocess.run(
        [ROOT / "scripts" / "install.sh", "--where", "keycloak"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ConfigurationError("Keycloak is not installed", remedy=INSTALL)
    (found,) = Path(done.stdout.strip()).glob("keycloak-*")
    return found


def _client(name: str, audience: str, **attributes: str) -> dict[str, Any]:
    mapper = {
        "name": "audience",
        "protocol": "openid-connect",
        "protocolMapper": "oidc-audience-mapper",
        "config": {"included.custom.audience": audience, "access.token.claim": "true"},
    }
    return {
        "clientId": name,
        "secret": SECRET,
        "serviceAccountsEnabled": True,
        "standardFlowEnabled": False,
        "protocolMappers": [mapper],
        "attributes": attributes,
    }


class Keycloak:
    """A process of it, with plain http and with TLS. All URLs are on this machine."""

    def __init__(self, folder: Path, certificate: KeyPair) -> None:
        """Raises `ConfigurationError`."""
        installed = installed_keycloak()
        self.version = installed.name.removeprefix("keycloak-")
        self._home = home = folder / "keycloak"
        shutil.copytree(installed, home)
        clients = [
            _client(CLIENT, AUDIENCE),
            _client(SHORT, AUDIENCE, **{"access.token.lifespan": str(SHORT_S)}),
            _client(STRANGER, "another service"),
        ]
        realm = {"realm": REALM, "enabled": True, "sslRequired": "none", "clients": clients}
        (home / "data" / "import").mkdir(parents=True)
        (home / "data" / "import" / "realm.json").write_text(json.dumps(realm))
        self._http, https = f"http://127.0.0.1:{free_port()}", free_port()
        realm_path = f"/realms/{REALM}"
        self.issuer = self._http + realm_path
        self.token_url = f"{self.issuer}/protocol/openid-connect/token"
        self.keys_url = f"https://127.0.0.1:{https}{realm_path}/protocol/openid-connect/certs"
        self.log = folder / "keycloak.log"
        self._command = [
            *("sh", str(home / "bin" / "kc.sh"), "start-dev", "--import-realm"),
            *("--db=dev-mem", "--cache=local", "--http-host=127.0.0.1"),
            *(f"--http-port={self._http.rpartition(':')[2]}", f"--https-port={https}"),
            f"--hostname={self._http}",
            f"--https-certificate-file={certificate.certificate}",
            f"--https-certificate-key-file={certificate.key}",
        ]
        self._environment = {
            **os.environ,
            "JAVA": java_program(),
            "JAVA_OPTS_KC_HEAP": _JAVA,
            "KC_BOOTSTRAP_ADMIN_USERNAME": ADMIN,
            "KC_BOOTSTRAP_ADMIN_PASSWORD": ADMIN,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Raises `KeycloakStartError`."""
        with self.log.open("ab") as said:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=self._environment,
                start_new_session=True,  # the script starts Java as a child
            )
        deadline = Deadline(self.log.read_text, START_S)
        while not self._answers():
            if self._process.poll() is not None:
                raise KeycloakStartError(self.log.read_text()[-2000:])
            deadline.pause(1)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(self.issuer, timeout=PATIENCE_S):
                return True
        except OSError:
            return False

    def kill(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Connections open, but nothing answers."""
        assert self._process is not None, "not started"
        os.killpg(self._process.pid, signal.SIGSTOP)
        try:
            script = psutil.Process(self._process.pid)
            processes = [script, *script.children(recursive=True)]
            deadline = Deadline("Keycloak stops")  # on a busy machine, threads run on for a moment
            while any(each.status() != psutil.STATUS_STOPPED for each in processes):
                deadline.pause()
            yield
        finally:
            os.killpg(self._process.pid, signal.SIGCONT)

    def remove(self) -> None:
        """Also the copy of the program, which is large."""
        self.kill()
        shutil.rmtree(self._home)

    @staticmethod
    def key_id(token: str) -> str:
        return str(jwt.get_unverified_header(token)["kid"])

    def token(self, client: str = CLIENT) -> str:
        form = {"grant_type": "client_credentials", "client_id": client, "client_secret": SECRET}
        return str(_asked(self.token_url, form)["access_token"])

    def rotate_keys(self) -> None:
        """From now on, tokens are signed with a new key."""
        form = {
            "grant_type": "password",
            "client_id": "admin-cli",
            "username": ADMIN,
            "password": ADMIN,
        }
        answer = _asked(f"{self._http}/realms/master/protocol/openid-connect/token", form)
        component = {
            "name": "newer",
            "providerId": "rsa-generated",
            "providerType": "org.keycloak.keys.KeyProvider",
            "config": {"priority": ["1000"], "algorithm": ["RS256"]},
        }
        request = urllib.request.Request(
            f"{self._http}/admin/realms/{REALM}/components",
            json.dumps(component).encode(),
            {
                "Authorization": f"Bearer {answer['access_token']}",
                "Content-Type": "application/json",
            },
        )
        urllib.request.urlopen(request, timeout=PATIENCE_S).close()


def _asked(url: str, form: Mapping[str, str]) -> dict[str, Any]:
    data = urllib.parse.urlencode(form).encode()
    with urllib.request.urlopen(url, data, timeout=PATIENCE_S) as answer:
        found: dict[str, Any] = json.load(answer)
        return found
