"""Certificates that are loaded, refused, and replaced while they are in use."""

import ssl
from pathlib import Path

import pytest

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.stateless_broker.health import BrokerPart, Health
from bucketlog.stateless_broker.network.certificates import Certificates
from bucketlog.stateless_broker.network.tls_context import LoadedTls, load_tls
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.stateless_broker.settings.tls import TlsSettings
from tests.rigs.certificate_authority import PASSWORD, Authority, KeyPair, replace_file

DAY_S = 86_400


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def settings(issued: KeyPair, **more: object) -> BrokerSettings:
    given = {
        "bucket_url": "memory://x",
        "listeners": "SSL://h:1",
        "ssl_certificate_file": issued.certificate,
        "ssl_key_file": issued.key,
        "ssl_key_password_file": issued.password_file,
    }
    return BrokerSettings.model_validate(given | more)


def refusal(issued: KeyPair, **more: object) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_tls(settings(issued, **more))
    assert caught.value.remedy
    return str(caught.value)


def test_a_certificate_with_its_issuers(root: Authority) -> None:
    below = Authority(root.folder, "below", root)
    lowest = Authority(root.folder, "lowest", below)
    loaded = load_tls(settings(lowest.issue("chained", days=(-1, 10))))
    assert loaded.context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert loaded.context.verify_mode is ssl.CERT_NONE


def test_the_first_of_the_certificates_that_expires_counts(root: Authority) -> None:
    early, late = root.issue("early", days=(-1, 3)), root.issue("late", days=(-1, 9))
    later_s = load_tls(settings(late)).expires_s - load_tls(settings(early)).expires_s
    assert later_s == pytest.approx(6 * DAY_S, abs=3600)
    below = Authority(root.folder, "below", root)  # valid for 30 days
    chained = load_tls(settings(below.issue("longer", days=(-1, 300)))).expires_s
    assert chained < load_tls(settings(root.issue("longer", days=(-1, 300)))).expires_s


def test_a_key_with_a_password(root: Authority) -> None:
    issued = root.issue("locked", password=PASSWORD)
    assert load_tls(settings(issued)).expires_s > 0
    without = KeyPair(issued.certificate, issued.key)
    assert "BUCKETLOG_SSL_KEY_PASSWORD_FILE" in refusal(without)
    wrong = root.folder / "wrong.password"
    wrong.write_text("another")
    assert str(issued.key) in refusal(without, ssl_key_password_file=wrong)


def test_what_does_not_fit_is_named(root: Authority, tmp_path: Path) -> None:
    good, other = root.issue("good"), root.issue("other")
    text = refusal(KeyPair(good.certificate, other.key))
    assert f"the key in {other.key} is not that of the certificate in {good.certificate}" in text
    assert f"cannot read {tmp_path}/gone" in refusal(KeyPair(tmp_path / "gone", good.key))
    assert f"cannot read {tmp_path}/gone" in refusal(KeyPair(good.certificate, tmp_path / "gone"))
    assert f"{good.key} holds no certificate" in refusal(KeyPair(good.key, good.key))
    assert "holds no key" in refusal(KeyPair(good.certificate, good.certificate))
    broken = tmp_path / "broken.pem"
    broken.write_text(good.certificate.read_text()[:200])
    assert "holds no certificate" in refusal(KeyPair(broken, good.key))
    text = refusal(good, ssl_ca_file=broken, ssl_client_auth="required")
    assert f"{broken} holds no certificates that OpenSSL reads" in text
    assert "BUCKETLOG_SSL_CIPHER_SUITES" in refusal(good, ssl_cipher_suites="NO-SUCH")


def test_certificates_that_are_not_valid_now(root: Authority) -> None:
    assert "certificate has expired" in refusal(root.issue("old", days=(-20, -2)))
    assert "not yet valid" in refusal(root.issue("young", days=(5, 9)))


def test_issuers_in_a_wrong_order(root: Authority, tmp_path: Path) -> None:
    below = Authority(root.folder, "below", root)
    good = Authority(root.folder, "lowest", below).issue("chained")
    pems = [
        f"{pem}-----END CERTIFICATE-----\n"
        for pem in good.certificate.read_text().split("-----END CERTIFICATE-----\n")[:-1]
    ]
    assert len(pems) == 3
    for wrong in (pems[:1] + pems[2:], [*pems[:2], root.issue("stranger").certificate.read_text()]):
        file = tmp_path / "wrong.pem"
        file.write_text("".join(wrong))
        assert "is not valid" in refusal(KeyPair(file, good.key))


def test_versions_and_clients(root: Authority) -> None:
    issued = root.issue("good")
    newest = load_tls(settings(issued, ssl_protocol_min="TLSv1.3")).context
    assert newest.minimum_version is ssl.TLSVersion.TLSv1_3
    for word, mode in [("requested", ssl.CERT_OPTIONAL), ("required", ssl.CERT_REQUIRED)]:
        given = settings(issued, ssl_client_auth=word, ssl_ca_file=root.file)
        context = load_tls(given).context
        assert context.verify_mode is mode
        assert len(context.get_ca_certs()) == 1


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"ssl_client_auth": "required"}, "ssl_client_auth=required needs BUCKETLOG_SSL_CA_FILE"),
        ({"ssl_key_file": None}, "listener SSL needs a certificate and its key"),
        ({"ssl_protocol_min": "TLSv1.1"}, "ssl_protocol_min"),
    ],
)
def test_settings_that_do_not_fit(root: Authority, more: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        settings(root.issue("good"), **more)


class Place:
    """Certificates in use; `loads` counts how often files were loaded."""

    def __init__(self, issued: KeyPair) -> None:
        self.health = Health()
        self.health.started = True
        self.now_s = 0.0
        self.loads = 0
        self.during_load: list[Path] = []
        self.certificates = Certificates(
            settings(issued), self.health, now_s=lambda: self.now_s, load=self._load
        )

    def _load(self, given: TlsSettings) -> LoadedTls:
        self.loads += 1
        loaded = load_tls(given)
        for file in self.during_load:
            replace_file(file, file.read_bytes())
        return loaded

    @property
    def reason(self) -> str:
        return self.health.report().get(BrokerPart.CERTIFICATES, "")


@pytest.fixture
async def place(root: Authority) -> Place:
    place = Place(root.issue("served"))
    await place.certificates.start()
    return place


async def test_files_that_change_are_loaded_once(place: Place, root: Authority) -> None:
    first = place.certificates.context
    await place.certificates.look()
    assert (place.certificates.context, place.loads) == (first, 1)
    root.issue("served")
    await place.certificates.look()
    await place.certificates.look()
    assert place.certificates.context is not first
    assert (place.loads, place.reason) == (2, "")
    place.certificates.reload_soon()
    await place.certificates.look(is_asked=True)
    assert place.loads == 3


async def test_files_that_do_not_work_leave_the_former_context(
    place: Place, root: Authority
) -> None:
    first = place.certificates.context
    expired = root.issue("served", days=(-9, -2))
    await place.certificates.look()
    assert place.reason == ""  # they may still be on their way
    await place.certificates.look()
    assert place.certificates.context is first
    assert f"the certificate in {expired.certificate} is not valid" in place.reason
    assert "the former certificate stays in use" in place.reason
    expired.key.unlink()
    await place.certificates.look(is_asked=True)
    assert place.certificates.context is first
    root.issue("served")
    await place.certificates.look()
    assert place.certificates.context is not first
    assert place.reason == ""


async def test_a_pair_that_is_half_replaced_is_no_fault(place: Place, root: Authority) -> None:
    served, fresh = root.folder / "served", root.issue("fresh")
    replace_file(served.with_suffix(".pem"), fresh.certificate.read_bytes())
    await place.certificates.look()
    assert place.reason == ""
    replace_file(served.with_suffix(".key"), fresh.key.read_bytes())
    await place.certificates.look()
    assert (place.loads, place.reason) == (3, "")


async def test_files_that_change_while_they_are_loaded_are_loaded_again(
    place: Place, root: Authority
) -> None:
    first = place.certificates.context
    place.during_load = [root.issue("served").key]
    await place.certificates.look()
    assert place.certificates.context is first
    place.during_load.clear()
    await place.certificates.look()
    assert place.certificates.context is not first


async def test_a_certificate_that_expires_in_use(place: Place, root: Authority) -> None:
    place.now_s += place.certificates.expires_in_s - 1
    await place.certificates.look()
    assert place.reason == ""
    assert place.certificates.expires_in_s == pytest.approx(1)
    place.now_s += 2
    await place.certificates.look()
    assert "has expired: replace the file" in place.reason
    root.issue("served", days=(-1, 60))
    await place.certificates.look()
    assert place.reason == ""
