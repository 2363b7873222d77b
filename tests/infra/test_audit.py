"""A whole audit by pip-audit, against a stand-in for OSV; and the SBOM of the image."""

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scripts.audit import Finding, audit
from tests.infra.programs import ROOT, installed, run
from tests.servers.components import Components

pytestmark = pytest.mark.long


class Advisories(BaseHTTPRequestHandler):
    """Answers as OSV does: one package has one advisory."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        advisory = {
            "id": "GHSA-1111-2222-3333",
            "aliases": ["CVE-2026-1"],
            "summary": "planted",
            "affected": [
                {
                    "package": {"ecosystem": "PyPI", "name": "wheelbarrow"},
                    "ranges": [
                        {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.1"}]}
                    ],
                    "versions": ["1.0"],
                }
            ],
        }
        is_found = asked["package"]["name"] == "wheelbarrow"
        body = json.dumps({"vulns": [advisory]} if is_found else {}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def osv_url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Advisories) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
        server.shutdown()
        thread.join()


def test_an_audit_with_pip_audit(tmp_path: Path, osv_url: str, components: Components) -> None:
    program = installed("supply-tools", components).with_name("pip-audit")
    listed = tmp_path / "list.txt"
    digest = "0" * 64
    listed.write_text(
        "".join(f"{name}==1.0 --hash=sha256:{digest}\n" for name in ("wheelbarrow", "sound"))
    )
    assert audit(str(program), [listed], osv_url) == [
        Finding("wheelbarrow", "1.0", ("CVE-2026-1", "GHSA-1111-2222-3333"), ("1.1",))
    ]
    with pytest.raises(subprocess.CalledProcessError):
        audit(str(program), [listed], "http://127.0.0.1:1/v1/query")


def test_the_bill_of_materials_names_what_the_image_holds(components: Components) -> None:
    program = installed("supply-tools", components).with_name("cyclonedx-py")
    listed = ROOT / "infra" / "container" / "requirements.txt"
    pinned = set(re.findall(r"^([\w.-]+)==(\S+)", listed.read_text(), re.MULTILINE))
    command = re.search(
        r"cyclonedx-py\" (requirements .*?)--output-file",
        (ROOT / "scripts" / "sbom.sh").read_text().replace("\\\n", ""),
    )
    assert command is not None
    done = run([program, *command[1].split(), "--output-file", "-", listed], ROOT)
    made = json.loads(done.stdout)
    assert {(part["name"], part["version"]) for part in made["components"]} == pinned
    assert made["metadata"]["component"]["name"] == "bucketlog"
    hashes = [part["externalReferences"][0]["hashes"] for part in made["components"]]
    assert all(hashes)
