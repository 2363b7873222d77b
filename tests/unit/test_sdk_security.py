"""`Security`: what it refuses, what librdkafka gets, and the client's side of logins, judged by the
example of RFC 7677 and by the broker's side."""

from pathlib import Path
from typing import Any

import pytest

from bucketlog import ConfigurationError, Security
from bucketlog.client.login_tokens import ScramClient, ServerTokenError, plain_token
from bucketlog.metadata.scram_credentials import ScramMechanism
from bucketlog.stateless_broker.authentication.scram import (
    LoginFailedError,
    ScramCredential,
    ScramExchange,
    keys_of,
    salted,
)
from tests.rigs.certificate_authority import Authority

SECRET = "a secret, =ü"
SALT = b"salt of a test"
PENCIL_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
PENCIL_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
PENCIL_PROOF = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_tls_is_the_default() -> None:
    assert Security().librdkafka() == {
        "security.protocol": "SSL",
        "enable.ssl.certificate.verification": True,
        "ssl.endpoint.identification.algorithm": "https",
    }
    context = Security().ssl_context()
    assert context.check_hostname
    assert context.verify_mode.name == "CERT_REQUIRED"


def test_a_login_over_tls(tmp_path: Path) -> None:
    root = Authority(tmp_path)
    own = root.issue("ann", password="of the key")
    found = Security(
        ca_file=root.file,
        certificate_file=own.certificate,
        key_file=str(own.key),
        key_password="of the key",
        username="ann",
        password=SECRET,
        mechanism="SCRAM-SHA-256",
        verify_hostname=False,
    )
    assert found.librdkafka() == {
        "security.protocol": "SASL_SSL",
        "enable.ssl.certificate.verification": True,
        "ssl.endpoint.identification.algorithm": "none",
        "ssl.ca.location": str(root.file),
        "ssl.certificate.location": str(own.certificate),
        "ssl.key.location": str(own.key),
        "ssl.key.password": "of the key",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "ann",
        "sasl.password": SECRET,
    }
    assert not found.ssl_context().check_hostname
    assert SECRET not in repr(found)
    assert "of the key" not in repr(found)


def test_a_login_without_tls() -> None:
    found = Security(username="ann", password=SECRET, tls=False).librdkafka()
    assert found["security.protocol"] == "SASL_PLAINTEXT"
    assert not [name for name in found if name.startswith("ssl")]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"username": "ann"}, "user 'ann' has no password"),
        ({"password": SECRET}, "give the username"),
        ({"mechanism": "GSSAPI", "username": "ann", "password": SECRET}, "choose one of SCRAM"),
        ({"certificate_file": __file__}, "give certificate_file and key_file"),
        ({"ca_file": "/none/ca.pem"}, "the file /none/ca.pem cannot be read: No such file"),
        ({"tls": False}, "neither TLS nor a login"),
        (
            {"tls": False, "username": "ann", "password": SECRET, "mechanism": "PLAIN"},
            "PLAIN without TLS",
        ),
        (
            {"tls": False, "username": "ann", "password": SECRET, "ca_file": __file__},
            "certificates without TLS",
        ),
    ],
)
def test_what_is_wrong_is_named_without_the_password(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        Security(**given)
    assert SECRET not in str(caught.value)


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    root = Authority(tmp_path)
    locked, other = root.issue("locked", password=SECRET), root.issue("other")
    with pytest.raises(ConfigurationError, match=f"the CA file {__file__}"):
        Security(ca_file=__file__).ssl_context()
    for key_file, password in ((locked.key, None), (locked.key, "wrong"), (other.key, None)):
        security = Security(
            certificate_file=locked.certificate, key_file=key_file, key_password=password
        )
        with pytest.raises(ConfigurationError, match=str(key_file)):
            security.ssl_context()


def test_the_example_of_rfc_7677() -> None:
    client = ScramClient("SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert client.final(PENCIL_FIRST) == PENCIL_FINAL
    client.check(PENCIL_PROOF)
    for wrong in (PENCIL_PROOF[:-5] + b"AAA4=", b"v=", b"e=other-error", b"\xff", b"v=====", b""):
        with pytest.raises(ServerTokenError):
            client.check(wrong)


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"\xff",
        PENCIL_FIRST.replace(b"rOpr", b"other"),
        b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        PENCIL_FIRST.replace(b"i=4096", b"i=99999999"),
        PENCIL_FIRST.replace(b"i=4096", b"i=0"),
        PENCIL_FIRST.replace(b"gQ==", b"g"),
    ],
)
def test_hostile_servers_are_refused(first: bytes) -> None:
    client = ScramClient("SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    client.first()
    with pytest.raises(ServerTokenError):
        client.final(first)


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
@pytest.mark.parametrize("password", [SECRET, "wrong"])
def test_the_broker_s_side_agrees(mechanism: ScramMechanism, password: str) -> None:
    keys = keys_of(mechanism, salted(mechanism, SECRET, SALT, 4096))
    server = ScramExchange(
        mechanism,
        find=lambda user: ScramCredential(4096, SALT, keys) if user == "a,n=n" else None,
        decoy=str.encode,
        new_nonce=lambda: "more",
    )
    client = ScramClient(mechanism.value, "a,n=n", password)
    final = client.final(server.answer(client.first()))
    if password != SECRET:
        with pytest.raises(LoginFailedError):
            server.answer(final)
        return
    client.check(server.answer(final))
    assert server.user == "a,n=n"


def test_plain() -> None:
    assert plain_token("ann", SECRET) == b"\0ann\0" + SECRET.encode()
