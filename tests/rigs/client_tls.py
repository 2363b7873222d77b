"""How other people's clients are told to speak TLS: from one description to each one's settings."""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.rigs.certificate_authority import Issued

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True)
class ClientTls:
    """`ca`: whom the client trusts. `own` is the client's certificate. `version`: no other is
    spoken; librdkafka in this process ignores it, for it has no such setting."""

    ca: Path
    own: Issued | None = None
    version: str | None = None

    def librdkafka(self) -> dict[str, str]:
        found = {"security.protocol": "SSL", "ssl.ca.location": str(self.ca)}
        if self.own is not None:
            found |= {
                "ssl.certificate.location": str(self.own.certificate),
                "ssl.key.location": str(self.own.key),
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
        return {"security_protocol": "SSL", "ssl_context": self.context()}

    def java(self, **more: str) -> str:
        """Properties; underscores in the names of `more` are dots."""
        found = {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
        }
        if self.version is not None:
            found["ssl.enabled.protocols"] = self.version
        if self.own is not None:
            both = self.ca.with_name(f"{self.own.key.stem}.both.pem")
            both.write_bytes(self.own.key.read_bytes() + self.own.certificate.read_bytes())
            found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(both)}
        found |= {name.replace("_", "."): value for name, value in more.items()}
        return "".join(f"{name}={value}\n" for name, value in found.items())
