"""How other people's clients speak TLS and log in: one description, as each client's settings."""

import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiokafka.abc import AbstractTokenProvider
from kafka.net.sasl import oauth as kafka_python

from bucketlog.client.access_tokens import TokenSource, librdkafka_callback
from tests.rigs.certificate_authority import KeyPair

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

    def librdkafka(self) -> dict[str, Any]:
        return {
            "sasl.mechanism": self.mechanism,
            "sasl.username": self.user,
            "sasl.password": self.password,
        }

    def python(self) -> dict[str, Any]:
        return {
            "sasl_mechanism": self.mechanism,
            "sasl_plain_username": self.user,
            "sasl_plain_password": self.password,
        }

    def java(self) -> dict[str, str]:
        return {"sasl.mechanism": self.mechanism, "sasl.jaas.config": self.jaas}

    def go(self) -> dict[str, str]:
        return {"mechanism": self.mechanism, "user": self.user, "password": self.password}


class AioKafkaTokens(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka is untyped
    """Tokens for aiokafka."""

    def __init__(self, source: TokenSource) -> None:
        self._source = source

    async def token(self) -> str:
        return self._source()


class KafkaPythonTokens(kafka_python.AbstractTokenProvider):  # type: ignore[misc]  # as above
    """Tokens for kafka-python."""

    def __init__(self, source: TokenSource) -> None:
        self._source = source

    def token(self) -> str:
        return self._source()


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """By tokens from a function. `provider` is the kind that the Python client wants. `file`: Java
    clients read the token there. `seems_fresh`: librdkafka gets a false time of expiry, because it
    does not send a token that has expired."""

    source: TokenSource
    provider: type[AioKafkaTokens] | type[KafkaPythonTokens] = AioKafkaTokens
    file: Path | None = None
    seems_fresh: bool = False

    def librdkafka(self) -> dict[str, Any]:
        given = librdkafka_callback(self.source)

        def later(config: str) -> tuple[str, float]:
            return given(config)[0], time.time() + 300

        callback = later if self.seems_fresh else given
        return {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": callback}

    def python(self) -> dict[str, Any]:
        return {
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": self.provider(self.source),
        }

    def go(self) -> dict[str, str]:
        return {"mechanism": "OAUTHBEARER", "token": self.source()}

    def java(self) -> dict[str, str]:
        """`java_allows` has to be among Java's options, too."""
        if self.file is None:
            raise NotImplementedError("Java clients get tokens from a provider or a file")
        self.file.write_text(self.source())
        security = "org.apache.kafka.common.security.oauthbearer"
        return {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": self.file.as_uri(),
            "sasl.login.callback.handler.class": f"{security}.OAuthBearerLoginCallbackHandler",
            "sasl.jaas.config": f"{security}.OAuthBearerLoginModule required;",
        }

    @property
    def java_allows(self) -> Sequence[str]:
        """Since Kafka 4.0, Java clients read only files that system properties name."""
        assert self.file is not None
        allowed = "-Dorg.apache.kafka.sasl.oauthbearer.allowed"
        return [f"{allowed}.urls={self.file.as_uri()}", f"{allowed}.files={self.file}"]


@dataclass(frozen=True, slots=True)
class OidcLogin:
    """By tokens that the client itself gets from a provider's token URL."""

    token_url: str
    client_id: str
    secret: str

    def librdkafka(self) -> dict[str, Any]:
        return {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": self.client_id,
            "sasl.oauthbearer.client.secret": self.secret,
            "sasl.oauthbearer.token.endpoint.url": self.token_url,
        }

    def python(self) -> dict[str, Any]:
        raise NotImplementedError("these clients get tokens from a function")

    def java(self) -> dict[str, str]:
        """`java_allows` has to be among Java's options, too."""
        security = "org.apache.kafka.common.security.oauthbearer"
        return {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": self.token_url,
            "sasl.login.callback.handler.class": f"{security}.OAuthBearerLoginCallbackHandler",
            "sasl.jaas.config": f"{security}.OAuthBearerLoginModule required;",
            "sasl.oauthbearer.client.credentials.client.id": self.client_id,
            "sasl.oauthbearer.client.credentials.client.secret": self.secret,
            # else the client warns that it cannot wait for minutes before the token expires
            "sasl.login.refresh.min.period.seconds": "1",
            "sasl.login.refresh.buffer.seconds": "10",
        }

    @property
    def java_allows(self) -> Sequence[str]:
        """Since Kafka 4.0, Java clients ask only URLs that a system property names."""
        return [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.token_url}"]


@dataclass(frozen=True, slots=True)
class ClientTls:
    """`ca`: whom the client trusts. `own` is the client's certificate. `version`: no other is
    spoken; librdkafka in this process ignores it, for it has no such setting. Without
    `is_encrypted`, the client logs in over plain text."""

    ca: Path
    own: KeyPair | None = None
    version: str | None = None
    login: ClientLogin | TokenLogin | OidcLogin | None = None
    is_encrypted: bool = True

    @property
    def _protocol(self) -> str:
        below = "SSL" if self.is_encrypted else "PLAINTEXT"
        return below if self.login is None else f"SASL_{below}"

    def librdkafka(self) -> dict[str, Any]:
        found: dict[str, Any] = {"security.protocol": self._protocol}
        if self.is_encrypted:
            found["ssl.ca.location"] = str(self.ca)
        if self.own is not None:
            found |= {
                "ssl.certificate.location": str(self.own.certificate),
                "ssl.key.location": str(self.own.key),
            }
        if self.login is not None:
            found |= self.login.librdkafka()
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
            found |= self.login.python()
        return found

    def go(self) -> dict[str, str]:
        """As `tests/servers/go_client` reads them."""
        found = {"ca": str(self.ca)} if self.is_encrypted else {}
        if self.own is not None:
            found |= {"certificate": str(self.own.certificate), "key": str(self.own.key)}
        if self.version is not None:
            found["version"] = self.version
        if isinstance(self.login, ClientLogin | TokenLogin):
            found |= self.login.go()
        return found

    def java_options(self) -> Sequence[str]:
        """What `java` needs beside the properties."""
        return self.login.java_allows if isinstance(self.login, TokenLogin | OidcLogin) else []

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
            found |= self.login.java()
        found |= {name.replace("_", "."): value for name, value in more.items()}
        return "".join(f"{name}={value}\n" for name, value in found.items())
