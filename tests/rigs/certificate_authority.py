"""An authority of a test's own, which issues certificates into a folder. Keys are of P-256."""

import datetime
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

DAY = datetime.timedelta(days=1)
LOCAL = ("localhost", "127.0.0.1")
PASSWORD = "a password"
SERVER = x509.Name.from_rfc4514_string("CN=broker")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """`password_file` has the key's password; None: the key is not encrypted."""

    certificate: Path
    key: Path
    password_file: Path | None = None


def rfc4514(text: str) -> x509.Name:
    return x509.Name.from_rfc4514_string(text)


class Authority:
    """`issuer`: the authority that issued this one; None: it is a root."""

    def __init__(self, folder: Path, name: str = "root", issuer: "Authority | None" = None) -> None:
        self.folder = folder
        self._issuer = issuer
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = rfc4514(f"CN={name}")
        self.file = folder / f"{name}.pem"
        """The certificate of the authority, for those who trust it."""
        builder = self._builder(self._name, self._key.public_key(), issuer or self).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self._certificate = builder.sign((issuer or self)._key, hashes.SHA256())
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)
        self.file.write_bytes(self.pem)

    @staticmethod
    def _builder(
        subject: x509.Name,
        public_key: ec.EllipticCurvePublicKey,
        issuer: "Authority",
        days: tuple[int, int] = (-1, 30),
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + min(days) * DAY - DAY)
            .not_valid_after(now + max(days) * DAY)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer._key.public_key()),
                critical=False,
            )
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        )

    def issue(
        self,
        file_name: str,
        subject: x509.Name = SERVER,
        *,
        hosts: tuple[str, ...] = LOCAL,
        days: tuple[int, int] = (-1, 30),
        password: str | None = None,
    ) -> KeyPair:
        """`days`: from when until when the certificate is valid. Files of the same name are
        replaced, each as a whole: first the certificate, then the key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [_general_name(host) for host in hosts]
        builder = self._builder(subject, key.public_key(), self, days).add_extension(
            x509.ExtendedKeyUsage(
                [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            ),
            critical=False,
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        chain = certificate.public_bytes(serialization.Encoding.PEM) + self._intermediates()
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        password_file = None
        if password is not None:
            encryption = serialization.BestAvailableEncryption(password.encode())
            password_file = self.folder / f"{file_name}.password"
            replace_file(password_file, f"{password}\n".encode())
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
        )
        issued = KeyPair(
            self.folder / f"{file_name}.pem", self.folder / f"{file_name}.key", password_file
        )
        replace_file(issued.certificate, chain)
        replace_file(issued.key, pem)
        return issued

    def _intermediates(self) -> bytes:
        return b"" if self._issuer is None else self.pem + self._issuer._intermediates()


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def replace_file(path: Path, content: bytes) -> None:
    """As a whole, so that the file has another inode."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.replace(path)
