"""The server's side of SCRAM, judged by the example of RFC 7677 and by aiokafka's client."""

import base64
import hmac
from collections.abc import Callable
from hashlib import sha256

import pytest
from aiokafka.conn import ScramAuthenticator

from bucketlog.metadata.scram_credentials import ScramMechanism
from bucketlog.stateless_broker.authentication.scram import (
    ITERATIONS_MIN,
    SALT_BYTES,
    LoginFailedError,
    ScramCredential,
    ScramExchange,
    keys_of,
    salted,
)

PASSWORD = "pencil"
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
FINAL_WITHOUT_PROOF = f"c=biws,r=rOprNGfwEbeRWgbNEkqO{NONCE}"
FINAL = f"{FINAL_WITHOUT_PROOF},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
MECHANISMS = list(ScramMechanism)


def credential(mechanism: ScramMechanism, password: str = PASSWORD) -> ScramCredential:
    keys = keys_of(mechanism, salted(mechanism, password, SALT, 4096))
    return ScramCredential(4096, SALT, keys)


def exchange(
    mechanism: ScramMechanism = ScramMechanism.SHA_256,
    *,
    users: tuple[str, ...] = ("user",),
    new_nonce: Callable[[], str] = lambda: NONCE,
) -> ScramExchange:
    return ScramExchange(
        mechanism,
        find=lambda user: credential(mechanism) if user in users else None,
        decoy=lambda user: user.encode().ljust(64, b"."),
        new_nonce=new_nonce,
    )


def client(user: str, mechanism: ScramMechanism, password: str = PASSWORD) -> ScramAuthenticator:
    return ScramAuthenticator(
        loop=None,
        sasl_plain_username=user,
        sasl_plain_password=password,
        sasl_mechanism=mechanism.value,
    )


def refused(server: ScramExchange, message: bytes) -> LoginFailedError:
    with pytest.raises(LoginFailedError) as caught:
        server.answer(message)
    assert server.user is None
    return caught.value


def test_the_example_of_rfc_7677() -> None:
    server = exchange()
    first = f"r=rOprNGfwEbeRWgbNEkqO{NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert server.answer(FIRST).decode() == first
    assert server.user is None
    assert server.answer(FINAL) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert server.user == "user"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("user", ["user", "a,b=c", "=2C", "ünï cödé", ""])
def test_another_project_s_client(mechanism: ScramMechanism, user: str) -> None:
    server, asking = exchange(mechanism, users=(user,)), client(user, mechanism)
    first = server.answer(asking.first_message().encode())
    asking.process_server_first_message(first.decode())
    last = server.answer(asking.final_message().encode())
    asking.process_server_final_message(last.decode())  # raises if the signature is wrong
    assert server.user == user


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password(mechanism: ScramMechanism) -> None:
    server, asking = exchange(mechanism), client("user", mechanism, "pencils")
    asking.process_server_first_message(server.answer(asking.first_message().encode()).decode())
    assert not refused(server, asking.final_message().encode()).is_public


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_an_unknown_user_takes_the_same_steps(mechanism: ScramMechanism) -> None:
    answers, reasons = [], []
    for user in ("nobody", "nobody", "user"):
        server, asking = exchange(mechanism), client(user, mechanism, "wrong")
        answer = server.answer(asking.first_message().encode()).decode()
        asking.process_server_first_message(answer)
        answers.append(dict(part.split("=", 1) for part in answer.split(",")[1:]))
        error = refused(server, asking.final_message().encode())
        assert not error.is_public
        reasons.append(str(error).replace(repr(user), "…"))
    assert answers[0] == answers[1] != answers[2]
    assert answers[0]["i"] == str(ITERATIONS_MIN)
    assert len(base64.b64decode(answers[0]["s"])) == SALT_BYTES
    assert len(set(reasons)) == 1


def signed(without_proof: str, *, more: bytes = b"") -> bytes:
    """A final message with the proof that belongs to it."""
    first = f"r=rOprNGfwEbeRWgbNEkqO{NONCE},s={base64.b64encode(SALT).decode()},i=4096"
    about = f"{FIRST[3:].decode()},{first},{without_proof}".encode()
    password = salted(ScramMechanism.SHA_256, PASSWORD, SALT, 4096)
    client_key = hmac.digest(password, b"Client Key", "sha256")
    signature = hmac.digest(sha256(client_key).digest(), about, "sha256")
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True)) + more
    return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()


def test_a_signed_message_is_that_of_the_example() -> None:
    assert signed(FINAL_WITHOUT_PROOF) == FINAL


@pytest.mark.parametrize(
    "final",
    [
        signed(FINAL_WITHOUT_PROOF, more=b"x"),
        signed(FINAL_WITHOUT_PROOF.replace(NONCE, "")),
        signed(FINAL_WITHOUT_PROOF.replace(NONCE, "x" * len(NONCE))),
        signed(FINAL_WITHOUT_PROOF + "x"),
        signed(FINAL_WITHOUT_PROOF.replace("biws", "eSws")),
        signed(FINAL_WITHOUT_PROOF.replace("biws", "cD10bHMtdW5pcXVlLCw=")),
    ],
)
def test_a_right_proof_of_another_message(final: bytes) -> None:
    server = exchange()
    server.answer(FIRST)
    refused(server, final)


def test_extensions_are_signed_and_ignored() -> None:
    server = exchange()
    server.answer(FIRST)
    server.answer(signed(FINAL_WITHOUT_PROOF + ",x=1,y=2"))
    assert server.user == "user"


@pytest.mark.parametrize(
    "final",
    [
        FINAL[:-2] + b"A=",
        FINAL.replace(b"p=dHz", b"p=eHz"),
        f"{FINAL_WITHOUT_PROOF},p=".encode(),
        f"{FINAL_WITHOUT_PROOF},p=====".encode(),
        f"{FINAL_WITHOUT_PROOF},p={'A' * 43}=".encode(),
        FINAL[:-4],
        FINAL + b"AAAA",
        FINAL + b",x=1",
        FINAL.replace(b"c=biws", b"c=eSws"),
        FINAL.replace(b"c=biws", b"c=*"),
        FINAL.replace(b"c=biws,", b""),
        FINAL.replace(NONCE.encode(), b"x" * len(NONCE)),
        FINAL.replace(NONCE.encode(), b""),
        FINAL.replace(b",p=", b",m=1,p="),
        FINAL.replace(b"r=", b"\xff="),
        b"",
        b"\0",
    ],
)
def test_final_messages_that_are_refused(final: bytes) -> None:
    server = exchange()
    server.answer(FIRST)
    refused(server, final)


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,",
        b"n,,n=user",
        b"n,,n=user,r=",
        b"n,,r=abc,n=user",
        b"n,,n=us=er,r=abc",
        b"n,,n=us\0er,r=abc",
        b"n,,n=us=2cer,r=abc",
        b"n,,m=1,n=user,r=abc",
        b"p=tls-unique,,n=user,r=abc",
        b"p=tls-exporter,,n=user,r=abc",
        b"n,,n=user,r=a b",
        b"n,,n=user,r=\xc3\xbc",
        b"n,,n=\xff,r=abc",
        b"\xff",
    ],
)
def test_first_messages_that_are_refused(first: bytes) -> None:
    assert not refused(exchange(), first).is_public


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (b"n,a=admin,n=user,r=abc", "authorization id that is different from username"),
        (b"n,,n=user,r=abc,tokenauth=true", "delegation tokens are not supported"),
        (b"n,,n=user,r=abc,x=1,tokenauth=true,y=2", "delegation tokens are not supported"),
    ],
)
def test_first_messages_that_are_refused_with_a_reason(first: bytes, words: str) -> None:
    error = refused(exchange(), first)
    assert error.is_public
    assert words in str(error)


@pytest.mark.parametrize("first", [b"n,a=user,n=user,r=abc", b"y,,n=user,r=abc,x=1"])
def test_first_messages_that_are_taken(first: bytes) -> None:
    assert exchange().answer(first).startswith(f"r=abc{NONCE},s=".encode())


def test_a_message_after_the_login_is_refused() -> None:
    server = exchange()
    server.answer(FIRST)
    server.answer(FINAL)
    with pytest.raises(LoginFailedError, match="after the login"):
        server.answer(FINAL)


def test_a_recorded_login_cannot_be_sent_again() -> None:
    nonces = iter(["first", "second"])
    asking = client("user", ScramMechanism.SHA_256)
    first = asking.first_message().encode()
    server = exchange(new_nonce=lambda: next(nonces))
    asking.process_server_first_message(server.answer(first).decode())
    final = asking.final_message().encode()
    server.answer(final)
    again = exchange(new_nonce=lambda: next(nonces))
    again.answer(first)
    refused(again, final)
    changed = exchange(new_nonce=lambda: "third")
    changed.answer(first)
    refused(changed, final.replace(b"first", b"third"))


@pytest.mark.parametrize(
    "first",
    [
        b"n,,n=" + b"=2C" * 20_000,
        b"n,,n=user,r=" + b"a" * 60_000 + b"\x01",
        b"n,,n=user,r=abc" + b"," * 60_000 + b"\xff",
    ],
)
def test_a_long_message_is_refused_at_once(first: bytes) -> None:
    """A pattern that tries many ways would take years."""
    refused(exchange(), first)
    server = exchange()
    server.answer(FIRST)
    refused(server, FINAL_WITHOUT_PROOF.encode() + b",x" * 30_000 + b",p=*")
