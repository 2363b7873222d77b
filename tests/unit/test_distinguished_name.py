"""Subjects of certificates as Java writes them, hence as Kafka's ACLs name them.

The wanted texts are what JDK 17's X500Principal.getName() printed for these certificates.
"""

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from bucketlog.stateless_broker.network.distinguished_name import subject_name

KEY = ec.generate_private_key(ec.SECP256R1())
BEGIN = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


def certificate(subject: x509.Name) -> bytes:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(x509.Name.from_rfc4514_string("CN=root,O=issuers"))
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(BEGIN)
        .not_valid_after(BEGIN + datetime.timedelta(days=1))
        .sign(KEY, hashes.SHA256())
        .public_bytes(serialization.Encoding.DER)
    )


def single(kind: x509.ObjectIdentifier, value: str, type_: _ASN1Type | None = None) -> x509.Name:
    return x509.Name([x509.NameAttribute(kind, value, type_)])


SUBJECTS = {
    "plain": (
        x509.Name.from_rfc4514_string("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US"),
        "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US",
    ),
    "components": (
        x509.Name.from_rfc4514_string("UID=u,CN=a,STREET=s,DC=example,DC=com"),
        "UID=u,CN=a,STREET=s,DC=example,DC=com",
    ),
    "escaped": (
        single(NameOID.COMMON_NAME, 'a,b=c+d<e>f#g;h"i\\j'),
        r"CN=a\,b\=c\+d\<e\>f\#g\;h\"i\\j",
    ),
    "spaces": (single(NameOID.COMMON_NAME, "  a b "), "CN=\\ \\ a b\\ "),
    "umlaut": (single(NameOID.COMMON_NAME, "Zoë Ärger"), "CN=Zoë Ärger"),
    "email": (
        single(NameOID.EMAIL_ADDRESS, "a@b.c"),
        "1.2.840.113549.1.9.1=#16056140622e63",
    ),
    "serial": (single(NameOID.SERIAL_NUMBER, "7"), "2.5.4.5=#130137"),
    "many in one": (
        x509.Name(
            [
                x509.RelativeDistinguishedName(
                    [
                        x509.NameAttribute(NameOID.COMMON_NAME, "a"),
                        x509.NameAttribute(NameOID.USER_ID, "b"),
                    ]
                ),
                x509.RelativeDistinguishedName([x509.NameAttribute(NameOID.COUNTRY_NAME, "CH")]),
            ]
        ),
        "C=CH,CN=a+UID=b",
    ),
    "empty": (x509.Name([]), ""),
    "long": (single(NameOID.ORGANIZATION_NAME, "x" * 60), "O=" + "x" * 60),
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_subject(name: str) -> None:
    subject, wanted = SUBJECTS[name]
    assert subject_name(certificate(subject)) == wanted


def test_a_certificate_that_is_cut_is_an_error() -> None:
    whole = certificate(SUBJECTS["plain"][0])
    for size in (0, 1, 10, 60, 100):
        with pytest.raises(ValueError, match=r"cut|unpack|no subject"):
            subject_name(whole[:size])
