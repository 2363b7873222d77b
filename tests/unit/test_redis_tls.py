"""The TLS context of connections to Redis, by the files that a URL names."""

import ssl
from pathlib import Path
from typing import Any, cast

import pytest

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.metadata.sequencer.redis_tls import tls_problem
from bucketlog.metadata.sequencer.redis_url import connect_redis
from tests.rigs.certificate_authority import Authority


def context_of(url: str) -> ssl.SSLContext:
    pool = cast(Any, connect_redis(url, timeout_ms=1000).connection_pool)
    context: ssl.SSLContext = pool.make_connection().ssl_context.get()
    return context


def test_only_the_authorities_of_the_url_are_trusted(tmp_path: Path) -> None:
    root = Authority(tmp_path)
    trusted = context_of(f"rediss://h?ssl_ca_certs={root.file}").get_ca_certs(binary_form=True)
    assert trusted == [ssl.PEM_cert_to_DER_cert(root.pem.decode())]
    assert context_of("rediss://h").get_ca_certs() == ssl.create_default_context().get_ca_certs()


def test_checks_are_on_unless_the_url_switches_them_off() -> None:
    usual = context_of("rediss://h")
    assert (usual.check_hostname, usual.verify_mode) == (True, ssl.CERT_REQUIRED)
    nameless = context_of("rediss://h?ssl_check_hostname=false")
    assert (nameless.check_hostname, nameless.verify_mode) == (False, ssl.CERT_REQUIRED)
    none = context_of("rediss://h?ssl_cert_reqs=none")
    assert (none.check_hostname, none.verify_mode) == (False, ssl.CERT_NONE)


def test_a_key_needs_a_certificate(tmp_path: Path) -> None:
    issued = Authority(tmp_path).issue("client")
    with pytest.raises(ConfigurationError, match="ssl_keyfile needs ssl_certfile"):
        context_of(f"rediss://h?ssl_keyfile={issued.key}")


def test_an_encrypted_key_needs_its_password(tmp_path: Path) -> None:
    issued = Authority(tmp_path).issue("client", password="secret")
    url = f"rediss://h?ssl_certfile={issued.certificate}&ssl_keyfile={issued.key}"
    context_of(f"{url}&ssl_password=secret")
    for wrong in ("", "&ssl_password=other"):
        with pytest.raises(ConfigurationError, match="ssl_certfile and ssl_keyfile do not work"):
            context_of(f"{url}{wrong}")


def test_other_errors_have_nothing_to_do_with_tls() -> None:
    assert tls_problem(OSError("no route"), uses_tls=False) is None
    assert tls_problem(OSError("no route"), uses_tls=True) is None
