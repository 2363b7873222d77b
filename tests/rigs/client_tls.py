"""How other people's clients speak TLS and log in: one description, as each client's settings."""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.rigs.certificate_authority import Issued

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True)
class ClientLogin:
    user: str
    password: str
    mechanism: str

    @property
    def jaas(self) -> str:
        module = "plain.Plain" if self.mechanism == "PLAIN" else "scram.Scram"
        return (
            f"org.apache.kafka.common.security.{module}LoginModule required "
            f'username="{self.user}" password="{self.password}";'
        )


@dataclass(frozen=True, slots=True)
class ClientTls:
    """`ca`: whom the client trusts. `own` is the client's certificate. `version`: no other is
    spoken; librdkafka in this process ignores it, for it has no such setting. Without
    `is_encrypted`, the client logs in over plain text."""

    ca: Path
    own: Issued | None = None
    version: str | None = None
    login: ClientLogin | None = None
    is_encrypted: bool = True

    @property
    def _protocol(self) -> str:
        below = "SSL" if self.is_encrypted else "PLAINTEXT"
        return below if self.login is None else f"SASL_{below}"

    def librdkafka(self) -> dict[str, str]:
        found = {"security.protocol": self._protocol}
        if self.is_encrypted:
            found["ssl.ca.location"] = str(self.ca)
        if self.own is not None:
            found |= {
                "ssl.certificate.location": str(self.own.certificate),
                "ssl.key.location": str(self.own.key),
            }
        if self.login is not None:
            found |= {
                "sasl.mechanism": self.login.mechanism,
                "sasl.username": self.login.user,
                "sasl.password": self.login.password,
            }
        return found

    def kcat(self) -> Sequence[str]:
        return [f"{name}={value}" for name, value in self.librdkafka().items()]

    def kcat_environment(self) -> dict[str, str]:
        """OpenSSL's own settings bound its versions."""
        if self.version is None:
            return {}
        file = self.ca.with_name(f"openssl-{self.version}.cnf")
        file.write_text(
            "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = bounds\n"
            f"[bounds]\nMinProtocol = {self.version}\nMaxProtocol = {self.version}\n"
        )
        return {"OPENSSL_CONF": str(file)}

    def context(self) -> ssl.SSLContext:
        found = ssl.create_default_context(cafile=str(self.ca))
        if self.own is not None:
            found.load_cert_chain(self.own.certificate, self.own.key)
        if self.version is not None:
            found.minimum_version = found.maximum_version = _VERSIONS[self.version]
        return found

    def python(self) -> dict[str, Any]:
        """For aiokafka and kafka-python."""
        found: dict[str, Any] = {"security_protocol": self._protocol}
        if self.is_encrypted:
            found["ssl_context"] = self.context()
        if self.login is not None:
            found |= {
                "sasl_mechanism": self.login.mechanism,
                "sasl_plain_username": self.login.user,
                "sasl_plain_password": self.login.password,
            }
        return found

    def go(self) -> dict[str, str]:
        """As `tests/servers/go_client` reads them. Without a certificate of the client."""
        found = {"ca": str(self.ca)} if self.is_encrypted else {}
        if self.login is not None:
            found |= {
                "mechanism": self.login.mechanism,
                "user": self.login.user,
                "password": self.login.password,
            }
        return found

    def java(self, **more: str) -> str:
        """Properties; underscores in the names of `more` are dots."""
        found = {"security.protocol": self._protocol}
        if self.is_encrypted:
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.ca)}
        if self.version is not None:
            found["ssl.enabled.protocols"] = self.version
        if self.own is not None:
            both = self.ca.with_name(f"{self.own.key.stem}.both.pem")
            both.write_bytes(self.own.key.read_bytes() + self.own.certificate.read_bytes())
            found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(both)}
        if self.login is not None:
            found |= {"sasl.mechanism": self.login.mechanism, "sasl.jaas.config": self.login.jaas}
        found |= {name.replace("_", "."): value for name, value in more.items()}
        return "".join(f"{name}={value}\n" for name, value in found.items())
